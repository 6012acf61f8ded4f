import { isUuid } from '../../db/values/uuid.ts';
import { AdminConditions, type AdminRows, type SearchNote } from '../../app/admin/list.ts';
import { modelList, modelView } from '../../app/admin/model-list.ts';
import type {
  AdminContext,
  AdminDeclaration,
  AdminListQuery,
  AdminResource,
  AdminSight,
  AdminTimeline,
} from '../../app/admin/declaration.ts';
import { boundOrder, newestRows } from '../../app/admin/search-rows.ts';
import type { AdminFieldChange, AdminSection, AdminTimelineEntry } from '../../app/admin/sections.ts';
import type { AdminRow, AdminValue } from '../../app/admin/shapes.ts';
import type { UserDirectory } from '../../auth/people/user-directory.ts';
import type { Db } from '../../db/engine/db.ts';
import { changesOf, fieldChanges, type Change } from './changes.ts';
import { auditEntries } from './models.ts';
import { sealBeforeReading } from './seal.ts';
import { entriesOfRequests, findEntry, newestEntriesOf, type StoredEntry } from './store.ts';

const RESOURCE = 'audit-log';

const entryList = modelList(auditEntries, 'e', {
  columns: [
    { name: 'at', label: 'When' },
    { name: 'actor', label: 'Who', kind: 'link' },
    { name: 'action', kind: 'code' },
    { name: 'target', label: 'What', kind: 'link' },
    { name: 'target_type', label: 'Kind', secondary: true },
    { name: 'changed', kind: 'chips', secondary: true },
  ],
  // Entries have different times in nearly all cases: the index of times alone has them in order.
  orders: { at: { sql: 'e.at', kind: 'time', indexed: true }, actor: 'actor_name' },
  key: 'seq',
});

const chainView = modelView(auditEntries, [
  { name: 'seq', label: 'Number', kind: 'code' },
  { name: 'hash', kind: 'code' },
  { name: 'previous_hash', kind: 'code' },
]);

/** The audit log in the admin site. Read-only. */
export function auditAdmin(users: () => UserDirectory | null): AdminDeclaration {
  return { resources: [resource(users)], timeline };
}

function resource(users: () => UserDirectory | null): AdminResource {
  return {
    name: RESOURCE,
    label: 'Audit log',
    singular: 'audit entry',
    plural: 'audit entries',
    group: 'System',
    icon: 'audit',
    description: 'Who did what, newest first. Entries are chained by hashes; `kit audit verify` checks the chain.',
    columns: entryList.columns,
    filters: [
      { name: 'actor', label: 'Who', kind: 'text' },
      { name: 'action', label: 'Action', kind: 'text' },
      { name: 'target_type', label: 'Kind', kind: 'text' },
      { name: 'target_id', label: 'Id', kind: 'text' },
      { name: 'request_id', label: 'Request id', kind: 'text' },
      { name: 'when', label: 'When', kind: 'time', ends: ['since', 'until'] },
    ],
    creation: { refused: 'Entries are recorded by the changes themselves, in the same transaction.' },
    editable: false,
    removable: false,
    actions: [],
    async list(context, query) {
      await sealBeforeReading(context.db);
      const { rows, ...page } = await listForAdmin(context.db, query, users());
      const targets = rows.map(targetOf);
      const [names, sights] = [await namesFor(context, targets), await sightsOf(context, targets)];
      return { items: rows.map((entry) => rowOf(context, entry, names, sights)), ...page };
    },
    async read(context, id) {
      await sealBeforeReading(context.db);
      const entry = isUuid(id) ? await findEntry(context.db, 'id', id) : null;
      if (entry === null) return null;
      const sights = await sightsOf(context, [targetOf(entry)]);
      const changes = shownChanges(fieldChanges(entry.before, entry.after), entry, sights);
      const references = referencesIn(context, entry, changes);
      const names = await namesFor(context, [targetOf(entry), ...references.values()].flat());
      const row = rowOf(context, entry, names, sights);
      const difference = { changes, references, names, isHidden: !isSeen(entry, sights) };
      return { ...row, sections: sectionsOf(context, entry, row.values, difference), actions: [], removable: false };
    },
  };
}

