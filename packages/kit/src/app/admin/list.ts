import type { Db } from '../../db/engine/db.ts';
import type { Dialect } from '../../db/dialect.ts';
import { countUpTo } from '../../db/rows/count-rows.ts';
import type { CursorContent } from '../../db/sql/keyset/cursor.ts';
import { Keyset, keysetPage } from '../../db/sql/keyset/keyset.ts';
import { containsSql } from '../../db/sql/portable-sql.ts';
import type { ColumnDefinition } from '../../db/declare/table-definition.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { AdminListQuery } from './declaration.ts';
import { ADMIN_COUNT_MAX, type AdminColumn, type AdminPage } from './shapes.ts';
import { refuseUnknownNames, requireArguments } from '../../options/read-options.ts';
import { isUuid } from '../../db/values/uuid.ts';
import { anObject, queryable } from '../../options/value-rule.ts';
import { groupDigits } from './group-digits.ts';

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
  /** The column, where it is one: it says more than `kind`. */
  readonly definition?: ColumnDefinition;
  /** Characters that it compares, of a column with longer texts. */
  readonly cut?: number;
  /** An index has the rows in this order. Of a large table without one the newest rows are put in order, see `boundOrder`. */
  readonly indexed?: boolean;
}

export type AdminOrders = Readonly<Record<string, AdminOrder>>;

/** Rows that a list looks at where no index finds or orders them. Of a larger table these are the newest. */
export const SEARCHED_ROWS_MAX = 50_000;

const UNINDEXED_NOTE = `Has no index: of more than ${groupDigits(SEARCHED_ROWS_MAX)} records, the newest ${groupDigits(SEARCHED_ROWS_MAX)} are sorted.`;

/** The columns of a list with what its orders say about them. */
export function sortableColumns(columns: readonly AdminColumn[], orders: AdminOrders): readonly AdminColumn[] {
  return columns.map((column) => {
    const order = orders[column.name];
    if (order === undefined) return column;
    return { ...column, sortable: true, ...(order.indexed === true ? {} : { sortNote: UNINDEXED_NOTE }) };
  });
}

/** A list as SQL. Without another order it goes by its key, a UUIDv7 or a counter, newest first. */
export interface AdminSelect {
  readonly columns: string;
  readonly from: string;
  readonly key: string;
  /** Default: `uuid`. */
  readonly keyKind?: KeyKind;
  readonly conditions: readonly string[];
  readonly parameters: readonly unknown[];
  /** By the names of sortable columns. */
  readonly orders?: AdminOrders;
  /** Tables that only columns need are left out of the count. */
  readonly countFrom?: string;
  /** The conditions leave a bounded part of the table, which no other index than that of the key has: rows are sorted, not read in order. */
  readonly isBounded?: boolean;
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
    isBounded: true,
  } satisfies Record<keyof AdminSelect, true>),
);

export interface AdminRows<R> {
  readonly rows: readonly R[];
  readonly count: number | null;
  readonly next: string | null;
}

/** What a page says about its search. */
export type SearchNote = Pick<AdminPage, 'searched' | 'atLeast'>;

/** Collects conditions and numbers their parameters. */
export class AdminConditions {
  readonly conditions: string[] = [];
  readonly parameters: unknown[] = [];
  /** How many rows a search looked at, where it did not look at all; see `searchRows`. */
  searched: number | undefined;
  /** A search stopped at its limit: the list may lack matches. */
  isCut = false;
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

  /** For the statement of the list. */
  get parts(): Pick<AdminSelect, 'conditions' | 'parameters' | 'isBounded'> {
    const { conditions, parameters, searched } = this;
    return { conditions, parameters, isBounded: searched !== undefined };
  }

