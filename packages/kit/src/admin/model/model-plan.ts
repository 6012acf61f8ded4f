import type { AdminAction, AdminResource } from '../../app/admin/declaration.ts';
import type { AdminFilter, AdminTone } from '../../app/admin/shapes.ts';
import { opensColumn } from '../../crud/declare/field-rule.ts';
import { scopeColumn } from '../../crud/declare/scope-rule.ts';
import { type AnyResource, isResource } from '../../crud/declare/resource.ts';
import type { Relations } from '../../crud/declare/relation.ts';
import type { Schema } from '../../http/declare/schema.ts';
import { fullText } from '../../crud/read/search.ts';
import type { SearchBackend } from '../../crud/declare/search-backend.ts';
import type { Key } from '../../db/rows/repository.ts';
import type { Model } from '../../db/declare/model.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { filledText, flag, guard, listOf, objectWith, rule, text } from '../../options/value-rule.ts';
import { type AdminOrders, sortableColumns } from '../../app/admin/list.ts';
import { STAFF } from '../../crud/declare/resource.ts';
import {
  adminColumn,
  computedColumn,
  keyKindOf,
  labelOf,
  type ModelColumn,
  ordersOf,
  referenceTarget,
  shownColumns,
  titleColumn,
  writableColumns,
} from '../../app/admin/model-columns.ts';

export interface ModelResourceOptions {
  /** In the navigation. Default: the table's name in words. */
  readonly label?: string;
  /** What one record is called. Default: the label. */
  readonly singular?: string;
  /** Its part of the address. Default: the table's name with dashes. */
  readonly name?: string;
  /** The heading in the navigation. Default: `Data`. */
  readonly group?: string;
  /** A sentence above the list. */
  readonly description?: string;
  /** The column that people call a record by. */
  readonly title?: string;
  /**
   * The columns of the list, and computed fields of the resource. Default: the first eight columns. A record's page shows all that are not
   * sensitive.
   */
  readonly columns?: readonly string[];
  /** Text columns that are searched. Default: all of at most 255 characters. */
  readonly search?: readonly string[];
  /** Columns the list can be filtered by; the first three stand beside the search. Default: enums and booleans first, then every other. */
  readonly filters?: readonly string[];
  /** By column and value: the color of a state. Default: by what the word means in English. */
  readonly tones?: Readonly<Record<string, Readonly<Record<string, AdminTone>>>>;
  /** Columns that may be edited. Default: all that are writable. */
  readonly edit?: readonly string[];
  /** By the name of an `uploadRef()` column: the path of the UploadController its files are sent to. Default: the first one mounted. */
  readonly files?: Readonly<Record<string, string>>;
  /** Buttons for a record, or for the selected records of the list. */
  readonly actions?: readonly AdminAction[];
  /** Nothing can be created, edited or removed. */
  readonly readOnly?: boolean;
  /** Reading a record is recorded in the audit log. */
  readonly auditReads?: boolean;
  /** The alias of the database. Default: that of the resource, or `default`. */
  readonly using?: string;
}

const rules: OptionRules<ModelResourceOptions> = {
  label: filledText,
  singular: filledText,
  name: filledText,
  group: filledText,
  description: text,
  title: filledText,
  columns: guard(listOf(filledText)),
  search: listOf(filledText),
  filters: listOf(filledText),
  tones: rule('tones by column and value: { status: { paid: "good" } }', isTones),
  edit: guard(listOf(filledText)),
  files: rule('paths of mounted UploadControllers by column: { invoice_id: "/v1/invoices" }', isPathByColumn),
  actions: listOf(objectWith('an action: { name, label, run }', 'run')),
  readOnly: guard(flag),
  auditReads: guard(flag),
  using: filledText,
};

function isPathByColumn(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && Object.values(value).every((path) => typeof path === 'string' && path.startsWith('/'))
  );
}

const TONES: readonly unknown[] = ['neutral', 'good', 'warning', 'bad', 'info'] satisfies readonly AdminTone[];