/** By the place in the chain: the indexes of the filters end with it. */
async function listForAdmin(
  db: Db,
  { filters, ...query }: AdminListQuery,
  users: UserDirectory | null,
): Promise<AdminRows<StoredEntry> & SearchNote> {
  const where = new AdminConditions(db.dialect);
  const { actor, since, until, action, target_type: type, target_id: targetId, request_id: requestId } = filters;
  let isUnindexed = targetId !== undefined && type === undefined;
  if (actor !== undefined) {
    const id = isUuid(actor) ? actor : (await users?.findByLogin(db, actor))?.id;
    // Commands and programs have a name but no id.
    where.add(id === undefined ? `e.actor_name = ${where.parameter(actor)}` : `e.actor_id = ${where.parameter(id)}`);
    isUnindexed ||= id === undefined;
  }
  for (const name of ['action', 'target_type', 'target_id', 'request_id'] as const)
    if (filters[name] !== undefined) where.add(`e.${name} = ${where.parameter(filters[name])}`);
  if (since !== undefined) where.add(`e.at >= ${where.parameter(new Date(since))}`);
  if (until !== undefined) where.add(`e.at < ${where.parameter(new Date(until))}`);
  const isNarrowed = [action, type, requestId].some((filter) => filter !== undefined);
  if (isUnindexed && !isNarrowed) await newestRows(db, where, entryList.place);
  else await boundOrder(db, where, query, entryList.orders, entryList.place);
  // A time alone is read in the order of its own index: the place in the chain would lead past every newer entry first.
  const isByTime = Object.keys(filters).every((name) => name === 'since' || name === 'until') && Object.keys(filters).length > 0;
  const sort = query.sort?.column === 'at' && !isByTime ? { column: '', descending: query.sort.descending } : query.sort;
  return entryList.rows<StoredEntry>(
    db,
    { ...query, filters, sort: isByTime && sort === null ? { column: 'at', descending: true } : sort },
    where,
  );
}

interface Target {
  readonly type: string;
  readonly id: string;
}

type Names = ReadonlyMap<string, string>;

const nameKey = ({ type, id }: Target): string => `${type} ${id}`;
const targetOf = ({ target_type: type, target_id: id }: StoredEntry): Target => ({ type, id });

/** What the targets are called today: one question per kind. */
async function namesFor({ titlesOf }: AdminContext, targets: readonly Target[]): Promise<Names> {
  const names = new Map<string, string>();
  for (const [type, some] of Map.groupBy(targets, (target) => target.type)) {
    const ids = some.map(({ id }) => id);
    for (const [id, title] of await titlesOf(type, ids)) names.set(nameKey({ type, id }), title);
  }
  return names;
}

/** By kind: which of the records, and which of their fields, this staff member may know of. Null: all of them. */
type Sights = ReadonlyMap<string, AdminSight | null>;

async function sightsOf({ sightOf }: AdminContext, targets: readonly Target[]): Promise<Sights> {
  const sights = new Map<string, AdminSight | null>();
  for (const [type, some] of Map.groupBy(targets, (target) => target.type)) {
    const ids = some.map(({ id }) => id);
    sights.set(type, await sightOf(type, ids));
  }
  return sights;
}

/** The record of the entry may be known: what its entry stores of it is shown. */
function isSeen({ target_type, target_id }: StoredEntry, sights: Sights): boolean {
  return sights.get(target_type)?.ids.has(target_id) ?? true;
}

function shownChanges(changes: readonly Change[], entry: StoredEntry, sights: Sights): readonly Change[] {
  const sight = sights.get(entry.target_type) ?? null;
  if (!isSeen(entry, sights)) return [];
  // A change inside a JSON column is a field of its own: `address.city`.
  return sight === null ? changes : changes.filter(({ name }) => sight.shows(name) && sight.shows(name.split('.')[0] as string));
}

