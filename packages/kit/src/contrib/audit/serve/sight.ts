import type { App } from '../../../app/declare/module.ts';
import type { CrudCaller } from '../../../crud/declare/crud-caller.ts';
import { STAFF } from '../../../crud/declare/resource.ts';
import { resourceOfTarget } from '../../../crud/staff/admin-access.ts';
import { recordSight, type RecordSight } from '../../../crud/staff/record-sight.ts';
import type { Db } from '../../../db/engine/db.ts';
import { isMembers } from '../../../options/value-rule.ts';
import { recordingApps } from '../chain/recording-apps.ts';

export interface EntryTarget {
  readonly target_type: string;
  readonly target_id: string;
}

/** What a reader may know of the record of an entry. */
export interface EntrySight {
  readonly isHidden: boolean;
  /** `before` or `after`, with the fields that the reader sees. */
  readonly fields: (state: unknown) => unknown;
}

const HIDDEN: EntrySight = { isHidden: true, fields: () => null };
const WHOLE: EntrySight = { isHidden: false, fields: (state) => state };
const NOTHING: RecordSight = { ids: new Set(), shows: () => false };

type Sights = ReadonlyMap<string, RecordSight | null>;

const known = new WeakMap<CrudCaller, Map<string, Promise<Sights>>>();

/** One per entry. The records of a page are looked for once, however many fields are shown. */
export async function sightsOf(
  entries: readonly EntryTarget[],
  { db, caller }: { readonly db: Db; readonly caller: CrudCaller },
): Promise<EntrySight[]> {
  let ofCaller = known.get(caller);
  if (ofCaller === undefined) known.set(caller, (ofCaller = new Map()));
  const page = JSON.stringify(entries.map(({ target_type: type, target_id: id }) => [type, id]));
  let asked = ofCaller.get(page);
  if (asked === undefined) ofCaller.set(page, (asked = sightsByType(recordingApps.of(db), caller, entries)));
  const sights = await asked;
  return entries.map(({ target_type: type, target_id: id }) => {
    const sight = sights.get(type) ?? null;
    if (sight === null) return WHOLE;
    return sight.ids.has(id) ? { isHidden: false, fields: (state) => shownFields(state, sight) } : HIDDEN;
  });
}

async function sightsByType(app: App, caller: CrudCaller, entries: readonly EntryTarget[]): Promise<Sights> {
  const sights = new Map<string, RecordSight | null>();
  for (const [type, some] of Map.groupBy(entries, ({ target_type: each }) => each))
    sights.set(type, await sightOf(app, caller, type, [...new Set(some.map(({ target_id: id }) => id))]));
  return sights;
}

/** Null: nothing limits it. */
async function sightOf(app: App, caller: CrudCaller, targetType: string, ids: readonly string[]): Promise<RecordSight | null> {
  const { user, principal, tenant, services, audience } = caller;
  const reader = { user, tenant, services, ...(principal === null ? {} : { principal }) };
  // A member of a tenant knows the records that it sees itself, and nothing of what has no resource.
  const resource = resourceOfTarget(app, targetType, audience === STAFF ? STAFF : null);
  if (audience !== STAFF) return resource === undefined ? NOTHING : recordSight(app, resource, reader, ids, null);
  const list = app.modules.flatMap(({ admin }) => admin?.resources ?? []).find(({ name, auditedAs }) => (auditedAs ?? name) === targetType);
  // A module has a list of its own for these records. One that does not show every record to all staff is for superusers here.
  if (resource === undefined || (resource.options.audiences?.[STAFF] === undefined && list !== undefined && list.shows !== resource))
    return list?.isRestricted === true && caller.user?.is_superuser !== true ? NOTHING : null;
  return recordSight(app, resource, reader, ids);
}

function shownFields(state: unknown, { shows }: RecordSight): unknown {
  if (!isMembers(state)) return state;
  return Object.fromEntries(Object.entries(state).filter(([name]) => shows(name)));
}
