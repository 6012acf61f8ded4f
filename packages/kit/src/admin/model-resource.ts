import type { AdminAction, AdminContext, AdminListQuery, AdminResource } from '../app/admin/declaration.ts';
import type { AdminFilter, AdminRow, AdminValue } from '../app/admin/shapes.ts';
import { AdminConditions, adminRows, isUuid, type AdminOrder } from '../app/index.ts';
import { type Db, find, insert, type Key, type Model, remove, update, uuidv7 } from '../db/index.ts';
import { quoteName } from '../db/names.ts';
import { coreErrors } from '../errors/index.ts';
import { didYouMean } from '../http/index.ts';
import { adminErrors } from './errors.ts';
import {
  adminColumn,
  adminField,
  labelOf,
  type ModelColumn,
  orderOf,
  shownColumns,
  titleColumn,
  unfillableColumns,
  writableColumns,
} from './model-columns.ts';
import { referenceTitles, type ReferenceTitles } from './reference-titles.ts';
import { type OptionRules, readOptions } from '../options/read-options.ts';
import { filledText, flag, listOf, objectWith, text } from '../options/value-rule.ts';

export interface ModelResourceOptions {
  /** In the navigation; the table's name in words unless given. */
  readonly label?: string;
  /** What one record is called; the label unless given. */
  readonly singular?: string;
  /** Its part of the address; the table's name with dashes unless given. */
  readonly name?: string;
  /** The heading in the navigation; `Data` unless given. */
  readonly group?: string;
  readonly description?: string;
  /** The column that people call a record by. */
  readonly title?: string;
  /** The columns of the list; the first eight unless given. A record's page shows all that are not sensitive. */
  readonly columns?: readonly string[];
  /** Text columns that are searched; all of at most 255 characters unless given. */
  readonly search?: readonly string[];
  /** Columns the list can be filtered by; enums and booleans unless given. Others are matched exactly. */
  readonly filters?: readonly string[];
  /** Columns that may be edited; all that are writable unless given. */
  readonly edit?: readonly string[];
  readonly actions?: readonly AdminAction[];
  /** Nothing can be created, edited or removed. */
  readonly readOnly?: boolean;
  /** The alias of the database; `default` unless given. */
  readonly using?: string;
}

const rules: OptionRules<ModelResourceOptions> = {
  label: filledText,
  singular: filledText,
  name: filledText,
  group: filledText,
  description: text,
  title: filledText,
  columns: listOf(filledText),
  search: listOf(filledText),
  filters: listOf(filledText),
  edit: listOf(filledText),
  actions: listOf(objectWith('an action: { name, label, run }', 'run')),
  readOnly: flag,
  using: filledText,
};

const LISTED_COLUMNS = 8;
const MAIN_COLUMNS = 4;
const SEARCHED_LENGTH_MAX = 255;
const DELETED = 'deleted_at';

