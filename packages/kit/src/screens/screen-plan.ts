import type { AdminColumn, AdminFilter } from '../app/admin/shapes.ts';
import type { AdminResource } from '../app/admin/declaration.ts';
import { groupDigits } from '../app/admin/group-digits.ts';
import { BOUNDED_ROWS } from '../crud/read/bounded.ts';
import {
  type AdminOrders,
  adminColumn,
  computedColumn,
  inSentence,
  keyKindOf,
  labelOf,
  type ModelColumn,
  ordersOf,
  referenceTarget,
  shownColumns,
  titleColumn,
  writableColumns,
} from '../app/admin/model-columns.ts';
import { opensColumn } from '../crud/declare/field-rule.ts';
import { isPeople } from '../crud/declare/people.ts';
import type { Relations } from '../crud/declare/relation.ts';
import { type AnyResource, isResource, STAFF } from '../crud/declare/resource.ts';
import { scopeColumn } from '../crud/declare/scope-rule.ts';
import type { SearchBackend } from '../crud/declare/search-backend.ts';
import { fullText } from '../crud/read/search.ts';
import type { Model } from '../db/declare/model.ts';
import type { Schema } from '../http/declare/schema.ts';
import { didYouMean } from '../options/did-you-mean.ts';
import { readOptions } from '../options/read-options.ts';
import { bareResource } from './bare-resource.ts';
import { type ScreenColumn, type ScreenFact, type ScreenFilter, type ScreenOptions, screenRules } from './screen-words.ts';

const LISTED_COLUMNS = 8;
const MAIN_COLUMNS = 4;
const SEARCHED_LENGTH_MAX = 255;
export const DELETED = 'deleted_at';

type ComputedFields = Readonly<Record<string, { readonly response: Schema } | undefined>>;

/** A filter of the list, with what it compares: a column, or the condition that its words give. */
export interface PlannedFilter {
  readonly shape: AdminFilter;
  readonly column?: ModelColumn;
  readonly custom?: Extract<ScreenFilter, { readonly where: unknown }>;
}

/** What the words and the resource say about a list. */
export interface Plan {
  readonly words: ScreenOptions;
  readonly model: Model;
  readonly resource: AnyResource;
  readonly isBare: boolean;
  readonly using: string;
  readonly shape: Pick<AdminResource, 'name' | 'label' | 'singular' | 'group' | 'icon' | 'columns' | 'filters'> &
    Partial<Pick<AdminResource, 'description' | 'searches' | 'plural' | 'live' | 'shortcuts' | 'removal'>>;
  readonly keyName: string;
  readonly keyKind: 'uuid' | 'int' | 'bigint' | 'text';
  readonly shown: readonly ModelColumn[];
  /** The columns of a record's page, with their words. */
  readonly facts: readonly AdminColumn[];
  /** Names of those that only the page of a record with a value has. */
  readonly factsIfSet: ReadonlySet<string>;
  /** Columns and computed fields that the rows of the list have. */
  readonly fields: readonly string[];
  /** Those that are read for a page of the list: a text without a limit only where the list has it as a column. */
  readonly listed: readonly string[];
  /** Values of a record's page: the words may leave columns out. */
  readonly drawn: readonly string[];
  /** Those of the rows of the list: a structure only where the list has it as a column. */
  readonly cells: readonly string[];
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
  readonly filters: readonly PlannedFilter[];
  readonly title: string;
  readonly softDeletes: boolean;
  /** The first column of the form whose values are unique: rows of a file are found by it. */
  readonly uniqueColumn: string | undefined;
}

/** Finds the columns that words refer to, and collects unknown names. */
class Named {
  readonly faults: string[] = [];

  find(names: readonly string[] | undefined, among: readonly ModelColumn[], what: string, others: readonly string[] = []) {
    return names?.flatMap((name): readonly ModelColumn[] => {
      const found = among.find((column) => column.name === name);
      if (found !== undefined) return [found];
      if (others.includes(name)) return [];
      const known = [...among.map((column) => column.name), ...others];
      this.faults.push(`${what}: "${name}" is not a column that can be used there.${didYouMean(name, known)}`);
      return [];
    });
  }
}

const nameOf = (column: ScreenColumn): string => (typeof column === 'string' ? column : column.name);

