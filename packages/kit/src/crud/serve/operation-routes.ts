import { dbErrors } from '../../db/errors.ts';
import type { ErrorDefinition } from '../../errors/catalog.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { raw } from '../../http/declare/raw.ts';
import type { ResponseFacts, Route } from '../../http/declare/route.ts';
import type { Schema } from '../../http/declare/schema.ts';
import type { AnyCrudOptions } from '../options/crud-options.ts';
import { bulkOptions } from '../options/bulk-options.ts';
import { withOnceSchema } from '../mount/once-schema.ts';
import { crudErrors } from '../declare/errors.ts';
import { actionRoutes } from './action-routes.ts';
import { mediaTypes } from '../files/export.ts';
import { importParameters, ImportSchema } from '../files/import.ts';
import {
  bodySchemas,
  exportQuery,
  itemSchema,
  listQuery,
  pageQuery,
  pageSchema,
  plainQuery,
  shapeQuery,
  statsQuery,
} from '../mount/schemas.ts';
import { queryBody } from '../read/query-body.ts';
import { statsParameters, statsSchema } from '../read/stats.ts';
import { bulkCreateBody, bulkDestroyBody, bulkUpdateBody, type BulkBodyOptions } from '../input/bulk-body.ts';
import type { BulkOperations } from './bulk.ts';
import { bulkItemsSchema, bulkResultsSchema } from '../mount/bulk-schemas.ts';
import { lazyQuery, lazySchema, once } from '../mount/lazy-schema.ts';
import { liveEventSchema } from '../mount/live-event-schema.ts';
import { MetaSchema } from './meta.ts';
import type { Operations } from './operations.ts';
import type { RouteMaker } from './route-maker.ts';

const HEADERS = {
  etag: { ETag: 'The version of the row; send it back in `If-Match` or `If-None-Match`.' },
  page: { ETag: 'Changes with the page; send it back in `If-None-Match`.' },
  list: {
    Link: 'The next and previous page (RFC 8288), as query strings.',
    'X-Total-Count': 'How many rows match: `123`, `1000+` or `~120000`.',
  },
  created: { Location: 'Where the new row is, relative to this address.' },
};

/** The route fields of a controller. Schemas are made when the document or the serializer asks: relations are known by then. */
export class OperationRoutes {
  readonly #operations: Operations;
  readonly #options: AnyCrudOptions;
  readonly #maker: RouteMaker;

  constructor(operations: Operations, maker: RouteMaker) {
    this.#operations = operations;
    this.#options = operations.access.options;
    this.#maker = maker;
  }

