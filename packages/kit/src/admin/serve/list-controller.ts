import type { AdminContext, AdminListQuery, AdminResource } from '../../app/admin/declaration.ts';
import type { AdminImportResult } from '../../app/admin/import-result.ts';
import type { AdminFileFormat } from '../../app/admin/shapes.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { recordExport } from '../../auth/request/record-reading.ts';
import { cursorsOf } from '../../app/data/cursors.ts';
import type { Db } from '../../db/engine/db.ts';
import type { LoginProvider } from '../../app/declare/login-provider.ts';
import { isUuid } from '../../db/values/uuid.ts';
import { mediaTypes } from '../../crud/files/export.ts';
import { ExportStream } from '../../crud/files/export-stream.ts';
import { limits } from '../../crud/declare/limits.ts';
import { notLive } from '../../crud/live/list-now.ts';
import { Controller } from '../../http/compile/controller.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { requireStillAdmitted } from '../../http/admit/open-streams.ts';
import { countExport } from '../../http/admit/open-exports.ts';
import { raw } from '../../http/declare/raw.ts';
import { route } from '../../http/declare/route.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import type { AdminSite } from '../state/admin-site.ts';
import { namedFor, siteFacts } from '../state/site-kind.ts';
import { adminErrors } from '../../screens/errors.ts';
import { SAVED_NAME_LENGTH_MAX, SAVED_QUERY_LENGTH_MAX } from '../models.ts';
import { checkView, type ListParameters, ListParametersSchema, readListQuery } from '../wire/read-list-query.ts';
import { deleteSavedFilter, listSavedFilters, saveFilter } from '../model/saved-filters.ts';
import { refusalOf, requireRole, roleOf } from '../staff/staff-roles.ts';
import { readerOf, targetTypeOf } from '../staff/reader-of.ts';
import { ADMIN_ROLES, type AdminRole } from '../options.ts';
import type { AdminChoices, AdminSavedFilter, AdminSavedFilters } from '../wire/wire.ts';

const text = (maxLength: number, minLength = 0) => ({ type: 'string', minLength, maxLength });
const ResourceName = jsonSchema<{ resource: string }>({
  type: 'object',
  properties: { resource: text(200, 1) },
  required: ['resource'],
  additionalProperties: false,
});
const SavedName = jsonSchema<{ resource: string; id: string }>({
  type: 'object',
  properties: { resource: text(200, 1), id: text(200, 1) },
  required: ['resource', 'id'],
  additionalProperties: false,
});
const COLUMN = 'column.';
/** `column.<name of a column of the file>` is the field that it is; empty: it is left out. The names are checked by {@link chosenColumns}. */
const ImportQuery = jsonSchema<{ dry_run?: boolean; mode?: 'create' | 'upsert'; [column: `column.${string}`]: string }>({
  type: 'object',
  properties: { dry_run: { type: 'boolean' }, mode: { type: 'string', enum: ['create', 'upsert'] } },
  additionalProperties: text(200),
});
const ChoicesQuery = jsonSchema<{ search?: string; id?: string }>({
  type: 'object',
  properties: { search: text(200), id: text(200) },
  additionalProperties: false,
});
const NewsQuery = jsonSchema<{ id?: string }>({ type: 'object', properties: { id: text(300) }, additionalProperties: false });
/** That something changed: what it is, the list or the record says. */
const News = jsonSchema<Record<string, never>>({ type: 'object', additionalProperties: false });
const SavedBody = jsonSchema<{ name: string; query: string; shared_with?: AdminRole | null }>({
  type: 'object',
  properties: {
    name: text(SAVED_NAME_LENGTH_MAX, 1),
    query: text(SAVED_QUERY_LENGTH_MAX),
    shared_with: { type: ['string', 'null'], enum: [...ADMIN_ROLES, null] },
  },
  required: ['name', 'query'],
  additionalProperties: false,
});
const Imported = jsonSchema<AdminImportResult>({});
const Choices = jsonSchema<AdminChoices>({});
const Saved = jsonSchema<AdminSavedFilter>({});
const SavedList = jsonSchema<AdminSavedFilters>({});

