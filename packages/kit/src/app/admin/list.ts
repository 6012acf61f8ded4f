import type { Db } from '../../db/db.ts';
import type { Dialect } from '../../db/dialect.ts';
import { containsSql } from '../../db/portable-sql.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { AdminListQuery } from './declaration.ts';
import { refuseUnknownNames } from '../../options/read-options.ts';
import { isUuid } from '../../db/uuid.ts';

/** Largest count: an exact count of millions would cost more than the list. */
const COUNT_MAX = 10_000;

/**
 * A generic plan assumes that a filter matches many rows. Of 100,000 audit entries, 1,000 had one action (EXPLAIN, PostgreSQL 18): from the sixth
 * time on their count read the whole table instead of the action's index (34 ms, not 1.6), a page 5,100 entries instead of 51 (1.8 ms,
 * not 0.1). Planning took 0.2 ms.
 */
const PLANNED_EACH_TIME = { replanned: true } as const;

type KeyKind = 'uuid' | 'int' | 'bigint' | 'text';

/** How a list is ordered besides its key: SQL over the tables of `from`, and what its values are. */
export interface AdminOrder {
  readonly sql: string;
  readonly kind: 'text' | 'number' | 'time';
  readonly nullable?: boolean;
  /** Whether the column can hold a value: PostgreSQL refuses to compare it with any other. Everything of the kind unless given. */
  readonly fits?: (value: unknown) => boolean;
}

/** A list as SQL. Without another order it goes by its key, a UUIDv7 or a counter, newest first. */
export interface AdminSelect {
  readonly columns: string;
  readonly from: string;
  readonly key: string;
  /** `uuid` unless given. */
  readonly keyKind?: KeyKind;
  readonly conditions: readonly string[];
  readonly parameters: readonly unknown[];
  /** By the names of sortable columns. */
  readonly orders?: Readonly<Record<string, AdminOrder>>;
  /** Tables that only columns need are left out of the count. */
  readonly countFrom?: string;
}

const SELECT: ReadonlySet<string> = new Set(
  Object.keys({
    columns: true,
    from: true,
    key: true,
    keyKind: true,
    conditions: true,
    parameters: true,
    orders: true,
    countFrom: true,
  } satisfies Record<keyof AdminSelect, true>),
);

export interface AdminRows<R> {
  readonly rows: readonly R[];
  readonly count: number | null;
  readonly next: string | null;
}

/** Collects conditions and numbers their parameters. */
export class AdminConditions {
  readonly conditions: string[] = [];
  readonly parameters: unknown[] = [];
  readonly #dialect: Dialect;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  parameter(value: unknown): string {
    return `$${this.parameters.push(value)}`;
  }

  add(condition: string): void {
    this.conditions.push(condition);
  }

  /** Any of the expressions contains the text, whatever its case, or one of the alternatives holds. */
  contains(expressions: readonly string[], text: string, alternatives: readonly string[] = []): void {
    const parameter = this.parameter(text);
    this.add(`(${[...expressions.map((sql) => containsSql(sql, parameter, this.#dialect)), ...alternatives].join(' or ')})`);
  }

  /** Any of the columns is this id; text that is not an id matches nothing. */
  uuid(column: string, text: string, ...more: readonly string[]): void {
    const id = text.toLowerCase();
    if (!isUuid(id)) return this.add('1 = 0');
    const parameter = this.parameter(id);
    return this.add(`(${[column, ...more].map((each) => `${each} = ${parameter}`).join(' or ')})`);
  }
}

