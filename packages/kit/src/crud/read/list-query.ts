import { ruleResult } from '../../auth/rights/rule-result.ts';
import { canonicalJson } from '../../db/values/canonical-json.ts';
import { isStorableText } from '../../db/values/storable-text.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { QueryValues } from '../../http/input/query-string.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { callerOf, type CrudRequest } from '../policy/crud-request.ts';
import {
  coerceParameter,
  type FilterParameter,
  type FilterParameters,
  readColumnFilter,
  readCustomFilter,
} from '../parameters/filter-parameters.ts';
import { type ControllerLimits, limits } from '../declare/limits.ts';
import type { OrderingOptions, OrderTerm } from '../options/ordering.ts';
import { readNames } from '../parameters/name-list.ts';
import { defaultOrdering, orderableColumns, readOrdering } from './ordering.ts';
import type { PageOptions } from '../options/page-options.ts';
import { allPagingNames, type PageStretch, pagingNames, readPage, sizeName } from './page-parameters.ts';
import type { Policy } from '../policy/policy.ts';
import { blankSeparated, searchedWords } from './search.ts';
import type { SearchBackend } from '../declare/search-backend.ts';
import type { View } from '../policy/view.ts';
import { makeShape, nearestOrKnown } from './shape.ts';
import { WhereBody } from '../parameters/where-body.ts';

/** What of a declaration a list is read by. */
export interface ListDeclaration {
  readonly policy: Policy;
  readonly filters: FilterParameters;
  readonly search: SearchBackend | undefined;
  readonly ordering: OrderingOptions | undefined;
  readonly page: PageOptions;
  /** Whether `fields` is offered. */
  readonly isSparse: boolean;
  /** Columns the controller shows, for the document; undefined for all. What a caller gets is in its view. */
  readonly output: ReadonlySet<string> | undefined;
  /** Declared expansions and their prefixes. */
  readonly expand: ReadonlySet<string>;
  /** Names of the path's own parameters: they are not filters. */
  readonly queryMethod: boolean;
  /** Whether callers who may restore rows may list the deleted ones. */
  readonly hasDeleted: boolean;
  readonly limits: ControllerLimits;
}

/** A list as a caller asked for it, checked. */
export interface ListRequest extends PageStretch {
  readonly where: readonly Where[];
  readonly ordering: readonly OrderTerm[];
  readonly fields: readonly string[] | undefined;
  readonly expand: readonly string[];
  /** Filters and search in one form: a cursor belongs to them. */
  readonly binding: string;
  /** The deleted rows instead of those that are there. */
  readonly isDeleted: boolean;
}

/** `fields` and `expand` of any operation that answers with a row. */
export interface ShapeParameters {
  readonly fields: readonly string[] | undefined;
  readonly expand: readonly string[];
}

const SHAPE_NAMES = ['fields', 'expand'] as const;
const PAGE_NAMES: ReadonlySet<string> = new Set(allPagingNames);
const LIST_NAMES = ['search', 'ordering', ...allPagingNames, ...SHAPE_NAMES] as const;

const LIST_PARAMETERS: ReadonlySet<string> = new Set(LIST_NAMES);

const OTHER_NAMES = [
  'search',
  'ordering',
  'limit',
  'cursor',
  'offset',
  ...SHAPE_NAMES,
  'format',
  'dry_run',
  'group_by',
  'metrics',
  'deleted',
  'mode',
];

/** Names that no filter of the list may have. */
export function reservedParameters({ page }: Pick<ListDeclaration, 'page'>): ReadonlySet<string> {
  return new Set([...OTHER_NAMES, ...pagingNames(page)]);
}

/** Reads the query string of a list: every fault at once. */
export class ListQueryReader {
  readonly #list: ListDeclaration;
  readonly #request: CrudRequest;
  readonly #view: View;
  readonly #faults: FieldError[] = [];
  /** Parameters that are refused as such: what is in them is not looked at. */
  readonly #refused = new Set<string>();
  readonly #offersDeleted: boolean;

  /** `offersDeleted`: whether this caller may ask for deleted rows. */
  constructor(list: ListDeclaration, request: CrudRequest, view: View, offersDeleted = false) {
    this.#list = list;
    this.#request = request;
    this.#view = view;
    this.#offersDeleted = offersDeleted;
  }

