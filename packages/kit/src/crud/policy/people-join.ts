import { flagSql, tableSql, type UserTable } from '../../auth/people/user-table.ts';
import type { ColumnSettings } from '../../db/declare/column.ts';
import { quoteName } from '../../db/declare/names.ts';
import type { Dialect } from '../../db/dialect.ts';
import type { JoinedTable } from '../../db/sql/where/where.ts';

/** The key of the users' table in its own type: `id` of a person is its text. */
const KEY = quoteName('~key');

const UUID = `'^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'`;
/** Not longer: the cast of a larger number fails. */
const NUMBER = `'^(0|-?[1-9][0-9]{0,17})$'`;

/** Kinds of columns that ids of users are stored in, by the type of the users' key. */
const KINDS: Readonly<Record<NonNullable<UserTable['idType']>, readonly ColumnSettings['kind'][]>> = {
  uuid: ['uuid', 'text'],
  text: ['uuid', 'text', 'int', 'bigint'],
  integer: ['int', 'bigint', 'text'],
  bigint: ['int', 'bigint', 'text'],
};

/** Whether a column of this kind can have the ids of these users. */
export function hasIdsOf({ idType = 'uuid' }: UserTable, kind: ColumnSettings['kind']): boolean {
  return KINDS[idType].includes(kind);
}

/** The app's users in a statement, as rows of {@link PEOPLE}, found by a column of this kind. */
export function peopleJoin(users: UserTable, kind: ColumnSettings['kind']): JoinedTable {
  const column = (name: string) => `u.${quoteName(name)}`;
  const id = column(users.id);
  const source =
    `(select ${id} as ${KEY}, cast(${id} as text) as ${quoteName('id')}, ${column(users.username)} as ${quoteName('name')}, ` +
    `${flagSql(column(users.isActive), undefined)} as ${quoteName('is_active')} from ${tableSql(users)} u)`;
  return { source, on: (alias, mine, dialect) => onSql(`${alias}.${KEY}`, mine, users, kind, dialect) };
}

/**
 * Both sides in the type of the users' key, so that its index finds the user. A text that cannot be a key is cast to NULL: a database fails on it
 * otherwise, or takes it for 0.
 */
function onSql(key: string, mine: string, { idType = 'uuid' }: UserTable, kind: ColumnSettings['kind'], dialect: Dialect): string {
  if (idType === 'text')
    return kind === 'text' || (kind === 'uuid' && dialect === 'sqlite') ? `${key} = ${mine}` : `${key} = cast(${mine} as text)`;
  if (kind !== 'text') return `${key} = ${mine}`;
  if (dialect === 'postgres') {
    const type = idType === 'uuid' ? 'uuid' : 'bigint';
    return `${key} = case when ${mine} ~* ${idType === 'uuid' ? UUID : NUMBER} then cast(${mine} as ${type}) end`;
  }
  if (idType === 'uuid') return `${key} = ${mine}`;
  return `${key} = case when cast(cast(${mine} as integer) as text) = ${mine} then cast(${mine} as integer) end`;
}
