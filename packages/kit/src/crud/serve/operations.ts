import type { FastifyReply } from 'fastify';
import { cursorsOf } from '../../app/cursors.ts';
import type { App } from '../../app/module.ts';
import type { Db } from '../../db/db.ts';
import { isObserved } from '../../db/query-observer.ts';
import type { Cursors } from '../../db/keyset/cursor.ts';
import type { CompiledWhere } from '../../db/where/compile-where.ts';
import type { Where } from '../../db/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { hasCode } from '../../errors/kit-error.ts';
import type { CompiledRoute } from '../../http/compiled-route.ts';
import type { ControllerBase } from '../../http/controller.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { HandlerContext } from '../../http/handler-context.ts';
import type { QueryValues } from '../../http/query-string.ts';
import { exchangeOf } from '../../http/serve-route.ts';
import type { Route } from '../../http/route.ts';
import { absentValue } from '../write/absent-value.ts';
import { BoundedMap } from '../../db/bounded-map.ts';
import { BulkOperations, bulkOptions } from './bulk.ts';
import type { AnyCrudOptions } from '../declare/crud-options.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import { crudErrors } from '../declare/errors.ts';
import { Exporter } from '../files/export.ts';
import { type FixedIntent, Importer } from '../files/import.ts';
import { describeResource } from './meta.ts';
import { Stats } from '../read/stats.ts';
import { bodyTag, tagOf, type TagSource } from '../read/etag.ts';
import { FilterParameters } from '../read/filter-parameters.ts';
import { HttpCrudRequest } from './http-crud-request.ts';
import type { ReadItem } from '../write/item-reader.ts';
import { type ControllerLimits, limits, limitsOf } from '../declare/limits.ts';
import { type NestedItems, type NestedPlan, nestedPlans, requiredByPut, writeNested } from '../write/nested.ts';
import { NestedBody } from '../write/nested-body.ts';
import { type ListPage, type ListResult, narrowWhole, readList, unitFor } from '../read/list.ts';
import type { ListPlan } from '../read/list-plan.ts';
import { type ListDeclaration, ListQueryReader, type ShapeParameters } from '../read/list-query.ts';
import { pageOptions } from '../declare/page-options.ts';
import { readKey } from '../read/parameter-value.ts';
import { policiesOf, type Policies } from '../policy/policies.ts';
import { requiredPolicies, Views } from '../policy/make-view.ts';
import { type Edge, isKey, type Policy, type StoredColumn } from '../policy/policy.ts';
import type { RowState } from '../policy/row-scope.ts';
import type { View } from '../policy/view.ts';
import { type PossibleTransition, possibleTransitions, transitionRulesOf } from '../write/possible-transitions.ts';
import { matchesNone, type Precondition, readIfMatch } from '../write/precondition.ts';
import { presentRows, readOne, selectRows } from '../read/read.ts';
import type { AnyResource, Via } from '../declare/resource.ts';
import type { Item } from '../declare/item.ts';
import { SelectUnit } from '../read/select.ts';
import { containsSearch, type SearchBackend } from '../read/search.ts';
import { buildItems } from '../read/present.ts';
import { makeShape, refuseCostlyExpand, type Shape } from '../read/shape.ts';
import type { RowForm, RowKey } from '../write/row-statements.ts';
import type { TransitionRule } from '../declare/transition-rule.ts';
import type { Asked, Intent, Present } from '../write/intent.ts';
import { Pipeline } from '../write/pipeline.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- handlers of every operation
type Context = HandlerContext<any, any, any, any, any>;

/** What the answer of an operation is, besides its value. */
interface AnswerFacts {
  /** The value it was made for: a wrapper may have answered with another. */
  readonly value: unknown;
  readonly tag: TagSource | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

const answerFacts: unique symbol = Symbol('kit.crud.answer');
type CrudReply = FastifyReply & { [answerFacts]?: AnswerFacts };

/** The operations of one mounted controller. */
export class Operations {
  readonly resource: AnyResource;
  readonly options: AnyCrudOptions;
  readonly limits: ControllerLimits;
  #policy: Policy | undefined;
  #policies: Policies | undefined;
  #list: ListDeclaration | undefined;
  #pipeline: Pipeline | undefined;
  #bulk: BulkOperations | undefined;
  #nested: readonly NestedPlan[] | undefined;
  #app: App | undefined;
  #views: Views | undefined;
  /** Policies that a declared path leads to, and the resource's own. */
  #involved: readonly Policy[] = [];
  /** Once the first list was read. */
  #cursors: Cursors | undefined;
  readonly #shapes = new BoundedMap<string, Shape>(limits.plans);

  readonly exporter: Exporter | undefined;
  readonly importer: Importer | undefined;
  readonly stats: Stats | undefined;

  constructor(resource: AnyResource, options: AnyCrudOptions) {
    this.resource = resource;
    this.options = options;
    this.limits = limitsOf(options.limits);
    this.exporter = options.export === undefined ? undefined : new Exporter(this, options.export);
    this.importer = options.import === undefined ? undefined : new Importer(this, options.import);
    this.stats = options.stats === undefined ? undefined : new Stats(this, options.stats);
  }