function isTones(value: unknown): boolean {
  const isObject = (each: unknown): each is object => typeof each === 'object' && each !== null && !Array.isArray(each);
  return (
    isObject(value) && Object.values(value).every((each) => isObject(each) && Object.values(each).every((tone) => TONES.includes(tone)))
  );
}

const LISTED_COLUMNS = 8;
const MAIN_COLUMNS = 4;
const SEARCHED_LENGTH_MAX = 255;
export const DELETED = 'deleted_at';

type ComputedFields = Readonly<Record<string, { readonly response: Schema } | undefined>>;

export type Row = Readonly<Record<string, unknown>>;

/** What the options and the model, or the resource, say about a list. */
export interface Plan {
  readonly model: Model;
  /** Null: a model without a resource, of which staff see and change everything. */
  readonly resource: AnyResource | null;
  readonly using: string;
  readonly shape: Pick<AdminResource, 'name' | 'label' | 'singular' | 'group' | 'icon' | 'columns' | 'filters'> &
    Partial<Pick<AdminResource, 'description' | 'searches'>>;
  readonly keyName: string;
  readonly keyKind: 'uuid' | 'int' | 'bigint' | 'text';
  readonly key: (id: string) => Key;
  readonly shown: readonly ModelColumn[];
  readonly listed: readonly ModelColumn[];
  /** Computed fields in the list. */
  readonly computed: readonly string[];
  /** By the names of the listed columns. */
  readonly orders: AdminOrders;
  /** Fields of the form of a record. */
  readonly writable: readonly ModelColumn[];
  /** Fields of the form of a new record: owner and tenant are given there, and nowhere else. */
  readonly creatable: readonly ModelColumn[];
  /** Names of the owner and the tenant among these: a new row is never without them. */
  readonly given: ReadonlySet<string>;
  readonly searched: readonly string[];
  /** How the search finds rows; null: by what the searched columns contain. */
  readonly backend: SearchBackend | null;
  readonly filtered: readonly ModelColumn[];
  readonly title: string;
  readonly tones: NonNullable<ModelResourceOptions['tones']>;
  readonly softDeletes: boolean;
  /** The first column of the form whose values are unique: rows of a file are found by it. */
  readonly uniqueColumn: string | undefined;
}

