import { createHash } from 'node:crypto';
import type { AdminAction, AdminContext, AdminResource, AdminTarget } from '../../app/admin/declaration.ts';
import type { AdminFieldChange, AdminRecord, AdminSection, AdminTimelineEntry } from '../../app/admin/sections.ts';
import type { AdminField, AdminPage, AdminPreview, AdminRange, AdminResult, AdminRow, AdminState } from '../../app/admin/shapes.ts';
import { recordRead } from '../../auth/request/record-reading.ts';
import { cursorsOf } from '../../app/data/cursors.ts';
import type { LoginProvider } from '../../app/declare/login-provider.ts';
import { Controller } from '../../http/compile/controller.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { route, type Route } from '../../http/declare/route.ts';
import { isStaff } from '../../permissions/built-ins.ts';
import type { Principal } from '../../auth/people/principal.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { canonicalJson } from '../../db/values/canonical-json.ts';
import type { Cursors } from '../../db/sql/keyset/cursor.ts';
import { fieldsOf, REASON, type AdminSite } from '../state/admin-site.ts';
import type { AdminRole } from '../options.ts';
import { readerOf, targetTypeOf } from '../staff/reader-of.ts';
import { refusalOf, requireRole, roleOf, type StaffOperation } from '../staff/staff-roles.ts';
import { previewOf } from '../model/dry-run.ts';
import { inOrder } from '../wire/in-order.ts';
import { adminErrors } from '../../screens/errors.ts';
import { linkedRows } from '../model/linked-rows.ts';
import { readRecordFields } from '../wire/read-fields.ts';
import { ListParametersSchema, readListQuery } from '../wire/read-list-query.ts';
import { RangeQuery, readRange } from '../wire/read-range.ts';
import { ADMIN_ACTION_IDS_MAX } from '../wire/wire.ts';

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

/**
 * A change that may be sent again: with an idempotency key it is done once. Its response is not stored, because it may show a secret; a
 * repetition learns that it was done.
 */
const repeatable = { idempotent: { keepResponse: false } } as const;

function inTransactionWithKey<R extends Route>(change: R): R {
  return { ...change, isAtomicWithKey: true };
}

