import type { Db } from '../../db/db.ts';
import type { Asker, KnownAsker } from './asker.ts';
import { grantsState } from './grants-state.ts';
import type { ObjectActions } from './object-actions.ts';
import { type SubjectText, userSubject } from './subject.ts';

export async function knownAsker(db: Db, asker: Asker): Promise<KnownAsker> {
  const { user, tenant } = asker;
  const { groups } = grantsState.of(db);
  if (user === null || !user.is_active || user.is_superuser || groups === null) return { ...asker, groups: [] };
  return { ...asker, groups: await groups.groupsOf(db, user.id, tenant) };
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