/** Reads the words completely; every fault is thrown at once, when the application is created. */
export function planOf(source: Model | AnyResource, words: ScreenOptions, declared: SearchBackend | null = null): Plan {
  const isBare = !isResource(source);
  const where = `screen("${isBare ? source.name : source.name}")`;
  readOptions(where, words, screenRules);
  const resource = isBare ? bareResource(source, words.using ?? 'default') : source;
  const model = resource.model as Model;
  const named = new Named();
  const { hidden = [], input, audiences, softDelete } = resource.options;
  const computed: ComputedFields = { ...(resource.options.computed as ComputedFields | undefined) };
  if (audiences?.[STAFF] === undefined) named.faults.push('the resource does not say what staff see: add `admin: { rows: true }` to it.');
  const shown = withRelations(shownColumns(model), resource).filter(({ name }) => !hidden.includes(name));
  const [keyName = '', ...rest] = model.primaryKey;
  if (rest.length > 0) named.faults.push('the key has several columns; the site needs one.');
  const texts = shown.filter(({ settings }) => settings.kind === 'text');
  const loaded = (words.load === undefined ? [] : [...(words.columns ?? []), ...(words.facts ?? [])]).flatMap((each) =>
    typeof each !== 'string' && each.kind !== undefined ? [each.name] : [],
  );
  const made = [...Object.keys(computed), ...Object.keys(words.cells ?? {}), ...loaded];
  const titles = words.load === undefined || words.title === undefined ? made : [...made, words.title];
  const listed =
    named.find(words.columns?.map(nameOf), shown, 'columns', made) ??
    shown
      .filter((column) => column.settings.kind !== 'json' && column.name !== keyName && !isBookkeeping(column, resource))
      .slice(0, LISTED_COLUMNS);
  const ownFacts = words.facts?.flatMap((each) => (typeof each === 'string' || each.kind === undefined ? [nameOf(each)] : []));
  named.find(ownFacts, shown, 'facts', made);
  const set = policyColumns(resource);
  const opens = (name: string) => !isBare && opensColumn(resource.options, name);
  const accepted = withRelations(writableColumns(model, opens), resource).filter(
    ({ name, settings }) => !set.has(name) && (input === undefined || settings.guarded === true || input.includes(name)),
  );
  const writable = named.find(words.edit, accepted, 'edit') ?? accepted;
  const created = named.find(words.create, accepted, 'create') ?? writable;
  const given = shownColumns(model).filter(({ name, settings }) => settings.guarded !== true && givenByForm(resource).has(name));
  const short = texts.filter(({ settings }) => (settings.max ?? Infinity) <= SEARCHED_LENGTH_MAX);
  const usable = declared ?? (isBare ? modelFullText(model) : null);
  const backend = words.search === undefined && isUsable(usable, shown) ? usable : null;
  const searched = backend?.columns ?? (named.find(words.search, texts, 'search') ?? short).map(({ name }) => name);
  const filters = filtersOf(words, shown, resource, named);
  named.find(Object.keys(words.tones ?? {}), shown, 'tones', made);
  const titled = named.find(words.title === undefined ? undefined : [words.title], shown, 'title', titles);
  named.find(
    words.lookup === undefined ? [] : [words.lookup],
    shown.filter((column) => isUnique(model, column)),
    'lookup',
  );
  named.find(Object.keys(words.files ?? {}), accepted, 'files');
  named.find(Object.keys(words.fields ?? {}), [...given, ...accepted], 'fields');
  if (named.faults.length > 0) throw new TypeError(`${where}: ${named.faults.join(' ')}`);
  const label = words.label ?? labelOf(model.name);
  const softDeletes = DELETED in model.columns && 'deletion_id' in model.columns && softDelete !== false;
  // A column that is said to be sortable has the order of the key; one with a note is said not to be.
  const unordered = new Set(
    words.columns?.flatMap((each) =>
      typeof each !== 'string' && (each.sortable === true || each.sortNote !== undefined) ? [each.name] : [],
    ),
  );
  const ordered = listed.filter(({ name }) => !unordered.has(name));
  const orders = ordersOf(model, ordered, 't0');
  const columnOf = (column: ScreenColumn, isSecondary: boolean): AdminColumn => {
    const own = typeof column === 'string' ? { name: column } : column;
    const found = shown.find(({ name }) => name === own.name);
    const known =
      found === undefined ? computedColumn(own.name, computed[own.name]?.response, isSecondary) : adminColumn(found, isSecondary);
    return { ...known, ...(found === undefined && words.tones?.[own.name] !== undefined ? { kind: 'state' } : {}), ...own };
  };
  const columns = (words.columns ?? listed.map(({ name }) => name)).map((column, index) => columnOf(column, index >= MAIN_COLUMNS));
  const title = words.title ?? titled?.[0]?.name ?? titleColumn(shown.filter(({ name }) => !set.has(name))) ?? keyName;
  const isListed = ({ name, settings }: ModelColumn) =>
    settings.kind !== 'text' || settings.max !== undefined || name === title || columns.some((column) => column.name === name);
  const fields = [...new Set([...shown.map(({ name }) => name), ...columns.map(({ name }) => name)])];
  // The history of a record is joined by request id.
  const said = [...columns.map(({ name }) => name), ...(words.facts?.map(nameOf) ?? []), ...Object.keys(words.cells ?? {}), 'request_id'];
  const drawn = words.facts === undefined ? fields : [...new Set(said)];
  const unlisted = new Set(
    shown
      .filter((column) => !isListed(column) || column.settings.kind === 'json')
      .flatMap(({ name }) => (columns.some((each) => each.name === name) ? [] : [name])),
  );
  const facts = (words.facts ?? shown.map(({ name }) => name)).filter((column) => words.facts !== undefined || isColumn(shown, column));
  const own = words.facts === undefined ? [] : columns;
  return {
    words,
    model,
    resource,
    isBare,
    using: words.using ?? resource.options.using ?? 'default',
    keyName,
    keyKind: keyKindOf(model, keyName),
    shown,
    facts: [...own, ...facts.map((column) => withWords(columnOf(withoutCondition(column), false), columns))],
    factsIfSet: new Set(facts.flatMap((each) => (typeof each === 'object' && each.ifSet === true ? [each.name] : []))),
    fields,
    listed: [...new Set([...shown.filter(isListed), ...columns].map(({ name }) => name))],
    drawn,
    cells: drawn.filter((name) => !unlisted.has(name)),
    orders,
    writable,
    creatable: [...given, ...created],
    given: new Set(given.map(({ name }) => name)),
    searched,
    backend,
    filters,
    title,
    softDeletes,
    uniqueColumn: [...given, ...created].find((column) => isUnique(model, column))?.name,
    shape: {
      name: words.name ?? model.name.replaceAll('_', '-'),
      label,
      singular: words.singular ?? label,
      group: words.group ?? 'Data',
      ...pick(words, ['icon', 'description', 'plural', 'live', 'shortcuts', 'removal']),
      columns: sortableColumns(columns, orders),
      filters: [...filters.map(({ shape }) => shape), ...(softDeletes ? [DELETED_FILTER] : [])],
      ...(words.searches !== undefined
        ? { searches: words.searches }
        : searched.length === 0
          ? {}
          : { searches: `${backend === null ? '' : 'words of '}${ANY_OF.format(searched.map((name) => inSentence(labelOf(name))))}` }),
    },
  };
}

