import { isTrue } from '../../auth/people/user-table.ts';
import { sensitiveSchemaOf } from '../../db/declare/column-json.ts';
import type { Dialect } from '../../db/dialect.ts';
import { quoteName } from '../../db/declare/names.ts';
import { PEOPLE } from '../declare/people.ts';
import type { Scope } from '../policy/crud-request.ts';
import type { Edge, Policy } from '../policy/policy.ts';
import type { ViewColumn } from '../policy/view.ts';
import type { Shape } from './shape.ts';

/** A row as the statement returns it. */
type Row = Readonly<Record<string, unknown>>;

/** A table of the statement: the root, or what a to-one relation leads to. */
export interface Table {
  readonly alias: string;
  readonly policy: Policy;
  /** Prefix of its columns in the result: empty for the root. */
  readonly prefix: string;
  readonly columns: Set<string>;
  /** The relation that leads here; undefined for the root. */
  readonly edge: Edge | undefined;
  /** Absent for relations that only computed fields look at. */
  readonly shape: Shape | undefined;
  /** Its values are in their JSON form. */
  isWire: boolean;
  readonly joins: Join[];
}

interface Join {
  readonly edge: Edge;
  readonly table: Table;
}

/** A to-many relation of some table of the statement; read by a statement of its own for all parents at once. */
export interface Batch {
  readonly edge: Edge;
  readonly shape: Shape;
  /** The result column with the parent's key. */
  readonly keyColumn: string;
  /** Relations from the item down to the parent that gets the rows. */
  readonly path: readonly string[];
}

/** A relation to a user in another database; loaded for all rows at once. */
export interface LoadedPeople {
  readonly edge: Edge;
  readonly shape: Shape;
  /** The result column with the user's id. */
  readonly idColumn: string;
  /** Relations from the item down to the one that gets the user. */
  readonly path: readonly string[];
}

/** Result columns that are not members of the item start with this. */
const EXTRA = '~';

/** Relations of a statement whose rows other statements read. */
interface ReadLater {
  readonly batches: Batch[];
  readonly people: LoadedPeople[];
}

/** One SELECT over a table and the to-one relations of a shape. Columns that were not requested, or are hidden, are not selected. */
export class SelectUnit {
  readonly shape: Shape;
  readonly key: string;
  readonly batches: readonly Batch[];
  readonly people: readonly LoadedPeople[];
  /** Code reads values (a rule about the row, a computed field), so that they must be in the form that code uses. */
  readonly needsCode: boolean;
  readonly root: Table;
  /** The columns to select, as SQL. */
  readonly columnsSql: string;
  /** Their names in the result. */
  readonly resultColumns: readonly string[];
  readonly #tables: Table[] = [];
  readonly #extra: readonly string[];
  readonly #flags: readonly string[];
  #joined: readonly Edge[] | undefined;