/** Reads the options completely; every fault is thrown at once, when the application is created. */
export function planOf(source: Model | AnyResource, options: ModelResourceOptions, declared: SearchBackend | null = null): Plan {
  const resource = isResource(source) ? source : null;
  const model = (resource === null ? source : resource.model) as Model;
  const where = `modelResource("${resource === null ? model.name : resource.name}")`;
  readOptions(where, options, rules);
  const faults: string[] = [];
  const { hidden = [], input, audiences } = resource?.options ?? {};
  const computed: ComputedFields = resource?.options.computed ?? {};
  if (resource !== null && audiences?.[STAFF] === undefined)
    faults.push('the resource does not say what staff see: add `admin: { rows: true }` to it.');
  const shown = withRelations(shownColumns(model), resource).filter(({ name }) => !hidden.includes(name));
  const named = (
    list: readonly string[] | undefined,
    among: readonly ModelColumn[],
    what: string,
    others: readonly string[] = [],
  ): readonly ModelColumn[] | undefined =>
    list?.flatMap((name) => {
      const found = among.find((column) => column.name === name);
      if (found !== undefined) return [found];
      if (others.includes(name)) return [];
      const names = [...among.map((column) => column.name), ...others];
      faults.push(`${what}: "${name}" is not a column that can be used there.${didYouMean(name, names)}`);
      return [];
    });
  const [keyName = '', ...rest] = model.primaryKey;
  if (rest.length > 0) faults.push('the key has several columns; the site needs one.');
  const texts = shown.filter(({ settings }) => settings.kind === 'text');
  const listed =
    named(options.columns, shown, 'columns', Object.keys(computed)) ??
    shown.filter(({ name, settings }) => settings.kind !== 'json' && name !== keyName).slice(0, LISTED_COLUMNS);
  const set = policyColumns(resource);
  const opens = (name: string) => resource !== null && opensColumn(resource.options, name);
  const accepted = withRelations(writableColumns(model, opens), resource).filter(
    ({ name, settings }) => !set.has(name) && (input === undefined || settings.guarded === true || input.includes(name)),
  );
  const writable = named(options.edit, accepted, 'edit') ?? accepted;
  const given = shownColumns(model).filter(({ name, settings }) => settings.guarded !== true && givenByForm(resource).has(name));
  const short = texts.filter(({ settings }) => (settings.max ?? Infinity) <= SEARCHED_LENGTH_MAX);
  const usable = declared ?? (resource === null ? modelFullText(model) : null);
  const backend = options.search === undefined && isUsable(usable, shown) ? usable : null;
  const searched = backend?.columns ?? (named(options.search, texts, 'search') ?? short).map(({ name }) => name);
  const chosen = named(options.filters, shown, 'filters') ?? filterable(shown, resource);
  named(Object.keys(options.tones ?? {}), shown, 'tones');
  // The page of what a record refers to lists it by this filter.
  const references = shown.filter((column) => column.settings.reference !== undefined && !chosen.includes(column));
  const filtered = [...chosen, ...references];
  const title =
    named(options.title === undefined ? undefined : [options.title], shown, 'title')?.[0]?.name ?? titleColumn(shown) ?? keyName;
  named(Object.keys(options.files ?? {}), accepted, 'files');
  if (faults.length > 0) throw new TypeError(`${where}: ${faults.join(' ')}`);
  const label = options.label ?? labelOf(model.name);
  const softDeletes = DELETED in model.columns && 'deletion_id' in model.columns && resource?.options.softDelete !== false;
  const kind = model.columns[keyName]?.settings.kind;
  const orders = ordersOf(model, listed);
  const isNumber = kind === 'int' || kind === 'bigint';
  return {
    model,
    resource,
    using: options.using ?? resource?.options.using ?? 'default',
    keyName,
    keyKind: keyKindOf(model, keyName),
    key: (id) => (isNumber ? (/^-?\d{1,19}$/.test(id) ? (kind === 'int' ? Number(id) : BigInt(id)) : '') : id),
    shown,
    listed,
    computed: (options.columns ?? []).filter((name) => Object.hasOwn(computed, name)),
    orders,
    writable,
    creatable: [...given, ...writable],
    given: new Set(given.map(({ name }) => name)),
    searched,
    backend,
    filtered,
    title,
    tones: options.tones ?? {},
    softDeletes,
    uniqueColumn: [...given, ...writable].find((column) => isUnique(model, column))?.name,
    shape: {
      name: options.name ?? model.name.replaceAll('_', '-'),
      label,
      singular: options.singular ?? label,
      group: options.group ?? 'Data',
      icon: 'table',
      ...(options.description === undefined ? {} : { description: options.description }),
      columns: sortableColumns(
        (options.columns ?? listed.map(({ name }) => name)).map((name, index) => {
          const column = listed.find((each) => each.name === name);
          const isSecondary = index >= MAIN_COLUMNS;
          return column === undefined ? computedColumn(name, computed[name]?.response, isSecondary) : adminColumn(column, isSecondary);
        }),
        orders,
      ),
      filters: [...filtered.map(filterOf), ...(softDeletes ? [DELETED_FILTER] : [])],
      ...(searched.length === 0
        ? {}
        : { searches: `${backend === null ? '' : 'words of '}${searched.map(labelOf).join(', ').toLowerCase()}` }),
    },
  };
}

/** A column that a to-one relation of the resource follows is a reference, with or without a foreign key. */
function withRelations(columns: readonly ModelColumn[], resource: AnyResource | null): readonly ModelColumn[] {
  const relations = Object.values((resource?.relations ?? {}) as Relations);
  return columns.map((column): ModelColumn => {
    const { name, settings } = column;
    const relation = settings.reference === undefined ? relations.find((each) => each.kind === 'one' && each.column === name) : undefined;
    return relation === undefined
      ? column
      : { name, settings: { ...settings, reference: { target: relation.model, onDelete: 'restrict' } } };
  });
}