/** Records that a picker offers at once. */
const CHOICES_MAX = 10;

/** What is done with a whole list: files, pickers and the filters that people keep. */
export function listController(site: AdminSite, { authenticators }: LoginProvider): Controller {
  const facts = siteFacts(site.kind, authenticators);
  const saving = async ({ principal, requestId }: Pick<AdminContext, 'principal' | 'requestId'>, { name }: AdminResource) => ({
    principal,
    requestId,
    role: await roleOf(site.settings, principal.user),
    resource: name,
    audit: site.app.registry.audit,
  });

  class KitSiteListController extends Controller {
    export = route.get(
      '/:resource/export',
      { ...facts, params: ResourceName, query: ListParametersSchema, response: raw('application/octet-stream'), timeoutMs: 0 },
      async (context) => {
        const resource = site.resource(context.params.resource);
        await requireRole(site.settings, context.user, resource, 'export');
        const { format = 'csv', ...parameters } = context.query as ListParameters & { readonly format?: string };
        if (resource.exportRows === undefined || !isOffered(resource.exports, format)) throw adminErrors.not_exportable();
        const caller = { cursors: await cursorsOf(site.app), userId: context.user.id };
        const query = readListQuery(resource, parameters, caller);
        const asked = site.context(context, context.principal);
        const onEnd = countExport(exchangeOf(context.request));
        const pieces = resource.exportRows(asked, query, format);
        try {
          // What is refused is refused now, with the first rows read.
          const first = await pieces.next();
          const { search, filters, sort } = query;
          await recordExport(readerOf(asked), targetTypeOf(resource), resource.name, { format, search, filters, sort });
          context.reply.header('content-type', `${mediaTypes[format]}; charset=utf-8`);
          context.reply.header('content-disposition', `attachment; filename="${resource.name}.${format}"`);
          const detail = `The export failed; the log has details under request id ${context.requestId}.`;
          return new ExportStream(pieces, {
            opening: first.done === true ? '' : first.value,
            ...(format === 'csv' ? {} : { errorLine: () => `${JSON.stringify({ error: { detail } })}\n` }),
            onError: (error) => context.log.error({ err: error, resource: resource.name }, 'admin: an export failed'),
            signal: context.signal,
            idleMs: limits.exportIdleMs,
            durationMs: limits.exportDurationMs,
            onEnd,
          });
        } catch (error) {
          // Not sent: its connection goes back.
          await pieces.return(undefined).catch(() => undefined);
          onEnd();
          throw error;
        }
      },
    );

    import = route.post(
      '/:resource/import',
      {
        ...facts,
        params: ResourceName,
        query: ImportQuery,
        body: raw(Object.values(mediaTypes), { stream: true, bytesMax: limits.importBytes }),
        response: Imported,
        timeoutMs: 0,
      },
      async (context) => {
        const resource = site.resource(context.params.resource);
        const { dry_run: dryRun = false, mode = 'create', ...rest } = context.query;
        const columns = chosenColumns(rest);
        const type = (context.request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase();
        const format = type === mediaTypes.jsonl ? 'jsonl' : 'csv';
        const upsert = mode === 'upsert';
        const requireRoles = async () => {
          await requireRole(site.settings, context.user, resource, 'import');
          // A file that changes records needs both roles.
          if (upsert) await requireRole(site.settings, context.user, resource, 'update');
        };
        await requireRoles();
        if (resource.importRows === undefined || !isOffered(resource.imports?.formats, format)) throw adminErrors.not_importable();
        if (upsert && resource.imports?.by === undefined)
          throw adminErrors.not_importable({ detail: 'No column of this list finds the records that a file would change.' });
        const requireAdmitted = async (tx: Db) => {
          await requireStillAdmitted(exchangeOf(context.request), tx);
          await requireRoles();
        };
        const file = { body: context.body, format, dryRun, upsert, columns, requireAdmitted } as const;
        return resource.importRows(site.context(context, context.principal), file);
      },
    );

    choices = route.get(
      '/:resource/choices',
      { ...facts, params: ResourceName, query: ChoicesQuery, response: Choices },
      async (context) => {
        const resource = site.resource(context.params.resource);
        await requireRole(site.settings, context.user, resource, 'read');
        const asked = site.context(context, context.principal);
        const { id, search = '' } = context.query;
        if (id !== undefined) {
          const title = (await resource.titles?.(asked, [id]))?.get(id);
          return { items: title === undefined ? [] : [{ id, title }] };
        }
        const wanted = search.trim();
        const query: AdminListQuery = {
          search: wanted === '' || resource.searches === undefined ? null : wanted,
          filters: {},
          sort: null,
          limit: CHOICES_MAX,
          cursor: null,
          cursors: await cursorsOf(site.app),
          bound: 'choices',
        };
        const { items } = await resource.list(asked, query);
        const found = items.map(({ id: each, title }) => ({ id: each, title }));
        // A pasted id, where the search does not look at ids.
        const titles = isUuid(wanted) && found.length === 0 ? await resource.titles?.(asked, [wanted]) : undefined;
        return { items: [...found, ...[...(titles ?? [])].map(([each, title]) => ({ id: each, title }))] };
      },
    );

    news = route.stream('/:resource/news', { ...facts, params: ResourceName, query: NewsQuery, response: News }, async function* (context) {
      const resource = site.resource(context.params.resource);
      const requireReader = () => requireRole(site.settings, context.user, resource, 'read');
      await requireReader();
      if (resource.news === undefined) throw notLive();
      const asked = site.context(context, context.principal);
      const following = { signal: context.signal, requireRole: requireReader };
      for await (const _ of resource.news(asked, context.query.id, following)) yield { event: 'changed', data: {} };
    });

    savedFilters = route.get('/:resource/filters', { ...facts, params: ResourceName, response: SavedList }, async (context) => {
      const resource = site.resource(context.params.resource);
      await requireRole(site.settings, context.user, resource, 'read');
      // The table is the admin site's.
      if (!site.kind.isForStaff) return { items: [], shares: false, manages: false };
      const role = await roleOf(site.settings, context.user);
      const items = await listSavedFilters(context.db, { principal: context.principal, role, resource: resource.name });
      return { items, shares: refusalOf(site.settings, role, resource, 'share') === null, manages: role === 'administrator' };
    });

    saveFilter = route.post(
      '/:resource/filters',
      { ...facts, params: ResourceName, body: SavedBody, response: Saved, status: 201 },
      async (context) => {
        const resource = site.resource(context.params.resource);
        await requireRole(site.settings, context.user, resource, 'read');
        if (!site.kind.isForStaff) throw coreErrors.not_found({ detail: 'Filters are not saved here.' });
        const { name, query, shared_with: sharedWith = null } = context.body;
        if (sharedWith !== null) await requireRole(site.settings, context.user, resource, 'share');
        // Only what the list understands is stored: it will be sent back as it is.
        checkView(resource, query, { cursors: await cursorsOf(site.app), userId: context.user.id });
        return saveFilter(context.db, context.clock, await saving(context, resource), { name: name.trim(), query, sharedWith });
      },
    );

    deleteFilter = route.delete('/:resource/filters/:id', { ...facts, params: SavedName }, async (context) => {
      const resource = site.resource(context.params.resource);
      const { id } = context.params;
      await requireRole(site.settings, context.user, resource, 'read');
      if (!site.kind.isForStaff || !isUuid(id) || !(await deleteSavedFilter(context.db, await saving(context, resource), id)))
        throw adminErrors.record_not_found();
    });
  }
  return new (namedFor(site.kind, KitSiteListController))();
}

function chosenColumns(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const unknown = Object.keys(given).filter((name) => !name.startsWith(COLUMN));
  if (unknown.length > 0) {
    const message = `The parameters are dry_run, mode and ${COLUMN}<name of a column of the file>.`;
    throw coreErrors.validation_error({ errors: unknown.map((name) => ({ location: ['query', name], code: 'unknown_field', message })) });
  }
  return Object.fromEntries(Object.entries(given).map(([name, field]) => [name.slice(COLUMN.length), field]));
}

function isOffered(formats: AdminResource['exports'], format: string): format is AdminFileFormat {
  return formats?.includes(format as AdminFileFormat) === true;
}
