import { isUuid } from '../../db/values/uuid.ts';
import type { AdminContext, AdminDeclaration, AdminResource, AdminTarget, AdminTimeline } from '../../app/admin/declaration.ts';
import type { AdminFieldChange, AdminSection, AdminTimelineEntry } from '../../app/admin/sections.ts';
import type { AdminColumn, AdminValue } from '../../app/admin/shapes.ts';
import { actionLabel } from '../../app/admin/action-label.ts';
import { labelOf } from '../../app/admin/model-columns.ts';
import type { UserDirectory } from '../../auth/people/user-directory.ts';
import { screen } from '../../screens/screen.ts';
import { section } from '../../screens/screen-words.ts';
import { changesOf, fieldChanges, type Change } from './serve/changes.ts';
import {
  changeRows,
  given,
  isSeen,
  nameKey,
  nameOf,
  type Names,
  namesFor,
  referencesIn,
  shownChanges,
  type Sights,
  sightsOf,
  targetOf,
} from './serve/entry-view.ts';
import { auditResource } from './serve/resource.ts';
import { sealBeforeReading } from './chain/seal.ts';
import { entriesOfRequests, findEntries, newestEntriesOf, type StoredEntry } from './chain/store.ts';

const LIST = 'audit-log';

/** The audit log in the admin site. Read-only. */
export function auditAdmin(users: () => UserDirectory | null): AdminDeclaration {
  return { resources: [sealed(entryScreen(users))], timeline };
}

/** Entries are read when they have their place in the chain. They have no history of their own. */
function sealed(entries: AdminResource): AdminResource {
  // oxlint-disable-next-line typescript/unbound-method -- left out, not called
  const { installedIn: _, auditedAs: __, ...list } = entries;
  return {
    ...list,
    async list(context, query) {
      await sealBeforeReading(context.db);
      return list.list(context, query);
    },
    async read(context, id) {
      await sealBeforeReading(context.db);
      return list.read(context, id);
    },
  };
}

function entryScreen(users: () => UserDirectory | null): AdminResource {
  return screen(auditResource, {
    name: LIST,
    label: 'Audit log',
    singular: 'audit entry',
    plural: 'audit entries',
    group: 'System',
    icon: 'audit',
    description: 'Who did what, newest first. Entries are chained by hashes; `kit audit verify` checks the chain.',
    lookup: 'id',
    title: 'title',
    columns: [
      { name: 'at', label: 'When', sortable: true },
      { name: 'actor_name', label: 'Who', kind: 'link' },
      { name: 'action', kind: 'text' },
      { name: 'target', label: 'What', kind: 'link' },
      { name: 'target_type', label: 'Kind', secondary: true },
      { name: 'changed', kind: 'chips', secondary: true },
    ],
    facts: [
      { name: 'action_name', label: 'Name of the action', kind: 'code' },
      { name: 'target_id', label: 'Target id', kind: 'code' },
      { name: 'actor_scheme', label: 'Authenticated by', kind: 'text' },
      { name: 'credential_id', label: 'Credential', kind: 'link' },
      { name: 'request_id', label: 'Request id', kind: 'code' },
    ],
    load: cellsOf,
    filters: [
      {
        name: 'actor',
        label: 'Who',
        kind: 'text',
        where: async (actor, { db }) => {
          const id = isUuid(actor) ? actor : (await users()?.findByLogin(db, actor))?.id;
          // Commands and programs have a name and no id.
          return id === undefined ? { actor_name: actor } : { actor_id: id };
        },
        isIndexed: (_, where) => 'actor_id' in where,
      },
      { column: 'action', label: 'Action' },
      { column: 'target_type', label: 'Kind' },
      { column: 'target_id', label: 'Id' },
      { column: 'request_id', label: 'Request id' },
      { column: 'tenant_id', name: 'tenant', label: 'Tenant', isIndexed: true },
      { column: 'at', name: 'when', label: 'When', ends: ['since', 'until'] },
    ],
    search: [],
    creation: { refused: 'Entries are recorded in the transaction of the change.' },
    readOnly: true,
    exports: false,
    sections: [section<StoredEntry>(changeSections), section<StoredEntry>(({ row }) => chainSection(row))],
  });
}

/** The entries whole: what a page shows of their values is decided for each staff member. */
async function cellsOf(items: readonly object[], context: AdminContext): Promise<readonly Readonly<Record<string, AdminValue>>[]> {
  const ids = (items as readonly Pick<StoredEntry, 'id'>[]).map(({ id }) => id);
  const stored = new Map((await findEntries(context.db, ids)).map((entry) => [entry.id, entry]));
  const entries = ids.flatMap((id) => stored.get(id) ?? []);
  const targets = entries.map(targetOf);
  const [names, sights] = [await namesFor(context, targets), await sightsOf(context, targets)];
  const cells = new Map(entries.map((entry) => [entry.id, entryCells(context, entry, names, sights)]));
  return ids.map((id) => cells.get(id) ?? {});
}

