import type { User } from '../../../auth/people/principal.ts';
import type { Db } from '../../../db/engine/db.ts';
import { grantsState } from '../declare/grants-state.ts';
import { parseSubject, subjectText, userSubject } from '../declare/subject.ts';

/** A subject as people write it: `user:ada` and `group:billing` by name or id, and the wide ones. A fault says what is wrong. */
export async function findSubject(
  db: Db,
  text: string,
  tenantKey: string | null = null,
): Promise<{ readonly subject: string } | { readonly fault: string }> {
  const [, kind, name = ''] = /^(user|group):(.+)$/s.exec(text.trim()) ?? [];
  if (kind === 'user') {
    const user = await findUser(db, name);
    return user === null ? { fault: `There is no user ${JSON.stringify(name)}.` } : { subject: userSubject(user.id) };
  }
  if (kind === 'group') {
    const { groups } = grantsState.of(db);
    const group = (await groups?.findById(db, name)) ?? (await groups?.findByName(db, name, tenantKey)) ?? null;
    return group === null ? { fault: `There is no group ${JSON.stringify(name)}.` } : { subject: `group:${group.id}` };
  }
  const parsed = parseSubject(text.trim());
  return parsed === undefined
    ? { fault: `${JSON.stringify(text)} is not a subject. Use user:ada, group:billing, tenant, authenticated or public.` }
    : { subject: subjectText(parsed) };
}

/** By id, or by what the user logs in with. */
export async function findUser(db: Db, login: string): Promise<User | null> {
  const { users } = grantsState.of(db);
  return (await users?.findById(db, login)) ?? (await users?.findByLogin(db, login)) ?? null;
}