const ANY_OF = new Intl.ListFormat('en-GB', { type: 'disjunction' });

function withoutCondition(fact: ScreenFact): ScreenColumn {
  if (typeof fact === 'string') return fact;
  const { ifSet: _, ...column } = fact;
  return column;
}

function isColumn(shown: readonly ModelColumn[], column: ScreenColumn): boolean {
  return shown.some(({ name }) => name === nameOf(column));
}

/** A column of the page has the words that the list gives it. */
function withWords(column: AdminColumn, listed: readonly AdminColumn[]): AdminColumn {
  const found = listed.find(({ name }) => name === column.name);
  return found === undefined ? column : { name: found.name, label: found.label, kind: found.kind };
}

function pick<K extends keyof ScreenOptions>(words: ScreenOptions, names: readonly K[]): Pick<ScreenOptions, K> {
  return Object.fromEntries(names.flatMap((name) => (words[name] === undefined ? [] : [[name, words[name]]]))) as Pick<ScreenOptions, K>;
}

function filtersOf(words: ScreenOptions, shown: readonly ModelColumn[], resource: AnyResource, named: Named): readonly PlannedFilter[] {
  const chosen: readonly ScreenFilter[] = words.filters ?? filterable(shown, resource).map(({ name }) => name);
  const planned = chosen.flatMap((each): PlannedFilter[] => {
    if (typeof each !== 'string' && 'where' in each) {
      const { where: _, isIndexed: __, column, ...shape } = each;
      named.find(column === undefined ? [] : [column], shown, 'filters');
      return [{ shape, custom: each }];
    }
    const { column: name, ...own } = typeof each === 'string' ? { column: each } : each;
    return (named.find([name], shown, 'filters') ?? []).map((column) => {
      const derived = filterOf(column);
      const renamed = own.name === undefined || derived.ends === undefined ? {} : { ends: [`${own.name}.from`, `${own.name}.to`] as const };
      return { shape: { ...derived, ...renamed, ...own }, column };
    });
  });
  // The page of what a record refers to lists it by this filter.
  const isFiltered = ({ name }: ModelColumn) => planned.some((each) => filteredColumn(each) === name);
  const references = shown.filter((column) => column.settings.reference !== undefined && !isFiltered(column));
  return [...planned, ...references.map((column) => ({ shape: filterOf(column), column }))];
}