  /** Every controller of the app exists: relations can be followed. */
  prepare(declared: { readonly controllers: readonly ControllerBase[]; readonly resources: readonly object[] }): void {
    const policies = policiesOf(declared);
    const policy = policies.of(this.resource);
    const { filters = {}, search, ordering, expand = [], page, sparse, queryMethod } = this.options;
    this.#policies = policies;
    this.#policy = policy;
    this.#list = {
      policy,
      filters: new FilterParameters(policy, filters),
      search: Array.isArray(search)
        ? search.length === 0
          ? undefined
          : containsSearch(search as string[])
        : (search as SearchBackend | undefined),
      ordering,
      page: pageOptions(page),
      isSparse: sparse !== false,
      output: this.output,
      expand: new Set(expand.flatMap(prefixes)),
      queryMethod: queryMethod ?? Object.keys(filters).length > 0,
      hasDeleted: this.options.restore === true && policy.softDelete !== undefined,
      limits: this.limits,
    };
    this.#involved = [...involvedPolicies(policy, this.#list)];
    this.#views = new Views(policy, this.#involved, this.output);
    this.#pipeline = new Pipeline(policy, { audit: null, events: null });
  }

  install(app: App): void {
    this.#app = app;
    this.#cursors = undefined;
    this.#pipeline = new Pipeline(this.policy, app.registry);
  }

  get policy(): Policy {
    return this.#policy ?? notMounted(this.resource);
  }

  get policies(): Policies {
    return this.#policies ?? notMounted(this.resource);
  }

  get list(): ListDeclaration {
    return this.#list ?? notMounted(this.resource);
  }

  get pipeline(): Pipeline {
    return this.#pipeline ?? notMounted(this.resource);
  }

  /**
   * The tables that responses are made of: the resource's own and every one that relations and references lead to. Undefined where rows are
   * given by something else than rows of these tables.
   */
  readonly tables = (): readonly string[] | undefined => {
    const found = new Map<Policy, string>();
    const visit = (policy: Policy): void => {
      if (found.has(policy)) return;
      found.set(policy, policy.model.name);
      for (const name of Object.keys(policy.resource.relations as object)) {
        const edge = policy.edge(name);
        if (edge !== undefined) visit(edge.target);
      }
      for (const target of policy.references.values()) visit(target);
    };
    visit(this.policy);
    return [...found.keys()].some(({ options }) => options.access !== undefined) ? undefined : [...found.values()];
  };

  /** The column of `/:id`. */
  get lookup(): StoredColumn {
    const { lookup } = this.options;
    // A name that is no column is reported at start-up.
    return (lookup === undefined ? undefined : this.policy.findColumn(lookup)) ?? this.policy.key;
  }

  /** The relation that the address is below, if any. */
  get parent(): { readonly edge: Edge; readonly param: string } | undefined {
    const { parent } = this.options;
    if (parent === undefined) return undefined;
    const edge = this.policy.edge(parent.relation);
    // A name that is no relation is reported at start-up.
    return edge === undefined ? undefined : { edge, param: parent.param ?? edge.column };
  }

  /** Columns a client may send. */
  get input(): readonly string[] {
    const own = this.options.input;
    const { tenant, version, state } = this.policy.options;
    const kept = new Set([tenant, version, state, this.policy.owner?.column, this.parent?.edge.column]);
    return this.policy
      .acceptedColumns()
      .filter((column) => !kept.has(column.name) && (own?.includes(column.name) ?? true))
      .filter(({ settings }) => !(settings.primaryKey && settings.default !== undefined))
      .map(({ name }) => name);
  }

  /** Relations whose rows are written with theirs. */
  get nested(): readonly NestedPlan[] {
    return (this.#nested ??= nestedPlans(this.policy));
  }

  get nestedBody(): NestedBody | undefined {
    return this.nested.length === 0 ? undefined : new NestedBody(this.nested);
  }

  get output(): ReadonlySet<string> | undefined {
    const { output } = this.options;
    return output === undefined ? undefined : new Set(output);
  }

  async request(context: Context, action: string): Promise<CrudRequest> {
    const exchange = exchangeOf(context.request);
    return new HttpCrudRequest(exchange, await exchange.tenant, action);
  }

  /** What this caller may know of the rows and those that declared paths lead to. */
  view(request: CrudRequest): Promise<View> {
    return (this.#views ?? notMounted(this.resource)).of(request);
  }

  shape(view: View, parameters: ShapeParameters, pageSize: number): Shape {
    const { fields, expand } = parameters;
    refuseCostlyExpand(expand, undefined, pageSize, this.limits);
    // All fields are the empty text: a client can send any other, and `fields` without a name is refused.
    const key = `${view.mask}|${fields?.join() ?? ''}|${expand.join()}`;
    const shape = this.#shapes.getOrMake(key, () => {
      const made = makeShape(view, parameters);
      if (made.faults.length > 0) throw coreErrors.validation_error({ errors: made.faults });
      return made.shape;
    });
    refuseCostlyExpand(expand, shape, pageSize, this.limits);
    return shape;
  }

  /** What of the rows this caller sees, for idempotency: a response is sent again only to who would get the same. */
  readonly audience = async (context: Context): Promise<string> => (await this.view(await this.request(context, 'audience'))).mask;