function rowOf({ linkTo }: AdminContext, entry: StoredEntry, names: Names, sights: Sights): AdminRow {
  const { id, at, action, actor_id, actor_name, target_type, target_id } = entry;
  const title = isSeen(entry, sights) ? (names.get(nameKey(targetOf(entry))) ?? titleOf(entry, sights)) : target_id;
  return {
    id,
    title: `${action} by ${actor_name ?? 'nobody'}`,
    values: {
      at: at.toISOString(),
      actor: actor_id === null ? actor_name : (linkTo('user', actor_id, actor_name ?? actor_id) ?? actor_name),
      action,
      target: linkTo(target_type, target_id, title) ?? title,
      target_type,
      changed: shownChanges(changesOf(entry.before, entry.after), entry, sights).map(({ name }) => name),
    },
  };
}

/** The ids of other records among the changed values, by the name of their field. */
function referencesIn({ refersTo }: AdminContext, { target_type }: StoredEntry, changes: readonly Change[]): Map<string, Target[]> {
  return new Map(
    changes.flatMap(({ name, before, after }): [string, Target[]][] => {
      const type = refersTo(target_type, name);
      const ids = [before, after].filter((value) => typeof value === 'string' && value !== '');
      return type === null || ids.length === 0 ? [] : [[name, ids.map((id) => ({ type, id: id as string }))]];
    }),
  );
}

interface Difference {
  readonly changes: readonly Change[];
  readonly references: ReadonlyMap<string, readonly Target[]>;
  readonly names: Names;
  readonly isHidden: boolean;
}

function changeRows({ linkTo }: AdminContext, { changes, references, names }: Difference): AdminFieldChange[] {
  return changes.map(({ name, before, after }) => {
    const [reference] = references.get(name) ?? [];
    const shown = (value: unknown): AdminValue | undefined => {
      if (value === undefined || value === null) return undefined;
      if (typeof value === 'string' && reference !== undefined) {
        const text = names.get(nameKey({ type: reference.type, id: value })) ?? value;
        return linkTo(reference.type, value, text) ?? text;
      }
      if (Array.isArray(value)) return value.map((item) => (typeof item === 'string' ? item : JSON.stringify(item)));
      return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : JSON.stringify(value);
    };
    return Object.assign({ name }, given('before', shown(before)), given('after', shown(after)));
  });
}

function given(name: 'before' | 'after', value: AdminValue | undefined): Partial<AdminFieldChange> {
  return value === undefined ? {} : { [name]: value };
}

/** The target's name, if the entry has it and this staff member may see that field. */
function titleOf({ before, after, target_id, target_type }: StoredEntry, sights: Sights): string {
  for (const state of [after, before] as readonly unknown[]) {
    if (typeof state !== 'object' || state === null) continue;
    for (const name of ['name', 'username', 'title', 'url']) {
      const value = (state as Readonly<Record<string, unknown>>)[name];
      if (typeof value === 'string' && value !== '' && (sights.get(target_type)?.shows(name) ?? true)) return value;
    }
  }
  return target_id;
}

function sectionsOf(
  context: AdminContext,
  entry: StoredEntry,
  values: AdminRow['values'],
  difference: Difference,
): readonly AdminSection[] {
  const { credential_id: credential, actor_scheme: scheme, before, after } = entry;
  return [
    {
      kind: 'facts',
      title: 'Entry',
      columns: [
        ...entryList.columns.filter(({ name }) => name !== 'changed'),
        { name: 'target_id', label: 'Target id', kind: 'code' },
        { name: 'actor_scheme', label: 'Authenticated by', kind: 'text' },
        { name: 'credential_id', label: 'Credential', kind: 'link' },
        { name: 'request_id', label: 'Request id', kind: 'code' },
      ],
      values: {
        ...values,
        target_id: entry.target_id,
        actor_scheme: scheme,
        credential_id: credential === null ? null : ((scheme === null ? null : context.linkTo(scheme, credential)) ?? credential),
        request_id: entry.request_id,
      },
    },
    {
      kind: 'changes',
      title:
        before === null && after !== null ? 'Values of the new record' : after === null && before !== null ? 'Values it had' : 'Changes',
      rows: changeRows(context, difference),
      empty: difference.isHidden ? 'You cannot see this record, so its values are not shown.' : 'No field was changed.',
    },
    ...(entry.metadata === null || difference.isHidden ? [] : [{ kind: 'json', title: 'Metadata', value: entry.metadata } as const]),
    {
      kind: 'facts',
      title: 'Place in the chain',
      columns: chainView.columns,
      values: chainView.values(entry, { seq: String(entry.seq) }),
    },
  ];
}

