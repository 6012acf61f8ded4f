import { comparableParameters, comparableSql } from '../../declare/comparable.ts';
import { searchColumnName } from '../../declare/encrypted-column.ts';
import type { Dialect } from '../../dialect.ts';
import type { ModelColumn } from '../model-statements.ts';
import { quoteName } from '../../declare/names.ts';
import { textSql } from '../portable-sql.ts';
import type { ColumnDefinition } from '../../declare/table-definition.ts';
import type { CompareOperator, WhereNode, WhereValue } from './where-node.ts';
import { placeSql } from './where-sql.ts';

const SIGNS: Readonly<Record<CompareOperator, string>> = { eq: '=', ne: '<>', gt: '>', gte: '>=', lt: '<', lte: '<=' };

type Among = Extract<WhereNode, { node: 'among' }>;

/**
 * A longer list is one parameter. A statement has at most 32,766 parameters on SQLite and 65,535 on PostgreSQL; a search engine, or a rule
 * about rows, may name more rows than that.
 */
const LONG_LIST = 1_000;
/** The columns that other systems name rows by, with their types on PostgreSQL. */
const LIST_TYPES: Readonly<Partial<Record<ColumnDefinition['kind'], string>>> = {
  uuid: 'uuid',
  int: 'integer',
  bigint: 'bigint',
  text: 'text',
  enum: 'text',
};

function isLong({ column, values }: Among): boolean {
  return values.length > LONG_LIST && LIST_TYPES[column.definition.kind] !== undefined;
}

/** Writes a tree as one SQL expression over the table that the statement calls `alias`; placeholders count from `first`. */
export function writeWhere(node: WhereNode, dialect: Dialect, alias: string, first: number): string {
  return new Writer(dialect, first).write(node, alias, 1);
}

class Writer {
  readonly #dialect: Dialect;
  #next: number;

  constructor(dialect: Dialect, first: number) {
    this.#dialect = dialect;
    this.#next = first;
  }

  write(node: WhereNode, alias: string, depth: number): string {
    switch (node.node) {
      case 'constant':
        return node.value ? '1 = 1' : '1 = 0';
      case 'all':
      case 'any':
        return `(${node.of.map((each) => this.write(each, alias, depth)).join(node.node === 'all' ? ' and ' : ' or ')})`;
      case 'not':
        return `not (${this.write(node.of, alias, depth)})`;
      case 'untrue':
        return `(${this.write(node.of, alias, depth)}) is not true`;
      case 'null':
        return `${columnSql(node.column, alias)} is ${node.isNull ? '' : 'not '}null`;
      case 'empty':
        return `${columnSql(node.column, alias)} ${node.isEmpty ? '=' : '<>'} ''`;
      case 'compare':
        return this.#compare(node.column, SIGNS[node.operator], alias);
      case 'among':
        if (isLong(node)) return this.#amongLong(node, alias);
        return this.#among(node.column, node.negated, paddedLength(node.values.length), alias);
      case 'search':
        return this.#search(node.column, alias);
      case 'text':
        return textSql(node.operator, columnSql(node.column, alias), this.#placeholders(1), this.#dialect);
      case 'exists':
        return this.#exists(node, alias, depth);
      default: {
        const first = this.#next;
        this.#next += node.condition.values.length;
        return `(${placeSql(node.condition.textFor(this.#dialect), first, (name) => `${alias}.${quoteName(name)}`)})`;
      }
    }
  }

  #compare(column: ModelColumn, sign: string, alias: string): string {
    const terms = comparableSql(columnSql(column, alias), column.definition, this.#dialect);
    if (terms.length === 1) return `${terms[0]} ${sign} ${this.#placeholders(1)}`;
    return `(${terms.join(', ')}) ${sign} (${this.#placeholders(terms.length)})`;
  }

  #among(column: ModelColumn, negated: boolean, count: number, alias: string): string {
    const terms = comparableSql(columnSql(column, alias), column.definition, this.#dialect);
    if (terms.length === 1) return `${terms[0]} ${negated ? 'not ' : ''}in (${this.#placeholders(count)})`;
    // Not one comparison after the other: SQLite takes minutes for thousands of them.
    const rows = Array.from({ length: count }, () => `(${this.#placeholders(terms.length)})`).join(', ');
    return `(${terms.join(', ')}) ${negated ? 'not ' : ''}in (values ${rows})`;
  }

  #amongLong({ column, negated }: Among, alias: string): string {
    const sql = columnSql(column, alias);
    const list = this.#placeholders(1);
    if (this.#dialect === 'postgres') return `${sql} ${negated ? '<> all' : '= any'} (${list}::${LIST_TYPES[column.definition.kind]}[])`;
    return `${sql} ${negated ? 'not ' : ''}in (select value from json_each(${list}))`;
  }

  /** One parameter, however many keys hashed the values: a list. */
  #search({ name }: ModelColumn, alias: string): string {
    const sql = `${alias}.${quoteName(searchColumnName(name))}`;
    const list = this.#placeholders(1);
    return this.#dialect === 'postgres' ? `${sql} = any (${list}::text[])` : `${sql} in (select value from json_each(${list}))`;
  }