  /** Exactly which rows and fields this caller reads, for caches: who lost a right has another audience at once. */
  readonly readAudience = async (context: Context): Promise<string> => {
    const { metadata } = exchangeOf(context.request).route as CompiledRoute;
    const { operation } = metadata['crud'] as { readonly operation: string };
    const request = await this.request(context, operation === 'query' ? 'list' : operation);
    const parts: unknown[] = [(await this.view(request)).mask];
    for (const policy of this.#involved) {
      const { compiled } = await (policy === this.policy ? policy.rows.visible(request) : policy.rows.ofEdge(request));
      parts.push(compiled.shape, compiled.values(policy.database(request).dialect));
    }
    return JSON.stringify(parts, (_name, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
  };

  // — reading —

  readonly readPage = async (context: Context): Promise<ListPage> => {
    const request = await this.request(context, 'list');
    const view = await this.view(request);
    const given = context.query as QueryValues;
    const offersDeleted = given['deleted'] !== undefined && (await this.#mayRestore(context));
    const list = await new ListQueryReader(this.list, request, view, offersDeleted).readGet(given);
    // How many rows a search finds depends on its words: one plan for all of them would be wrong for most.
    const isFreeForm =
      list.fields !== undefined || list.expand.length > 0 || list.where.length > FILTERS_NAMED_MAX || given['search'] !== undefined;
    return this.#page(context, request, { list, shape: this.shape(view, list, list.limit), isFreeForm }, 'list');
  };

  /** What the address and the permission say of every row an import writes. */
  fixedIntent(context: Context): FixedIntent {
    const { parent } = this;
    return {
      ...(parent === undefined ? {} : { fixed: { [parent.edge.column]: this.parentValue(context) } }),
      ...(exchangeOf(context.request).verdict === 'unknown' ? { asked: { authorize: (row: Item) => context.authorize(row) } } : {}),
    };
  }

  readonly describe = async (context: Context): Promise<Item> => {
    const meta = await describeResource(this, context);
    this.answerWith(context, meta, { kind: 'body' });
    return meta;
  };

  /** The compiled routes of this controller: the generic ones, wrapped or not. */
  get routes(): readonly CompiledRoute[] {
    return (this.#app ?? notMounted(this.resource)).routes.filter(({ route }) => route.finish === this.finish);
  }

  readonly readQuery = (context: Context): Promise<ListPage> =>
    this.#readQuery(context).catch((error: unknown) => {
      throw inBody(error, (context.body ?? {}) as object, context.query as QueryValues);
    });

  async #readQuery(context: Context): Promise<ListPage> {
    const request = await this.request(context, 'list');
    const view = await this.view(request);
    const list = await new ListQueryReader(this.list, request, view).readQuery(
      context.query as QueryValues,
      (context.body ?? {}) as Readonly<Record<string, unknown>>,
    );
    return this.#page(context, request, { list, shape: this.shape(view, list, list.limit), isFreeForm: true }, 'query');
  }

  async #page(context: Context, request: CrudRequest, plan: ListPlan, operation: 'list' | 'query'): Promise<ListPage> {
    const db = this.policy.database(request);
    const permitted = await this.permittedRows(context, request);
    const ofParent = await this.parentRows(context, request, db, true);
    this.#notePlan(context, plan.shape);
    const read = await readList(db, request, plan, {
      policy: this.policy,
      options: this.list.page,
      cursors: (this.#cursors ??= await cursorsOf(this.#app ?? notMounted(this.resource))),
      operation: this.#listName(context, operation),
      queryString: queryStringOf(exchangeOf(context.request).url),
      offsetMax: this.limits.offset,
      fixed: [...permitted, ...ofParent],
    });
    this.answerWith(context, read.page, BODY_TAG, pageHeaders(read));
    return read.page;
  }

  /**
   * Tells lists apart that differ in nothing a caller asks for: those of two controllers of one resource, and those below two parents. QUERY
   * and its alias are one list.
   */
  #listName(context: Context, operation: 'list' | 'query'): string {
    const { mount, controller } = exchangeOf(context.request).route as CompiledRoute;
    const { parent } = this;
    const below = parent === undefined ? '' : ` of ${String(parent.edge.target.key.encode(this.parentValue(context)))}`;
    return `${mount} ${controller}.${operation}${below}`;
  }

