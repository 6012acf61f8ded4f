import type { App } from '../../app/module.ts';
import type { User } from '../../auth/principal.ts';
import type { Db } from '../../db/db.ts';
import { cursorsOf } from '../../app/cursors.ts';
import { dbErrors } from '../../db/errors.ts';
import type { Model } from '../../db/model.ts';
import type { Columns } from '../../db/rows.ts';
import type { Where } from '../../db/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { Controller, type ControllerBase } from '../../http/controller.ts';
import type { HandlerContext } from '../../http/handler-context.ts';
import { jsonSchema } from '../../http/json-schema.ts';
import { raw } from '../../http/raw.ts';
import { type HttpMethod, type ResponseFacts, type Route, routeAround, type WrapOptions } from '../../http/route.ts';
import type { Schema } from '../../http/schema.ts';
import type { Fault } from '../../options/fault.ts';
import { isAuthenticated } from '../../permissions/built-ins.ts';
import { hasTenant } from '../policy/has-tenant.ts';
import { all, type Permission } from '../../permissions/permission.ts';
import { bulkCreateBody, bulkDestroyBody, bulkUpdateBody, type BulkBodyOptions } from './bulk-body.ts';
import { bulkItemsSchema, type BulkOperations, bulkOptions, type BulkOptions, bulkResultsSchema } from './bulk.ts';
import type { AnyCrudOptions, CrudClass, CrudOptions, Extra, Offered } from '../declare/crud-options.ts';
import { crudErrors } from '../declare/errors.ts';
import { mediaTypes } from '../files/export.ts';
import { importParameters, ImportSchema } from '../files/import.ts';
import { MetaSchema } from './meta.ts';
import { statsParameters, statsSchema } from '../read/stats.ts';
import { controllerFaults } from '../checks/controller-faults.ts';
import { resource } from '../declare/declare-resource.ts';
import { unknownDatabase } from '../checks/policy-faults.ts';
import { isTransitionName } from '../declare/transition-rule.ts';
import { Operations } from './operations.ts';
import { splitOptions } from '../declare/option-rules.ts';
import type { Name, Relations } from '../declare/relation.ts';
import { type AnyResource, isResource, type RelatedOf, type Resource, type ResourceOptions } from '../declare/resource.ts';
import {
  bodySchemas,
  exportQuery,
  itemSchema,
  keyParams,
  listQuery,
  pageQuery,
  pageSchema,
  plainQuery,
  shapeQuery,
  statsQuery,
} from './schemas.ts';
import { queryBody } from '../read/query-body.ts';
import type { Item } from '../declare/item.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- handlers of every operation
type Context = HandlerContext<any, any, any, any, any>;

/**
 * A base class with the generic operations of a resource: `class OrderController extends CrudController(orderResource, { … }) {}`. Which rows
 * and fields a caller gets is the resource's; who may call, and what is offered, is said here. A bare model takes both kinds of options.
 */
export function CrudController<
  C extends Columns,
  R extends Relations,
  P extends string,
  I extends string,
  T extends string,
  U extends User | null,
  // oxlint-disable-next-line typescript/no-empty-object-type -- nothing is said of single operations
  const N = {},
  // oxlint-disable-next-line typescript/no-empty-object-type -- no filters
  const F = {},
  const Q extends boolean = false,
  // oxlint-disable-next-line typescript/no-empty-object-type -- no bulk operations
  const B extends BulkOptions = {},
>(source: Resource<C, R, P, I, T>, options: CrudOptions<C, R, U, N, F, Q, B>): CrudClass<C, U, Offered<N, Extra<Q, B>>, T, I, P>;
export function CrudController<
  C extends Columns,
  U extends User | null,
  // oxlint-disable-next-line typescript/no-empty-object-type -- no relations
  const R extends Relations = {},
  const O extends Name<C> = never,
  const A extends Name<C> = never,
  const V extends Name<C> = never,
  const I extends Name<C> = Name<C>,
  const S extends Name<C> = never,
  const T extends string = never,
  const W extends Where<C, RelatedOf<R>> | boolean = boolean,
  // oxlint-disable-next-line typescript/no-empty-object-type -- nothing is said of single operations
  const N = {},
  // oxlint-disable-next-line typescript/no-empty-object-type -- no filters
  const F = {},
  const Q extends boolean = false,
  // oxlint-disable-next-line typescript/no-empty-object-type -- no bulk operations
  const B extends BulkOptions = {},
