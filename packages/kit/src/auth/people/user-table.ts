import type { Db } from '../../db/engine/db.ts';
import type { Dialect } from '../../db/dialect.ts';
import { quoteName } from '../../db/declare/names.ts';
import { isUuid } from '../../db/values/uuid.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';

/** The users' table: its name and the names of its columns. */
export interface UserTable {
  /** The name of the table. */
  readonly name: string;
  /** The column of the key. */
  readonly id: string;
  /** The column of the user name. */
  readonly username: string;
  /** The column of the email address. */
  readonly email: string;
  /** The flags may have any type: a boolean, a number, or a string such as `t` or `yes`. */
  readonly isActive: string;
  /** The column of the flag for staff. */
  readonly isStaff: string;
  /** The column of the flag for superusers. */
  readonly isSuperuser: string;
  /** The SQL type of `id`, `uuid` unless said: modules store owners as text and cast them for the join. */
  readonly idType?: 'uuid' | 'text' | 'bigint' | 'integer';
}

/** Column names and their types, as the database prints them. */
export type ColumnTypes = ReadonlyMap<string, string>;

const COLUMNS = ['id', 'username', 'email', 'isActive', 'isStaff', 'isSuperuser'] as const;
const BITS = { integer: 32, bigint: 64 } as const;

/** The columns of a table or view; undefined when there is none of this name. */
export async function columnTypes(db: Db, name: string): Promise<ColumnTypes | undefined> {
  const [last = '', schema] = name.split('.').reverse();
  const rows =
    db.dialect === 'postgres'
      ? await db.query<{ name: string; type: string }>(
          `select attname as name, format_type(atttypid, null) as type from pg_attribute
           where attrelid = to_regclass($1) and attnum > 0 and not attisdropped order by attnum`,
          [tableSql({ name })],
        )
      : await db.query<{ name: string; type: string }>(
          `select name, type from pragma_table_info($1${schema === undefined ? '' : ', $2'})`,
          schema === undefined ? [last] : [last, schema],
        );
  return rows.length === 0 ? undefined : new Map(rows.map((row) => [row.name, row.type.toLowerCase()]));
}

/** What is wrong with the description of the users' table, found before the first key or login needs it. */
export async function userTableFaults(db: Db, table: UserTable): Promise<Fault[]> {
  const columns = await columnTypes(db, table.name);
  if (columns === undefined) {
    // A database that was never migrated has none of its tables; that is said elsewhere.
    if ((await columnTypes(db, 'kit_migrations')) === undefined) return [];
    const hint = 'Correct users.table.name, or run the migration that creates the table.';
    return [{ id: 'E011', message: `users.table: there is no table "${table.name}" in the database "${db.using}".`, hint }];
  }
  const faults = COLUMNS.filter((option) => !columns.has(table[option])).map((option): Fault => {
    const known = [...columns.keys()];
    return {
      id: 'E011',
      message: `users.table.${option} names the column "${table[option]}", which the table "${table.name}" does not have.`,
      hint: didYouMean(table[option], known).trim() || `It has ${known.join(', ')}.`,
    };
  });
  const idType = columns.get(table.id);
  const fault = idType === undefined ? undefined : idTypeFault(table, idType, db.dialect);
  return fault === undefined ? faults : [...faults, fault];
}

function idTypeFault({ name, id, idType }: UserTable, found: string, dialect: Dialect): Fault | undefined {
  const fitting = idTypesOf(found, dialect);
  if (fitting.length === 0 || fitting.includes(idType ?? 'uuid')) return undefined;
  const said = idType === undefined ? 'users.table.idType is not given, which means "uuid"' : `users.table.idType is "${idType}"`;
  return { id: 'E011', message: `${said}, but "${name}"."${id}" is ${found}.`, hint: `Write idType: "${fitting[0]}".` };
}

function idTypesOf(found: string, dialect: Dialect): readonly string[] {
  // SQLite tells numbers from text only.
  if (dialect === 'sqlite') return /int/.test(found) ? ['bigint', 'integer'] : /char|text|clob|uuid/.test(found) ? ['text', 'uuid'] : [];
  if (/^(uuid|bigint)$/.test(found)) return [found];
  if (/^(integer|smallint)$/.test(found)) return ['integer'];
  return /^(text|character varying|character|citext)$/.test(found) ? ['text'] : [];
}

export function tableSql({ name }: Pick<UserTable, 'name'>): string {
  return name.split('.').map(quoteName).join('.');
}

/** A text that holds a user's id, as the type of the users' key: PostgreSQL needs it for its index, SQLite tells numbers from text. */
export function userIdSql(value: string, { idType = 'uuid' }: UserTable, dialect: Dialect): string {
  if (dialect === 'postgres') return `cast(${value} as ${idType})`;
  return idType === 'bigint' || idType === 'integer' ? `cast(${value} as integer)` : value;
}

/** Whether the text can be compared with the users' key at all: PostgreSQL fails on any other. */
export function couldBeUserId(text: string, { idType = 'uuid' }: UserTable): boolean {
  if (idType === 'text') return true;
  if (idType === 'uuid') return isUuid(text);
  return /^-?\d{1,19}$/.test(text) && BigInt.asIntN(BITS[idType], BigInt(text)) === BigInt(text);
}

/** Texts that mean "no" in a flag that is not a boolean. */
const NO = `'', '0', '0.0', 'f', 'false', 'n', 'no', 'off'`;

/** A flag as SQL that is true or false whatever the column's type; a boolean is read as it is. */
export function flagSql(column: string, type: string | undefined): string {
  if (type === 'boolean') return column;
  return `(case when ${column} is null or lower(cast(${column} as text)) in (${NO}) then false else true end)`;
}

/** What `flagSql` gives: SQLite has no booleans for expressions. */
export function isTrue(flag: unknown): boolean {
  return flag === true || flag === 1 || flag === 1n;
}