/** List, search, filter, create, edit and remove for a table of your own: `admin: { resources: [modelResource(orders)] }`. */
export function modelResource(model: Model, options: ModelResourceOptions = {}): AdminResource {
  readOptions(`modelResource("${model.name}")`, options, rules);
  const plan = planOf(model, options);
  const { using = 'default', readOnly = false } = options;
  const database = ({ databases }: AdminContext): Db => {
    const found = databases[using];
    if (found === undefined) throw new Error(`modelResource("${model.name}"): there is no database "${using}".`);
    return found;
  };
  const missing = unfillableColumns(model);
  const creationFields = plan.writable.map((column) => adminField(column, true));
  const creation =
    readOnly || missing.length > 0
      ? { refused: readOnly ? 'This list is for reading only.' : `The application creates these: it sets ${missing.join(', ')} itself.` }
      : { fields: creationFields };
  const record = (context: AdminContext, tx: Db, change: string, id: string, before: object | null, after: object | null) =>
    context.audit?.record(tx, [
      {
        actor: context.principal,
        action: `${model.name}.${change}`,
        target_type: model.name,
        target_id: id,
        before,
        after,
        request_id: context.requestId,
      },
    ]);
  return {
    ...plan.shape,
    auditedAs: model.name,
    creation,
    editable: !readOnly,
    removable: !readOnly,
    ...(plan.softDeletes ? { removal: 'It is marked as deleted and leaves the lists; its row stays.' } : {}),
    actions: options.actions ?? [],
    async list(context, query) {
      const { rows, count, next } = await listRows(database(context), plan, query);
      const titles = await referenceTitles(database(context), plan.shown, rows);
      return { items: rows.map((row) => rowOf(context, plan, row, titles)), count, next };
    },
    async read(context, id) {
      const row = await findRow(database(context), plan, id);
      if (row === undefined) return null;
      const titles = await referenceTitles(database(context), plan.shown, [row]);
      const { values, ...shown } = rowOf(context, plan, row, titles);
      const deleted = isDeleted(plan, row);
      const json = outputOf(model, row);
      return {
        ...shown,
        values,
        ...(deleted ? { state: { value: 'deleted', tone: 'neutral' } as const } : {}),
        sections: [{ kind: 'facts', title: plan.shape.singular, columns: plan.shown.map((column) => adminColumn(column, false)), values }],
        ...(readOnly || deleted
          ? {}
          : {
              form: {
                fields: plan.writable.map((column) => adminField(column, false)),
                values: Object.fromEntries(plan.writable.map(({ name }) => [name, json[name]])),
              },
            }),
        actions: (options.actions ?? []).map((action) => action.name),
        removable: !readOnly && !deleted,
      };
    },
    ...('refused' in creation
      ? {}
      : {
          async create(context: AdminContext, fields: Readonly<Record<string, unknown>>) {
            const values = checked(model.input, fields);
            const db = database(context);
            const row = await db.transaction(async (tx) => {
              const made = await insert(tx, model, values as never);
              await record(context, tx, 'created', keyOf(plan, made), null, outputOf(model, made));
              return made;
            });
            const { id, title } = rowOf(context, plan, row);
            return { message: `${title} created.`, id };
          },
        }),
    ...(readOnly
      ? {}
      : {
          async update(context: AdminContext, id: string, fields: Readonly<Record<string, unknown>>) {
            const values = checked(model.patch, fields);
            const db = database(context);
            const row = await db.transaction(async (tx) => {
              const before = await lockedRow(tx, plan, id);
              if (isDeleted(plan, before)) throw adminErrors.not_editable();
              const after = await update(tx, model, plan.key(id), values as never);
              if (after === undefined) throw adminErrors.record_not_found();
              await record(context, tx, 'updated', keyOf(plan, before), outputOf(model, before), outputOf(model, after));
              return after;
            });
            return { message: `${rowOf(context, plan, row).title} saved.`, id };
          },
          async remove(context: AdminContext, id: string) {
            const db = database(context);
            const title = await db.transaction(async (tx) => {
              const before = await lockedRow(tx, plan, id);
              if (isDeleted(plan, before)) throw adminErrors.not_removable();
              const { clock } = context;
              if (plan.softDeletes) await update(tx, model, plan.key(id), { [DELETED]: clock.now(), deletion_id: uuidv7(clock) } as never);
              else await remove(tx, model, plan.key(id));
              await record(context, tx, 'deleted', keyOf(plan, before), outputOf(model, before), null);
              return rowOf(context, plan, before).title;
            });
            return { message: `${title} removed.` };
          },
        }),
  };
}

type Row = Readonly<Record<string, unknown>>;

interface Plan {
  readonly model: Model;
  readonly shape: Pick<AdminResource, 'name' | 'label' | 'singular' | 'group' | 'icon' | 'columns' | 'filters'> &
    Partial<Pick<AdminResource, 'description' | 'searches'>>;
  readonly keyName: string;
  readonly keyKind: 'uuid' | 'int' | 'bigint' | 'text';
  readonly key: (id: string) => Key;
  readonly shown: readonly ModelColumn[];
  readonly listed: readonly ModelColumn[];
  readonly writable: readonly ModelColumn[];
  readonly searched: readonly string[];
  readonly filtered: readonly ModelColumn[];
  readonly title: string;
  readonly softDeletes: boolean;
}