/** One page by keyset: the hundredth page costs what the first does. */
export async function adminRows<R extends object>(db: Db, select: AdminSelect, query: AdminListQuery): Promise<AdminRows<R>> {
  refuseUnknownNames('adminRows()', select, SELECT);
  const { columns, from, key, keyKind = 'uuid', conditions } = select;
  const order = query.sort === null ? undefined : select.orders?.[query.sort.column];
  const descending = order === undefined ? query.sort?.descending !== false : (query.sort?.descending ?? false);
  const parameters = [...select.parameters];
  const after = query.cursor === null ? [] : [afterCursor(query.cursor, { order, key, keyKind, descending, parameters })];
  const direction = descending ? 'desc' : 'asc';
  const by = order === undefined ? '' : `${order.sql} ${direction}${order.nullable === true ? ' nulls last' : ''}, `;
  const shown = order === undefined ? '' : `, ${order.sql} as order_value`;
  const limit = `$${parameters.push(query.limit + 1)}`;
  const found = await db.query<R & { order_key: string | bigint; order_value?: unknown }>(
    `select ${columns}, ${key} as order_key${shown} ${from}${where([...conditions, ...after])} order by ${by}${key} ${direction} limit ${limit}`,
    parameters,
    PLANNED_EACH_TIME,
  );
  const rows = found.slice(0, query.limit);
  const last = found.length > query.limit ? rows.at(-1) : undefined;
  return {
    rows,
    // A first page that is not full has counted them already.
    count: query.cursor === null && last === undefined ? rows.length : await countRows(db, select),
    next: last === undefined ? null : writeCursor(order === undefined ? null : (last.order_value ?? null), String(last.order_key)),
  };
}

/** Null: more than are counted. */
async function countRows(db: Db, { from, countFrom, conditions, parameters }: AdminSelect): Promise<number | null> {
  const [row] = await db.query<{ count: number | bigint }>(
    `select count(*) as count from (select 1 as one ${countFrom ?? from}${where(conditions)} limit ${COUNT_MAX + 1}) counted`,
    parameters,
    PLANNED_EACH_TIME,
  );
  const count = Number(row?.count ?? 0);
  return count > COUNT_MAX ? null : count;
}

interface Place {
  readonly order: AdminOrder | undefined;
  readonly key: string;
  readonly keyKind: KeyKind;
  readonly descending: boolean;
  readonly parameters: unknown[];
}

function afterCursor(cursor: string, { order, key, keyKind, descending, parameters }: Place): string {
  const [value, id] = readCursor(cursor, order, keyKind);
  const beyond = descending ? '<' : '>';
  const parameter = (given: unknown) => `$${parameters.push(given)}`;
  const keyParameter = parameter(id);
  const keyAfter = `${key} ${beyond} ${keyParameter}`;
  if (order === undefined) return keyAfter;
  // As one comparison of rows both databases read an index from there on.
  if (order.nullable !== true) return `(${order.sql}, ${key}) ${beyond} (${parameter(value)}, ${keyParameter})`;
  // NULLs come last either way: behind one, only the key decides; before them, they all follow.
  if (value === null) return `(${order.sql} is null and ${keyAfter})`;
  const at = parameter(value);
  return `(${order.sql} ${beyond} ${at} or (${order.sql} = ${at} and ${keyAfter}) or ${order.sql} is null)`;
}

function writeCursor(value: unknown, id: string): string {
  return Buffer.from(JSON.stringify([value, id])).toString('base64url');
}

function readCursor(cursor: string, order: AdminOrder | undefined, keyKind: KeyKind): readonly [unknown, string | bigint] {
  try {
    const read: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    const [value, key] = Array.isArray(read) ? (read as unknown[]) : [];
    const id = typeof key === 'string' ? keyOf(key, keyKind) : null;
    if (id !== null) {
      if (order === undefined || value === null) return [value, id];
      if (order.fits?.(value) === false) throw new TypeError('The column holds no such value.');
      if (order.kind === 'number' && typeof value === 'number') return [value, id];
      if (order.kind === 'text' && typeof value === 'string') return [value, id];
      if (order.kind === 'time' && typeof value === 'string' && !Number.isNaN(Date.parse(value))) return [new Date(value), id];
    }
  } catch {
    // Not a cursor of this list: refused below.
  }
  throw coreErrors.validation_error({
    errors: [{ location: ['query', 'cursor'], code: 'invalid', message: 'The cursor is not from this list. Start at the first page.' }],
  });
}

function keyOf(text: string, kind: KeyKind): string | bigint | null {
  if (kind === 'text') return text;
  if (kind === 'uuid') return isUuid(text) ? text : null;
  const number = /^-?\d{1,19}$/.test(text) ? BigInt(text) : null;
  return number === null || BigInt.asIntN(kind === 'int' ? 32 : 64, number) === number ? number : null;
}

function where(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`;
}
