import type { AdminAction, AdminContext, AdminResource } from '../../app/admin/declaration.ts';
import type { AdminRecord } from '../../app/admin/sections.ts';
import type { AdminPage, AdminPreview, AdminRange, AdminResult } from '../../app/admin/shapes.ts';
import { recordRead } from '../../auth/request/record-reading.ts';
import { cursorsOf } from '../../app/data/cursors.ts';
import type { LoginProvider } from '../../app/declare/login-provider.ts';
import { Controller } from '../../http/compile/controller.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { route, type Route } from '../../http/declare/route.ts';
import type { Principal } from '../../auth/people/principal.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { fieldsOf, REASON, type AdminSite } from '../state/admin-site.ts';
import { readerOf, targetTypeOf } from '../staff/reader-of.ts';
import { requireRole, roleOf } from '../staff/staff-roles.ts';
import { previewOf } from '../model/dry-run.ts';
import { namedFor, siteFacts } from '../state/site-kind.ts';
import { adminErrors } from '../../screens/errors.ts';
import { readRecordFields } from '../wire/read-fields.ts';
import { ListParametersSchema, readListQuery } from '../wire/read-list-query.ts';
import { RangeQuery, readRange } from '../wire/read-range.ts';
import { ADMIN_ACTION_IDS_MAX } from '../wire/wire.ts';
import { allowedRecord, versionSent } from './allowed-record.ts';
import { offeredView } from './views.ts';
import { sectionsBelow } from './record-history.ts';

/** The longest are those of groups of failed jobs: a name, an error code and where a retry goes on. */
const id = { type: 'string', minLength: 1, maxLength: 300 };
const named = (names: readonly string[]) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, id])),
  required: names,
  additionalProperties: false,
});

const ResourceName = jsonSchema<{ resource: string }>(named(['resource']));
const RecordName = jsonSchema<{ resource: string; id: string }>(named(['resource', 'id']));
const ActionName = jsonSchema<{ resource: string; action: string }>(named(['resource', 'action']));
const Fields = jsonSchema<Record<string, unknown>>({ type: 'object', additionalProperties: true });
const ActionBody = jsonSchema<{ ids: string[]; fields?: Record<string, unknown> }>({
  type: 'object',
  properties: {
    ids: { type: 'array', items: id, minItems: 1, maxItems: ADMIN_ACTION_IDS_MAX, uniqueItems: true },
    fields: { type: 'object', additionalProperties: true },
  },
  required: ['ids'],
  additionalProperties: false,
});
const Page = jsonSchema<AdminPage>({});
const RecordAnswer = jsonSchema<AdminRecord>({});
const Result = jsonSchema<AdminResult>({});
const Preview = jsonSchema<AdminPreview>({});

function requirePresence({ needsPresence = [] }: AdminResource, operation: string, { recentLogin }: Principal): void {
  if (recentLogin === false && needsPresence.includes(operation)) throw coreErrors.recent_login_required();
}

