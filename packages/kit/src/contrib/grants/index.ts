export { grants, type GrantsOptions } from './access.ts';
export type { Asker } from './asker.ts';
export {
  grant,
  replaceGrants,
  revoke,
  transfer,
  type GivenGrant,
  type NewGrant,
  type ReplacedGrants,
  type Revocation,
  type Transfer,
} from './grant.ts';
export { grantedCondition } from './granted-condition.ts';
export type { ObjectRef } from './grants-state.ts';
export { actionsOf, explainAccess, objectsOf, whoCan, type AccessExplanation, type AccessPath, type ObjectsOptions } from './holdings.ts';
export { objectGrants, type ObjectGrantsOptions } from './module.ts';
export { objectActions, type ObjectActions, type ObjectActionsOptions } from './object-actions.ts';
export { hasGrant } from './permission.ts';
export type { GrantChange } from './record-grant.ts';
export { sharing, type Shared, type SharingRoutes } from './sharing.ts';
export type { GrantRow } from './store.ts';
export type { WideSubject } from './subject.ts';