/** Entries shown on the page of their record; the list has the rest. */
const TIMELINE_MAX = 20;
/** Entries of the same requests about other records. */
const BESIDES_MAX = 30;
/** Longer values are shown by their beginning, and cannot be restored from here. */
const VALUE_LENGTH_MAX = 2_000;

/**
 * What happened to a record, and what else the same requests did: not to others of its kind, which a bulk change would list on the page of each. Only
 * what this staff member may know is part of it.
 */
async function timeline(context: AdminContext, { type, id }: Target, origin: readonly string[]): Promise<AdminTimeline> {
  const filters = { target_type: type, target_id: id };
  await sealBeforeReading(context.db);
  const own = await newestEntriesOf(context.db, filters, TIMELINE_MAX);
  const requests = [...new Set([...origin, ...own.flatMap(({ request_id }) => request_id ?? [])])];
  const besides = (await entriesOfRequests(context.db, requests, BESIDES_MAX)).filter(({ target_type }) => target_type !== type);
  const targets = [...own, ...besides].map(targetOf);
  const sights = await sightsOf(context, targets);
  const seen = [...own, ...besides.filter((entry) => isSeen(entry, sights))];
  const names = await namesFor(context, seen.map(targetOf));
  const entries = await Promise.all(
    seen.map((entry) => timelineEntry(context, entry, { names, sights, isOwn: entry.target_type === type })),
  );
  return { entries, more: { resource: RESOURCE, filters } };
}

interface TimelineView {
  readonly names: Names;
  readonly sights: Sights;
  readonly isOwn: boolean;
}

async function timelineEntry(
  context: AdminContext,
  entry: StoredEntry,
  { names, sights, isOwn }: TimelineView,
): Promise<AdminTimelineEntry> {
  const { action, target_id, actor_name, request_id, before, after } = entry;
  const changes = isOwn && before !== null && after !== null ? shownChanges(changesOf(before, after), entry, sights) : [];
  const references = referencesIn(context, entry, changes);
  const referred = changes.length === 0 ? names : await namesFor(context, [...references.values()].flat());
  const rows = changeRows(context, { changes, references, names: referred, isHidden: false });
  const title = isOwn ? action : `${action}: ${names.get(nameKey(targetOf(entry))) ?? target_id}`;
  return {
    at: entry.at.toISOString(),
    title,
    tone: 'neutral',
    ...(actor_name === null ? {} : { actor: actor_name }),
    ...(request_id === null ? {} : { request_id }),
    link: { resource: RESOURCE, id: entry.id, text: 'Audit entry' },
    ...(rows.length === 0 ? {} : { changes: rows.map((row, index) => restorable(row, changes[index] as Change)) }),
  };
}

/** The value before, as it was stored; the site leaves it in where the form of the record has the field. */
function restorable({ name, before, after }: AdminFieldChange, change: Change): AdminFieldChange {
  const isShort = JSON.stringify(change.before ?? null).length <= VALUE_LENGTH_MAX;
  return Object.assign(
    { name },
    given('before', cut(before)),
    given('after', cut(after)),
    isShort && change.before !== undefined ? { restore: change.before } : {},
  );
}

function cut(value: AdminValue | undefined): AdminValue | undefined {
  return typeof value === 'string' && value.length > VALUE_LENGTH_MAX ? `${value.slice(0, VALUE_LENGTH_MAX)} …` : value;
}