/** Every list, record, form and action of the site: one set of routes over what the modules declare. */
export function resourceController(site: AdminSite, { authenticators }: LoginProvider): Controller {
  const facts = siteFacts(site.kind, authenticators);
  // The portal's changes are requests of the API: each has a transaction of its own, and notices repetitions as the API does.
  // Its response is not stored, because it may show a secret; a repetition learns that it was done.
  const repeatable = site.kind.isForStaff ? { idempotent: { keepResponse: false } } : {};
  const withKey = <R extends Route>(change: R): R => ({ ...change, [site.kind.isForStaff ? 'isAtomicWithKey' : 'passesKey']: true });

  class KitSiteController extends Controller {
    list = route.get('/:resource', { ...facts, params: ResourceName, query: ListParametersSchema, response: Page }, async (context) => {
      const resource = site.resource(context.params.resource);
      await requireRole(site.settings, context.user, resource, 'read');
      const caller = { cursors: await cursorsOf(site.app), userId: context.user.id };
      return resource.list(site.context(context, context.principal), readListQuery(resource, context.query, caller));
    });

    create = withKey(
      route.post(
        '/:resource',
        { ...facts, ...repeatable, params: ResourceName, body: Fields, response: Result, status: 201 },
        async (context) => {
          const resource = site.resource(context.params.resource);
          await requireRole(site.settings, context.user, resource, 'create');
          requirePresence(resource, 'create', context.principal);
          if ('refused' in resource.creation || resource.create === undefined)
            throw adminErrors.not_creatable('refused' in resource.creation ? { detail: resource.creation.refused } : {});
          const asked = site.context(context, context.principal);
          const options = { location: ['body'], partial: false };
          const fields = await readRecordFields(resource.creation.fields, context.body, options, (values) =>
            resource.validate?.(asked, values, null),
          );
          return resource.create(asked, fields);
        },
      ),
    );

    read = route.get('/:resource/:id', { ...facts, params: RecordName, query: RangeQuery, response: RecordAnswer }, async (context) => {
      const resource = site.resource(context.params.resource);
      await requireRole(site.settings, context.user, resource, 'read');
      const asked = site.context(context, context.principal);
      const record = await find(resource, asked, context.params.id, readRange(context.query));
      context.log.info({ user_id: context.user.id, resource: resource.name, record: record.id }, 'admin: a record was read');
      if (resource.auditReads === true) await recordRead(readerOf(asked), targetTypeOf(resource), record.id);
      const role = await roleOf(site.settings, context.user);
      const access = await site.kind.access?.(asked);
      const below = await sectionsBelow(site, resource, asked, record, { cursors: await cursorsOf(site.app), role, access });
      const { view: about, ...rest } = record;
      const view = await offeredView(site, asked, about);
      const shown = { ...rest, ...(view === null ? {} : { view }), sections: [...record.sections, ...below] };
      return allowedRecord(site, { role, access }, resource, shown);
    });

    update = withKey(
      route.patch('/:resource/:id', { ...facts, ...repeatable, params: RecordName, body: Fields, response: Result }, async (context) => {
        const resource = site.resource(context.params.resource);
        await requireRole(site.settings, context.user, resource, 'update');
        const asked = site.context(context, context.principal);
        const { form } = await find(resource, asked, context.params.id);
        if (form === undefined || resource.update === undefined) throw adminErrors.not_editable();
        const version = versionSent(context.request.headers['if-match'], form);
        const changesOf = (fields: Readonly<Record<string, unknown>>) =>
          Object.entries(fields).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(form.values[name]));
        const options = { location: ['body'], partial: true };
        const fields = await readRecordFields(form.fields, context.body, options, (values) =>
          resource.validate?.(asked, Object.fromEntries(changesOf(values)), context.params.id),
        );
        const changed = changesOf(fields);
        if (changed.length === 0) return { message: 'Nothing was changed.', id: context.params.id };
        return resource.update(asked, context.params.id, Object.fromEntries(changed), version);
      }),
    );

    remove = withKey(
      route.delete('/:resource/:id', { ...facts, ...repeatable, params: RecordName, response: Result }, async (context) => {
        const resource = site.resource(context.params.resource);
        await requireRole(site.settings, context.user, resource, 'remove');
        const asked = site.context(context, context.principal);
        const { removable } = await find(resource, asked, context.params.id);
        if (!removable || resource.remove === undefined) throw adminErrors.not_removable();
        return resource.remove(asked, context.params.id);
      }),
    );

    act = withKey(
      route.post(
        '/:resource/actions/:action',
        { ...facts, ...repeatable, params: ActionName, body: ActionBody, response: Result },
        async (context) => {
          const resource = site.resource(context.params.resource);
          const action = actionOf(resource, context.params.action);
          const { ids, fields = {} } = context.body;
          if (action.on === 'record' && ids.length > 1) throw adminErrors.one_record_only();
          await requireRole(site.settings, context.user, resource, action);
          requirePresence(resource, action.name, context.principal);
          const asked = site.context(context, context.principal);
          const { [REASON]: reason, ...own } = await readActionFields(action, fields, (values) => action.validate?.(asked, ids, values));
          const read = action.reason === undefined ? (reason === undefined ? own : { ...own, reason }) : own;
          const result = await action.run(asked, ids, read);
          if (action.reason !== undefined && typeof reason === 'string' && reason !== '') {
            const failed = new Set(result.failures?.map(({ id: each }) => each));
            for (const each of ids)
              if (!failed.has(each))
                await recordOn(resource, asked, each, `${targetTypeOf(resource)}.reason_given`, { action: action.name, reason });
          }
          return result;
        },
      ),
    );

    preview = route.post(
      '/:resource/actions/:action/preview',
      { ...facts, params: ActionName, body: ActionBody, response: Preview },
      async (context) => {
        const resource = site.resource(context.params.resource);
        const action = actionOf(resource, context.params.action);
        await requireRole(site.settings, context.user, resource, action);
        if (action.preview === undefined && action.dryRun === undefined)
          throw adminErrors.action_not_found({ detail: 'The action has no preview.' });
        const { ids, fields = {} } = context.body;
        const asked = site.context(context, context.principal);
        const read = await readActionFields(action, fields, (values) => action.validate?.(asked, ids, values));
        return previewOf(action, asked, ids, read);
      },
    );
  }
  return new (namedFor(site.kind, KitSiteController))();
}

/** Of an action that sets what was chosen, something must be. */
async function readActionFields(
  action: AdminAction,
  fields: Readonly<Record<string, unknown>>,
  validate: (values: Readonly<Record<string, unknown>>) => Promise<void> | undefined,
): Promise<Readonly<Record<string, unknown>>> {
  const location = ['body', 'fields'];
  const read = await readRecordFields(fieldsOf(action), fields, { location, partial: action.sets === true }, validate);
  if (action.sets === true && Object.keys(read).length === 0)
    throw coreErrors.validation_error({ errors: [{ location, code: 'required', message: 'Choose at least one field.' }] });
  return read;
}

function actionOf({ actions }: AdminResource, name: string): AdminAction {
  const found = actions.find((action) => action.name === name);
  if (found === undefined) throw adminErrors.action_not_found({ extensions: { actions: actions.map((action) => action.name) } });
  return found;
}

async function recordOn(
  resource: AdminResource,
  { audit, db, principal, requestId }: AdminContext,
  target: string,
  action: string,
  metadata: object,
): Promise<void> {
  const entry = { actor: principal, action, target_type: targetTypeOf(resource), target_id: target, request_id: requestId };
  await audit?.record(db, [{ ...entry, metadata }]);
}

async function find(resource: AdminResource, context: AdminContext, id: string, range?: AdminRange): Promise<AdminRecord> {
  const record = await resource.read(context, id, range);
  if (record === null)
    throw adminErrors.record_not_found({ detail: `There is no ${resource.singular} with the id ${JSON.stringify(id)}.` });
  return record;
}
