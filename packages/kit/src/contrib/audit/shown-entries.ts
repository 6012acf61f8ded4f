import type { App } from '../../app/declare/module.ts';
import { resourceOfTarget } from '../../crud/staff/admin-access.ts';
import type { ProgramCaller } from '../../crud/serve/crud-of.ts';
import { STAFF } from '../../crud/declare/resource.ts';
import { recordSight, type RecordSight } from '../../crud/staff/record-sight.ts';
import type { EntryRecord } from './schemas.ts';
import type { StoredEntry } from './store.ts';

const NOTHING: RecordSight = { ids: new Set(), shows: () => false };

/**
 * Entries as this reader may see them. That something was done is shown to all staff; its values only where the resource of the record shows the
 * record to the reader, and only the columns that it shows.
 */
export async function shownEntries(app: App, caller: ProgramCaller, entries: readonly StoredEntry[]): Promise<EntryRecord[]> {
  const sights = new Map<string, RecordSight | null>();
  for (const [type, some] of Map.groupBy(entries, ({ target_type: targetType }) => targetType)) {
    const ids = [...new Set(some.map(({ target_id: id }) => id))];
    sights.set(type, await sightOf(app, caller, type, ids));
  }
  return entries.map((entry) => shown(entry, sights.get(entry.target_type) ?? null));
}

/** Null: nothing limits it. */
async function sightOf(app: App, caller: ProgramCaller, targetType: string, ids: readonly string[]): Promise<RecordSight | null> {
  const resource = resourceOfTarget(app, targetType);
  const list = app.modules.flatMap(({ admin }) => admin?.resources ?? []).find(({ name, auditedAs }) => (auditedAs ?? name) === targetType);
  // A module has a list of its own for these records. One that does not show every record to all staff is for superusers here.
  if (resource === undefined || (resource.options.audiences?.[STAFF] === undefined && list !== undefined && list.shows !== resource))
    return list?.isRestricted === true && caller.user?.is_superuser !== true ? NOTHING : null;
  return recordSight(app, resource, caller, ids);
}

function shown({ content_hash: _content, previous_hash: _previous, seq, ...entry }: StoredEntry, sight: RecordSight | null): EntryRecord {
  const record = { ...entry, seq: String(seq), values_hidden: false };
  if (sight === null) return record;
  if (!sight.ids.has(entry.target_id)) return { ...record, before: null, after: null, metadata: null, values_hidden: true };
  return { ...record, before: shownFields(entry.before, sight), after: shownFields(entry.after, sight) };
}

function shownFields(state: unknown, { shows }: RecordSight): unknown {
  if (typeof state !== 'object' || state === null || Array.isArray(state)) return state;
  return Object.fromEntries(Object.entries(state).filter(([name]) => shows(name)));
}