/** Reads the options completely; every fault is thrown at once, when the application is created. */
function planOf(model: Model, options: ModelResourceOptions): Plan {
  const faults: string[] = [];
  const shown = shownColumns(model);
  const named = (list: readonly string[] | undefined, among: readonly ModelColumn[], what: string): readonly ModelColumn[] | undefined =>
    list?.flatMap((name) => {
      const found = among.find((column) => column.name === name);
      if (found !== undefined) return [found];
      faults.push(
        `${what}: "${name}" is no column that can be used there.${didYouMean(
          name,
          among.map((column) => column.name),
        )}`,
      );
      return [];
    });
  const [keyName = '', ...rest] = model.primaryKey;
  if (rest.length > 0) faults.push('the key has several columns; the site needs one.');
  const texts = shown.filter(({ settings }) => settings.kind === 'text');
  const listed =
    named(options.columns, shown, 'columns') ??
    shown.filter(({ name, settings }) => settings.kind !== 'json' && name !== keyName).slice(0, LISTED_COLUMNS);
  const writable = named(options.edit, writableColumns(model), 'edit') ?? writableColumns(model);
  const short = texts.filter(({ settings }) => (settings.max ?? Infinity) <= SEARCHED_LENGTH_MAX);
  const searched = (named(options.search, texts, 'search') ?? short).map(({ name }) => name);
  const choosable = shown.filter(({ settings }) => settings.kind === 'enum' || settings.kind === 'bool');
  const filtered = named(options.filters, shown, 'filters') ?? choosable;
  const title =
    named(options.title === undefined ? undefined : [options.title], shown, 'title')?.[0]?.name ?? titleColumn(shown) ?? keyName;
  if (faults.length > 0) throw new TypeError(`modelResource("${model.name}"): ${faults.join(' ')}`);
  const label = options.label ?? labelOf(model.name);
  const softDeletes = DELETED in model.columns && 'deletion_id' in model.columns;
  const kind = model.columns[keyName]?.settings.kind;
  const isNumber = kind === 'int' || kind === 'bigint';
  return {
    model,
    keyName,
    keyKind: kind === 'uuid' || kind === 'int' || kind === 'bigint' ? kind : 'text',
    key: (id) => (isNumber ? (/^-?\d{1,19}$/.test(id) ? (kind === 'int' ? Number(id) : BigInt(id)) : '') : id),
    shown,
    listed,
    writable,
    searched,
    filtered,
    title,
    softDeletes,
    shape: {
      name: options.name ?? model.name.replaceAll('_', '-'),
      label,
      singular: options.singular ?? label,
      group: options.group ?? 'Data',
      icon: 'table',
      ...(options.description === undefined ? {} : { description: options.description }),
      columns: listed.map((column, index) => adminColumn(column, index >= MAIN_COLUMNS)),
      filters: [...filtered.map(filterOf), ...(softDeletes ? [DELETED_FILTER] : [])],
      ...(searched.length === 0 ? {} : { searches: searched.map(labelOf).join(', ').toLowerCase() }),
    },
  };
}

const YES_NO = [
  { value: 'yes', label: 'Yes' },
  { value: 'no', label: 'No' },
];
const DELETED_FILTER: AdminFilter = { name: 'deleted', label: 'Deleted', kind: 'select', choices: YES_NO };

function filterOf({ name, settings }: ModelColumn): AdminFilter {
  const base = { name, label: labelOf(name) };
  if (settings.kind === 'bool') return { ...base, kind: 'select', choices: YES_NO };
  if (settings.values !== undefined) return { ...base, kind: 'select', choices: settings.values.map((value) => ({ value, label: value })) };
  return { ...base, kind: 'text' };
}