  /** Who may restore rows may see which were deleted. A permission about rows counts where it holds for every row. */
  async #mayRestore(context: Context): Promise<boolean> {
    if (!this.list.hasDeleted) return false;
    const own = exchangeOf(context.request).route as CompiledRoute;
    const restore = (this.#app?.routes ?? []).find(
      ({ field, controller, path }) => field === 'restore' && controller === own.controller && path.startsWith(own.path),
    );
    return restore !== undefined && (await isPermitted(exchangeOf(context.request), restore, undefined));
  }

  /** For `X-Query-Plan`, where it is requested. */
  #notePlan(context: Context, shape: Shape): void {
    if (isObserved()) exchangeOf(context.request).noteQueryPlan(unitFor(shape, []).plan);
  }

  /** A permission about objects, as a condition: what `authorize` decides for one row is decided for a list in SQL. */
  async permittedRows(context: Context, request: CrudRequest): Promise<readonly CompiledWhere[]> {
    const exchange = exchangeOf(context.request);
    return exchange.verdict === 'unknown' ? this.#rowsOfPermission(exchange, request) : NO_CONDITIONS;
  }

  async #rowsOfPermission(exchange: Exchange, request: CrudRequest): Promise<readonly CompiledWhere[]> {
    const rows = await exchange.route?.permission.rows(exchange);
    if (rows === undefined) return NO_CONDITIONS;
    exchange.verdict = true;
    return [await this.policy.rows.compiled(request, rows as Where | boolean)];
  }

  /** Rows of the parent in the address. A parent the caller does not see is a 404 for the whole request. */
  async parentRows(context: Context, request: CrudRequest, db: Db, mustExist: boolean): Promise<readonly CompiledWhere[]> {
    const { parent } = this;
    return parent === undefined ? NO_CONDITIONS : this.#rowsOfParent(parent, context, request, db, mustExist);
  }

  async #rowsOfParent(
    { edge }: { readonly edge: Edge },
    context: Context,
    request: CrudRequest,
    db: Db,
    mustExist: boolean,
  ): Promise<readonly CompiledWhere[]> {
    const value = this.parentValue(context);
    await edge.target.rows.visible(request);
    if (mustExist) {
      const unit = new SelectUnit(keyShape(edge.target));
      const found = await selectRows(db, request, {
        unit,
        where: [edge.target.rows.compile(request, { [edge.target.key.name]: value } as Where)],
        isFreeForm: false,
      });
      if (found.length === 0) throw coreErrors.not_found();
      return [this.policy.rows.compile(request, { [edge.column]: value } as Where)];
    }
    return [this.policy.rows.compile(request, { [edge.column]: value, [edge.name]: { is: {} } })];
  }

  parentValue(context: Context): unknown {
    const { edge, param } = this.parent as { readonly edge: Edge; readonly param: string };
    const settings = edge.target.settingsOf(edge.target.key.name);
    // As it was sent: a route of the controller's own may declare other parameters.
    const read = readKey(settings, (context.request.params as Record<string, string>)[param] ?? '');
    if (read.fault !== undefined) throw coreErrors.not_found();
    return read.value;
  }

  readonly retrieve = async (context: Context): Promise<Item> => {
    const request = await this.request(context, 'retrieve');
    const { shape, isFreeForm } = await this.singleShape(context, request);
    const db = this.policy.database(request);
    const key = this.policy.rows.compile(request, this.#keyWhere(context));
    const where = [key, ...(await this.parentRows(context, request, db, false))];
    const unit = this.#singleUnit(context, shape);
    const needsRow = exchangeOf(context.request).verdict === 'unknown';
    this.#notePlan(context, shape);
    const { row, item } = await readOne(db, request, unit, where, isFreeForm, needsRow);
    if (needsRow) await context.authorize(wholeRow(unit, row));
    this.answerWith(context, item, this.#tag(unit, row));
    return item;
  };

  /** What of one row, or of as many as a bulk operation has, the caller gets. */
  async singleShape(context: Context, request: CrudRequest, rows = 1): Promise<SingleShape> {
    const view = await this.view(request);
    const given = context.query as QueryValues;
    const parameters = isEmpty(given) ? WHOLE : new ListQueryReader(this.list, request, view).readShape(given);
    return { shape: this.shape(view, parameters, rows), isFreeForm: parameters !== WHOLE };
  }

  /** Every column where a permission needs the whole row. */
  #singleUnit(context: Context, shape: Shape): SelectUnit {
    const { version } = this.policy.options;
    const extra =
      exchangeOf(context.request).verdict === 'unknown' ? this.policy.codeColumns : version === undefined ? [] : [version as string];
    return unitFor(shape, extra);
  }

  /** The tag of a row that was written. */
  #rowTag(shape: Shape, row: Item): TagSource {
    return this.#tag(unitFor(shape, this.#versionExtra()), row);
  }

  #tag(unit: SelectUnit, row: Item): TagSource {
    const { version } = this.policy.options;
    return tagOf(this.policy, unit.shape, version === undefined ? undefined : unit.extra(row, version as string));
  }

  // — writing —

  readonly create = async (context: Context): Promise<Item> => {
    const request = await this.request(context, 'create');
    const { shape } = await this.singleShape(context, request);
    const { values, children } = this.#splitBody(context, request);
    const row = { values, sent: sentNames(context) };
    const written = await this.#written(context, request, shape, { verb: 'create', rows: [row] }, { children });
    const key = encodeURIComponent(String(written.row[this.lookup.name]));
    return this.#answerWritten(context, shape, written, { location: `${relativeBase(exchangeOf(context.request).url)}${key}` });
  };

  readonly update = (context: Context): Promise<Item> => this.#change(context, 'update');

  readonly partialUpdate = (context: Context): Promise<Item> => this.#change(context, 'partialUpdate');

  async #change(context: Context, action: 'update' | 'partialUpdate'): Promise<Item> {
    const request = await this.request(context, action);
    const { shape } = await this.singleShape(context, request);
    const { values, children } = this.#splitBody(context, request);
    if (action === 'update') this.#requireNested(context);
    const { valuesOfRow, ...given }: Replacement = action === 'update' ? await this.#replaced(context, request, values) : { values };
    this.#requirePrecondition(context);
    const row = { ...given, sent: sentNames(context), ...this.#keyed(context) };
    const written = await this.#written(context, request, shape, { verb: 'update', rows: [row] }, { valuesOfRow, children });
    return this.#answerWritten(context, shape, written);
  }

  /** The columns of a body, and what writes the children it has. */
  #splitBody(context: Context, request: CrudRequest): { readonly values: Item; readonly children: Asked['children'] } {
    const body = context.body as Item;
    if (this.nested.length === 0) return { values: body, children: undefined };
    const sent = this.nested.filter(({ name }) => body[name] !== undefined);
    if (sent.length === 0) return { values: body, children: undefined };
    const nested: NestedItems = new Map(sent.map((plan) => [plan, body[plan.name] as readonly ReadItem[]]));
    const names = new Set(sent.map(({ name }) => name));
    return {
      values: Object.fromEntries(Object.entries(body).filter(([name]) => !names.has(name))),
      children: (tx, row, isNew, changes) => writeNested(this.pipeline, { tx, request, parent: row, isNew, changes }, nested),
    };
  }

  #requireNested(context: Context): void {
    const body = context.body as Item;
    const missing = requiredByPut(this.nested).filter(({ name }) => body[name] === undefined);
    if (missing.length > 0)
      throw coreErrors.validation_error({
        errors: missing.map(({ name }) => ({
          location: ['body', name],
          code: 'required',
          message: `Required: PUT deletes the ${name} that are not named. Use PATCH to leave them as they are.`,
        })),
      });
  }

  /**
   * PUT replaces every input column that this caller sees and may write; the others stay as they are. A column under a rule about the row is
   * decided once the row is known. Keys are never changed: one that is sent must be the row's.
   */
  async #replaced(context: Context, request: CrudRequest, body: Item): Promise<Replacement> {
    const sent = sentNames(context);
    const values: Item = {};
    const keys: string[] = [];
    const now = request.clock.now();
    const view = await this.view(request);
    const undecided: string[] = [];
    const absent: string[] = [];
    for (const name of this.input) {
      if (isKey(this.policy, name)) {
        if (body[name] !== undefined) keys.push(name);
        continue;
      }
      if (body[name] !== undefined) {
        values[name] = body[name];
        continue;
      }
      const shown = view.knows(name);
      if (shown === undefined || shown === 'null') continue;
      const written = sent.includes(name) ? true : ((await this.policy.ruleOf(name)?.writableBy?.evaluate(request.context)) ?? true);
      if (written === false) continue;
      (shown === 'always' && written === true ? absent : undecided).push(name);
    }
    Object.assign(values, absentValues(this.policy, absent, now));
    const { column, value: addressed } = this.#key(context);
    const isAddressed = keys.every((name) => name === column.name);
    if (isAddressed) refuseOtherKeys(keys, body, { [column.name]: addressed });
    if (undecided.length === 0 && isAddressed) return { values };
    const valuesOfRow = async (row: Item): Promise<Item> => {
      refuseOtherKeys(keys, body, row);
      const decided: string[] = [];
      for (const name of undecided) {
        const { visibleTo, writableBy } = this.policy.ruleOf(name) ?? {};
        const rules = [visibleTo, writableBy].filter((rule) => rule !== undefined);
        const verdicts = await Promise.all(rules.map(async (rule) => rule.evaluate(request.context, row)));
        if (verdicts.every((verdict) => verdict === true)) decided.push(name);
      }
      return absentValues(this.policy, decided, now);
    };
    return { values, valuesOfRow };
  }

  readonly destroy = async (context: Context): Promise<void> => {
    const request = await this.request(context, 'destroy');
    const { shape } = await this.singleShape(context, request);
    this.#requirePrecondition(context);
    await this.parentRows(context, request, this.policy.database(request), true);
    const rows = [{ values: {}, sent: [], ...this.#keyed(context) }];
    await this.pipeline.run(this.policy.database(request), request, {
      verb: 'destroy',
      via: 'single',
      rows,
      ...this.asked(context, shape),
    });
  };

  readonly restore = async (context: Context): Promise<Item> => {
    const request = await this.request(context, 'restore');
    const { shape } = await this.singleShape(context, request);
    const rows = [{ values: {}, sent: [], ...this.#keyed(context) }];
    return this.#answerWritten(context, shape, await this.#written(context, request, shape, { verb: 'restore', rows }));
  };

  transition(name: string): (context: Context) => Promise<Item> {
    return async (context) => {
      const request = await this.request(context, name);
      const { shape } = await this.singleShape(context, request);
      this.#requirePrecondition(context);
      const transitionsOf = async (row: Item) => (await this.#offeredTransitions(context, request, row)).map((each) => each.name);
      const rows = [{ values: {}, sent: [], ...this.#keyed(context) }];
      const intent = { verb: 'transition', rows, transition: { name, input: context.body as unknown } } as const;
      return this.#answerWritten(context, shape, await this.#written(context, request, shape, intent, { transitionsOf }));
    };
  }

  /** Undefined where none is declared. */
  get bulk(): BulkOperations | undefined {
    const { bulk } = this.options;
    return bulk === undefined ? undefined : (this.#bulk ??= new BulkOperations(this, bulkOptions(bulk)));
  }

  /** What this caller may do to this row now. */
  readonly transitions = async (context: Context): Promise<{ items: Item[] }> => {
    const request = await this.request(context, 'transitions');
    const row = await this.find(context, (context.params as { id: string }).id);
    const items: Item[] = [];
    for (const { name, to, route } of await this.#offeredTransitions(context, request, row))
      items.push({ name, to, ...(route.body === undefined ? {} : { input: route.body.json }) });
    return { items };
  };

  /** What this caller may do to this row now, of what this controller offers. */
  async #offeredTransitions(
    context: Context,
    request: CrudRequest,
    row: Item,
  ): Promise<(PossibleTransition & { readonly route: CompiledRoute })[]> {
    const offered: (PossibleTransition & { readonly route: CompiledRoute })[] = [];
    for (const { name, to } of await possibleTransitions(this.policy, request, row)) {
      const found = this.#siblingRoute(context, name);
      if (found !== undefined && (await isPermitted(exchangeOf(context.request), found, row))) offered.push({ name, to, route: found });
    }
    return offered;
  }

  /** The mounted route of another operation of this controller at this address; undefined when the controller does not offer it. */
  #siblingRoute(context: Context, operation: string): CompiledRoute | undefined {
    const own = exchangeOf(context.request).route as CompiledRoute;
    const base = own.path.slice(0, own.path.lastIndexOf('/:id'));
    return (this.#app?.routes ?? []).find(
      ({ field, controller, path }) => field === operation && controller === own.controller && path.startsWith(`${base}/:id`),
    );
  }

  get transitionRules(): Readonly<Record<string, TransitionRule>> {
    return transitionRulesOf(this.resource);
  }

  /** Runs a write and presents its row: inside the transaction where that needs statements of its own. */
  async #written(
    context: Context,
    request: CrudRequest,
    shape: Shape,
    intent: Pick<Intent, 'verb' | 'rows' | 'transition'>,
    more: Partial<Asked> = {},
  ): Promise<WrittenItem> {
    let item: Item | undefined;
    const db = this.policy.database(request);
    // The parent in the address first.
    await this.parentRows(context, request, db, true);
    const { fixed, asked } = this.asked(context, shape);
    const present = this.#presentOne(request, shape, (built) => void (item = built));
    const [row] = await this.pipeline.run(db, request, { ...intent, via: 'single', fixed, asked: { ...asked, ...more, present } });
    return { row: row as Item, item: item as Item };
  }

  #presentOne(request: CrudRequest, shape: Shape, done: (item: Item | undefined) => void): Present {
    const unit = unitFor(shape, this.#versionExtra());
    const isDeep = readsRelations(unit);
    const build = async (db: Db, [row]: readonly Item[]): Promise<void> => {
      if (!isDeep) return done((await buildItems(unit, [row as Item], request))[0]);
      const key = this.policy.rows.compile(request, { [this.policy.key.name]: row?.[this.policy.key.name] } as Where);
      return done((await readOne(db, request, unit, [key], true)).item);
    };
    return { isDeep, form: !isDeep && unit.isWire ? WIRE : AS_CODE, build };
  }

  #answerWritten(context: Context, shape: Shape, { row, item }: WrittenItem, headers?: Readonly<Record<string, string>>): Item {
    this.answerWith(context, item, this.#rowTag(shape, row), headers);
    return item;
  }

  #versionExtra(): readonly string[] {
    const { version } = this.policy.options;
    return version === undefined ? [] : [version as string];
  }

  /** What the address, the permission and the representation say of a write. */
  asked(context: Context, shape: Shape): Pick<Intent, 'fixed'> & { readonly asked: Asked } {
    const { parent } = this;
    const exchange = exchangeOf(context.request);
    return {
      fixed: parent === undefined ? undefined : { [parent.edge.column]: this.parentValue(context) },
      asked: {
        etagOf: this.policy.options.version === undefined ? undefined : (row: Item) => this.#etagOfRow(shape, row),
        authorize: exchange.verdict === 'unknown' ? (row: Item) => context.authorize(row) : undefined,
        ownsTransaction: exchange.ownsTransaction,
      },
    };
  }

  #keyed(context: Context): { readonly key: RowKey; readonly ifMatch: Precondition | undefined } {
    const { headers } = exchangeOf(context.request);
    return {
      key: this.#key(context),
      ifMatch: this.options.etag === false ? undefined : readIfMatch(headers['if-match'] as string | undefined),
    };
  }

  /** The tag a reader of this shape would get for the row; the plain version where the body would be needed. */
  #etagOfRow(shape: Shape, row: Item): string {
    const version = row[this.policy.options.version as string];
    const source = tagOf(this.policy, shape, version);
    return source.kind === 'version' ? source.tag : `"${String(version)}"`;
  }

  #requirePrecondition(context: Context): void {
    if (this.options.etag === 'required' && context.request.headers['if-match'] === undefined) throw crudErrors.precondition_required();
  }

  #key(context: Context): RowKey {
    return this.rowKey((context.params as { id: string }).id);
  }

  rowKey(text: string): RowKey {
    const column = this.lookup;
    const read = readKey(this.policy.settingsOf(column.name), text);
    if (read.fault !== undefined) throw coreErrors.not_found();
    return { column, value: read.value };
  }

  #keyWhere(context: Context): Where {
    const { column, value } = this.#key(context);
    return { [column.name]: value } as Where;
  }

  // — for routes of the controller's own —

  async find(context: Context, key: string): Promise<Item> {
    const request = await this.request(context, 'retrieve');
    const ofParent = await this.parentRows(context, request, this.policy.database(request), false);
    const row = await this.findAs(request, key, 'live', ofParent);
    if (exchangeOf(context.request).verdict === 'unknown') await context.authorize(row);
    return row;
  }

  async findAs(request: CrudRequest, key: string, rows: RowState = 'live', also: readonly CompiledWhere[] = NO_CONDITIONS): Promise<Item> {
    const { column, value } = this.rowKey(key);
    const [row] = await this.rowsOf(request, { [column.name]: value } as Where, 1, rows, also);
    if (row === undefined) throw coreErrors.not_found();
    return row;
  }

  async rows(context: Context, where: Where | undefined, limit: number = limits.pageMax): Promise<Item[]> {
    const request = await this.request(context, 'list');
    const ofParent = await this.parentRows(context, request, this.policy.database(request), true);
    return this.rowsOf(request, where, limit, 'live', ofParent);
  }

  /** Whole rows, as code has them, among those the caller sees. */
  async rowsOf(
    request: CrudRequest,
    where: Where | undefined,
    limit: number,
    rows: RowState = 'live',
    also: readonly CompiledWhere[] = NO_CONDITIONS,
  ): Promise<Item[]> {
    const unit = wholeUnit(this.policy);
    const db = this.policy.database(request);
    // One row is asked for by its key.
    const whole = limit > 1 && rows === 'live' ? await narrowWhole(db, request, this.policy) : [];
    const conditions = [...whole, ...also, ...(where === undefined ? [] : [await this.policy.rows.compiled(request, where)])];
    return selectRows(db, request, { unit, where: conditions, limit, rows, isFreeForm: true, forCode: true });
  }

  /** The pipeline for routes of the controller's own; what they write is trusted like a hook. */
  writing(context: Context, tx: Db | undefined): AnyRowWriter {
    return this.writingAs(async (action, work) => work(await this.request(context, action)), tx);
  }

  /** The pipeline for code; `as` makes the request of each write. */
  writingAs(as: AsCaller, tx: Db | undefined, via: Via = 'single'): AnyRowWriter {
    const run = <V>(action: string, work: (db: Db, request: CrudRequest) => Promise<V>): Promise<V> =>
      as(action, (request) => work(tx ?? this.policy.database(request), request));
    const write = async (action: string, intent: Pick<Intent, 'verb' | 'transition'>, key?: string, values: Item = {}): Promise<Item> =>
      run(action, async (db, request) => {
        this.#refuseGuarded(values);
        const row = { values, sent: [], ...(key === undefined ? {} : { key: this.rowKey(key) }) };
        return (await this.pipeline.run(db, request, { ...intent, via, rows: [row] }))[0] as Item;
      });
    return {
      create: (values) => write('create', { verb: 'create' }, undefined, values),
      update: (key, changes) => write('update', { verb: 'update' }, key, changes),
      destroy: async (key) => void (await write('destroy', { verb: 'destroy' }, key)),
      transition: (key, name, input) => write(name, { verb: 'transition', transition: { name, input } }, key),
      restore: (key) => write('restore', { verb: 'restore' }, key),
    };
  }

  /** A program that passes on what a client sent must not open a guarded column by that. */
  #refuseGuarded(values: Item): void {
    const guarded = this.policy.guardedIn(values);
    if (guarded.length > 0)
      throw new Error(
        `resource(${this.policy.model.name}) does not write "${guarded.join('", "')}": the column is guarded. Use the function of its module, or open it: fields: { ${guarded[0]}: writableBy(permission) }.`,
      );
  }

  async present<V extends Item | readonly Item[]>(context: Context, rows: V): Promise<Presented<V>> {
    return this.presentAs(await this.request(context, 'retrieve'), rows);
  }

  /** Rows as the caller may see them. */
  async presentAs<V extends Item | readonly Item[]>(request: CrudRequest, given: V): Promise<Presented<V>> {
    const rows: readonly Item[] = Array.isArray(given) ? given : [given];
    const unit = unitFor(this.shape(await this.view(request), WHOLE, 1), []);
    const items = readsRelations(unit) ? await this.#presentJoined(request, unit, rows) : await buildItems(unit, rows, request);
    return (Array.isArray(given) ? items : items[0]) as Presented<V>;
  }

  /** What is shown needs columns of related rows: they are read again, in one statement. */
  async #presentJoined(request: CrudRequest, unit: SelectUnit, rows: readonly Item[]): Promise<Item[]> {
    if (rows.length === 0) return [];
    const { key } = this.policy;
    const db = this.policy.database(request);
    const where = this.policy.rows.compile(request, { [key.name]: { in: rows.map((row) => row[key.name]) } } as Where);
    const found = await selectRows(db, request, { unit, where: [where], isFreeForm: rows.length > 1, forCode: true });
    const items = await presentRows(db, request, unit, found);
    const byKey = new Map(items.map((item, index) => [String(unit.extra(found[index] as Item, key.name)), item]));
    return rows.map((row) => {
      const item = byKey.get(String(row[key.name]));
      if (item === undefined) throw coreErrors.not_found();
      return item;
    });
  }

  // — answering —

  answerWith(context: Context, value: unknown, tag: TagSource, headers?: Readonly<Record<string, string>>): void {
    (context.reply as CrudReply)[answerFacts] = { value, tag: this.options.etag === false ? undefined : tag, headers };
  }

  /** Headers and 304, once everything around the handler is done. */
  readonly finish: NonNullable<Route['finish']> = (context, value, serialize) => {
    const reply = context.reply as CrudReply;
    const facts = reply[answerFacts];
    if (facts === undefined) return serialize(value);
    for (const name in facts.headers) appendHeader(reply, name, facts.headers[name] as string);
    if (facts.tag === undefined) return serialize(value);
    const ifNoneMatch = context.request.headers['if-none-match'];
    const isRead = context.request.method === 'GET' || context.request.method === 'HEAD' || context.request.method === 'QUERY';
    // A wrapper that answers with something else has another body than the version stands for.
    const tag: TagSource = facts.value === value || facts.tag.kind !== 'version' ? facts.tag : { kind: 'body' };
    let text: string | undefined;
    const etag = tag.kind === 'version' ? tag.tag : bodyTag(tag, (text = serialize(value)));
    reply.header('etag', etag);
    if (context.user !== null) {
      reply.header('cache-control', 'private, no-cache');
      appendHeader(reply, 'vary', 'Authorization, X-API-Key, Cookie');
    }
    if (isRead && matchesNone(ifNoneMatch, etag)) {
      reply.code(304);
      return null;
    }
    return text ?? serialize(value);
  };
}