  #exists({ edge, negated, of }: Extract<WhereNode, { node: 'exists' }>, alias: string, depth: number): string {
    const target = `kit_w${depth}`;
    const mine = `${alias}.${quoteName(edge.myColumn)}`;
    const joined = edge.joined?.on(target, mine, this.#dialect) ?? `${target}.${quoteName(edge.theirColumn)} = ${mine}`;
    const condition = this.write(of, target, depth + 1);
    const source = edge.joined?.source ?? quoteName(edge.table);
    return `${negated ? 'not ' : ''}exists (select 1 from ${source} ${target} where ${joined} and ${condition})`;
  }

  #placeholders(count: number): string {
    return Array.from({ length: count }, () => `$${this.#next++}`).join(', ');
  }
}

function columnSql(column: ModelColumn, alias: string): string {
  return `${alias}.${quoteName(column.name)}`;
}

/** The values of a tree in the order of its placeholders. */
export function whereValues(node: WhereNode, dialect: Dialect): unknown[] {
  const values: unknown[] = [];
  pushWhereValues(node, dialect, values);
  return values;
}

export function pushWhereValues(node: WhereNode, dialect: Dialect, values: unknown[]): void {
  switch (node.node) {
    case 'all':
    case 'any':
      for (const each of node.of) pushWhereValues(each, dialect, values);
      return;
    case 'not':
    case 'untrue':
    case 'exists':
      pushWhereValues(node.of, dialect, values);
      return;
    case 'compare':
      if (node.column.definition.kind !== 'decimal') values.push(node.value.encoded);
      else values.push(...comparableParameters(node.value.encoded, node.column.definition, dialect));
      return;
    case 'among':
      if (isLong(node)) {
        const list = node.values.map(({ encoded }) => encoded);
        values.push(
          dialect === 'postgres'
            ? list
            : JSON.stringify(list, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)),
        );
        return;
      }
      for (const value of padded(node.values)) values.push(...comparableParameters(value.encoded, node.column.definition, dialect));
      return;
    case 'search':
      values.push(node.parameter);
      return;
    case 'text':
      values.push(node.folded);
      return;
    case 'sql':
      values.push(...node.condition.values);
      return;
    default:
      return;
  }
}

/** The structure without the values: trees of one shape over one model have the same text. */
export function whereShape(node: WhereNode): string {
  switch (node.node) {
    case 'constant':
      return node.value ? 'true' : 'false';
    case 'all':
    case 'any':
      return `${node.node}(${node.of.map(whereShape).join()})`;
    case 'not':
      return `not(${whereShape(node.of)})`;
    case 'untrue':
      return `untrue(${whereShape(node.of)})`;
    case 'null':
      return `${node.column.name}.${node.isNull ? 'null' : 'notnull'}`;
    case 'empty':
      return `${node.column.name}.${node.isEmpty ? '' : 'not'}empty`;
    case 'compare':
      return node.column.comparisons[node.operator];
    case 'search':
      return `${node.column.name}.search`;
    case 'text':
      return `${node.column.name}.${node.operator}`;
    case 'among':
      return `${node.column.name}.${node.negated ? 'nin' : 'in'}${isLong(node) ? '*' : paddedLength(node.values.length)}`;
    case 'exists':
      return `${node.negated ? 'none' : 'some'} ${node.name}(${whereShape(node.of)})`;
    default:
      return `sql${node.condition.shape}`;
  }
}

/** Lists are filled up to a power of two with their last value, so that lists of 1 to 100 values make 8 statements, not 100. */
function paddedLength(count: number): number {
  return 2 ** Math.ceil(Math.log2(count));
}

function padded(values: readonly WhereValue[]): readonly WhereValue[] {
  const last = values.at(-1) as WhereValue;
  return [...values, ...Array.from({ length: paddedLength(values.length) - values.length }, () => last)];
}
