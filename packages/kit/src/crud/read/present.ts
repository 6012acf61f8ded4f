import { sensitiveSchemaOf, toJson } from '../../db/declare/column-json.ts';
import { withoutSensitive } from '../../db/declare/sensitive-members.ts';
import type { Db } from '../../db/engine/db.ts';
import { dataKeysOf, revealed } from '../../db/rows/reveal.ts';
import type { DataKeys } from '../../db/sealing/data-keys.ts';
import type { Permission } from '../../permissions/permission.ts';
import type { CrudCaller } from '../declare/crud-caller.ts';
import type { Item } from '../declare/item.ts';
import type { ComputedContext } from '../declare/computed-field.ts';
import { callerOf, type CrudRequest } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import type { ViewColumn, ViewComputed } from '../policy/view.ts';
import { hasSensitiveMembers, type SelectUnit, type Table } from './select.ts';

// The only code that decides which fields of a row leave.

/** An item that waits for the value of a field, with the columns that the field requires. */
interface LoadedRow {
  readonly item: Item;
  readonly required: Item;
}

/** The fields that are loaded for all rows together. */
type Loads = Map<ViewComputed, { readonly policy: Policy; readonly rows: LoadedRow[] }>;

interface Deciding {
  readonly request: CrudRequest;
  readonly caller: () => CrudCaller;
  readonly loads: Loads;
  readonly keys: DataKeys | undefined;
}

/** Turns rows into items, without to-many relations: rows that the unit selected, or whole rows of a table without joins. */
export async function buildItems(db: Db, request: CrudRequest, unit: SelectUnit, rows: readonly Item[]): Promise<Item[]> {
  const assembler = assemblerOf(unit.root);
  const keys = dataKeysOf(db);
  const assemble = (row: Item) => assembler(row, keys);
  if (!unit.needsCode) return rows.map(assemble);
  let known: CrudCaller | undefined;
  const caller = () => (known ??= callerOf(request));
  const loads: Loads = new Map();
  const items = await Promise.all(rows.map(async (row) => decideFields(unit.root, row, assemble(row), { request, caller, loads, keys })));
  // One field after the other: they may share the connection of a transaction.
  for (const [field, { policy, rows: loaded }] of loads) await load(db, policy, field, loaded, caller());
  return items;
}

/** Adds what is decided on the row: columns under rules about it, and computed fields. */
async function decideFields(table: Table, row: Item, item: Item, deciding: Deciding): Promise<Item> {
  const { request, caller, loads, keys } = deciding;
  const { shape, prefix } = table;
  if (shape === undefined) return item;
  const whole = codeRow(table, row);
  for (const column of shape.columns) {
    if (column.shown !== 'row') continue;
    const rules = column.rule?.visibleTo === undefined ? [] : [column.rule.visibleTo];
    if (await admit(rules, request, whole)) item[column.name] = shownValue(table, column)(row[`${prefix}${column.name}`], row, keys);
    else if (column.rule?.hidden === 'null') item[column.name] = null;
  }
  for (const field of shape.computed) {
    if (await admit(field.rowRules, request, whole)) {
      const required = requiredOf(field, table, row);
      item[field.name] = await field.value?.(required, computedContext(caller()));
      if (field.load === undefined) continue;
      const known = loads.get(field);
      if (known === undefined) loads.set(field, { policy: table.policy, rows: [{ item, required }] });
      else known.rows.push({ item, required });
    } else if (table.policy.ruleOf(field.name)?.hidden === 'null') item[field.name] = null;
    else delete item[field.name];
  }
  for (const { edge, table: joined } of table.joins) {
    if (joined.shape !== undefined && item[edge.name] !== null)
      item[edge.name] = await decideFields(joined, row, item[edge.name] as Item, deciding);
  }
  return item;
}

/** Sets a field on all of its rows. */
async function load(
  db: Db,
  policy: Policy,
  { name, load: loadAll }: ViewComputed,
  rows: readonly LoadedRow[],
  caller: CrudCaller,
): Promise<void> {
  const values: unknown = await loadAll?.(
    rows.map(({ required }) => required),
    { ...computedContext(caller), db },
  );
  if (!Array.isArray(values) || values.length !== rows.length)
    throw new TypeError(
      `resource(${policy.model.name}): load of "${name}" must return a list with one value per row: ${rows.length}${Array.isArray(values) ? `, not ${values.length}` : ''}.`,
    );
  for (const [index, { item }] of rows.entries()) item[name] = values[index];
}

