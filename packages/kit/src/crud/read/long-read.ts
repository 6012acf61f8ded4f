import type { Dialect } from '../../db/dialect.ts';
import type { ColumnDefinition, IndexDefinition } from '../../db/declare/table-definition.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import { isStoredAsCompared, type WhereTerm } from '../../db/sql/where/where-terms.ts';
import { indexWords } from '../../db/sql/where/where-sql.ts';
import type { OrderTerm } from '../options/ordering.ts';

/** A table, as far as its indexes go. */
export interface IndexedTable {
  readonly name: string;
  readonly columns: Readonly<Record<string, ColumnDefinition>>;
  readonly primaryKey: readonly string[];
  readonly indexes: readonly IndexDefinition[];
}

/** The rows that a statement reads: those that meet all terms, in this order, until it has enough. */
export interface RowsToRead {
  readonly table: IndexedTable;
  readonly terms: readonly WhereTerm[];
  /** Empty: in any order. */
  readonly ordering: readonly OrderTerm[];
  readonly dialect: Dialect;
  /** Whether so few rows have the same value of the column that sorting them by their key costs nothing. Default: those of timestamps. */
  readonly mayTie?: (column: string) => boolean;
}

/** Why a statement may read many more rows than it returns. Names of columns, never values. */
export interface LongRead {
  readonly reason: string;
  /** The columns of an index with which it would read few; undefined where no index helps. */
  readonly index: readonly string[] | undefined;
}

/** Rows that are found one by one in a unique index. */
const LOOKED_UP_MAX = 1_000;

/**
 * Whether a statement may read many more rows than it returns; undefined when an index serves it. Statements that may be long have a deadline, and
 * on SQLite a process of their own; the others run where they are. Decided from the declared indexes alone: an index serves when the conditions on
 * equality begin it, the order continues it, and no condition is left that would pass over rows of that stretch. An index of the owner with a filter
 * that is not in it reads all rows of the owner.
 */
export function longRead({ table, terms, ordering, dialect, mayTie = isTime(table) }: RowsToRead): LongRead | undefined {
  const equal = new Set<string>();
  for (const term of terms) if (term.kind === 'equal' && term.values === 1) equal.add(term.column);
  if (isLookedUp(table, terms, equal)) return undefined;
  const left = neededOrder(table, ordering, equal);
  const ranges = new Set(terms.flatMap((term) => (term.kind === 'range' ? [term.column] : [])));
  const unserved = terms.filter(
    (term) =>
      term.kind === 'other' ||
      (term.kind === 'equal' && term.values > 1 && !equal.has(term.column)) ||
      (term.kind === 'filled' && !equal.has(term.column)),
  );
  const filled = new Set(terms.flatMap((term) => (term.kind === 'filled' ? [term.column] : [])));
  const words = new Set(terms.flatMap((term) => (term.kind === 'words' ? [term.text] : [])));
  const [range, ...moreRanges] = ranges;
  const isInOrder = range === undefined || left.length === 0 || left[0]?.column === range;
  const byExpression = left.find(({ column }) => !isStored(table, column, dialect));
  if (unserved.length > 0) return long(`${conditionsOn(unserved)}, which no index serves`);
  if (moreRanges.length > 0 || !isInOrder) return long(`a range of ${[...ranges].join(' and ')}, which no index serves with its order`);
  if (byExpression !== undefined) return long(`the order of ${byExpression.column}, which is compared as a number and stored as text`);
  const stretch: Stretch = { equal, filled, words, range, left, dialect, mayTie };
  if (indexesOf(table).some((index) => serves(table, index, stretch))) return undefined;
  if (words.size > 0) return long(`no index where ${[...words].join(' and ')} begins with the rest`);
  const columns = [...equal, ...(left.length === 0 && range !== undefined ? [range] : left.map(written))];
  return long(`no index begins with ${columns.join(', ')}`, columns);
}

/** The terms of all conditions. */
export function termsOf(conditions: readonly CompiledWhere[], dialect: Dialect): WhereTerm[] {
  return conditions.flatMap((each) => each.terms(dialect));
}

interface Stretch {
  readonly equal: ReadonlySet<string>;
  /** Columns that are not the empty text. */
  readonly filled: ReadonlySet<string>;
  /** Conditions of partial indexes. */
  readonly words: ReadonlySet<string>;
  readonly range: string | undefined;
  readonly left: readonly OrderTerm[];
  readonly dialect: Dialect;
  readonly mayTie: (column: string) => boolean;
}