  /** What a page says about its search. */
  get searchNote(): SearchNote {
    return { ...(this.searched === undefined ? {} : { searched: this.searched }), ...(this.isCut ? { atLeast: true } : {}) };
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
  requireArguments('adminRows()', { db, query }, { db: queryable, query: anObject });
  const { columns, from, key, conditions } = select;
  const order = query.sort === null ? undefined : select.orders?.[query.sort.column];
  const keyset = keysetOfList(select, order, query, db.dialect);
  const bound = `${query.bound} ${query.sort?.column ?? ''} ${keyset.shape}`;
  const cursor = query.cursor === null ? undefined : readCursor(query.cursors.read(query.cursor, bound), keyset);
  const parameters = [...select.parameters];
  const after = cursor === undefined ? [] : [keyset.append(db.dialect, cursor, parameters)];
  const shown = order === undefined ? '' : `, ${order.sql} as order_value`;
  const limit = `$${parameters.push(query.limit + 1)}`;
  const isLong = conditions.length > 0 || (order !== undefined && order.indexed !== true);
  const found = await db.query<R>(
    `select ${columns}, ${key} as order_key${shown} ${from}${where([...conditions, ...after])} order by ${keyset.orderSql(db.dialect)} limit ${limit}`,
    parameters,
    isLong ? { ...PLANNED_EACH_TIME, mayBeLong: `admin list ${from}` } : PLANNED_EACH_TIME,
  );
  const { rows, next } = keysetPage(keyset, found, { limit: query.limit, from: cursor });
  // A first page that is not full has counted them already; later pages carry the count of the first.
  const count = cursor === undefined ? (next === undefined ? rows.length : await countRows(db, select)) : cursor.count;
  return {
    rows,
    count,
    next: next === undefined ? null : query.cursors.write({ ...next, count }, bound),
  };
}

/** Null: more than `max`. */
function countRows(
  db: Db,
  { from, countFrom, conditions, parameters }: AdminSelect,
  max: number = ADMIN_COUNT_MAX,
): Promise<number | null> {
  const mayBeLong = conditions.length > 0 ? `count of admin list ${from}` : undefined;
  return countUpTo(db, { from: `${countFrom ?? from}${where(conditions)}`, parameters, mayBeLong }, max);
}

const ORDER_KINDS = { text: 'text', number: 'float', time: 'timestamp' } as const;

export function keysetOfList(
  { key, keyKind = 'uuid', isBounded = false }: Pick<AdminSelect, 'key' | 'keyKind' | 'isBounded'>,
  order: AdminOrder | undefined,
  { sort }: Pick<AdminListQuery, 'sort'>,
  dialect: Dialect,
  names = { value: 'order_value', key: 'order_key' },
): Keyset {
  // Without another order it goes by its key, newest first.
  const descending = order === undefined ? sort?.descending !== false : (sort?.descending ?? false);
  const byKey = { name: names.key, sql: key, definition: { kind: keyKind, nullable: false }, descending };
  if (order === undefined) return new Keyset([byKey]);
  const definition = order.definition ?? { kind: ORDER_KINDS[order.kind], nullable: order.nullable === true };
  const sql = order.indexed === true && !isBounded ? order.sql : withoutIndex(order.sql, definition.kind, dialect);
  return new Keyset([{ name: names.value, sql, definition, descending }, byKey]);
}

/**
 * The same value, as no index has it. An index that begins with the column has not all rows in the list's order; walking it to find the newest
 * rows among all was the plan for a million users by e-mail on both databases.
 */
function withoutIndex(sql: string, kind: ColumnDefinition['kind'], dialect: Dialect): string {
  if (dialect === 'sqlite') return `+${sql}`;
  if (kind === 'text' || kind === 'enum') return `(${sql} || '')`;
  if (kind === 'timestamp') return `(${sql} + interval '0')`;
  return kind === 'bool' ? sql : `(${sql} + 0)`;
}

export function readCursor(content: CursorContent | undefined, keyset: Keyset): CursorContent {
  if (content !== undefined && keyset.accepts(content.position)) return content;
  throw coreErrors.validation_error({
    errors: [{ location: ['query', 'cursor'], code: 'invalid', message: 'The cursor is not from this list. Start at the first page.' }],
  });
}

function where(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`;
}