/** A search tells what a column contains: it looks into shown ones only. */
function isUsable(backend: SearchBackend | null, shown: readonly ModelColumn[]): boolean {
  return backend !== null && backend.columns.every((name) => shown.some((column) => column.name === name));
}

/** What a model without a resource declares for itself. */
function modelFullText({ table: { fullText: [first] = [] } }: Model): SearchBackend | null {
  return first === undefined ? null : fullText({ columns: first.columns, config: first.config });
}

/** By itself, or among the rows that are not deleted. */
function isUnique(model: Model, { name, settings }: ModelColumn): boolean {
  return settings.unique || model.table.indexes.some(({ columns, unique }) => unique && columns.length === 1 && columns[0] === name);
}

/** Columns that the policy of the resource sets and no client changes. */
function policyColumns(resource: AnyResource | null): ReadonlySet<string> {
  const { owner, tenant, version } = resource?.options ?? {};
  const names = [scopeColumn(owner), scopeColumn(tenant), version] as readonly (string | undefined)[];
  return new Set(names.filter((name) => name !== undefined));
}

/** What a new row needs and nothing else knows: its owner, and its tenant where the site shows all tenants. */
function givenByForm(resource: AnyResource | null): ReadonlySet<string> {
  const { owner, tenant, audiences } = resource?.options ?? {};
  const names = [scopeColumn(owner), audiences?.[STAFF]?.tenant === 'all' ? scopeColumn(tenant) : undefined];
  return new Set(names.filter((name) => name !== undefined));
}

const YES_NO = [
  { value: 'yes', label: 'Yes' },
  { value: 'no', label: 'No' },
];
const DELETED_FILTER: AdminFilter = { name: 'deleted', label: 'Deleted', kind: 'select', choices: YES_NO };

/** Choices come first. The list is the same for everybody: a column that only some may see is not named in it. */
function filterable(shown: readonly ModelColumn[], resource: AnyResource | null): readonly ModelColumn[] {
  const rules = (resource?.options.fields ?? {}) as Readonly<Record<string, { readonly visibleTo?: object } | undefined>>;
  const usable = shown.filter(
    ({ name, settings }) => rules[name]?.visibleTo === undefined && (settings.reference !== undefined || !UNFILTERED.has(settings.kind)),
  );
  const isChoice = ({ settings }: ModelColumn) => settings.kind === 'enum' || settings.kind === 'bool';
  const isReference = ({ settings }: ModelColumn) => settings.reference !== undefined;
  const rank = (column: ModelColumn) => (isChoice(column) ? 0 : isReference(column) ? 1 : 2);
  return usable.filter(({ name }) => name !== DELETED && name !== 'deletion_id').toSorted((a, b) => rank(a) - rank(b));
}

const UNFILTERED: ReadonlySet<string> = new Set(['json', 'array', 'bytes', 'uuid']);

function filterOf({ name, settings }: ModelColumn): AdminFilter {
  const { kind, nullable, values } = settings;
  const base = { name, label: labelOf(name) };
  const empty = nullable ? (['empty'] as const) : [];
  const target = referenceTarget(settings);
  if (target !== null) return { ...base, kind: 'reference', of: target, operators: ['is', 'not', ...empty] };
  if (kind === 'bool') return { ...base, kind: 'select', choices: YES_NO, operators: ['is', ...empty] };
  if (values !== undefined) {
    const choices = values.map((value) => ({ value, label: value }));
    return { ...base, kind: 'select', choices, operators: ['is', 'not', 'in', ...empty] };
  }
  const ranged = RANGED[kind];
  if (ranged !== undefined) return { ...base, kind: ranged, ends: [`${name}.from`, `${name}.to`], operators: empty };
  return { ...base, kind: 'text', operators: kind === 'text' ? ['is', 'not', 'contains', ...empty] : ['is', ...empty] };
}

const RANGED: Readonly<Record<string, 'number' | 'time' | 'date' | undefined>> = {
  int: 'number',
  bigint: 'number',
  float: 'number',
  decimal: 'number',
  timestamp: 'time',
  date: 'date',
};
