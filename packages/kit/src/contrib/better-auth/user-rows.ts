import type { UserRows } from '../../auth/people/user-directory.ts';
import { quoteName as q } from '../../db/declare/names.ts';
import type { Db } from '../../db/engine/db.ts';
import type { AuthTable, InstanceContext } from './instance.ts';

/** Fields that give access, whatever a plugin says about them. */
const SECRET = /token|secret|password|codes|privatekey/i;

/** The tables of the instance and its plugins with rows of users, and the columns with their ids; that of the users last. */
function tablesOfUsers({ tables }: InstanceContext): { readonly table: AuthTable; readonly columns: readonly string[] }[] {
  const users = tables['user'];
  if (users === undefined) return [];
  const others = Object.values(tables).flatMap((table) => {
    const columns = Object.entries(table.fields).flatMap(([name, { fieldName, references }]) =>
      references?.model === users.modelName ? [fieldName ?? name] : [],
    );
    return table === users || columns.length === 0 ? [] : [{ table, columns }];
  });
  return [...others, { table: users, columns: ['id'] }];
}

/** What better-auth has about a user, without what gives access. */
export async function userRows(db: Db, context: InstanceContext, id: string): Promise<UserRows[]> {
  const found: UserRows[] = [];
  for (const { table, columns } of tablesOfUsers(context)) {
    const shown = Object.entries(table.fields).flatMap(([name, { fieldName, returned }]) =>
      returned === false || SECRET.test(name) ? [] : [q(fieldName ?? name)],
    );
    const rows = await db.query<Record<string, unknown>>(
      `select ${['id', ...shown].join(', ')} from ${q(table.modelName)} where ${isOf(columns)}`,
      [id],
    );
    if (rows.length > 0) found.push({ table: table.modelName, rows });
  }
  return found;
}

/** Removes a user with sessions, accounts, memberships and whatever a plugin has, and what was sent to the address. */
export async function removeUser(tx: Db, context: InstanceContext, id: string): Promise<void> {
  const { tables } = context;
  const [users, invitations, verifications, sessions] = [tables['user'], tables['invitation'], tables['verification'], tables['session']];
  if (users === undefined) return;
  const [found] = await tx.query<{ email: string }>(
    `select ${q(users.fields['email']?.fieldName ?? 'email')} as email from ${q(users.modelName)} where "id" = $1`,
    [id],
  );
  const column = (table: AuthTable, field: string) => q(table.fields[field]?.fieldName ?? field);
  if (found !== undefined && invitations !== undefined)
    await tx.query(`delete from ${q(invitations.modelName)} where lower(${column(invitations, 'email')}) = lower($1)`, [found.email]);
  if (found !== undefined && verifications !== undefined)
    await tx.query(
      `delete from ${q(verifications.modelName)} where ${column(verifications, 'value')} = $1 or lower(${column(verifications, 'identifier')}) = lower($2)`,
      [id, found.email],
    );
  if (sessions?.fields['impersonatedBy'] !== undefined) {
    const by = column(sessions, 'impersonatedBy');
    await tx.query(`update ${q(sessions.modelName)} set ${by} = null where ${by} = $1`, [id]);
  }
  for (const { table, columns } of tablesOfUsers(context)) await tx.query(`delete from ${q(table.modelName)} where ${isOf(columns)}`, [id]);
}

function isOf(columns: readonly string[]): string {
  return columns.map((name) => `${q(name)} = $1`).join(' or ');
}