/** True when the conditions name rows of a unique index, whatever else they ask of them. */
function isLookedUp(table: IndexedTable, terms: readonly WhereTerm[], equal: ReadonlySet<string>): boolean {
  const unique = indexesOf(table).filter((index) => index.unique && index.where === undefined);
  if (unique.some(({ columns }) => columns.every((column) => equal.has(plain(column))))) return true;
  return terms.some(
    (term) =>
      term.kind === 'equal' &&
      term.values <= LOOKED_UP_MAX &&
      unique.some(({ columns: [first, ...more] }) => more.length === 0 && plain(first ?? '') === term.column),
  );
}

/** The order of rows of which some columns are all the same, up to a column that has no equal values. */
function neededOrder(table: IndexedTable, ordering: readonly OrderTerm[], equal: ReadonlySet<string>): OrderTerm[] {
  const needed: OrderTerm[] = [];
  for (const term of ordering) {
    if (equal.has(term.column)) continue;
    needed.push(term);
    if (isUnique(table, term.column)) break;
  }
  return needed;
}

function serves(table: IndexedTable, index: IndexDefinition, { equal, filled, words, range, left, dialect, mayTie }: Stretch): boolean {
  const covered = new Set<string>();
  const isInWords = index.where !== undefined && words.has(indexWords(index.where));
  // Another index would pass over the rows that the words leave out.
  if (words.size > (isInWords ? 1 : 0)) return false;
  if (index.where !== undefined && !isInWords) {
    const [, column = '', condition] = /^"?([a-z_][a-z0-9_]*)"? (is null|<> '')$/i.exec(index.where.trim()) ?? [];
    if (condition === "<> ''" ? !filled.has(column) : !equal.has(column)) return false;
    if (condition !== "<> ''") covered.add(column);
  }
  let place = 0;
  for (const column of index.columns.map(plain)) {
    if (!equal.has(column)) break;
    covered.add(column);
    place += 1;
  }
  if (covered.size < equal.size) return false;
  if (left.length === 0) return range === undefined || plain(index.columns[place] ?? '') === range;
  let isReversed: boolean | undefined;
  for (const [at, { column, descending }] of left.entries()) {
    const next = index.columns[place + at];
    if (next === undefined) return at > 0 && isUnique(table, column) && mayTie(left[at - 1]?.column ?? '');
    if (plain(next) !== column) return false;
    const differs = next.startsWith('-') !== descending;
    // NULLs are last in both directions: only SQLite reads that from an index of the other direction.
    if (differs && dialect === 'postgres' && table.columns[column]?.nullable === true) return false;
    if (isReversed !== undefined && isReversed !== differs) return false;
    isReversed = differs;
  }
  return true;
}

function isTime({ columns }: IndexedTable): (column: string) => boolean {
  return (column) => columns[column]?.kind === 'timestamp';
}

/** The primary key is one of them. */
function indexesOf({ primaryKey, indexes }: IndexedTable): IndexDefinition[] {
  return [{ name: '', columns: primaryKey, unique: true }, ...indexes];
}

function isUnique(table: IndexedTable, name: string): boolean {
  if (table.columns[name]?.nullable === true) return false;
  return indexesOf(table).some(({ columns: [first, ...more], unique, where }) => {
    return unique && where === undefined && more.length === 0 && plain(first ?? '') === name;
  });
}

function isStored({ columns }: IndexedTable, name: string, dialect: Dialect): boolean {
  const definition = columns[name];
  return definition === undefined || isStoredAsCompared({ definition }, dialect);
}

function conditionsOn(terms: readonly WhereTerm[]): string {
  const columns = [
    ...new Set(terms.flatMap((term) => (term.kind === 'other' ? term.columns : term.kind === 'words' ? [] : [term.column]))),
  ];
  return columns.length === 0 ? 'a condition' : `a condition on ${columns.join(', ')}`;
}

function long(reason: string, index?: readonly string[]): LongRead {
  return { reason, index };
}

function written({ column, descending }: OrderTerm): string {
  return descending ? `-${column}` : column;
}

function plain(column: string): string {
  return column.startsWith('-') ? column.slice(1) : column;
}
