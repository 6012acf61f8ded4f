import { ruleResult } from '../../../auth/rights/rule-result.ts';
import type { Db } from '../../../db/engine/db.ts';
import { type Asker, type KnownAsker, requireAsker } from '../declare/asker.ts';
import { grantsState } from '../declare/grants-state.ts';
import type { ObjectActions } from '../declare/object-actions.ts';
import type { PermissionContext } from '../../../permissions/permission.ts';
import { type SubjectText, userSubject } from '../declare/subject.ts';

/** Every decision starts here: nothing is asked without a tenant, or null. `permission`: the request, where there is one. */
export async function knownAsker(
  db: Db,
  asker: Asker,
  now: Date = grantsState.of(db).clock.now(),
  permission?: PermissionContext,
): Promise<KnownAsker> {
  requireAsker('Object grants', asker);
  const { user, tenant } = asker;
  const { groups } = grantsState.of(db);
  const known = { user, tenant, now, permission: permission ?? programContext(db, asker) };
  if (user === null || !user.is_active || user.is_superuser || groups === null) return { ...known, groups: [] };
  return { ...known, groups: ruleResult('groupsOf', 'group directory', await groups.groupsOf(db, user.id, tenant)) };
}

function programContext(db: Db, { user, tenant }: Asker): PermissionContext {
  const principal = user === null ? null : { user, scheme: 'program', scopes: null };
  const { rules } = grantsState.of(db);
  return { method: 'GET', url: '', headers: {}, principal, user, tenant, scope: undefined, db: db.database, rules };
}

/**
 * The asker holds every action on every object of the model without owning it: the resource says `owner: { column, unless }`, and `unless` holds
 * for the asker.
 */
export async function isExempt({ ownerUnless }: ObjectActions, { user, permission }: KnownAsker): Promise<boolean> {
  if (ownerUnless === undefined || permission === undefined || user === null || !user.is_active) return false;
  return (await ownerUnless.evaluate(permission)) === true;
}

/** Everything that an asker is, for a model. A wide subject counts only while the model's declaration allows it. */
export function subjectsOf({ subjects }: ObjectActions, { user, tenant, groups }: KnownAsker): SubjectText[] {
  const wide = subjects.has('public') ? ['public'] : [];
  if (user === null || !user.is_active) return wide;
  return [
    userSubject(user.id),
    ...groups.map((id) => `group:${id}`),
    ...(subjects.has('tenant') && tenant !== null ? ['tenant'] : []),
    ...(subjects.has('authenticated') ? ['authenticated'] : []),
    ...wide,
  ];
}