/** Makes the request of one action of a caller and runs the work with it. */
export type AsCaller = <V>(action: string, work: (request: CrudRequest) => Promise<V>) => Promise<V>;

/** {@link RowWriter} with its types erased. */
export interface AnyRowWriter {
  create(values: Item): Promise<Item>;
  update(key: string, changes: Item): Promise<Item>;
  destroy(key: string): Promise<void>;
  transition(key: string, name: string, input?: unknown): Promise<Item>;
  restore(key: string): Promise<Item>;
}

/** What a PUT writes, where some of it may depend on the row. */
interface Replacement extends Pick<Asked, 'valuesOfRow'> {
  readonly values: Item;
}

/** A row that was written, and what the caller gets of it. */
interface WrittenItem {
  readonly row: Item;
  readonly item: Item;
}

interface SingleShape {
  readonly shape: Shape;
  readonly isFreeForm: boolean;
}

type Presented<V> = V extends readonly unknown[] ? Item[] : Item;

const WHOLE: ShapeParameters = Object.freeze({ fields: undefined, expand: [] });
const BODY_TAG: TagSource = Object.freeze({ kind: 'body' });
const NO_CONDITIONS: readonly CompiledWhere[] = Object.freeze([]);
const WIRE: RowForm = Object.freeze({ as: 'wire' });
const AS_CODE: RowForm = Object.freeze({});
/** Combinations of more filters than this get no statement name of their own on the server. */
const FILTERS_NAMED_MAX = 4;

