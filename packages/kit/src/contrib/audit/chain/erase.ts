import { type AuditErasure, type AuditSink, type ErasedEntries, maskedByPlace } from '../../../auth/request/audit-sink.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { policiesOf } from '../../../crud/policy/policies.ts';
import { tellErased } from '../../../crud/subjects/tell-erased.ts';
import { forgetChanges } from '../../../db/subjects/erase-rows.ts';
import { sealedEntries } from '../models.ts';
import { ERASABLE } from './chain.ts';
import { ERASED, rangesOf } from './erased-places.ts';
import { PRUNED } from './prune.ts';
import { recordingApps } from './recording-apps.ts';
import { sealWithin } from './seal.ts';
import { blankEntries, countEntries, type EntryCondition, lockChain, placesToErase } from './store.ts';

/** Entries per transaction: few enough that the sealer, which needs the same lock, does not wait long, and that one entry names them. */
const BATCH = 500;

/** See `AuditSink.erase`. */
export async function eraseEntries(db: Db, sink: AuditSink, erasure: AuditErasure): Promise<ErasedEntries> {
  let erased = 0;
  for (;;) {
    const count = await db.transaction((tx) => eraseBatch(tx, sink, erasure), CONFLICT_RETRIES);
    erased += count;
    if (count < BATCH) return { erased, kept: await countEntries(db, whoseEntries(erasure, 'first')) };
  }
}

async function eraseBatch(tx: Db, sink: AuditSink, erasure: AuditErasure): Promise<number> {
  await lockChain(tx);
  // What is not in the chain yet gets its place first: an erased entry is named by it.
  await sealWithin(tx);
  const places = await placesToErase(tx, whoseEntries(erasure, 'second'), BATCH);
  if (places.length === 0) return 0;
  await blankEntries(tx, places);
  await forgetLogged(tx, places);
  const { target_type, target_id, by } = erasure;
  await sink.record(tx, [
    { actor: by ?? null, action: ERASED, target_type, target_id, metadata: maskedByPlace({ places: rangesOf(places) }) },
  ]);
  // Not left to the sealer: no entry of the chain is blank without one that says so.
  await sealWithin(tx);
  return places.length;
}

/** Where the list is live, triggers have logged the values of the entries, those that were erased just now, too. */
async function forgetLogged(tx: Db, places: readonly bigint[]): Promise<void> {
  const app = recordingApps.find(tx);
  if (app === undefined || policiesOf(app).find(sealedEntries)?.isLogged !== true) return;
  const rows = places.map((seq) => ({ seq }));
  await forgetChanges(tx, sealedEntries, rows);
  await tellErased(app)(tx, sealedEntries, rows, ERASABLE);
}

/** Entries that can be erased (of the second format, with their values), or that cannot (of the first). */
function whoseEntries({ tenant, actorId, records }: AuditErasure, format: 'first' | 'second'): EntryCondition {
  const values: unknown[] = [ERASED, PRUNED];
  const place = (value: unknown) => `$${values.push(value)}`;
  const any: string[] = [];
  if (tenant !== undefined) any.push(`tenant_id = ${place(tenant)}`);
  if (actorId !== undefined) any.push(`actor_id = ${place(actorId)}`);
  if (records !== undefined && records.ids.length > 0)
    any.push(`target_type = ${place(records.type)} and target_id in (${records.ids.map(place).join(', ')})`);
  const state = format === 'second' ? 'salt is not null' : 'values_hash is null';
  return { text: `(${any.length === 0 ? '1 = 0' : any.join(' or ')}) and ${state} and action not in ($1, $2)`, values };
}