  get #missing(): ErrorDefinition {
    return this.#operations.access.resource.options.missing ?? coreErrors.not_found;
  }

  *routes(): Iterable<[string, Route]> {
    const operations = this.#operations;
    const { access, reading, writing, faultsBeside } = operations;
    const maker = this.#maker;
    const { etag, expand, page: { style } = {} } = this.#options;
    const item = lazySchema(() => itemSchema(access.policy, access.output, access.list.expand));
    const page = lazySchema(() => pageSchema(access.list, item));
    const query = lazyQuery(() => listQuery(access.list));
    const paging = lazyQuery(() => pageQuery(access.list));
    const shape = lazyQuery(() => shapeQuery(access.list));
    const bodies = once(() => bodySchemas(access.policy, access.input, access.nestedBody, access.address));
    const notModified: ResponseFacts = {
      description: 'Not modified: you have the current representation.',
      headers: { ETag: HEADERS.etag.ETag },
    };
    const tags = etag === false ? {} : HEADERS.etag;
    const readResponses = { 200: { headers: tags }, ...(etag === false ? {} : { 304: notModified }) };
    const found = { 200: { headers: { ...(etag === false ? {} : HEADERS.page), ...HEADERS.list } } };
    const listing = {
      ...found,
      ...(etag === false ? {} : { 304: { ...notModified, headers: { ...HEADERS.page, ...HEADERS.list } } }),
    };
    const notFound = [this.#missing];
    const conflicts = [coreErrors.conflict];
    const guarded =
      etag === false ? [] : [coreErrors.precondition_failed, ...(etag === 'required' ? [coreErrors.precondition_required] : [])];
    // Children that are written with their parent carry versions of their own.
    const nestedVersions = access.resource.options.nested === undefined ? [] : [coreErrors.precondition_failed];
    const expanding = expand === undefined ? [] : [crudErrors.expand_too_costly];
    const { live } = operations;
    const events = live === undefined ? undefined : lazySchema(() => liveEventSchema(access.list, item, this.#options.liveWithout));
    const liveOf = (handler: 'list' | 'query') =>
      live === undefined || events === undefined ? {} : { live: { response: events, handler: live[handler] } };
    const paged = [...(style === 'offset' || style === 'page' ? [] : [crudErrors.invalid_cursor]), ...expanding];
    const unfollowed = live === undefined ? [] : [crudErrors.not_live, crudErrors.live_too_many_rows, coreErrors.too_many_streams];
    const parentParams = this.#options.parent === undefined ? {} : { params: maker.parentParams() };

    yield* maker.route(
      'list',
      'GET',
      '/',
      'read',
      {
        ...parentParams,
        query,
        response: page,
        responses: listing,
        raises: [...paged, ...unfollowed],
        ...liveOf('list'),
        news: live?.newsOfList,
      },
      reading.list,
    );
    if (maker.offersQuery) {
      const body = lazyQuery(() => queryBody(access.list));
      const facts = { ...parentParams, query: paging, body, response: page, responses: found, raises: paged };
      const metadata = { queryAlias: 'query_alias' };
      yield* maker.route('query', 'QUERY', '/', 'read', { ...facts, responses: listing, metadata, ...liveOf('query') }, reading.query);
      if (this.#options.operations?.['query'] !== false) yield* maker.route('queryAlias', 'POST', '/query', 'read', facts, reading.query);
    }
    yield* maker.route(
      'retrieve',
      'GET',
      '/:id',
      'read',
      {
        params: maker.params,
        query: shape,
        response: item,
        responses: readResponses,
        raises: [...notFound, ...expanding],
        news: live?.newsOfRecord,
      },
      reading.retrieve,
    );
    yield* maker.route(
      'create',
      'POST',
      '/',
      'write',
      {
        ...parentParams,
        query: shape,
        body: lazySchema(() => bodies().create),
        ...faultsBeside.of('create'),
        response: lazySchema(() => withOnceSchema(access.policy, 'create', item)),
        status: 201,
        responses: { 201: { headers: { ...tags, ...HEADERS.created } } },
        raises: [...conflicts, ...expanding],
      },
      writing.create,
    );
    const changing = {
      params: maker.params,
      query: shape,
      response: item,
      responses: { 200: { headers: tags } },
      raises: [...notFound, ...conflicts, ...guarded, ...nestedVersions, ...expanding],
    };
    yield* maker.route(
      'update',
      'PUT',
      '/:id',
      'write',
      { ...changing, ...faultsBeside.of('update'), body: lazySchema(() => bodies().update) },
      writing.update,
    );
    yield* maker.route(
      'partialUpdate',
      'PATCH',
      '/:id',
      'write',
      { ...changing, ...faultsBeside.of('partialUpdate'), body: lazySchema(() => bodies().patch) },
      writing.partialUpdate,
    );
    yield* maker.route(
      'destroy',
      'DELETE',
      '/:id',
      'write',
      { params: maker.params, raises: [...notFound, ...conflicts, ...guarded, dbErrors.still_referenced, crudErrors.too_many_related] },
      writing.destroy,
    );
    yield* this.#fileRoutes(parentParams);
    if (this.#options.restore === true)
      yield* maker.route(
        'restore',
        'POST',
        '/:id/restore',
        'write',
        {
          ...changing,
          summary: 'Restore a deleted record and the records deleted with it',
          raises: [
            ...notFound,
            ...conflicts,
            crudErrors.deleted_with_parent,
            ...(etag === false ? [] : [coreErrors.precondition_failed]),
            ...expanding,
          ],
        },
        writing.restore,
      );
    if (operations.bulk !== undefined) yield* this.#bulkRoutes(operations.bulk, item, shape, parentParams, expanding);
    yield* this.#descriptionRoutes(parentParams, notModified);
    const missing = this.#missing;
    yield* actionRoutes(operations, maker, { changing, ofCollection: parentParams, missing, guarded, expanding, item, query: shape });
  }

  /** Rows as files. */
  *#fileRoutes(parentParams: { readonly params?: Schema }): Iterable<[string, Route]> {
    const operations = this.#operations;
    const { access } = operations;
    const maker = this.#maker;
    const { exporter } = operations;
    if (exporter !== undefined) {
      const { formats } = exporter.options;
      const query = lazyQuery(() => exportQuery(access.list, formats));
      const types = formats.map((format) => mediaTypes[format]);
      const headers = { 'Content-Disposition': 'The name of the file.' };
      const description =
        'All matching records as a file. If the export fails midway, the CSV connection is closed and JSON Lines ends with an error object.';
      const facts = {
        ...parentParams,
        query,
        response: raw(types[0] as string),
        responses: { 200: { headers, description, mediaTypes: types } },
        raises: [
          crudErrors.export_too_large,
          coreErrors.too_many_exports,
          dbErrors.too_many_cursors,
          ...(this.#options.expand === undefined ? [] : [crudErrors.expand_too_costly]),
        ],
        timeoutMs: 0,
        // Files are for people and programs: a tool has JSON.
        tool: false,
      };
      yield* maker.route('export', 'GET', '/export', 'read', facts, exporter.handle);
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
        tool: false,
      };
      yield* maker.route('import', 'POST', '/import', 'write', facts, importer.handle);
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
    const { access } = operations;
    const maker = this.#maker;
    const { mode, max, ...offered } = bulkOptions(this.#options.bulk ?? {});
    const isPartial = mode === 'partial';
    const hasVersions = access.resource.options.version !== undefined;
    const requiresVersion = hasVersions && this.#options.etag === 'required';
    const bodyOptions = (): BulkBodyOptions => {
      const { policy, input, lookup, address } = access;
      return { policy, input, lookup, address, max, isPartial, requiresVersion };
    };
    const headers = { 'X-Bulk-Failed': 'Number of items that failed.' };
    const partial = {
      status: 207,
      response: lazySchema(() => bulkResultsSchema(access.policy, item)),
      responses: { 207: { description: 'Result of each item, in request order.', headers } },
      raises: expanding,
    };
    const raises = [coreErrors.conflict, ...expanding];
    const rows = isPartial ? partial : { response: lazySchema(() => bulkItemsSchema(access.policy, item)), raises };
    // Rows that the caller does not see, and versions that are not current.
    const named = [
      ...raises,
      this.#missing,
      ...(hasVersions ? [coreErrors.precondition_failed] : []),
      ...(requiresVersion ? [coreErrors.precondition_required] : []),
    ];
    if (offered.create)
      yield* maker.route(
        'bulkCreate',
        'POST',
        '/bulk',
        'write',
        {
          ...parentParams,
          query,
          body: lazySchema(() => bulkCreateBody(bodyOptions())),
          ...operations.faultsBeside.of('bulkCreate'),
          status: 201,
          ...rows,
        },
        bulk.create,
      );
    if (offered.update)
      yield* maker.route(
        'bulkUpdate',
        'POST',
        '/bulk-update',
        'write',
        {
          ...parentParams,
          query,
          body: lazySchema(() => bulkUpdateBody(bodyOptions())),
          ...operations.faultsBeside.of('bulkUpdate'),
          ...rows,
          ...(isPartial ? {} : { raises: named }),
        },
        bulk.update,
      );
    if (offered.destroy)
      yield* maker.route(
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
    const { access, reading } = operations;
    const maker = this.#maker;
    const { stats, meta, etag } = this.#options;
    if (stats !== undefined && operations.stats !== undefined) {
      const facts = {
        ...parentParams,
        query: lazyQuery(() => statsQuery(access.list, statsParameters(access.policy, stats, access.limits))),
        response: lazySchema(() => statsSchema(access.policy, stats, access.limits)),
        raises: [crudErrors.too_many_groups],
      };
      yield* maker.route('stats', 'GET', '/stats', 'read', facts, operations.stats.handle);
    }
    if (meta === true) {
      const tags = { ETag: 'Changes when your permissions change; send it in `If-None-Match`.' };
      const responses = etag === false ? {} : { 200: { headers: tags }, 304: notModified };
      yield* maker.route('meta', 'GET', '/meta', 'read', { ...parentParams, response: MetaSchema, responses }, reading.describe);
    }
  }
}
