import { canonicalJson } from '../../db/canonical-json.ts';
import { isStorableText } from '../../db/storable-text.ts';
import type { Where } from '../../db/where/where.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { QueryValues } from '../../http/query-string.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { callerOf, type CrudRequest, type Visibility } from '../policy/crud-request.ts';
import { coerceParameter, type FilterParameters, readColumnFilter, readCustomFilter } from './filter-parameters.ts';
import { type ControllerLimits, limits } from '../declare/limits.ts';
import { defaultOrdering, orderableColumns, type OrderingOptions, type OrderTerm, readOrdering } from './ordering.ts';
import type { PageOptions } from '../declare/page-options.ts';
import type { Policy } from '../policy/policy.ts';
import { blankSeparated, type SearchBackend, searchedWords } from './search.ts';
import { nearestOrKnown, ShapeMaker } from './shape.ts';
import { WhereBody } from './where-body.ts';

/** What of a declaration a list is read by. */
export interface ListDeclaration {
  readonly policy: Policy;
  readonly filters: FilterParameters;
  readonly search: SearchBackend | undefined;
  readonly ordering: OrderingOptions | undefined;
  readonly page: PageOptions;
  /** Whether `fields` is offered. */
  readonly isSparse: boolean;
  /** Columns the controller shows; all of the policy unless given. */
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
export interface ListRequest {
  readonly where: readonly Where[];
  readonly ordering: readonly OrderTerm[];
  readonly fields: readonly string[] | undefined;
  readonly expand: readonly string[];
  readonly limit: number;
  readonly offset: number;
  readonly cursor: string | undefined;
  /** Filters and search in one form: a cursor belongs to them. */
  readonly binding: string;
  /** The deleted rows instead of those that are there. */
  readonly isDeleted: boolean;
  /** The same parameters ask for the same, whoever sends them and whenever: no code was asked for a condition. */
  readonly isRepeatable: boolean;
}

/** `fields` and `expand` of any operation that answers with a row. */
export interface ShapeParameters {
  readonly fields: readonly string[] | undefined;
  readonly expand: readonly string[];
}

const SHAPE_NAMES = ['fields', 'expand'] as const;
const PAGE_NAMES: ReadonlySet<string> = new Set(['limit', 'cursor', 'offset']);
const LIST_NAMES = ['search', 'ordering', 'limit', 'cursor', 'offset', ...SHAPE_NAMES] as const;

const LIST_PARAMETERS: ReadonlySet<string> = new Set(LIST_NAMES);

/** Names that no filter may have. */
export const reservedParameters: ReadonlySet<string> = new Set([
  ...LIST_NAMES,
  'format',
  'dry_run',
  'group_by',
  'metrics',
  'deleted',
  'mode',
]);

/** Reads the query string of a list: every fault at once. */
export class ListQueryReader {
  readonly #list: ListDeclaration;
  readonly #request: CrudRequest;
  readonly #visibilityOf: (policy: Policy) => Visibility;
  readonly #faults: FieldError[] = [];
  /** Parameters that are refused as such: what is in them is not looked at. */
  readonly #refused = new Set<string>();
  readonly #offersDeleted: boolean;

  /** `offersDeleted`: whether this caller may ask for deleted rows. */
  constructor(list: ListDeclaration, request: CrudRequest, visibilityOf: (policy: Policy) => Visibility, offersDeleted = false) {
    this.#list = list;
    this.#request = request;
    this.#visibilityOf = visibilityOf;
    this.#offersDeleted = offersDeleted;
  }

