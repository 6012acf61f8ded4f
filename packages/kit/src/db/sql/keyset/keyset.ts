import { fromJson, toJson } from '../../declare/column-json.ts';
import { columnEncoder, type ColumnEncoder } from '../../declare/column-codec.ts';
import { comparableParameters, comparableSql } from '../../declare/comparable.ts';
import type { Dialect } from '../../dialect.ts';
import type { Model } from '../../declare/model.ts';
import { statementsOf } from '../model-statements.ts';
import { quoteName } from '../../declare/names.ts';
import { isTimestampText } from '../../values/timestamp.ts';
import type { ColumnDefinition } from '../../declare/table-definition.ts';
import { refuseUnknownNames, requireArguments } from '../../../options/read-options.ts';
import { aList, aModel } from '../../../options/value-rule.ts';

/** One column of an ordering. */
export interface KeysetColumn {
  /** The row's member that holds the value. */
  readonly name: string;
  /** The column in the statement: `o."created_at"`. */
  readonly sql: string;
  readonly definition: ColumnDefinition;
  readonly descending: boolean;
}

/** Where a page begins: the values of the ordering's columns in the row before it, in their JSON form. */
export type KeysetPosition = readonly unknown[];

/** Where a page starts, and in which direction it goes. */
export interface KeysetStart {
  readonly position: KeysetPosition;
  /** Towards the start of the list. */
  readonly backwards: boolean;
  /** The row at the position is part of the page, too. Default: the page starts beyond it. */
  readonly inclusive?: boolean;
}

/**
 * A complete order of rows and the condition that continues it from a row: pages cost the same however far they are, and neither repeat
 * nor skip a row when others come and go. The columns must end with a key, so that no two rows are equal. NULLs are last.
 */
export class Keyset {
  readonly columns: readonly KeysetColumn[];
  /** The names of the columns. */
  readonly names: readonly string[];
  /** Names the ordering: `-created_at,-id`. */
  readonly shape: string;
  readonly #encoders: readonly ColumnEncoder[];
  /** All NOT NULL and one direction: one comparison of rows, which both databases read from an index. */
  readonly isRowComparison: boolean;
  /** By dialect and direction. */
  readonly #orders = new Map<string, string>();

  constructor(columns: readonly KeysetColumn[]) {
    this.columns = columns;
    this.names = columns.map(({ name }) => name);
    this.shape = columns.map(({ name, descending }) => `${descending ? '-' : ''}${name}`).join();
    this.#encoders = columns.map(({ name, definition }) => columnEncoder(name, definition));
    this.isRowComparison = columns.every(({ definition, descending }) => !definition.nullable && descending === columns[0]?.descending);
  }

  /** What follows ORDER BY. Backwards pages are read in the opposite order. */
  orderSql(dialect: Dialect, backwards = false): string {
    const key = `${dialect}${backwards ? ' backwards' : ''}`;
    let text = this.#orders.get(key);
    if (text === undefined) this.#orders.set(key, (text = this.#writeOrder(dialect, backwards)));
    return text;
  }