/** True when every rule admits the row; unknown counts as no. */
async function admit(rules: readonly Permission[], { context }: CrudRequest, row: Item): Promise<boolean> {
  for (const rule of rules) if ((await rule.evaluate(context, row)) !== true) return false;
  return true;
}

type Assembler = (row: Item, keys: DataKeys | undefined) => Item;
/** Turns a value of a row into what leaves. */
type Cleaner = (value: unknown, row: Item, keys: DataKeys | undefined) => unknown;

const assemblers = new WeakMap<Table, Assembler>();

/** Turns a row into an item by a function written for its columns: an object literal is several times faster than a loop over names. */
function assemblerOf(table: Table): Assembler {
  let assembler = assemblers.get(table);
  if (assembler === undefined) {
    const cleaners: Cleaner[] = [];
    const source = literal(table, cleaners);
    // oxlint-disable-next-line no-new-func, typescript/no-implied-eval -- the source is built from quoted names only
    const make = new Function('clean', `return (row, keys) => (${source});`) as (clean: typeof cleaners) => Assembler;
    assembler = make(cleaners);
    assemblers.set(table, assembler);
  }
  return assembler;
}

/** `{["id"]:row["id"],["customer"]:row["1.id"]===null?null:{…}}`; computed names, so that `__proto__` would be data. */
function literal(table: Table, cleaners: Cleaner[]): string {
  const { prefix, shape, joins } = table;
  if (shape === undefined) return '{}';
  const value = (name: string) => `row[${JSON.stringify(name)}]`;
  const shown = (column: ViewColumn) => {
    if (column.shown === 'null') return 'null';
    const source = value(`${prefix}${column.name}`);
    const isStored = !hasSensitiveMembers(column) && column.settings.encrypted === undefined;
    return isStored ? source : `clean[${cleaners.push(shownValue(table, column)) - 1}](${source},row,keys)`;
  };
  const columns = new Map(shape.columns.map((column) => [column.name, column]));
  const members = [
    ...shape.places.flatMap((name) => {
      const column = columns.get(name);
      // What is decided on the row follows; a column in another form gets its value in this place.
      return column === undefined ? [[name, 'undefined']] : column.shown === 'row' ? [] : [[name, shown(column)]];
    }),
    ...joins
      .filter((join) => join.table.shape !== undefined)
      .map(({ edge, table: joined }) => [
        edge.name,
        `${value(`${joined.prefix}${joined.policy.key.name}`)}===null?null:${literal(joined, cleaners)}`,
      ]),
  ];
  return `{${members.map(([name, source]) => `[${JSON.stringify(name)}]:${source}`).join(',')}}`;
}

/** A value in plaintext, without what its column's own schema marks as sensitive. */
function shownValue({ policy, prefix, isWire }: Table, { name, settings }: ViewColumn): Cleaner {
  const sensitive = sensitiveSchemaOf(settings);
  const cleaned = (value: unknown) => (sensitive === undefined ? value : withoutSensitive(sensitive, value));
  if (settings.encrypted === undefined) return cleaned;
  const { statements, model } = policy;
  const column = statements.column(name);
  return (value, row, keys) => {
    const key = Object.fromEntries(model.primaryKey.map((each) => [each, row[`${prefix}${each}`]]));
    const plaintext = cleaned(revealed(keys, statements, column, key, value));
    return isWire ? toJson(settings, plaintext) : plaintext;
  };
}

/** Every column of the table that was read, for rules that look at the row. */
function codeRow({ prefix, columns }: Table, row: Item): Item {
  const whole: Item = {};
  for (const name of columns) whole[name] = row[`${prefix}${name}`];
  return whole;
}

/** Exactly what a computed field asks for: its columns, and those of its relations below their names. */
function requiredOf({ columns, related }: ViewComputed, table: Table, row: Item): Item {
  const given: Item = {};
  for (const name of columns) given[name] = row[`${table.prefix}${name}`];
  for (const [relation, names] of related) {
    const joined = table.joins.find(({ edge }) => edge.name === relation)?.table;
    if (joined === undefined || row[`${joined.prefix}${joined.policy.key.name}`] === null) given[relation] = null;
    else given[relation] = Object.fromEntries(names.map((name) => [name, row[`${joined.prefix}${name}`]]));
  }
  return given;
}

function computedContext(caller: CrudCaller): ComputedContext {
  return { now: caller.now, clock: { now: () => caller.now }, caller };
}