  /** The names this caller may use. */
  #names(isOffered: (name: string) => boolean, more: readonly string[]): string[] {
    const filters = [...this.#list.filters.usable(this.#visibilityOf)].map(({ name }) => name);
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

  /** Filters and search alone; `more` are parameters that the caller of this reads, with the faults it found. */
  async readRows(given: QueryValues, more: readonly string[], faults: readonly FieldError[]): Promise<readonly Where[]> {
    this.#faults.push(...faults);
    const { where } = await this.#readList(given, (name) => name === 'search' || !LIST_PARAMETERS.has(name), more);
    return where;
  }

  /** Columns this caller may order by. */
  orderable(): string[] {
    const { policy, ordering } = this.#list;
    return orderableColumns(policy, ordering, this.#visibilityOf(policy));
  }

  /** Relations this caller may expand. */
  expandable(): string[] {
    return [...this.#list.expand].filter((path) => this.#isExpandable(path, false));
  }

  readGet(given: QueryValues): ListRequest | Promise<ListRequest> {
    return this.#readList(given, () => true);
  }

  #readList(given: QueryValues, isOffered: (name: string) => boolean, more: readonly string[] = []): ListRequest | Promise<ListRequest> {
    const conditions: (Where | undefined | Promise<Where | undefined>)[] = [];
    const bound: [string, unknown][] = [];
    const { filters, limits: bounds } = this.#list;
    const others = namesBesideFilters(this.#list);
    let filterCount = 0;
    let isRepeatable = given['search'] === undefined;
    for (const name of Object.keys(given)) {
      const value = given[name] as string | string[];
      const parameter = filters.parameters.get(name);
      if (parameter !== undefined && filters.isUsable(parameter, this.#visibilityOf)) {
        filterCount += 1;
        if (filterCount === bounds.filters + 1)
          this.#refuse(['query', name], 'too_many', `At most ${bounds.filters} filters in one request.`);
        if (filterCount > bounds.filters) continue;
        bound.push([name, value]);
        if (parameter.kind === 'custom') isRepeatable = false;
        conditions.push(
          parameter.kind === 'column'
            ? readColumnFilter(parameter, value, bounds.listValues, this.#faults)
            : readCustomFilter(
                parameter.filter,
                coerceParameter(parameter.filter, value),
                ['query', name],
                filters.policy,
                callerOf(this.#request),
                this.#faults,
              ),
        );
      } else if (parameter !== undefined || !others.has(name) || !isOffered(name)) {
        const known = this.#names(isOffered, more);
        if (parameter !== undefined || !known.includes(name)) this.#refuseName(name, known);
      }
    }
    const search = this.#search(given['search'], ['query', 'search']);
    if (search !== undefined) {
      conditions.push(search);
      bound.push(['search', given['search']]);
    }
    const isPending = conditions.some((condition) => condition instanceof Promise);
    return isPending
      ? Promise.all(conditions.map(async (condition) => condition)).then((settled) =>
          this.#listRequest(this.#offered(given), isOffered, settled, bound, isRepeatable),
        )
      : this.#listRequest(this.#offered(given), isOffered, conditions as (Where | undefined)[], bound, isRepeatable);
  }

  #listRequest(
    given: QueryValues,
    isOffered: (name: string) => boolean,
    conditions: readonly (Where | undefined)[],
    bound: [string, unknown][],
    isRepeatable: boolean,
  ): ListRequest {
    const where = conditions.filter((condition) => condition !== undefined);
    const ordering = this.#ordering(given['ordering']);
    const shape = this.#shape(given, !isOffered('limit'));
    const page = this.#page(given);
    const isDeleted = this.#deleted(given['deleted']);
    this.#refuseManyValues(where, ['query']);
    this.#finish(shape);
    if (isDeleted) bound.push(['deleted', 'only']);
    bound.sort(([a], [b]) => (a < b ? -1 : 1));
    // Who may ask for deleted rows is decided by a permission.
    return { where, ordering, ...shape, ...page, binding: JSON.stringify(bound), isDeleted, isRepeatable: isRepeatable && !isDeleted };
  }

  /** The body of QUERY; paging stays in the query string. */
  async readQuery(given: QueryValues, body: Readonly<Record<string, unknown>>): Promise<ListRequest> {
    const known = pagingNames(this.#list);
    for (const name of Object.keys(given)) if (!known.includes(name)) this.#refuseName(name, known);
    const { filters, limits: bounds } = this.#list;
    const where: Where[] = [];
    if (body['where'] !== undefined)
      where.push(await new WhereBody(filters, bounds, this.#visibilityOf, () => callerOf(this.#request), this.#faults).read(body['where']));
    const search = await this.#search(body['search'] as string | undefined, ['body', 'search']);
    if (search !== undefined) where.push(search);
    const ordering = this.#ordering(body['ordering'] as string[] | undefined, ['body', 'ordering']);
    const shape = this.#shape({ fields: body['fields'], expand: body['expand'] } as QueryValues);
    const inBody = body['limit'] as number | undefined;
    const page = this.#page(inBody === undefined || given['limit'] !== undefined ? given : { ...given, limit: String(inBody) });
    this.#refuseManyValues(where, ['body', 'where']);
    this.#finish(shape);
    const binding = canonicalJson({ where: body['where'] ?? null, search: body['search'] ?? null });
    return { where, ordering, ...shape, ...page, binding, isDeleted: false, isRepeatable: false };
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

  /** A relation through a column the caller does not see is as unknown as the column. */
  #isExpandable(path: string, isToOneOnly: boolean): boolean {
    let { policy } = this.#list;
    for (const step of path.split('.')) {
      const edge = policy.edge(step);
      if (edge === undefined || (isToOneOnly && edge.kind === 'many')) return false;
      const through = edge.kind === 'one' ? policy.shown.get(edge.column) : undefined;
      if (through !== undefined && policy.sees(this.#visibilityOf(policy), through) !== true) return false;
      policy = edge.target;
    }
    return true;
  }

  #paths(name: string, given: string | string[]): string[] {
    const paths = [given].flat().flatMap((text) => text.split(','));
    const named = [...new Set(paths.filter((path) => path !== ''))];
    if (named.length === 0) this.#refuse(['query', name], 'required', 'Give at least one name.');
    if (paths.length > MEMBERS_MAX) this.#refuse(['query', name], 'too_many', `At most ${MEMBERS_MAX} names.`);
    return named.slice(0, MEMBERS_MAX);
  }

  #search(given: string | string[] | undefined, location: readonly (string | number)[]): Where | undefined | Promise<Where> {
    const { search, policy, limits: bounds } = this.#list;
    if (given === undefined || search === undefined) return undefined;
    if (typeof given !== 'string') return this.#refuse(location, 'duplicate', 'Give this parameter once.');
    if (isLongerThan(given, bounds.searchLength)) return this.#refuse(location, 'too_long', `At most ${bounds.searchLength} characters.`);
    if (!isStorableText(given)) return this.#refuse(location, 'invalid', 'Text must not contain U+0000 or half of a surrogate pair.');
    if (searchedWords(search, given).length > bounds.searchWords)
      return this.#refuse(location, 'too_many', `At most ${bounds.searchWords} words.`);
    if (blankSeparated(given).length === 0) return undefined;
    const { dialect } = policy.database(this.#request);
    return search.where(given, { caller: callerOf(this.#request), model: policy.model, dialect });
  }

  #ordering(
    given: string | readonly string[] | undefined,
    location: readonly (string | number)[] = ['query', 'ordering'],
  ): readonly OrderTerm[] {
    const { policy, ordering } = this.#list;
    if (given === undefined || ordering === undefined) return orderingUnlessGiven(this.#list);
    const names = [given]
      .flat()
      .flatMap((text) => text.split(','))
      .filter((name) => name !== '');
    return readOrdering(this.#list, this.#visibilityOf(policy), names, location, this.#faults);
  }

  #page(given: QueryValues): Pick<ListRequest, 'limit' | 'offset' | 'cursor'> {
    const {
      limits: bounds,
      page: { style, default: size, max },
    } = this.#list;
    const limit = this.#number(given['limit'], 'limit', 1, max, size);
    if (style === 'offset')
      return {
        limit,
        offset: this.#number(given['offset'], 'offset', 0, bounds.offset, 0, ' Use a filter, or a list with cursors, to go further.'),
        cursor: undefined,
      };
    const cursor = given['cursor'];
    if (cursor !== undefined && typeof cursor !== 'string') this.#refuse(['query', 'cursor'], 'duplicate', 'Give this parameter once.');
    return { limit, offset: 0, cursor: typeof cursor === 'string' ? cursor : undefined };
  }

  #deleted(given: string | string[] | undefined): boolean {
    if (given === undefined || !this.#offersDeleted) return false;
    if (given !== 'only') this.#refuse(['query', 'deleted'], 'invalid', 'Give "only", or leave it out.');
    return true;
  }

  #number(given: string | string[] | undefined, name: string, min: number, max: number, otherwise: number, hint = ''): number {
    if (given === undefined) return otherwise;
    const value = typeof given === 'string' && /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN;
    if (value >= min && value <= max) return value;
    this.#refuse(['query', name], 'invalid', `Give a whole number between ${min} and ${max}.${hint}`);
    return otherwise;
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
    if (operator !== undefined && declared !== undefined && filters.isVisible(declared, this.#visibilityOf)) {
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
      const maker = new ShapeMaker(this.#visibilityOf);
      const { policy, output } = this.#list;
      maker.make(policy, {
        fields,
        expand: expand.filter((path) => this.#list.expand.has(path) && this.#isExpandable(path, false)),
        output,
      });
      this.#faults.push(...maker.faults);
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

const namesOf = new WeakMap<ListDeclaration, ReadonlySet<string>>();

/** The parameters of a list that are no filters. */
function namesBesideFilters(list: ListDeclaration): ReadonlySet<string> {
  let names = namesOf.get(list);
  if (names === undefined) {
    const { search, ordering, isSparse, expand } = list;
    names = new Set([
      ...(search === undefined ? [] : ['search']),
      ...(ordering === undefined ? [] : ['ordering']),
      ...pagingNames(list),
      ...(isSparse ? ['fields'] : []),
      ...(expand.size > 0 ? ['expand'] : []),
    ]);
    namesOf.set(list, names);
  }
  return names;
}

function pagingNames({ page }: ListDeclaration): readonly string[] {
  return page.style === 'cursor' ? ['limit', 'cursor'] : ['limit', 'offset'];
}

const defaultOrderings = new WeakMap<ListDeclaration, readonly OrderTerm[]>();

function orderingUnlessGiven(list: ListDeclaration): readonly OrderTerm[] {
  let ordering = defaultOrderings.get(list);
  if (ordering === undefined) defaultOrderings.set(list, (ordering = defaultOrdering(list.policy, list.ordering)));
  return ordering;
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