  #writeOrder(dialect: Dialect, backwards: boolean): string {
    const terms = this.columns.flatMap(({ sql, definition, descending }) => {
      const nulls = definition.nullable ? ` nulls ${backwards ? 'first' : 'last'}` : '';
      return comparableSql(sql, definition, dialect).map((term) => `${term} ${descending === backwards ? 'asc' : 'desc'}${nulls}`);
    });
    return terms.join(', ');
  }

  /** The place of a row, as code has it. */
  positionOf(row: object): KeysetPosition {
    return this.columns.map(({ name, definition }) => toJson(definition, (row as Readonly<Record<string, unknown>>)[name]));
  }

  /** The place of a row in its wire form. */
  positionOfWire(row: object): KeysetPosition {
    return this.columns.map(({ name }) => (row as Readonly<Record<string, unknown>>)[name]);
  }

  /** Whether the values are some that the columns can hold: a cursor may be older than the columns. */
  accepts(position: KeysetPosition): boolean {
    return this.valuesIfAccepted('sqlite', position) !== undefined;
  }

  /** {@link values}, or undefined where {@link accepts} says no. */
  valuesIfAccepted(dialect: Dialect, position: KeysetPosition): unknown[] | undefined {
    try {
      return this.values(dialect, position);
    } catch {
      return undefined;
    }
  }

  /** Positions of one shape have the same {@link text}: which of the values are NULL. */
  positionShape(position: KeysetPosition): string {
    return this.isRowComparison ? '' : position.map((value) => (value === null ? '0' : '1')).join('');
  }

  /** "Comes after the position", or before it when backwards; placeholders are counted from `first`. */
  text(dialect: Dialect, { position, backwards, inclusive = false }: KeysetStart, first: number): string {
    const terms = this.columns.map(({ sql, definition }) => comparableSql(sql, definition, dialect));
    let next = first;
    const values = terms.map((each, index) => (position[index] === null ? [] : each.map(() => `$${next++}`)));
    if (this.isRowComparison) {
      const sign = this.columns[0]?.descending === backwards ? '>' : '<';
      return `${tuple(terms.flat())} ${sign}${inclusive ? '=' : ''} ${tuple(values.flat())}`;
    }
    const alternatives: string[] = [];
    const equal: string[] = [];
    for (const [index, { sql, definition, descending }] of this.columns.entries()) {
      const [mine, theirs] = [tuple(terms[index] ?? []), tuple(values[index] ?? [])];
      const beyond = beyondSql({
        sql,
        mine,
        theirs,
        backwards,
        nullable: definition.nullable,
        descending,
        isNull: position[index] === null,
      });
      if (beyond !== undefined) alternatives.push([...equal, beyond].join(' and '));
      equal.push(position[index] === null ? `${sql} is null` : `${mine} = ${theirs}`);
    }
    if (inclusive) alternatives.push(equal.join(' and '));
    if (alternatives.length === 0) return '1 = 0';
    const any = `(${alternatives.map((each) => `(${each})`).join(' or ')})`;
    const [leading] = this.columns;
    if (leading === undefined || leading.definition.nullable) return any;
    // Implied by the alternatives, but only this is a range that an index can be read in.
    return `(${tuple(terms[0] ?? [])} ${leading.descending === backwards ? '>=' : '<='} ${tuple(values[0] ?? [])} and ${any})`;
  }

  /** The values for {@link text}, in the order of its placeholders. */
  values(dialect: Dialect, position: KeysetPosition): unknown[] {
    return this.#encode(position).flatMap((encoded, index) =>
      encoded === null ? [] : comparableParameters(encoded, (this.columns[index] as KeysetColumn).definition, dialect),
    );
  }

  /** The condition, with its values appended to the parameters of a statement. */
  append(dialect: Dialect, start: KeysetStart, parameters: unknown[]): string {
    const text = this.text(dialect, start, parameters.length + 1);
    parameters.push(...this.values(dialect, start.position));
    return text;
  }

  #encode(position: KeysetPosition): unknown[] {
    if (position.length !== this.columns.length) throw new TypeError('The position is one of another ordering.');
    return this.columns.map(({ definition }, index) => {
      const value = position[index];
      // Already as a parameter has it: no Date is made only to be written as the same text again.
      return definition.kind === 'timestamp' && isTimestampText(value) ? value : this.#encoders[index]?.(fromJson(definition, value));
    });
  }
}

interface Beyond {
  readonly sql: string;
  readonly mine: string;
  readonly theirs: string;
  readonly backwards: boolean;
  readonly nullable: boolean;
  readonly descending: boolean;
  readonly isNull: boolean;
}

/** One column beyond a value; undefined when none is. NULLs come after every value. */
function beyondSql({ sql, mine, theirs, backwards, nullable, descending, isNull }: Beyond): string | undefined {
  if (isNull) return backwards ? `${sql} is not null` : undefined;
  const beyond = `${mine} ${descending === backwards ? '>' : '<'} ${theirs}`;
  return nullable && !backwards ? `(${beyond} or ${sql} is null)` : beyond;
}