/** Whether the caller may use another route on this object: with the scope that route declares. */
async function isPermitted(
  { url, headers, principal, user, tenant, db, rules }: Exchange,
  route: CompiledRoute,
  object: unknown,
): Promise<boolean> {
  const context = { method: route.method, url, headers, principal, user, tenant, scope: route.scope, db, rules, route };
  return (await route.permission.evaluate(context, object)) === true;
}

/** Whether an item takes more than the row it is made of. */
function readsRelations(unit: SelectUnit): boolean {
  return unit.batches.length > 0 || unit.joined().length > 0;
}

function isEmpty(query: object): boolean {
  for (const _ in query) return false;
  return true;
}

function pageHeaders({ page: { next, previous }, first, totalCount }: ListResult): Record<string, string> {
  const headers: Record<string, string> = {};
  if (totalCount !== undefined) headers['x-total-count'] = totalCount;
  if (next === null && previous === null) return headers;
  let link = `<${first}>; rel="first"`;
  if (next !== null) link += `, <${next}>; rel="next"`;
  if (previous !== null) link += `, <${previous}>; rel="prev"`;
  headers['link'] = link;
  return headers;
}

function appendHeader(reply: FastifyReply, name: string, value: string): void {
  const before = reply.getHeader(name);
  reply.header(name, (name === 'link' || name === 'vary') && before !== undefined ? `${String(before)}, ${value}` : value);
}