/** Every list, record, form and action of the site: one set of routes over what the modules declare. */
export function resourceController(site: AdminSite, { authenticators }: LoginProvider): Controller {
  const facts = { permission: isStaff, auth: authenticators, hidden: true, metadata: { admin: true } } as const;

  class KitAdminController extends Controller {
    list = route.get('/:resource', { ...facts, params: ResourceName, query: ListParametersSchema, response: Page }, async (context) => {
      const resource = site.resource(context.params.resource);
      await requireRole(site.settings, context.user, resource, 'read');
      const caller = { cursors: await cursorsOf(site.app), userId: context.user.id };
      return resource.list(site.context(context, context.principal), readListQuery(resource, context.query, caller));
    });

    create = inTransactionWithKey(
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
      const reader = { cursors: await cursorsOf(site.app), role };
      const related = await relatedOf(site, resource, asked, record.id, reader);
      const more = [...related.sections, ...(await historyOf(site, resource, asked, record, { ...reader, related: related.entries }))];
      return allowed(site, role, resource, { ...record, sections: [...record.sections, ...more] });
    });

    update = inTransactionWithKey(
      route.patch('/:resource/:id', { ...facts, ...repeatable, params: RecordName, body: Fields, response: Result }, async (context) => {
        const resource = site.resource(context.params.resource);
        await requireRole(site.settings, context.user, resource, 'update');
        const asked = site.context(context, context.principal);
        const { form } = await find(resource, asked, context.params.id);
        if (form === undefined || resource.update === undefined) throw adminErrors.not_editable();
        const match = context.request.headers['if-match'];
        const version = versionOf(match);
        if (version === null && match !== undefined && match !== `"${tagOf(form.values)}"`) throw coreErrors.precondition_failed();
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

    remove = inTransactionWithKey(
      route.delete('/:resource/:id', { ...facts, ...repeatable, params: RecordName, response: Result }, async (context) => {
        const resource = site.resource(context.params.resource);
        await requireRole(site.settings, context.user, resource, 'remove');
        const asked = site.context(context, context.principal);
        const { removable } = await find(resource, asked, context.params.id);
        if (!removable || resource.remove === undefined) throw adminErrors.not_removable();
        return resource.remove(asked, context.params.id);
      }),
    );

    act = inTransactionWithKey(
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
  return new KitAdminController();
}

/** What a form without a version was made from: another one now means that somebody changed the record. */
function tagOf(values: Readonly<Record<string, unknown>>): string {
  return createHash('sha256').update(canonicalJson(values)).digest('base64url').slice(0, TAG_LENGTH);
}

/** 162 bits, and longer than any version. */
const TAG_LENGTH = 27;

/** Of a form that carries one: `"3"`. */
function versionOf(header: string | undefined): number | null {
  const found = /^"(\d{1,15})"$/.exec(header ?? '');
  return found === null ? null : Number(found[1]);
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

/** The record without what the role may not do, and why not. */
function allowed(site: AdminSite, role: AdminRole, resource: AdminResource, { form, ...record }: AdminRecord): AdminRecord {
  const refusal = (operation: StaffOperation): string | undefined => refusalOf(site.settings, role, resource, operation) ?? undefined;
  const noUpdate = refusal('update');
  const noRemoval = refusal('remove');
  const refused = {
    ...record.refused,
    ...(form === undefined || noUpdate === undefined ? {} : { edit: noUpdate }),
    ...(!record.removable || noRemoval === undefined ? {} : { remove: noRemoval }),
  };
  return {
    ...record,
    ...(form === undefined || noUpdate !== undefined
      ? {}
      : {
          form: {
            ...form,
            fields: site.drawn(resource, form.fields).map((field) => site.resolved(role, field)),
            tag: form.version === undefined ? tagOf(form.values) : String(form.version),
          },
        }),
    removable: record.removable && noRemoval === undefined,
    ...(Object.keys(refused).length === 0 ? {} : { refused }),
    sections: record.sections
      .map((section) => allowedSection(site, role, section))
      .map((section) => withRestorable(section, resource, noUpdate === undefined ? form : undefined)),
  };
}

/** A section whose buttons say why the role may not use them. */
function allowedSection(site: AdminSite, role: AdminRole, section: AdminSection): AdminSection {
  if (section.kind !== 'table' || (section.adds === undefined && section.removes === undefined)) return section;
  const { adds, removes, ...rest } = section;
  const refused = (other: string, operation: StaffOperation): { readonly refused?: string } => {
    const reason = refusalOf(site.settings, role, site.resource(other), operation);
    return reason === null ? {} : { refused: reason };
  };
  return {
    ...rest,
    ...(adds === undefined
      ? {}
      : { adds: { ...adds, fields: adds.fields.map((field) => site.resolved(role, field)), ...refused(adds.resource, 'create') } }),
    ...(removes === undefined ? {} : { removes: { ...removes, ...refused(removes.resource, 'remove') } }),
  };
}

/** What `related` calls the requests that changed a record. */
const REQUEST = 'request';
const RELATED_MAX = 5;
/** Of a list whose records are about any record: these stand in its timeline. */
const TIMELINE_MAX = 20;

interface Related {
  readonly sections: readonly AdminSection[];
  readonly entries: readonly AdminTimelineEntry[];
}

/** Records of other lists that belong to this one: the first few of each, and the way to all. */
async function relatedOf(
  site: AdminSite,
  { auditedAs, table }: AdminResource,
  context: AdminContext,
  recordId: string,
  { cursors, role }: { readonly cursors: Cursors; readonly role: AdminRole },
): Promise<Related> {
  const sections: AdminSection[] = [];
  const entries: AdminTimelineEntry[] = [];
  for (const other of site.resources) {
    for (const { to, filter, column = filter } of other.related ?? []) {
      if (to === REQUEST) continue;
      const isAny = to === '*';
      const value = isAny
        ? auditedAs === undefined
          ? null
          : `${auditedAs}:${recordId}`
        : to === auditedAs || to === table
          ? recordId
          : null;
      if (value === null || refusalOf(site.settings, role, other, 'read') !== null) continue;
      const filters = { [filter]: value };
      const query = {
        search: null,
        filters,
        sort: null,
        limit: isAny ? TIMELINE_MAX : RELATED_MAX,
        cursor: null,
        cursors,
        bound: `related ${other.name} ${recordId}`,
      };
      const { items } = await other.list(context, query);
      if (items.length === 0) continue;
      if (isAny) entries.push(...items.map((item) => relatedEntry(other, item)));
      // All of them belong to this record: its own column says nothing.
      const shown = other.columns.filter(({ secondary, name }) => secondary !== true && name !== column);
      sections.push({
        kind: 'table',
        title: other.label,
        ...linkedRows(other, shown, items.slice(0, RELATED_MAX)),
        more: { resource: other.name, filters },
      });
    }
  }
  return { sections, entries };
}

/** A record of a list as something that happened: the time that the list is in order of, and its state. */
function relatedEntry({ name, singular, columns }: AdminResource, { id: itemId, title, values }: AdminRow): AdminTimelineEntry {
  const time = columns.findLast(({ kind, sortable }) => kind === 'time' && sortable === true);
  const state = columns.findLast(({ kind }) => kind === 'state');
  const at = time === undefined ? null : values[time.name];
  const shown = state === undefined ? null : (values[state.name] as AdminState | null | undefined);
  return {
    at: typeof at === 'string' ? at : null,
    title: `${singular} ${title}`,
    tone: shown?.tone ?? 'neutral',
    ...(shown === null || shown === undefined ? {} : { text: shown.hint === undefined ? shown.value : `${shown.value}: ${shown.hint}` }),
    link: { resource: name, id: itemId, text: `Open the ${singular}` },
    ...(typeof values['request_id'] === 'string' ? { request_id: values['request_id'] } : {}),
  };
}

/** Requests whose effects a timeline shows, and records of one list among them: those of the newest changes. */
const REQUESTS_MAX = 20;

/** Records of other lists that the same requests caused. Not those about others of its kind, which a bulk change would list on the page of each. */
async function causedBy(
  site: AdminSite,
  { type, id: recordId }: AdminTarget,
  context: AdminContext,
  requests: readonly string[],
  { cursors, role }: { readonly cursors: Cursors; readonly role: AdminRole },
): Promise<AdminTimelineEntry[]> {
  if (requests.length === 0) return [];
  const entries: AdminTimelineEntry[] = [];
  for (const other of site.resources) {
    const filter = other.related?.find(({ to }) => to === REQUEST)?.filter;
    if (filter === undefined || refusalOf(site.settings, role, other, 'read') !== null) continue;
    const { items } = await other.list(context, {
      search: null,
      filters: { [filter]: requests.slice(0, REQUESTS_MAX).join(',') },
      sort: null,
      limit: TIMELINE_MAX,
      cursor: null,
      cursors,
      bound: `caused ${other.name} ${recordId}`,
    });
    const isOfAnother = ({ values: { record } }: AdminRow): boolean =>
      typeof record === 'string' && record.startsWith(`${type}:`) && record !== `${type}:${recordId}`;
    entries.push(...items.filter((item) => !isOfAnother(item)).map((item) => relatedEntry(other, item)));
  }
  return entries;
}

async function find(resource: AdminResource, context: AdminContext, id: string, range?: AdminRange): Promise<AdminRecord> {
  const record = await resource.read(context, id, range);
  if (record === null)
    throw adminErrors.record_not_found({ detail: `There is no ${resource.singular} with the id ${JSON.stringify(id)}.` });
  return record;
}

/**
 * What other modules know about a record, at the end of its page: their own parts, and one timeline of what happened. `related`: entries that name the
 * record themselves.
 */
async function historyOf(
  site: AdminSite,
  { auditedAs }: AdminResource,
  context: AdminContext,
  { id, values }: AdminRow,
  { cursors, role, related }: { readonly cursors: Cursors; readonly role: AdminRole; readonly related: readonly AdminTimelineEntry[] },
): Promise<AdminRecord['sections']> {
  if (auditedAs === undefined) return [];
  const target = { type: auditedAs, id };
  const sections = await Promise.all(site.declarations.map(async (each) => (await each.sections?.(context, target)) ?? []));
  const origin = typeof values['request_id'] === 'string' ? [values['request_id']] : [];
  const lines = await Promise.all(site.declarations.flatMap((each) => each.timeline?.(context, target, origin) ?? []));
  if (lines.length === 0) return sections.flat();
  const recorded = lines.flatMap((line) => line.entries);
  const requests = [...new Set([...origin, ...recorded.flatMap(({ request_id: request }) => request ?? [])])];
  const caused = await causedBy(site, target, context, requests, { cursors, role });
  // An entry is a record of a list: who may not read the list does not see it here either.
  const mayRead = (resource: string): boolean => refusalOf(site.settings, role, site.resource(resource), 'read') === null;
  const entries = inOrder(
    [...recorded, ...related, ...caused].filter(({ at, link }) => at !== null && (link === undefined || mayRead(link.resource))),
    new Set(recorded),
  );
  const more = lines.find((line) => line.more !== undefined && mayRead(line.more.resource))?.more;
  const timeline = {
    kind: 'timeline',
    title: 'History',
    entries,
    empty: 'Nothing was recorded yet.',
    ...(more === undefined ? {} : { more }),
  };
  return [...sections.flat(), timeline as AdminSection];
}

/** The timeline without values that this staff member cannot bring back: only those of a field in the form, which differ from it. */
function withRestorable(section: AdminSection, { shows, hasOwnForm }: AdminResource, form: AdminRecord['form']): AdminSection {
  if (section.kind !== 'timeline') return section;
  const isRestorable = ({ name, restore }: AdminFieldChange): boolean => {
    const field = form?.fields.find((each) => each.name === name);
    if (shows === undefined || hasOwnForm === true || form === undefined || field === undefined || restore === undefined) return false;
    return isOpenKind(field) && canonicalJson(form.values[name] ?? null) !== canonicalJson(restore ?? null);
  };
  const changed = (change: AdminFieldChange): AdminFieldChange => {
    const { restore: _, ...rest } = change;
    return isRestorable(change) ? change : rest;
  };
  return {
    ...section,
    entries: section.entries.map(({ changes, ...entry }) => (changes === undefined ? entry : { ...entry, changes: changes.map(changed) })),
  };
}

function isOpenKind({ kind, sensitive, refused }: AdminField): boolean {
  return refused === undefined && kind !== 'password' && kind !== 'file' && sensitive !== true;
}
