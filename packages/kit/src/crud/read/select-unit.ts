import { sensitiveSchemaOf } from '../../db/column-json.ts';
import type { Dialect } from '../../db/dialect.ts';
import type { ModelColumn } from '../../db/model-statements.ts';
import { quoteName } from '../../db/names.ts';
import { withoutSensitive } from '../../db/sensitive-members.ts';
import type { Permission } from '../../permissions/permission.ts';
import type { CrudCaller } from '../declare/crud-caller.ts';
import type { CrudRequest, Scope } from '../policy/crud-request.ts';
import type { Edge, Policy, ShownColumn } from '../policy/policy.ts';
import type { ComputedContext } from '../declare/resource.ts';
import type { ComputedPlan, Shape } from './shape.ts';

export type Item = Record<string, unknown>;

/** A table of the statement: the root, or what a to-one relation leads to. */
interface Table {
  readonly alias: string;
  readonly policy: Policy;
  /** Prefix of its columns in the result: empty for the root. */
  readonly prefix: string;
  readonly columns: Set<string>;
  /** Absent for relations that only computed fields look at. */
  readonly shape: Shape | undefined;
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

/** Result columns that are not members of the item start with this. */
const EXTRA = '~';
const NO_NAMES: ReadonlySet<string> = new Set();

/**
 * One SELECT over a table and the to-one relations of a shape. Columns that were not requested, or are hidden, are not selected. Rows are turned into
 * items by `build`; without anything to turn, the row is the item.
 */
export class SelectUnit {
  readonly shape: Shape;
  readonly key: string;
  readonly batches: readonly Batch[];
  /** A row is an item as it is. */
  readonly isIdentity: boolean;
  /** Code reads values (a rule about the row, a computed field), so that they must be in the form that code uses. */
  readonly needsCode: boolean;
  readonly #root: Table;
  readonly #tables: Table[] = [];
  readonly #extra: readonly string[];
  #joined: readonly Policy[] | undefined;

  /**
   * `extra`: columns of the root that the caller of `build` needs, shown or not: the ordering's, the version. `isChild`: the statement adds
   * columns of its own, which are no members of the item.
   */
  constructor(shape: Shape, extra: readonly string[] = [], isChild = false) {
    this.shape = shape;
    this.key = `${shape.key}+${extra.join()}`;
    const batches: Batch[] = [];
    this.#root = this.#table(shape.policy, '', shape, batches, []);
    this.batches = batches;
    const shownNames = new Set(shape.columns.map(({ name }) => name));
    this.#extra = [...new Set(extra)].filter((name) => !shownNames.has(name));
    this.needsCode = this.#tables.some(({ shape: own }) => own !== undefined && (own.perRow.length > 0 || own.computed.length > 0));
    this.isIdentity =
      !isChild &&
      batches.length === 0 &&
      this.#tables.length === 1 &&
      !this.needsCode &&
      shape.nulls.length === 0 &&
      this.#extra.length === 0 &&
      this.#root.columns.size === shape.columns.length &&
      !shape.columns.some(hasSensitiveMembers);
  }

  #table(policy: Policy, prefix: string, shape: Shape | undefined, batches: Batch[], path: readonly string[]): Table {
    const table: Table = { alias: `t${this.#tables.length}`, policy, prefix, columns: new Set([policy.key.name]), shape, joins: [] };
    this.#tables.push(table);
    if (shape === undefined) return table;
    for (const { name } of shape.columns) table.columns.add(name);
    // A rule about the row may look at every column of it.
    if (shape.perRow.length > 0 || shape.computed.some(({ rowRules }) => rowRules.length > 0))
      for (const { name } of policy.statements.columns) table.columns.add(name);
    const needed = new Map<string, Set<string>>();
    for (const { columns, related } of shape.computed) {
      for (const name of columns) table.columns.add(name);
      for (const [relation, names] of related) needed.set(relation, new Set([...(needed.get(relation) ?? []), ...names]));
    }
    for (const { edge, shape: below } of shape.edges) {
      if (edge.kind === 'many') {
        batches.push({ edge, shape: below, keyColumn: `${prefix}${policy.key.name}`, path });
        continue;
      }
      const joined = this.#join(table, edge, below, batches, path);
      for (const name of needed.get(edge.name) ?? []) joined.columns.add(name);
      needed.delete(edge.name);
    }
    for (const [relation, names] of needed) {
      const edge = policy.edge(relation);
      if (edge === undefined) continue;
      const joined = this.#join(table, edge, undefined, batches, path);
      for (const name of names) joined.columns.add(name);
    }
    return table;
  }