/** `items.product` → `items`, `items.product`. */
function prefixes(path: string): string[] {
  const steps = path.split('.');
  return steps.map((_, index) => steps.slice(0, index + 1).join('.'));
}

function involvedPolicies(policy: Policy, { expand, filters }: ListDeclaration): Set<Policy> {
  const found = new Set([policy]);
  for (const path of expand) {
    let at: Policy | undefined = policy;
    for (const step of path.split('.')) {
      at = at?.edge(step)?.target;
      if (at !== undefined) found.add(at);
    }
  }
  for (const { relation } of filters.columns.values()) {
    const target = relation === undefined ? undefined : policy.edge(relation)?.target;
    if (target !== undefined) found.add(target);
  }
  // A Set is walked to what is added on the way.
  for (const each of found) for (const target of requiredPolicies(each)) found.add(target);
  return found;
}

const wholeUnits = new WeakMap<Policy, SelectUnit>();

/** Every column of the row, hidden or not: for code, never for the wire. */
function wholeUnit(policy: Policy): SelectUnit {
  let unit = wholeUnits.get(policy);
  if (unit === undefined) {
    const columns = policy.codeColumns.map((name) => ({
      kind: 'column' as const,
      name,
      settings: policy.settingsOf(name),
      rule: undefined,
      shown: 'always' as const,
    }));
    const shape: Shape = { policy, key: '~whole', columns, computed: [], edges: [], isWhole: true };
    wholeUnits.set(policy, (unit = new SelectUnit(shape)));
  }
  return unit;
}