function tuple(terms: readonly string[]): string {
  return terms.length === 1 ? (terms[0] as string) : `(${terms.join(', ')})`;
}

/**
 * An ordering of a model's rows: `['-created_at', 'title']`, the primary key appended in the direction of the last column. `alias` is what
 * the statement calls the table (SQL, as it stands there).
 */
export function keysetOf(model: Model, order: readonly string[], alias: string): Keyset {
  requireArguments('keysetOf()', { model, order }, { model: aModel, order: aList });
  const statements = statementsOf(model);
  const columns: KeysetColumn[] = [];
  const add = (name: string, descending: boolean): void => {
    if (columns.some((each) => each.name === name)) return;
    columns.push({ name, sql: `${alias}.${quoteName(name)}`, definition: statements.column(name).definition, descending });
  };
  for (const each of order) {
    add(each.replace(/^-/, ''), each.startsWith('-'));
    // What follows a whole key decides nothing.
    if (model.primaryKey.every((name) => columns.some((column) => column.name === name))) break;
  }
  const descending = columns.at(-1)?.descending ?? false;
  for (const name of model.primaryKey) add(name, descending);
  return new Keyset(columns);
}

/** Where the pages around a page start; undefined where there is none. */
export interface PageNeighbors {
  readonly previous: KeysetStart | undefined;
  readonly next: KeysetStart | undefined;
}

/**
 * The neighbors of a page. An empty page leads back to the position it started from, and from there to the rows on the other side: all rows
 * beyond the position are gone, but the row at it may still be there.
 */
export function neighborsOf(page: {
  /** Where the page started; undefined at the start of the list. */
  readonly from: KeysetStart | undefined;
  /** The positions of its rows, in the order of the list; undefined for an empty page. */
  readonly first: KeysetPosition | undefined;
  readonly last: KeysetPosition | undefined;
  /** There are more rows in the direction of the page. */
  readonly hasMore: boolean;
}): PageNeighbors {
  const { from, first, last, hasMore } = page;
  const backwards = from?.backwards ?? false;
  if (first === undefined || last === undefined) {
    if (from === undefined) return { previous: undefined, next: undefined };
    const back = { position: from.position, backwards: !backwards, inclusive: from.inclusive !== true };
    return backwards ? { previous: undefined, next: back } : { previous: back, next: undefined };
  }
  const [hasPrevious, hasNext] = backwards ? [hasMore, true] : [from !== undefined, hasMore];
  return {
    previous: hasPrevious ? { position: first, backwards: true } : undefined,
    next: hasNext ? { position: last, backwards: false } : undefined,
  };
}

export interface KeysetPage<R> extends PageNeighbors {
  /** At most `limit`, in the order of the list. */
  readonly rows: readonly R[];
}

const PAGE_OPTIONS: ReadonlySet<string> = new Set(['limit', 'from']);

/** Cuts what a statement with `limit + 1` found into a page. `from`: where the statement started; undefined at the start of the list. */
export function keysetPage<R extends object>(
  keyset: Keyset,
  found: readonly R[],
  options: { readonly limit: number; readonly from: KeysetStart | undefined },
): KeysetPage<R> {
  refuseUnknownNames('keysetPage()', options, PAGE_OPTIONS);
  requireArguments('keysetPage()', { found }, { found: aList });
  const { limit, from } = options;
  const { rows, hasMore } = cutPage(found, limit, from?.backwards ?? false);
  const positionOf = (row: R | undefined) => (row === undefined ? undefined : keyset.positionOf(row));
  return { rows, ...neighborsOf({ from, first: positionOf(rows[0]), last: positionOf(rows.at(-1)), hasMore }) };
}

/** The rows of a page in the order of the list, of `limit + 1` as they were found. */
export function cutPage<R>(
  found: readonly R[],
  limit: number,
  backwards: boolean,
): { readonly rows: readonly R[]; readonly hasMore: boolean } {
  const hasMore = found.length > limit;
  const kept = hasMore ? found.slice(0, limit) : found;
  return { rows: backwards ? kept.toReversed() : kept, hasMore };
}
