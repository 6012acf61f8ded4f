import type { AdminContext, AdminResource, AdminTarget } from '../../app/admin/declaration.ts';
import type { AdminRecord, AdminSection, AdminTimelineEntry } from '../../app/admin/sections.ts';
import { labelOf } from '../../app/admin/model-columns.ts';
import type { AdminListLink, AdminRow, AdminState } from '../../app/admin/shapes.ts';
import type { Cursors } from '../../db/sql/keyset/cursor.ts';
import { linkedRows } from '../model/linked-rows.ts';
import type { AdminRole } from '../options.ts';
import { refusalOf } from '../staff/staff-roles.ts';
import type { AdminSite } from '../state/admin-site.ts';
import type { SiteAccess } from '../state/site-kind.ts';
import { byRequest } from '../wire/by-request.ts';
import { inOrder } from '../wire/in-order.ts';

interface Reader {
  readonly cursors: Cursors;
  readonly role: AdminRole;
  readonly access?: SiteAccess | undefined;
}

/** What stands below a record: records of other lists that belong to it, what other modules know about it, and one timeline of what happened. */
export async function sectionsBelow(
  site: AdminSite,
  resource: AdminResource,
  context: AdminContext,
  record: AdminRecord,
  reader: Reader,
): Promise<readonly AdminSection[]> {
  const related = await relatedOf(site, resource, context, record.id, reader);
  return [...related.sections, ...(await historyOf(site, resource, context, record, { ...reader, related }))];
}

/** What `related` calls the requests that changed a record. */
const REQUEST = 'request';
const RELATED_MAX = 5;
/** Of a list whose records are about any record: these stand in its timeline. */
const TIMELINE_MAX = 20;

interface Related {
  readonly sections: readonly AdminSection[];
  readonly entries: readonly AdminTimelineEntry[];
  /** Of what these entries are. */
  readonly lists: readonly AdminListLink[];
}

/** Records of other lists that belong to this one: the first few of each, and the way to all. */
async function relatedOf(
  site: AdminSite,
  { auditedAs, table }: AdminResource,
  context: AdminContext,
  recordId: string,
  { cursors, role, access }: Reader,
): Promise<Related> {
  const sections: AdminSection[] = [];
  const entries: AdminTimelineEntry[] = [];
  const lists: AdminListLink[] = [];
  for (const other of site.resources) {
    if (access?.shows(other.name) === false) continue;
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
      if (isAny && auditedAs !== undefined) {
        // The timeline shows them.
        entries.push(...items.map((item) => relatedEntry(other, item)));
        lists.push({ resource: other.name, filters, text: other.label });
        continue;
      }
      // All of them belong to this record: its own column says nothing.
      const shown = other.columns.filter(({ secondary, name }) => secondary !== true && name !== column);
      sections.push({
        kind: 'table',
        title: other.label,
        ...linkedRows(other, shown, items.slice(0, RELATED_MAX)),
        more: { resource: other.name, filters },
        ...(other.edits === undefined || refusalOf(site.settings, role, other, 'update') !== null
          ? {}
          : { edits: { resource: other.name, names: other.edits } }),
      });
    }
  }
  return { sections, entries, lists };
}

/** A record of a list as something that happened: the time that the list is in order of, and its state. */
function relatedEntry({ name, singular, columns }: AdminResource, { id: itemId, title, values }: AdminRow): AdminTimelineEntry {
  const time = columns.findLast(({ kind, sortable }) => kind === 'time' && sortable === true);
  const state = columns.findLast(({ kind }) => kind === 'state');
  const at = time === undefined ? null : values[time.name];
  const shown = state === undefined ? null : (values[state.name] as AdminState | null | undefined);
  return {
    at: typeof at === 'string' ? at : null,
    title: `${singular.charAt(0).toUpperCase()}${singular.slice(1)} ${title}`,
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
  { cursors, role }: Reader,
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

/**
 * What other modules know about a record, at the end of its page: their own parts, and one timeline of what happened. `related`: entries that name the
 * record themselves.
 */
async function historyOf(
  site: AdminSite,
  resource: AdminResource,
  context: AdminContext,
  record: AdminRecord,
  { cursors, role, related }: Reader & { readonly related: Related },
): Promise<AdminRecord['sections']> {
  const { auditedAs } = resource;
  const { id, values } = record;
  if (auditedAs === undefined) return [];
  const target = { type: auditedAs, id };
  const sections = await Promise.all(site.declarations.map(async (each) => (await each.sections?.(context, target)) ?? []));
  const origin = typeof values['request_id'] === 'string' ? [values['request_id']] : [];
  const lines = await Promise.all(site.declarations.flatMap((each) => each.timeline?.(context, target, origin) ?? []));
  if (lines.length === 0 && related.entries.length === 0) return sections.flat();
  const recorded = lines.flatMap((line) => line.entries);
  const requests = [...new Set([...origin, ...recorded.flatMap(({ request_id: request }) => request ?? [])])];
  const caused = await causedBy(site, target, context, requests, { cursors, role });
  // An entry is a record of a list: who may not read the list does not see it here either.
  const mayRead = (resource: string): boolean => refusalOf(site.settings, role, site.resource(resource), 'read') === null;
  const entries = inOrder(
    [...recorded, ...related.entries, ...caused].filter(({ at, link }) => at !== null && (link === undefined || mayRead(link.resource))),
    new Set(recorded),
  );
  const more = lines.find((line) => line.more !== undefined && mayRead(line.more.resource))?.more;
  const timeline = {
    kind: 'timeline',
    title: 'History',
    entries: byRequest(entries, new Set(recorded.filter(({ aside }) => aside !== true))).map((entry) => inWords(entry, resource, record)),
    empty: 'Nothing was recorded yet.',
    ...(more === undefined ? {} : { more }),
    ...(related.lists.length === 0 ? {} : { lists: related.lists }),
  };
  return [...sections.flat(), timeline as AdminSection];
}

/** Columns that every change sets: they say nothing about it. */
const STAMPS: ReadonlySet<string> = new Set(['updated_at', 'version']);

/** The changes by the labels of the record's page and form. */
function inWords(
  { changes, ...entry }: AdminTimelineEntry,
  { columns }: AdminResource,
  { form, sections }: AdminRecord,
): AdminTimelineEntry {
  if (changes === undefined) return entry;
  const fields = form?.fields ?? [];
  const facts = sections.flatMap((section) => (section.kind === 'facts' ? section.columns : []));
  const labels = new Map([...columns, ...facts, ...fields].map(({ name, label }) => [name, label]));
  const shown = changes.filter(({ name }) => !STAMPS.has(name) || fields.some((field) => field.name === name));
  if (shown.length === 0) return entry;
  return {
    ...entry,
    changes: shown.map((change) => Object.assign({}, change, { label: labels.get(change.name) ?? labelOf(change.name) })),
  };
}