function keyShape(policy: Policy): Shape {
  return { policy, key: '~key', columns: [], computed: [], edges: [], isWhole: false };
}

function wholeRow(unit: SelectUnit, row: Item): Item {
  return Object.fromEntries(unit.shape.policy.codeColumns.map((name) => [name, unit.extra(row, name)]));
}

/** Faults of members that QUERY has in its body and GET in the query string are at their place in the body. */
function inBody(error: unknown, body: object, query: QueryValues): unknown {
  if (!hasCode(error, 'validation_error') || error.errors === undefined) return error;
  const isInBody = (name: unknown) => typeof name === 'string' && Object.hasOwn(body, name) && !Object.hasOwn(query, name);
  return coreErrors.validation_error({
    errors: error.errors.map((fault) => {
      const [place, name, ...rest] = fault.location;
      return place === 'query' && isInBody(name) ? { ...fault, location: ['body', name as string, ...rest] } : fault;
    }),
  });
}

function refuseOtherKeys(names: readonly string[], body: Item, row: Item): void {
  const textOf = (value: unknown) => String(value).toLowerCase();
  const other = names.filter((name) => textOf(body[name]) !== textOf(row[name]));
  if (other.length === 0) return;
  throw coreErrors.validation_error({
    errors: other.map((name) => ({ location: ['body', name], code: 'invalid', message: 'The key of a row cannot be changed.' })),
  });
}

/** What a PUT that leaves the columns out sets them to: their default or null. One without either is required. */
function absentValues(policy: Policy, columns: readonly string[], now: Date): Item {
  const values = columns.map((name) => [name, absentValue(policy.settingsOf(name), now)] as const);
  const missing = values.filter(([, value]) => value === undefined);
  if (missing.length > 0)
    throw coreErrors.validation_error({
      errors: missing.map(([name]) => ({ location: ['body', name], code: 'required', message: 'Required.' })),
    });
  return Object.fromEntries(values);
}

/** The members the client sent, before defaults were filled in. */
function sentNames(context: Context): string[] {
  const { body } = context.request as { readonly body?: unknown };
  return typeof body === 'object' && body !== null ? Object.keys(body) : [];
}

/** Characters that no reference has and some clients send: `>` would end one in `Link`. */
const NOT_IN_REFERENCES = /[<>"\\^`{|}]/g;

/** The query string of an address as references to other pages have it: the same parameters, fit for `Link`. */
function queryStringOf(url: string): string {
  const mark = url.indexOf('?');
  if (mark === -1) return '';
  const end = url.indexOf('#', mark);
  return url.slice(mark + 1, end === -1 ? undefined : end).replace(NOT_IN_REFERENCES, encodeURIComponent);
}

/** `orders/` of `/v1/orders?x=1`, nothing of `/v1/orders/`: what a reference relative to the address begins with. */
function relativeBase(url: string): string {
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  return path.endsWith('/') ? '' : `${path.slice(path.lastIndexOf('/') + 1)}/`;
}

function notMounted(resource: AnyResource): never {
  throw new Error(`The controller of "${resource.name}" is not mounted in an app.`);
}
