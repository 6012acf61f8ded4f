export { grants, type GrantsOptions } from './grant/access.ts';
export type { Asker } from './declare/asker.ts';
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
} from './grant/grant.ts';
export { grantedCondition } from './rows/granted-condition.ts';
export type { ObjectRef } from './declare/grants-state.ts';
export {
  actionsOf,
  explainAccess,
  objectsOf,
  whoCan,
  type AccessExplanation,
  type AccessPath,
  type ObjectsOptions,
} from './grant/holdings.ts';
export { objectGrants, type ObjectGrantsOptions } from './module.ts';
export { objectActions, type ObjectActions, type ObjectActionsOptions } from './declare/object-actions.ts';
export { hasGrant } from './rows/permission.ts';
export type { GrantChange } from './rows/record-grant.ts';
export { sharing, type Shared, type SharingRoutes } from './serve/sharing.ts';
export type { GrantRow } from './rows/store.ts';
export type { WideSubject } from './declare/subject.ts';