/** The name of the column that a filter is for. */
export function filteredColumn({ column, custom }: PlannedFilter): string | undefined {
  return column?.name ?? custom?.column;
}

/** A column that a to-one relation of the resource follows is a reference, with or without a foreign key. */
function withRelations(columns: readonly ModelColumn[], resource: AnyResource): readonly ModelColumn[] {
  const relations = Object.values(resource.relations as Relations);
  return columns.map((column): ModelColumn => {
    const { name, settings } = column;
    const relation = settings.reference === undefined ? relations.find((each) => each.kind === 'one' && each.column === name) : undefined;
    return relation === undefined
      ? column
      : { name, settings: { ...settings, reference: { target: isPeople(relation) ? 'user' : relation.model, onDelete: 'restrict' } } };
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
function policyColumns(resource: AnyResource): ReadonlySet<string> {
  const { owner, tenant, version } = resource.options;
  const names = [scopeColumn(owner), scopeColumn(tenant), version] as readonly (string | undefined)[];
  return new Set(names.filter((name) => name !== undefined));
}

/** What a new row needs and nothing else knows: its owner, and its tenant where the site shows all tenants. */
function givenByForm(resource: AnyResource): ReadonlySet<string> {
  const { owner, tenant, audiences } = resource.options;
  const names = [scopeColumn(owner), audiences?.[STAFF]?.tenant === 'all' ? scopeColumn(tenant) : undefined];
  return new Set(names.filter((name) => name !== undefined));
}

const YES_NO = [
  { value: 'yes', label: 'Yes' },
  { value: 'no', label: 'No' },
];
const DELETED_FILTER: AdminFilter = { name: 'deleted', label: 'Deleted', kind: 'select', choices: YES_NO };

/** Choices come first. The list is the same for everybody: a column that only some may see is not named in it. */
function filterable(shown: readonly ModelColumn[], resource: AnyResource): readonly ModelColumn[] {
  const rules = (resource.options.fields ?? {}) as Readonly<Record<string, { readonly visibleTo?: object } | undefined>>;
  const usable = shown.filter(
    ({ name, settings }) => rules[name]?.visibleTo === undefined && (settings.reference !== undefined || !UNFILTERED.has(settings.kind)),
  );
  const isChoice = ({ settings }: ModelColumn) => settings.kind === 'enum' || settings.kind === 'bool';
  const isReference = ({ settings }: ModelColumn) => settings.reference !== undefined;
  const rank = (column: ModelColumn) => (isChoice(column) ? 0 : isReference(column) ? 1 : 2);
  return usable.filter(({ name }) => name !== DELETED && name !== 'deletion_id').toSorted((a, b) => rank(a) - rank(b));
}

/** What every change sets, and when a record was deleted: the record has both, a list has room for what people look for. */
function isBookkeeping({ name }: ModelColumn, { options }: AnyResource): boolean {
  return name === options.version || ((name === DELETED || name === 'deletion_id') && options.softDelete !== false);
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

const UNINDEXED_NOTE = `Has no index: of more than ${groupDigits(BOUNDED_ROWS)} records, the newest ${groupDigits(BOUNDED_ROWS)} are sorted.`;

/** The columns of a list with what its orders say about them. */
function sortableColumns(columns: readonly AdminColumn[], orders: AdminOrders): readonly AdminColumn[] {
  return columns.map((column) => {
    const order = orders[column.name];
    if (order === undefined) return column;
    return { ...column, sortable: true, ...(order.indexed === true ? {} : { sortNote: UNINDEXED_NOTE }) };
  });
}