  #join(table: Table, edge: Edge, shape: Shape | undefined, batches: Batch[], path: readonly string[]): Table {
    const joined = this.#table(edge.target, `${this.#tables.length}.`, shape, batches, [...path, edge.name]);
    table.joins.push({ edge, table: joined });
    return joined;
  }

  /** Rows come in their JSON form, straight from the database. */
  get isWire(): boolean {
    return !this.needsCode;
  }

  /** The alias of the root table. */
  get alias(): string {
    return this.#root.alias;
  }

  /** The policies whose rows the statement reads through relations, in the order of their placeholders. */
  joined(): readonly Policy[] {
    return (this.#joined ??= this.#tables.slice(1).map(({ policy }) => policy));
  }

  /** What the statement does, in a few words: `orders join customer; batch items limit 50`. Never SQL, never values. */
  get plan(): string {
    const joins = this.#root.joins.map(({ edge }) => ` join ${edge.name}`).join('');
    return [
      `${this.#root.policy.model.name}${joins}`,
      ...this.batches.map(({ edge, path }) => `batch ${[...path, edge.name].join('.')} limit ${edge.limit}`),
    ].join('; ');
  }

  /** Columns of the root that are `unread` are NULL in the rows. */
  columnsSql(unread: ReadonlySet<string> = NO_NAMES): string {
    const own = this.#tables.flatMap(({ alias, prefix, columns }) =>
      [...columns].map((name) =>
        prefix === ''
          ? unread.has(name)
            ? `null as ${quoteName(name)}`
            : `${alias}.${quoteName(name)}`
          : `${alias}.${quoteName(name)} as ${quoteName(`${prefix}${name}`)}`,
      ),
    );
    const extra = this.#extra.map((name) => `${this.alias}.${quoteName(name)} as ${quoteName(`${EXTRA}${name}`)}`);
    return [...own, ...extra].join(', ');
  }

  /** The names of the columns that {@link columnsSql} selects. */
  get resultColumns(): readonly string[] {
    const own = this.#tables.flatMap(({ prefix, columns }) => [...columns].map((name) => `${prefix}${name}`));
    return [...own, ...this.#extra.map((name) => `${EXTRA}${name}`)];
  }

  /** `from orders t0 left join customers t1 on …`; placeholders of the targets' scopes are counted from `first`. */
  fromSql(dialect: Dialect, scopes: readonly Scope[], first: number): { readonly text: string; readonly next: number } {
    let text = `${quoteName(this.#root.policy.model.name)} ${this.alias}`;
    let next = first;
    let index = 0;
    const add = (parent: Table) => {
      for (const { edge, table } of parent.joins) {
        const scope = scopes[index++] as Scope;
        const condition = scope.compiled.constant === true ? '' : ` and ${scope.compiled.text(dialect, table.alias, next)}`;
        if (condition !== '') next += scope.compiled.values(dialect).length;
        const on = `${table.alias}.${quoteName(table.policy.key.name)} = ${parent.alias}.${quoteName(edge.column)}`;
        text += ` left join ${quoteName(table.policy.model.name)} ${table.alias} on ${on}${condition}`;
        add(table);
      }
    };
    add(this.#root);
    return { text, next };
  }

  /** Whether rows have this column of the root. */
  selects(name: string): boolean {
    return this.#root.columns.has(name);
  }

  /** The value of a column given as `extra`, or shown. */
  extra(row: Item, name: string): unknown {
    return Object.hasOwn(row, name) ? row[name] : row[`${EXTRA}${name}`];
  }

  /** Turns rows that this unit selected into items. `caller` is what computed fields and rules about rows ask. */
  build(rows: readonly Item[], request: CrudRequest, caller: () => CrudCaller): Item[] | Promise<Item[]> {
    if (!this.needsCode) return rows.map(assemblerOf(this.#root));
    return Promise.all(rows.map((row) => this.#assembleSlowly(this.#root, row, request, caller)));
  }

  /** Turns a whole row of the table into an item: it may have columns that the caller must not see. */
  buildWhole(row: Item, request: CrudRequest, caller: () => CrudCaller): Item | Promise<Item> {
    return this.needsCode ? this.#assembleSlowly(this.#root, row, request, caller) : assemblerOf(this.#root)(row);
  }

  async #assembleSlowly(table: Table, row: Item, request: CrudRequest, caller: () => CrudCaller): Promise<Item> {
    const item = assemblerOf(table)(row);
    const { shape, prefix } = table;
    if (shape === undefined) return item;
    const whole = codeRow(table, row);
    for (const column of shape.perRow) {
      const rules = column.rule?.visibleTo === undefined ? [] : [column.rule.visibleTo];
      if (await admit(rules, request, whole)) item[column.name] = shownValue(column, row[`${prefix}${column.name}`]);
      else if (column.rule?.hidden === 'null') item[column.name] = null;
    }
    for (const field of shape.computed) {
      if (await admit(field.rowRules, request, whole))
        item[field.name] = await field.value(requiredOf(field, table, row), computedContext(caller()));
    }
    for (const { edge, table: joined } of table.joins) {
      if (joined.shape !== undefined && item[edge.name] !== null)
        item[edge.name] = await this.#assembleSlowly(joined, row, request, caller);
    }
    return item;
  }
}

type Assembler = (row: Item) => Item;

const assemblers = new WeakMap<Table, Assembler>();

/** Turns a row into an item by a function written for its columns: an object literal is several times faster than a loop over names. */
function assemblerOf(table: Table): Assembler {
  let assembler = assemblers.get(table);
  if (assembler === undefined) {
    const cleaners: ((value: unknown) => unknown)[] = [];
    const source = literal(table, cleaners);
    // oxlint-disable-next-line no-new-func, typescript/no-implied-eval -- the source is built from quoted names only
    const make = new Function('clean', `return (row) => (${source});`) as (clean: typeof cleaners) => Assembler;
    assembler = make(cleaners);
    assemblers.set(table, assembler);
  }
  return assembler;
}

/** `{["id"]:row["id"],["customer"]:row["1.id"]===null?null:{…}}`; computed names, so that `__proto__` would be data. */
function literal({ prefix, shape, joins }: Table, cleaners: ((value: unknown) => unknown)[]): string {
  if (shape === undefined) return '{}';
  const value = (name: string) => `row[${JSON.stringify(name)}]`;
  const shown = (column: ShownColumn) => {
    const source = value(`${prefix}${column.name}`);
    return hasSensitiveMembers(column) ? `clean[${cleaners.push((each) => shownValue(column, each)) - 1}](${source})` : source;
  };
  const members = [
    ...shape.columns.map((column) => [column.name, shown(column)]),
    ...shape.nulls.map((name) => [name, 'null']),
    ...joins
      .filter(({ table }) => table.shape !== undefined)
      .map(({ edge, table }) => [edge.name, `${value(`${table.prefix}${table.policy.key.name}`)}===null?null:${literal(table, cleaners)}`]),
  ];
  return `{${members.map(([name, source]) => `[${JSON.stringify(name)}]:${source}`).join(',')}}`;
}

function hasSensitiveMembers({ settings }: ShownColumn): boolean {
  return sensitiveSchemaOf(settings) !== undefined;
}

/** A value without what its column's own schema marks as sensitive. */
function shownValue({ settings }: ShownColumn, value: unknown): unknown {
  const sensitive = sensitiveSchemaOf(settings);
  return sensitive === undefined ? value : withoutSensitive(sensitive, value);
}

/** Every column of the table that was read, for rules that look at the row. */
function codeRow({ prefix, columns }: Table, row: Item): Item {
  const whole: Item = {};
  for (const name of columns) whole[name] = row[`${prefix}${name}`];
  return whole;
}

/** Exactly what a computed field asks for: its columns, and those of its relations below their names. */
function requiredOf({ columns, related }: ComputedPlan, table: Table, row: Item): Item {
  const given: Item = {};
  for (const name of columns) given[name] = row[`${table.prefix}${name}`];
  for (const [relation, names] of related) {
    const joined = table.joins.find(({ edge }) => edge.name === relation)?.table;
    if (joined === undefined || row[`${joined.prefix}${joined.policy.key.name}`] === null) given[relation] = null;
    else given[relation] = Object.fromEntries(names.map((name) => [name, row[`${joined.prefix}${name}`]]));
  }
  return given;
}

/** True when every rule admits the row; unknown counts as no. */
async function admit(rules: readonly Permission[], { context }: CrudRequest, row: Item): Promise<boolean> {
  for (const rule of rules) if ((await rule.evaluate(context, row)) !== true) return false;
  return true;
}

/** PostgreSQL's name of a key's type, for arrays of keys. */
export function keyType({ settings }: Pick<ModelColumn, 'settings'>, kind: string = settings.kind): string {
  return kind === 'uuid' ? 'uuid' : kind === 'int' ? 'integer' : kind === 'bigint' ? 'bigint' : 'text';
}

function computedContext(caller: CrudCaller): ComputedContext {
  return { now: caller.now, clock: { now: () => caller.now }, caller };
}