  /** `extra`: columns of the root that the reader of the rows needs, shown or not: the ordering's, the version. */
  constructor(shape: Shape, extra: readonly string[] = []) {
    this.shape = shape;
    this.key = `${shape.key}+${extra.join()}`;
    const later: ReadLater = { batches: [], people: [] };
    this.root = this.#table(shape.policy, undefined, '', shape, later, []);
    this.batches = later.batches;
    this.people = later.people;
    this.#extra = [...new Set(extra)].filter((name) => !this.root.columns.has(name));
    const columns = this.#columns();
    this.columnsSql = columns
      .map(({ sql, name }) => (sql.endsWith(`.${quoteName(name)}`) ? sql : `${sql} as ${quoteName(name)}`))
      .join(', ');
    this.resultColumns = columns.map(({ name }) => name);
    this.#flags = this.#tables.flatMap(({ policy, prefix, columns: own }) =>
      policy.model === PEOPLE && own.has('is_active') ? [`${prefix}is_active`] : [],
    );
    this.needsCode = this.#tables.some(
      ({ shape: own }) => own !== undefined && (own.computed.length > 0 || own.columns.some(({ shown }) => shown === 'row')),
    );
    for (const table of this.#tables) table.isWire = this.isWire;
  }

  /** True when an item takes more than the row it is made of. */
  get readsRelations(): boolean {
    return this.batches.length > 0 || this.people.length > 0 || this.joined().length > 0;
  }

  #table(
    policy: Policy,
    edge: Edge | undefined,
    prefix: string,
    shape: Shape | undefined,
    later: ReadLater,
    path: readonly string[],
  ): Table {
    const table: Table = {
      alias: `t${this.#tables.length}`,
      policy,
      edge,
      prefix,
      columns: new Set([policy.key.name]),
      shape,
      isWire: true,
      joins: [],
    };
    this.#tables.push(table);
    if (shape === undefined) return table;
    for (const { name, shown } of shape.columns) if (shown !== 'null') table.columns.add(name);
    // Encrypted values are bound to the key of their row.
    if (shape.columns.some(({ settings }) => settings.encrypted !== undefined))
      for (const name of policy.model.primaryKey) table.columns.add(name);
    for (const name of requiredByRules(shape)) table.columns.add(name);
    const needed = new Map<string, Set<string>>();
    for (const { columns, related } of shape.computed) {
      for (const name of columns) table.columns.add(name);
      for (const [relation, names] of related) needed.set(relation, new Set([...(needed.get(relation) ?? []), ...names]));
    }
    for (const { edge, shape: below } of shape.edges) {
      if (edge.kind === 'many') {
        later.batches.push({ edge, shape: below, keyColumn: `${prefix}${policy.key.name}`, path });
        continue;
      }
      if (edge.isLoaded) {
        table.columns.add(edge.column);
        later.people.push({ edge, shape: below, idColumn: `${prefix}${edge.column}`, path });
        continue;
      }
      const joined = this.#join(table, edge, below, later, path);
      for (const name of needed.get(edge.name) ?? []) joined.columns.add(name);
      needed.delete(edge.name);
    }
    for (const [relation, names] of needed) {
      const edge = policy.edge(relation);
      if (edge === undefined) continue;
      const joined = this.#join(table, edge, undefined, later, path);
      for (const name of names) joined.columns.add(name);
    }
    return table;
  }

  #join(table: Table, edge: Edge, shape: Shape | undefined, later: ReadLater, path: readonly string[]): Table {
    const joined = this.#table(edge.target, edge, `${this.#tables.length}.`, shape, later, [...path, edge.name]);
    table.joins.push({ edge, table: joined });
    return joined;
  }

  /** Rows come in their JSON form, straight from the database. */
  get isWire(): boolean {
    return !this.needsCode;
  }

  /** Rows as a statement returned them, with the flags of users as booleans: they are expressions, which no database gives a type. */
  decoded<R extends Record<string, unknown>>(rows: R[]): R[] {
    for (const flag of this.#flags)
      for (const row of rows) if (row[flag] !== null) (row as Record<string, unknown>)[flag] = isTrue(row[flag]);
    return rows;
  }

  /** The alias of the root table. */
  get alias(): string {
    return this.root.alias;
  }

  /** The relations that the statement reads rows through, in the order of their placeholders. */
  joined(): readonly Edge[] {
    return (this.#joined ??= this.#tables.slice(1).map(({ edge }) => edge as Edge));
  }

  /** What the statement does, in a few words: `orders join customer; batch items limit 50`. Never SQL, never values. */
  get plan(): string {
    const joins = this.root.joins.map(({ edge }) => ` join ${edge.name}`).join('');
    return [
      `${this.root.policy.model.name}${joins}`,
      ...this.batches.map(({ edge, path }) => `batch ${[...path, edge.name].join('.')} limit ${edge.limit}`),
      ...this.people.map(({ edge, path }) => `users ${[...path, edge.name].join('.')}`),
    ].join('; ');
  }

  #columns(): { readonly sql: string; readonly name: string }[] {
    const own = this.#tables.flatMap(({ alias, prefix, columns }) =>
      [...columns].map((name) => ({ sql: `${alias}.${quoteName(name)}`, name: `${prefix}${name}` })),
    );
    const extra = this.#extra.map((name) => ({ sql: `${this.alias}.${quoteName(name)}`, name: `${EXTRA}${name}` }));
    return [...own, ...extra];
  }

  /** `orders t0 left join customers t1 on …`; the values of the targets' scopes are appended. */
  fromSql(dialect: Dialect, scopes: readonly Scope[], values: unknown[]): string {
    let text = `${this.root.policy.table} ${this.alias}`;
    let index = 0;
    const add = (parent: Table) => {
      for (const { edge, table } of parent.joins) {
        const { compiled } = scopes[index++] as Scope;
        const condition = compiled.constant === true ? '' : ` and ${compiled.append(dialect, table.alias, values)}`;
        const mine = `${parent.alias}.${quoteName(edge.column)}`;
        const on = edge.table?.on(table.alias, mine, dialect) ?? `${table.alias}.${quoteName(table.policy.key.name)} = ${mine}`;
        text += ` left join ${edge.table?.source ?? table.policy.table} ${table.alias} on ${on}${condition}`;
        add(table);
      }
    };
    add(this.root);
    return text;
  }

  /** The value of a column given as `extra`, or shown. */
  extra(row: Row, name: string): unknown {
    return Object.hasOwn(row, name) ? row[name] : row[`${EXTRA}${name}`];
  }
}

/** The columns that the rules about a row read: every column where a rule does not declare which. */
function requiredByRules({ policy, columns, computed }: Shape): readonly string[] {
  const ofColumns = columns.flatMap(({ shown, rule }) => (shown === 'row' && rule?.visibleTo !== undefined ? [rule.visibleTo] : []));
  const names: string[] = [];
  for (const { requires } of [...ofColumns, ...computed.flatMap(({ rowRules }) => rowRules)]) {
    if (requires === undefined) return policy.codeColumns;
    names.push(...requires.filter((name) => policy.hasColumn(name)));
  }
  return names;
}

/** True when the column's own schema marks members of its values as sensitive. */
export function hasSensitiveMembers({ settings }: ViewColumn): boolean {
  return sensitiveSchemaOf(settings) !== undefined;
}