async function listRows(db: Db, plan: Plan, query: AdminListQuery) {
  const where = new AdminConditions(db.dialect);
  const { model, filtered, searched, keyName, keyKind, softDeletes } = plan;
  if (query.search !== null) {
    const byKey = keyKind === 'uuid' && isUuid(query.search) ? [`t.${quoteName(keyName)} = ${where.parameter(query.search)}`] : [];
    where.contains(
      searched.map((name) => `t.${quoteName(name)}`),
      query.search,
      byKey,
    );
  }
  for (const { name, settings } of filtered) {
    const value = query.filters[name];
    if (value === undefined) continue;
    const column = `t.${quoteName(name)}`;
    if (settings.kind === 'bool') where.add(`${column} = ${where.parameter(value === 'yes')}`);
    else if (settings.kind === 'uuid') where.uuid(column, value);
    else where.add(`cast(${column} as text) = ${where.parameter(value)}`);
  }
  if (softDeletes) where.add(`t.${DELETED} is ${query.filters['deleted'] === 'yes' ? 'not null' : 'null'}`);
  const orders = Object.fromEntries(
    plan.listed.flatMap((column): [string, AdminOrder][] => {
      const order = orderOf(column);
      return order === null ? [] : [[column.name, order]];
    }),
  );
  const columns = plan.shown.map(({ name }) => `t.${quoteName(name)}`);
  const { conditions, parameters } = where;
  return adminRows<Row>(
    db,
    {
      columns: columns.join(', '),
      from: `from ${quoteName(model.name)} t`,
      key: `t.${quoteName(keyName)}`,
      keyKind,
      conditions,
      parameters,
      orders,
    },
    query,
  );
}

async function findRow(db: Db, { model, key }: Plan, id: string): Promise<Row | undefined> {
  return (await find(db, model, key(id))) as Row | undefined;
}

/** The row as it stays until the transaction ends, so that its audit entry shows this change and nobody else's. SQLite has one writer. */
async function lockedRow(tx: Db, { model, key }: Plan, id: string): Promise<Row> {
  const found = await find(tx, model, key(id), { lock: true });
  if (found === undefined) throw adminErrors.record_not_found();
  return found;
}

function isDeleted({ softDeletes }: Plan, row: Row): boolean {
  return softDeletes && row[DELETED] !== null;
}

function keyOf({ keyName }: Plan, row: Row): string {
  return String(row[keyName]);
}

function rowOf(context: AdminContext, plan: Plan, row: Row, titles: ReferenceTitles = new Map()): AdminRow {
  const json = outputOf(plan.model, row);
  const id = keyOf(plan, row);
  const title = json[plan.title];
  const values = Object.fromEntries(plan.shown.map((column) => [column.name, cellOf(context, column, json[column.name], titles)]));
  return { id, title: typeof title === 'string' && title !== '' ? title : id, values };
}

function cellOf({ linkTo }: AdminContext, { name, settings }: ModelColumn, value: unknown, titles: ReferenceTitles): AdminValue {
  if (value === null || value === undefined) return null;
  if (settings.reference === undefined) return settings.kind === 'enum' ? { value: value as string, tone: 'neutral' } : value;
  const { target } = settings.reference;
  const table = typeof target === 'string' ? target : target().name;
  const id = value as string | number;
  const text = titles.get(name)?.get(String(id));
  // Accounts record users under the singular word.
  return linkTo(table === 'users' ? 'user' : table, String(id), text) ?? text ?? id;
}

/** The row as its readers get it; sensitive columns are no part of it. */
function outputOf(model: Model, row: Row): Readonly<Record<string, unknown>> {
  const result = model.output['~standard'].validate(row);
  if (result instanceof Promise || result.issues !== undefined) throw new Error(`A row of "${model.name}" is not what its model says.`);
  return result.value;
}

function checked(schema: Model['input'] | Model['patch'], fields: Readonly<Record<string, unknown>>): object {
  const result = schema['~standard'].validate({ ...fields });
  if (result instanceof Promise) throw new TypeError('The schemas of models answer at once.');
  if (result.issues === undefined) return result.value;
  const errors = result.issues.map((issue) => ({
    location: [
      'body',
      ...(issue.path ?? []).map((step) => (typeof step === 'object' ? String(step.key) : typeof step === 'number' ? step : String(step))),
    ],
    code: issue.code ?? 'invalid',
    message: issue.message,
  }));
  throw coreErrors.validation_error({ errors });
}