>(
  source: Model<C>,
  options: Omit<CrudOptions<C, R, U, N, F, Q, B>, 'input'> & ResourceOptions<C, R, O, A, V, I, S, T, W>,
): CrudClass<C, U, Offered<N, Extra<Q, B>>, T, I, O | A | V>;
export function CrudController(source: object, options: object): unknown {
  const { forResource, forController } = splitOptions(isResource(source), options);
  const declared: AnyResource = isResource(source) ? source : resource(source as Model, forResource as never);
  return crudClass(declared, forController as AnyCrudOptions);
}

const operationsByController = new WeakMap<object, Operations>();

/** The operations of a controller that CrudController() made; undefined for any other. For inspection and tests. */
export function operationsOfController(controller: object): Operations | undefined {
  return operationsByController.get(controller);
}

function crudClass(declared: AnyResource, options: AnyCrudOptions): unknown {
  class Crud extends Controller {
    static readonly crudResource = declared;
    static readonly model = declared.model as unknown;
    /** A static adds to every route of the class, also to those a subclass brings or puts in the place of an operation. */
    static override readonly permission = options.permission as Permission;
    /** For mixins that add routes of their own. */
    static readonly crudOptions = options;
    readonly crudResource!: AnyResource;
    readonly keyParams!: Schema;
    readonly #operations = new Operations(declared, options);

    constructor() {
      super();
      operationsByController.set(this, this.#operations);
      // Not enumerable: what is listed of a controller are its routes.
      Object.defineProperty(this, 'crudResource', { value: declared, enumerable: false });
      const builder = new RouteBuilder(this.#operations);
      Object.defineProperty(this, 'keyParams', { value: builder.params, enumerable: false });
      for (const [name, route] of builder.routes()) {
        // A transition called `find` or `constructor` is reported at start-up; until then the class must stay what it is.
        if (!(name in Crud.prototype) && !Object.hasOwn(this, name)) (this as unknown as Record<string, Route>)[name] = route;
      }
    }

    override wrap(field: string, facts: WrapOptions, handler?: (context: HandlerContext, next: () => unknown) => unknown): Route {
      const wrapped = super.wrap(field, facts, handler);
      const { permission } = facts;
      if (permission === undefined) return wrapped;
      const fields = this as unknown as Record<string, Route | undefined>;
      for (const name of doingTheSameAs(field, options)) {
        const other = fields[name];
        if (other !== undefined) fields[name] = routeAround(other, { permission });
      }
      return wrapped;
    }

    prepare(given: { readonly controllers: readonly ControllerBase[]; readonly resources: readonly object[] }): void {
      this.#operations.prepare(given);
    }

    faults(app: App): readonly Fault[] {
      return controllerFaults(this.constructor.name, this, this.#operations, app);
    }

    async databaseFaults(app: App): Promise<readonly Fault[]> {
      const { policy, list } = this.#operations;
      const db = app.databases[policy.using];
      if (db === undefined) return [unknownDatabase(this.constructor.name, policy.using, app)];
      // Read here, so that the first list needs no more statements than the others. A database without tables has none yet.
      await cursorsOf(app).catch(() => undefined);
      if (list.search?.check === undefined) return [];
      const found = await list.search.check({ model: policy.model, db });
      return found.map(({ id, message, hint }) => ({ id, message: `${this.constructor.name}: ${message}`, hint }));
    }

    install(app: App): void {
      this.#operations.install(app);
    }

    find(context: Context, key: string): Promise<Item> {
      return this.#operations.find(context, key);
    }

    rows(context: Context, where?: Where, limit?: number): Promise<Item[]> {
      return this.#operations.rows(context, where, limit);
    }

    write(context: Context, tx?: Db): object {
      return this.#operations.writing(context, tx);
    }

    present(context: Context, rows: Item | readonly Item[]): Promise<Item | Item[]> {
      return this.#operations.present(context, rows);
    }
  }
  return Crud;
}

/** Operations that do to many rows what another does to one, or show the rows of the list in another way. */
const SAME_BY_OTHER_MEANS: ReadonlyMap<string, readonly string[]> = new Map([
  ['query', ['list']],
  ['queryAlias', ['list']],
  ['export', ['list']],
  ['bulkCreate', ['create']],
  ['bulkUpdate', ['partialUpdate']],
  ['bulkDestroy', ['destroy']],
  ['import', ['create']],
]);

/** The operations whose permissions an operation needs besides its own: who may not delete one row may not delete a hundred. */
function impliedBy(name: string, options: AnyCrudOptions): readonly string[] {
  const implied = SAME_BY_OTHER_MEANS.get(name) ?? [];
  return name === 'import' && options.import?.by !== undefined ? [...implied, 'partialUpdate'] : implied;
}

function doingTheSameAs(field: string, options: AnyCrudOptions): string[] {
  return [...SAME_BY_OTHER_MEANS.keys()].filter((name) => impliedBy(name, options).includes(field));
}

const HEADERS = {
  etag: { ETag: 'The version of the row; send it back in `If-Match` or `If-None-Match`.' },
  page: { ETag: 'Changes with the page; send it back in `If-None-Match`.' },
  list: {
    Link: 'The next and previous page (RFC 8288), as query strings.',
    'X-Total-Count': 'How many rows match: `123`, `1000+` or `~120000`.',
  },
  created: { Location: 'Where the new row is, relative to this address.' },
};

/** Makes the route fields of a controller. Schemas are made when the document or the serializer asks: relations are known by then. */
class RouteBuilder {
  readonly #operations: Operations;
  readonly #options: AnyCrudOptions;
  readonly params: Schema;

  constructor(operations: Operations) {
    this.#operations = operations;
    this.#options = operations.options;
    this.params = lazyQuery(() => {
      const { policy, lookup, parent } = operations;
      const parentKey = parent === undefined ? {} : { [parent.param]: parent.edge.target.settingsOf(parent.edge.target.key.name) };
      return keyParams({ ...parentKey, id: policy.settingsOf(lookup.name) });
    });
  }

  *routes(): Iterable<[string, Route]> {
    const operations = this.#operations;
    const { etag, expand, page: { style } = {} } = this.#options;
    const item = lazySchema(() => itemSchema(operations.policy, operations.output, operations.list.expand));
    const page = lazySchema(() => pageSchema(operations.policy, item));
    const query = lazyQuery(() => listQuery(operations.list));
    const paging = lazyQuery(() => pageQuery(operations.list));
    const shape = lazyQuery(() => shapeQuery(operations.list));
    const bodies = once(() => bodySchemas(operations.policy, operations.input, operations.nestedBody, operations.lookup.name));
    const notModified: ResponseFacts = {
      description: 'Not modified: you have the current representation.',
      headers: { ETag: HEADERS.etag.ETag },
    };
    const tags = etag === false ? {} : HEADERS.etag;
    const reading = { 200: { headers: tags }, ...(etag === false ? {} : { 304: notModified }) };
    const found = { 200: { headers: { ...(etag === false ? {} : HEADERS.page), ...HEADERS.list } } };
    const listing = {
      ...found,
      ...(etag === false ? {} : { 304: { ...notModified, headers: { ...HEADERS.page, ...HEADERS.list } } }),
    };
    const notFound = [coreErrors.not_found];
    const conflicts = [coreErrors.conflict];
    const guarded =
      etag === false ? [] : [crudErrors.precondition_failed, ...(etag === 'required' ? [crudErrors.precondition_required] : [])];
    // Children that are written with their parent carry versions of their own.
    const nestedVersions = operations.resource.options.nested === undefined ? [] : [crudErrors.precondition_failed];
    const expanding = expand === undefined ? [] : [crudErrors.expand_too_costly];
    const paged = [...(style === 'offset' ? [] : [crudErrors.invalid_cursor]), ...expanding];
    const parentParams = this.#options.parent === undefined ? {} : { params: this.#parentParams() };

    yield* this.#route(
      'list',
      'GET',
      '/',
      'read',
      { ...parentParams, query, response: page, responses: listing, raises: paged },
      operations.readPage,
    );
    if (this.#offersQuery) {
      const body = lazyQuery(() => queryBody(operations.list));
      const facts = { ...parentParams, query: paging, body, response: page, responses: found, raises: paged };
      const metadata = { queryAlias: 'query_alias' };
      yield* this.#route('query', 'QUERY', '/', 'read', { ...facts, responses: listing, metadata }, operations.readQuery);
      if (this.#options.operations?.['query'] !== false)
        yield* this.#route('queryAlias', 'POST', '/query', 'read', facts, operations.readQuery);
    }
    yield* this.#route(
      'retrieve',
      'GET',
      '/:id',
      'read',
      { params: this.params, query: shape, response: item, responses: reading, raises: [...notFound, ...expanding] },
      operations.retrieve,
    );
    yield* this.#route(
      'create',
      'POST',
      '/',
      'write',
      {
        ...parentParams,
        query: shape,
        body: lazySchema(() => bodies().create),
        response: item,
        status: 201,
        responses: { 201: { headers: { ...tags, ...HEADERS.created } } },
        raises: [...conflicts, ...expanding],
      },
      operations.create,
    );
    const changing = {
      params: this.params,
      query: shape,
      response: item,
      responses: { 200: { headers: tags } },
      raises: [...notFound, ...conflicts, ...guarded, ...nestedVersions, ...expanding],
    };
    yield* this.#route('update', 'PUT', '/:id', 'write', { ...changing, body: lazySchema(() => bodies().update) }, operations.update);
    yield* this.#route(
      'partialUpdate',
      'PATCH',
      '/:id',
      'write',
      { ...changing, body: lazySchema(() => bodies().patch) },
      operations.partialUpdate,
    );
    yield* this.#route(
      'destroy',
      'DELETE',
      '/:id',
      'write',
      { params: this.params, raises: [...notFound, ...conflicts, ...guarded, dbErrors.still_referenced, crudErrors.too_many_related] },
      operations.destroy,
    );
    yield* this.#fileRoutes(parentParams);
    if (this.#options.restore === true)
      yield* this.#route(
        'restore',
        'POST',
        '/:id/restore',
        'write',
        {
          ...changing,
          summary: 'Bring a deleted row back, with those that went with it',
          raises: [
            ...notFound,
            ...conflicts,
            crudErrors.deleted_with_parent,
            ...(etag === false ? [] : [crudErrors.precondition_failed]),
            ...expanding,
          ],
        },
        operations.restore,
      );
    if (operations.bulk !== undefined) yield* this.#bulkRoutes(operations.bulk, item, shape, parentParams, expanding);
    yield* this.#descriptionRoutes(parentParams, notModified);
    const transitions = Object.entries(operations.transitionRules);
    for (const [name, { permission, input, summary }] of transitions) {
      if (!isTransitionName(name)) continue;
      const facts = {
        ...changing,
        raises: [...notFound, crudErrors.invalid_transition, ...guarded, ...expanding],
        ...(input === undefined ? {} : { body: input }),
        ...(summary === undefined ? {} : { summary }),
      };
      yield* this.#route(
        name,
        'POST',
        `/:id/${name}`,
        'write',
        { ...facts, ...(permission === undefined ? {} : { permission }) },
        operations.transition(name),
      );
    }
    if (transitions.length > 0)
      yield* this.#route(
        'transitions',
        'GET',
        '/:id/transitions',
        'read',
        { params: this.params, response: TransitionList, raises: notFound },
        operations.transitions,
      );
  }

  /** Rows as files. */
  *#fileRoutes(parentParams: { readonly params?: Schema }): Iterable<[string, Route]> {
    const operations = this.#operations;
    const { exporter } = operations;
    if (exporter !== undefined) {
      const { formats } = exporter.options;
      const query = lazyQuery(() => exportQuery(operations.list, formats));
      const types = formats.map((format) => mediaTypes[format]);
      const headers = { 'Content-Disposition': 'The name of the file.' };
      const description =
        'All rows that match, as a file; never a part that looks whole: an error cuts CSV and is the last line of JSON Lines.';
      const facts = {
        ...parentParams,
        query,
        response: raw(types[0] as string),
        responses: { 200: { headers, description, mediaTypes: types } },
        raises: [crudErrors.export_too_large, ...(this.#options.expand === undefined ? [] : [crudErrors.expand_too_costly])],
        timeoutMs: 0,
      };
      yield* this.#route('export', 'GET', '/export', 'read', facts, exporter.handle);
    }
    const { importer } = operations;
    if (importer !== undefined) {
      const { formats, bytesMax } = importer.options;
      const types = [...formats.map((format) => mediaTypes[format]), 'multipart/form-data'];
      const facts = {
        ...parentParams,
        query: lazyQuery(() => plainQuery(importParameters(importer.options))),
        body: raw(types, { stream: true, bytesMax }),
        response: ImportSchema,
        status: 201,
        responses: {
          201: { description: 'All rows are written.' },
          200: { description: 'A dry run: nothing is written.', response: ImportSchema },
        },
        raises: [coreErrors.conflict],
        timeoutMs: 0,
      };
      yield* this.#route('import', 'POST', '/import', 'write', facts, importer.handle);
    }
  }

  *#bulkRoutes(
    bulk: BulkOperations,
    item: Schema,
    query: Schema,
    parentParams: Partial<Route['options']>,
    expanding: NonNullable<Route['options']['raises']>,
  ): Iterable<[string, Route]> {
    const operations = this.#operations;
    const { mode, max, ...offered } = bulkOptions(this.#options.bulk ?? {});
    const isPartial = mode === 'partial';
    const hasVersions = operations.resource.options.version !== undefined;
    const requiresVersion = hasVersions && this.#options.etag === 'required';
    const bodyOptions = (): BulkBodyOptions => {
      const { policy, input, lookup } = operations;
      return { policy, input, lookup, max, isPartial, requiresVersion };
    };
    const headers = { 'X-Bulk-Failed': 'How many items failed.' };
    const partial = {
      status: 207,
      response: lazySchema(() => bulkResultsSchema(operations.policy, item)),
      responses: { 207: { description: 'What each item came to, in the order of the request.', headers } },
      raises: expanding,
    };
    const raises = [coreErrors.conflict, ...expanding];
    const rows = isPartial ? partial : { response: lazySchema(() => bulkItemsSchema(operations.policy, item)), raises };
    // Rows that the caller does not see, and versions that are not current.
    const named = [
      ...raises,
      coreErrors.not_found,
      ...(hasVersions ? [crudErrors.precondition_failed] : []),
      ...(requiresVersion ? [crudErrors.precondition_required] : []),
    ];
    if (offered.create)
      yield* this.#route(
        'bulkCreate',
        'POST',
        '/bulk',
        'write',
        { ...parentParams, query, body: lazySchema(() => bulkCreateBody(bodyOptions())), status: 201, ...rows },
        bulk.create,
      );
    if (offered.update)
      yield* this.#route(
        'bulkUpdate',
        'POST',
        '/bulk-update',
        'write',
        { ...parentParams, query, body: lazySchema(() => bulkUpdateBody(bodyOptions())), ...rows, ...(isPartial ? {} : { raises: named }) },
        bulk.update,
      );
    if (offered.destroy)
      yield* this.#route(
        'bulkDestroy',
        'POST',
        '/bulk-delete',
        'write',
        {
          ...parentParams,
          body: lazySchema(() => bulkDestroyBody(bodyOptions())),
          ...(isPartial ? partial : { raises: [...named, dbErrors.still_referenced, crudErrors.too_many_related] }),
        },
        bulk.destroy,
      );
  }

  /** Numbers about the rows, and what a caller may do with them. */
  *#descriptionRoutes(parentParams: { readonly params?: Schema }, notModified: ResponseFacts): Iterable<[string, Route]> {
    const operations = this.#operations;
    const { stats, meta, etag } = this.#options;
    if (stats !== undefined && operations.stats !== undefined) {
      const facts = {
        ...parentParams,
        query: lazyQuery(() => statsQuery(operations.list, statsParameters(operations.policy, stats, operations.limits))),
        response: lazySchema(() => statsSchema(operations.policy, stats, operations.limits)),
        raises: [crudErrors.too_many_groups],
      };
      yield* this.#route('stats', 'GET', '/stats', 'read', facts, operations.stats.handle);
    }
    if (meta === true) {
      const tags = { ETag: 'Changes with what you may see and do; send it back in `If-None-Match`.' };
      const responses = etag === false ? {} : { 200: { headers: tags }, 304: notModified };
      yield* this.#route('meta', 'GET', '/meta', 'read', { ...parentParams, response: MetaSchema, responses }, operations.describe);
    }
  }

  #parentParams(): Schema {
    const operations = this.#operations;
    return lazyQuery(() => {
      const { parent } = operations;
      // A parent that is no relation is reported at start-up.
      if (parent === undefined) return keyParams({});
      const { edge, param } = parent;
      return keyParams({ [param]: edge.target.settingsOf(edge.target.key.name) });
    });
  }

  *#route(
    name: string,
    method: HttpMethod,
    path: string,
    access: 'read' | 'write',
    facts: Partial<Route['options']>,
    handler: (context: Context) => unknown,
  ): Iterable<[string, Route]> {
    // The alias has the settings of the operation it stands for.
    const settings = name === 'queryAlias' ? 'query' : name;
    const given = this.#options.operations?.[settings];
    if (given === false) return;
    // The record of keys is in the default database: it cannot be saved together with rows of another.
    const isDefault = (this.#operations.resource.options.using ?? 'default') === 'default';
    const { permission: added, path: otherPath, ...more } = given ?? {};
    const { resource: declared } = this.#operations;
    const implied = impliedBy(name, this.#options).flatMap((other) => this.#options.operations?.[other] || []);
    const permission = this.#permission(facts.permission, ...implied.map((other) => other.permission), added);
    const raises = [...(facts.raises ?? []), ...(declared.options.tenant === undefined ? [] : [coreErrors.tenant_required])];
    const options: Route['options'] = {
      ...facts,
      raises,
      ...this.#scope(access),
      ...this.#idempotent(method, access),
      ...more,
      permission,
      metadata: {
        ...facts.metadata,
        ...more.metadata,
        crud: { resource: declared.name, operation: settings },
        ...(name === 'list' && this.#offersQuery ? { longUrlRemedy: LONG_URL_REMEDY } : {}),
        openapi: {
          'x-kit-crud': { resource: declared.name, operation: settings },
          ...this.#preconditions(method, path.startsWith('/:id'), facts),
        },
      },
    };
    const route: Route = {
      isRoute: true,
      kind: 'answer',
      method,
      path: otherPath ?? path,
      options,
      handler,
      finish: this.#operations.finish,
      tables: this.#operations.tables,
      isUnwrapped: true,
      ...(access === 'read' ? { audience: this.#operations.readAudience } : {}),
      ...(access === 'write' && isDefault
        ? { audience: this.#operations.audience, isAtomicWithKey: true, takesKeys: takesKeys(method) }
        : {}),
      ...(access === 'read' && method === 'POST' ? { isRead: true } : {}),
    };
    yield [name, route];
  }

  get #offersQuery(): boolean {
    return this.#options.queryMethod ?? Object.keys(this.#options.filters ?? {}).length > 0;
  }

  /** Besides the controller's, which is a static: an owner's rows are for those who are known. */
  #permission(...added: readonly (Permission | undefined)[]): Permission {
    const { owner, anonymous, access, tenant } = this.#operations.resource.options;
    const admitsAnonymous = anonymous !== undefined || access?.admitsAnonymous === true;
    const parts = [
      ...(owner !== undefined && !admitsAnonymous ? [isAuthenticated as Permission] : []),
      ...(tenant === undefined ? [] : [hasTenant]),
      ...added.filter((each) => each !== undefined),
    ];
    const [first = this.#options.permission as Permission, ...more] = parts;
    return more.length === 0 ? first : all(first, ...more);
  }

  /** What a document says about the conditions a request may carry. */
  #preconditions(method: HttpMethod, hasKey: boolean, { responses = {}, raises = [] }: Partial<Route['options']>): object {
    if ((method === 'GET' || method === 'QUERY') && '304' in responses)
      return { requestHeaders: { 'If-None-Match': 'The `ETag` you have: 304 without a body where it is still current.' } };
    // Items of a bulk operation carry their versions themselves.
    if (!hasKey || !raises.includes(crudErrors.precondition_failed)) return {};
    const isRequired = raises.includes(crudErrors.precondition_required);
    return {
      requestHeaders: { 'If-Match': 'The `ETag` of your last read: 412 where the row was changed meanwhile. `*` means: if it is there.' },
      ...(isRequired ? { requiredHeaders: ['If-Match'] } : {}),
    };
  }

  /** What the controller says; without it, keys are honoured where callers are always known. */
  #idempotent(method: HttpMethod, access: 'read' | 'write'): Pick<Route['options'], 'idempotent'> {
    const { idempotency } = this.#options;
    if (!takesKeys(method) || access === 'read' || idempotency === undefined) return {};
    // Deleting twice does no harm, so a DELETE without a key is never refused.
    return { idempotent: idempotency === false || method === 'POST' ? idempotency : 'optional' };
  }

  #scope(access: 'read' | 'write'): { readonly scope?: string } {
    const { scope } = this.#options;
    if (scope === undefined) return {};
    return { scope: typeof scope === 'string' ? `${scope}:${access}` : scope[access] };
  }
}

function takesKeys(method: HttpMethod): boolean {
  return method === 'POST' || method === 'DELETE';
}

const LONG_URL_REMEDY = 'Send the conditions in the body: QUERY at the same address, or POST to its /query.';

const TransitionList = jsonSchema<{ items: Item[] }>({
  type: 'object',
  properties: {
    items: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          name: { type: 'string' },
          to: { type: 'string' },
          input: { type: 'object', description: 'JSON Schema of the body, where the transition takes one.', additionalProperties: true },
        },
        required: ['name', 'to'],
      },
    },
  },
  required: ['items'],
});

function once<V>(make: () => V): () => V {
  let made: { readonly value: V } | undefined;
  return () => (made ??= { value: make() }).value;
}

function lazySchema(make: () => Schema): Schema {
  const schema = once(make);
  return {
    '~standard': {
      version: 1,
      vendor: 'kit',
      validate: (value) => schema()['~standard'].validate(value),
      jsonSchema: {
        input: (options) => (schema()['~standard'].jsonSchema as NonNullable<Schema['~standard']['jsonSchema']>).input(options),
        output: (options) => (schema()['~standard'].jsonSchema as NonNullable<Schema['~standard']['jsonSchema']>).output(options),
      },
    },
  };
}

/** A schema that reads what was sent itself: the text of the address, or the tree of QUERY. */
function lazyQuery(make: () => Schema): Schema {
  return Object.assign(lazySchema(make), { isRawQuery: true as const });
}