  /** The names this caller may use. */
  #names(isOffered: (name: string) => boolean, more: readonly string[]): string[] {
    const filters = this.#list.filters.usable(this.#view).map(({ name }) => name);
    const all = [...filters, ...namesBesideFilters(this.#list), ...(this.#offersDeleted ? ['deleted'] : [])];
    return [...all.filter(isOffered), ...more];
  }

  /** The query string of an export: a list without pages, with to-one relations only, and a format. */
  async readExport<F extends string>(
    given: QueryValues,
    formats: readonly F[],
  ): Promise<{ readonly list: ListRequest; readonly format: F }> {
    const { format = formats[0], ...rest } = given;
    if (!formats.includes(format as F)) this.#refuse(['query', 'format'], 'invalid', `Give one of ${formats.join(', ')}.`);
    const list = await this.#readList(rest, (name) => name === 'format' || !PAGE_NAMES.has(name), ['format']);
    return { list, format: format as F };
  }

  /** The query string of a live list: a list without pages. */
  readLive(given: QueryValues): Promise<ListRequest> {
    return this.#readList(given, (name) => !PAGE_NAMES.has(name));
  }

  /** Filters and search alone; `more` are parameters that the caller of this reads, with the faults it found. */
  async readRows(given: QueryValues, more: readonly string[], faults: readonly FieldError[]): Promise<readonly Where[]> {
    this.#faults.push(...faults);
    const { where } = await this.#readList(given, (name) => name === 'search' || !LIST_PARAMETERS.has(name), more);
    return where;
  }

  /** Columns this caller may order by. */
  orderable(): string[] {
    return orderableColumns(this.#view, this.#list.ordering);
  }

  /** Relations this caller may expand. */
  expandable(): string[] {
    return [...this.#list.expand].filter((path) => this.#isExpandable(path, false));
  }

  readGet(given: QueryValues): Promise<ListRequest> {
    return this.#readList(given, () => true);
  }

  async #readList(given: QueryValues, isOffered: (name: string) => boolean, more: readonly string[] = []): Promise<ListRequest> {
    const where: Where[] = [];
    const bound: [string, unknown][] = [];
    const { filters, limits: bounds } = this.#list;
    const others = namesBesideFilters(this.#list);
    let filterCount = 0;
    for (const [name, value] of Object.entries(given)) {
      const parameter = filters.parameters.get(name);
      if (parameter !== undefined && filters.isUsable(parameter, this.#view)) {
        filterCount += 1;
        if (filterCount === bounds.filters + 1)
          this.#refuse(['query', name], 'too_many', `At most ${bounds.filters} filters in one request.`);
        if (filterCount > bounds.filters) continue;
        bound.push([name, value]);
        const condition = await this.#filter(parameter, value);
        if (condition !== undefined) where.push(condition);
      } else if (parameter !== undefined || !others.has(name) || !isOffered(name)) {
        const known = this.#names(isOffered, more);
        if (parameter !== undefined || !known.includes(name)) this.#refuseName(name, known);
      }
    }
    const search = await this.#search(given['search'], ['query', 'search']);
    if (search !== undefined) {
      where.push(search);
      bound.push(['search', given['search']]);
    }
    return this.#listRequest(this.#offered(given), isOffered, where, bound);
  }

  async #filter(parameter: FilterParameter, value: string | string[]): Promise<Where | undefined> {
    const { filters, limits: bounds } = this.#list;
    if (parameter.kind === 'column') return readColumnFilter(parameter, value, bounds.listValues, this.#request.clock.now(), this.#faults);
    const { filter, name } = parameter;
    return readCustomFilter(filter, coerceParameter(filter, value), ['query', name], filters.policy, callerOf(this.#request), this.#faults);
  }

  #listRequest(given: QueryValues, isOffered: (name: string) => boolean, where: readonly Where[], bound: [string, unknown][]): ListRequest {
    const ordering = this.#ordering(given['ordering']);
    const shape = this.#shape(given, !isOffered(sizeName(this.#list.page)));
    const page = readPage(given, this.#list.page, this.#list.limits, (...fault) => this.#refuse(...fault));
    const isDeleted = this.#deleted(given['deleted']);
    this.#refuseManyValues(where, ['query']);
    this.#finish(shape);
    if (isDeleted) bound.push(['deleted', 'only']);
    bound.sort(([a], [b]) => (a < b ? -1 : 1));
    return { where, ordering, ...shape, ...page, binding: JSON.stringify(bound), isDeleted };
  }

  /** The body of QUERY; paging stays in the query string. */
  async readQuery(given: QueryValues, body: Readonly<Record<string, unknown>>): Promise<ListRequest> {
    const known = pagingNames(this.#list.page);
    for (const name of Object.keys(given)) if (!known.includes(name)) this.#refuseName(name, known);
    const { filters, limits: bounds } = this.#list;
    const where: Where[] = [];
    if (body['where'] !== undefined)
      where.push(await new WhereBody(filters, bounds, this.#view, () => callerOf(this.#request), this.#faults).read(body['where']));
    const search = await this.#search(body['search'] as string | undefined, ['body', 'search']);
    if (search !== undefined) where.push(search);
    const ordering = this.#ordering(body['ordering'] as string[] | undefined, ['body', 'ordering']);
    const shape = this.#shape({ fields: body['fields'], expand: body['expand'] } as QueryValues);
    const size = sizeName(this.#list.page);
    const inBody = body[size] as number | undefined;
    const stretch = inBody === undefined || given[size] !== undefined ? given : { ...given, [size]: String(inBody) };
    const page = readPage(stretch, this.#list.page, bounds, (...fault) => this.#refuse(...fault));
    this.#refuseManyValues(where, ['body', 'where']);
    this.#finish(shape);
    const binding = canonicalJson({ where: body['where'] ?? null, search: body['search'] ?? null });
    return { where, ordering, ...shape, ...page, binding, isDeleted: false };
  }

  /** `fields` and `expand` of a single row. */
  readShape(given: QueryValues): ShapeParameters {
    const { isSparse, expand } = this.#list;
    const known = [...(isSparse ? ['fields'] : []), ...(expand.size > 0 ? ['expand'] : [])];
    for (const name of Object.keys(given)) if (!known.includes(name)) this.#refuseName(name, known);
    const shape = this.#shape(this.#offered(given));
    this.#finish(shape);
    return shape;
  }

  #offered(given: QueryValues): QueryValues {
    if (this.#refused.size === 0) return given;
    return Object.fromEntries(Object.entries(given).filter(([name]) => !this.#refused.has(name)));
  }

  #shape(given: QueryValues, isToOneOnly = false): ShapeParameters {
    return {
      fields: given['fields'] === undefined ? undefined : this.#paths('fields', given['fields']),
      expand: this.#expand(given['expand'], isToOneOnly),
    };
  }

  #expand(given: string | string[] | undefined, isToOneOnly: boolean): readonly string[] {
    if (given === undefined) return [];
    const { expand, limits: bounds } = this.#list;
    const paths = this.#paths('expand', given);
    const usable = [...expand].filter((path) => this.#isExpandable(path, isToOneOnly));
    for (const path of paths) {
      // Too deep a list is refused as such where the cost is counted.
      if (path.split('.').length > bounds.expandDepth || paths.length > bounds.expandPaths) continue;
      if (!usable.includes(path))
        this.#refuse(
          ['query', 'expand'],
          'unknown_field',
          `Cannot be expanded: ${JSON.stringify(path.slice(0, 100))}. ${nearestOrKnown(path, usable)}`,
        );
    }
    return paths;
  }

  #isExpandable(path: string, isToOneOnly: boolean): boolean {
    const edges = this.#view.follow(path);
    return edges !== undefined && !(isToOneOnly && edges.some(({ edge }) => edge.kind === 'many'));
  }

  #paths(name: string, given: string | string[]): string[] {
    const paths = readNames(given, 'name', ['query', name], this.#faults);
    if (paths.length > MEMBERS_MAX) this.#refuse(['query', name], 'too_many', `At most ${MEMBERS_MAX} names.`);
    return [...new Set(paths)].slice(0, MEMBERS_MAX);
  }

  async #search(given: string | string[] | undefined, location: readonly (string | number)[]): Promise<Where | undefined> {
    const { search, policy, limits: bounds } = this.#list;
    if (given === undefined || search === undefined) return undefined;
    if (typeof given !== 'string') return this.#refuse(location, 'duplicate', 'Give this parameter once.');
    if (isLongerThan(given, bounds.searchLength)) return this.#refuse(location, 'too_long', `At most ${bounds.searchLength} characters.`);
    if (!isStorableText(given)) return this.#refuse(location, 'invalid', 'Text must not contain U+0000 or half of a surrogate pair.');
    if (searchedWords(search, given).length > bounds.searchWords)
      return this.#refuse(location, 'too_many', `At most ${bounds.searchWords} words.`);
    if (blankSeparated(given).length === 0) return undefined;
    const { dialect } = policy.database(this.#request);
    const owner = `search "${search.name}" of resource(${policy.model.name})`;
    const where = ruleResult('search', owner, await search.where(given, { caller: callerOf(this.#request), model: policy.model, dialect }));
    if (policy.rows.canStoreValuesOf('search', owner, where)) return where;
    return this.#refuse(location, 'invalid', 'No row can have this value.');
  }

  #ordering(
    given: string | readonly string[] | undefined,
    location: readonly (string | number)[] = ['query', 'ordering'],
  ): readonly OrderTerm[] {
    const { policy, ordering } = this.#list;
    if (given === undefined || ordering === undefined) return defaultOrdering(policy, ordering);
    return readOrdering(this.#list, this.#view, readNames(given, 'column', location, this.#faults), location, this.#faults);
  }

  #deleted(given: string | string[] | undefined): boolean {
    if (given === undefined || !this.#offersDeleted) return false;
    if (given !== 'only') this.#refuse(['query', 'deleted'], 'invalid', 'Give "only", or leave it out.');
    return true;
  }

  /** Lists within their limit can be too many together, where the limits of the controller allow it. */
  #refuseManyValues(where: readonly Where[], location: readonly string[]): void {
    const { listValues, filters, whereLeaves } = this.#list.limits;
    if (listValues * Math.max(filters, whereLeaves) <= limits.allListValues) return;
    if (countListValues(where) > limits.allListValues)
      this.#refuse(location, 'too_many', `At most ${limits.allListValues} values in all lists together.`);
  }

  #refuseName(name: string, known: readonly string[]): void {
    this.#refused.add(name);
    const [base, operator] = splitName(name);
    const { filters } = this.#list;
    const declared = filters.columns.get(base.replace('__', '.')) ?? filters.columns.get(base);
    if (operator !== undefined && declared !== undefined && filters.isVisible(declared, this.#view)) {
      const isEqual = declared.operators.includes('eq');
      const others = declared.operators.flatMap((each) => (each === 'eq' ? [] : [`${base}__${each}`]));
      const parameters = [...(isEqual ? [base] : []), ...others].join(', ');
      const message = `"${base}" has no operator "${operator.slice(0, 40)}" here. Known: ${parameters}.`;
      this.#refuse(['query', name], 'unknown_operator', message);
      return;
    }
    this.#refuse(['query', name.slice(0, 100)], 'unknown_field', `Unknown parameter.${didYouMean(name, known)}`);
  }

  #refuse(location: readonly (string | number)[], code: string, message: string): undefined {
    if (this.#faults.length < FAULTS_MAX) this.#faults.push({ location, code, message });
    return undefined;
  }

  /** Throws every fault at once. Those of `fields` are found when the shape is made, which comes after this: they are added here. */
  #finish({ fields, expand }: ShapeParameters): void {
    if (this.#faults.length === 0) return;
    if (fields !== undefined && !this.#faults.some(({ location }) => location[1] === 'fields')) {
      const followed = expand.filter((path) => this.#list.expand.has(path) && this.#isExpandable(path, false));
      this.#faults.push(...makeShape(this.#view, { fields, expand: followed }).faults);
    }
    throw coreErrors.validation_error({ errors: this.#faults });
  }
}

/** Values of every `in` and `nin` of conditions. */
function countListValues(where: unknown): number {
  if (typeof where !== 'object' || where === null) return 0;
  if (Array.isArray(where)) return where.reduce<number>((sum, each) => sum + countListValues(each), 0);
  let count = 0;
  for (const [name, value] of Object.entries(where))
    count += (name === 'in' || name === 'nin') && Array.isArray(value) ? value.length : countListValues(value);
  return count;
}

/** The parameters of a list that are not filters. */
function namesBesideFilters(list: ListDeclaration): ReadonlySet<string> {
  const { search, ordering, isSparse, expand } = list;
  return new Set([
    ...(search === undefined ? [] : ['search']),
    ...(ordering === undefined ? [] : ['ordering']),
    ...pagingNames(list.page),
    ...(isSparse ? ['fields'] : []),
    ...(expand.size > 0 ? ['expand'] : []),
  ]);
}

const FAULTS_MAX = 100;
/** Names in `fields` or `expand`: more than any table has columns. */
export const MEMBERS_MAX = 200;

/** In characters, as the `maxLength` of the document counts them: one beyond U+FFFF takes two places of a JavaScript text. */
function isLongerThan(text: string, max: number): boolean {
  return text.length > max && (text.length > 2 * max || Array.from(text).length > max);
}

/** `total__gte` → `['total', 'gte']`. */
function splitName(name: string): [string, string | undefined] {
  const at = name.lastIndexOf('__');
  return at <= 0 ? [name, undefined] : [name.slice(0, at), name.slice(at + 2)];
}