/** Columns that every change sets: the list leaves them out, the entry has them. */
const STAMPS: ReadonlySet<string> = new Set(['updated_at', 'version']);

function entryCells({ linkTo }: AdminContext, entry: StoredEntry, names: Names, sights: Sights): Readonly<Record<string, AdminValue>> {
  const { action, actor_id, actor_name, actor_scheme, credential_id, target_type, target_id } = entry;
  const name = nameOf(entry, names, sights);
  return {
    title: actor_name === null ? actionLabel(action) : `${actionLabel(action)} by ${actor_name}`,
    action: actionLabel(action),
    action_name: action,
    actor_name: actor_id === null ? actor_name : (linkTo('user', actor_id, actor_name ?? actor_id) ?? actor_name),
    target: linkTo(target_type, target_id, name) ?? name,
    changed: shownChanges(changesOf(entry.before, entry.after), entry, sights)
      .filter((change) => !STAMPS.has(change.name))
      .map((change) => labelOf(change.name)),
    credential_id: credential_id === null ? null : ((actor_scheme === null ? null : linkTo(actor_scheme, credential_id)) ?? credential_id),
  };
}

async function changeSections({
  row: entry,
  context,
}: {
  readonly row: StoredEntry;
  readonly context: AdminContext;
}): Promise<readonly AdminSection[]> {
  const { before, after, metadata } = entry;
  const sights = await sightsOf(context, [targetOf(entry)]);
  const isHidden = !isSeen(entry, sights);
  const changes = shownChanges(fieldChanges(before, after), entry, sights);
  const references = referencesIn(context, entry, changes);
  const names = await namesFor(context, [...references.values()].flat());
  return [
    {
      kind: 'changes',
      title:
        before === null && after !== null
          ? 'Values of the new record'
          : after === null && before !== null
            ? 'Values of the deleted record'
            : 'Changes',
      rows: changeRows(context, { changes, references, names }).map((row) => Object.assign(row, { label: labelOf(row.name) })),
      empty: isHidden ? 'You cannot see this record, so its values are not shown.' : 'No field was changed.',
    },
    ...(metadata === null || isHidden ? [] : [{ kind: 'json', title: 'Metadata', value: metadata } as const]),
  ];
}

const CHAIN: readonly AdminColumn[] = [
  { name: 'seq', label: 'Number', kind: 'code' },
  { name: 'hash', label: 'Hash', kind: 'code' },
  { name: 'previous_hash', label: 'Previous hash', kind: 'code' },
];

function chainSection({ seq, hash, previous_hash }: StoredEntry): AdminSection {
  return { kind: 'facts', title: 'Place in the chain', columns: CHAIN, values: { seq: String(seq), hash, previous_hash } };
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
async function timeline(context: AdminContext, { type, id }: AdminTarget, origin: readonly string[]): Promise<AdminTimeline> {
  const filters = { target_type: type, target_id: id };
  await sealBeforeReading(context.db);
  const own = await newestEntriesOf(context.db, filters, TIMELINE_MAX);
  const requests = [...new Set([...origin, ...own.flatMap(({ request_id }) => request_id ?? [])])];
  const besides = (await entriesOfRequests(context.db, requests, BESIDES_MAX)).filter(({ target_type }) => target_type !== type);
  const targets = [...own, ...besides].map(targetOf);
  const sights = await sightsOf(context, targets);
  const seen = [...own, ...besides.filter((entry) => isSeen(entry, sights))];
  // A key is called by its name; a session says nothing besides the user.
  const keys = seen.flatMap(({ actor_scheme: type, credential_id: credential }) =>
    type === null || credential === null ? [] : [{ type, id: credential }],
  );
  const names = await namesFor(context, [...seen.map(targetOf), ...keys]);
  const entries = await Promise.all(
    seen.map((entry) => timelineEntry(context, entry, { names, sights, isOwn: entry.target_type === type })),
  );
  return { entries, more: { resource: LIST, filters } };
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
  const rows = changeRows(context, { changes, references, names: referred });
  const title = isOwn ? actionLabel(action) : `${actionLabel(action)}: ${names.get(nameKey(targetOf(entry))) ?? target_id}`;
  return {
    at: entry.at.toISOString(),
    title,
    tone: 'neutral',
    ...(actor_name === null ? {} : { actor: actor_name }),
    ...viaOf(context, entry, names),
    ...(isOwn ? {} : { aside: true }),
    ...(request_id === null ? {} : { request_id }),
    link: { resource: LIST, id: entry.id, text: 'Audit entry' },
    ...(rows.length === 0 ? {} : { changes: rows.map((row, index) => restorable(row, changes[index] as Change)) }),
  };
}

/** `API key ci`, where the app has a list of such credentials. */
function viaOf({ linkTo }: AdminContext, { actor_scheme: type, credential_id: id }: StoredEntry, names: Names): { readonly via?: string } {
  if (type === null || id === null || linkTo(type, id) === null) return {};
  return { via: `${actionLabel(type)} ${names.get(nameKey({ type, id })) ?? id}` };
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
