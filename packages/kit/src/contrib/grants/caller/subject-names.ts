import type { Db } from '../../../db/engine/db.ts';
import { grantsState } from '../declare/grants-state.ts';
import { parseSubject } from '../declare/subject.ts';

const WIDE_NAMES = { tenant: 'everyone in the tenant', authenticated: 'every signed-in user', public: 'everybody' } as const;

/** What people call subjects; null for users and groups that are gone. */
export async function namesOf(db: Db, subjects: readonly string[]): Promise<ReadonlyMap<string, string | null>> {
  const { users, groups } = grantsState.of(db);
  const names = new Map<string, string | null>();
  for (const subject of new Set(subjects)) {
    const parsed = parseSubject(subject);
    if (parsed === undefined) names.set(subject, null);
    else if (parsed.kind === 'user') names.set(subject, (await users?.findById(db, parsed.id))?.username ?? null);
    else if (parsed.kind === 'group') names.set(subject, (await groups?.findById(db, parsed.id))?.name ?? null);
    else names.set(subject, WIDE_NAMES[parsed.kind]);
  }
  return names;
}
