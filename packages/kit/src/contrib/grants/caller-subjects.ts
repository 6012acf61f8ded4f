import type { Db } from '../../db/db.ts';
import { type Asker, type KnownAsker, requireAsker } from './asker.ts';
import { grantsState } from './grants-state.ts';
import type { ObjectActions } from './object-actions.ts';
import { type SubjectText, userSubject } from './subject.ts';

/** Every decision starts here: nothing is asked without a tenant, or null. */
export async function knownAsker(
  db: Db,
  asker: Asker,
  now: Date = grantsState.of(db).clock.now(),
  place = 'Object grants',
): Promise<KnownAsker> {
  requireAsker(place, asker);
  const { user, tenant } = asker;
  const { groups } = grantsState.of(db);
  if (user === null || !user.is_active || user.is_superuser || groups === null) return { user, tenant, now, groups: [] };
  return { user, tenant, now, groups: await groups.groupsOf(db, user.id, tenant) };
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
