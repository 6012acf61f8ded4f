import { erasedSubjects } from '../../../app/data/erased-subjects.ts';
import { exceptHeld, heldSubjects } from '../../../app/data/legal-holds.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { uuidv7LowerBound } from '../../../db/values/uuidv7.ts';
import { skipLocked } from '../../../work/lock-patience.ts';
import type { FinishedRequest } from './finished-request.ts';
import { requestLog, requestUsage } from '../models.ts';
import type { CountedRequests } from './tally.ts';

type Field<R> = readonly [column: string, type: string, value: (row: R) => unknown];

const LOG: readonly Field<FinishedRequest>[] = [
  ['id', 'uuid', ({ id }) => id],
  ['finished_at', 'timestamptz', ({ finishedAt }) => finishedAt.toISOString()],
  ['duration_ms', 'double precision', ({ durationMs }) => durationMs],
  ['method', 'text', ({ method }) => method],
  ['route', 'text', ({ route }) => route],
  ['path', 'text', ({ path }) => path],
  ['status', 'integer', ({ status }) => status],
  ['failed', 'boolean', ({ failed }) => failed],
  ['aborted', 'boolean', ({ aborted }) => aborted],
  ['error_code', 'text', ({ errorCode }) => errorCode],
  ['owner_id', 'text', ({ owner }) => owner],
  ['tenant_key', 'text', ({ tenant }) => tenant],
  ['scheme', 'text', ({ scheme }) => scheme],
  ['key_id', 'text', ({ keyId }) => keyId],
  ['request_id', 'text', ({ requestId }) => requestId],
  ['version', 'text', ({ version }) => version],
  ['deprecated', 'boolean', ({ deprecated }) => deprecated],
  ['via', 'text', ({ via }) => via],
];

const USAGE: readonly Field<CountedRequests>[] = [
  ['id', 'uuid', ({ id }) => id],
  ['day', 'date', ({ day }) => day],
  ['method', 'text', ({ method }) => method],
  ['route', 'text', ({ route }) => route],
  ['version', 'text', ({ version }) => version],
  ['deprecated', 'boolean', ({ deprecated }) => deprecated],
  ['via', 'text', ({ via }) => via],
  ['owner_id', 'text', ({ owner }) => owner],
  ['tenant_key', 'text', ({ tenant }) => tenant],
  ['key_id', 'text', ({ keyId }) => keyId],
  ['requests', 'bigint', ({ requests }) => requests],
  ['failures', 'bigint', ({ failures }) => failures],
];

/** One statement for any number of rows, with one text: PostgreSQL plans it once. */
function insertOf(table: string, fields: readonly Field<never>[], end: string) {
  const columns = fields.map(([column]) => column).join(', ');
  return {
    postgres: `insert into ${table} (${columns}) select * from unnest(${fields.map(([, type], index) => `cast($${index + 1} as ${type}[])`).join(', ')}) ${end}`,
    sqlite: `insert into ${table} (${columns}) select ${fields.map((_, index) => `value ->> ${index}`).join(', ')} from json_each($1) where true ${end}`,
  } as const;
}

const INSERT_LOG = insertOf('request_log', LOG, '').postgres;
/** SQLite takes values of a row 1.8 times as fast as out of a document, and each of its calls costs next to nothing. */
const INSERT_ROW = `insert into request_log (${LOG.map(([column]) => column).join(', ')}) values (${LOG.map((_, index) => `$${index + 1}`).join(', ')})`;
const ADD_USAGE = insertOf(
  'request_usage',
  USAGE,
  'on conflict (id) do update set requests = request_usage.requests + excluded.requests, failures = request_usage.failures + excluded.failures',
);

function valuesOf<R>(db: Db, fields: readonly Field<R>[], rows: readonly R[]): readonly unknown[] {
  if (db.dialect === 'postgres') return fields.map(([, , value]) => rows.map(value));
  return [JSON.stringify(rows.map((row) => fields.map(([, , value]) => value(row))))];
}

/**
 * Both or neither: a batch that is written again after an error is not counted twice. Of people and tenants who were erased while it waited, it leaves what the
 * erasure left of the rows before: no row, of a person counts of nobody, and of a tenant none.
 */
export async function writeRequests(db: Db, finished: readonly FinishedRequest[], counts: readonly CountedRequests[]): Promise<void> {
  const all = [...finished, ...counts];
  const ids = { person: named(all.map(({ owner }) => owner)), tenant: named(all.map(({ tenant }) => tenant)) };
  await db.transaction(async (tx) => {
    // The lock that the rows take anyway, before the question: whoever is not erased yet is erased after this transaction.
    if (tx.dialect === 'postgres') await tx.query('lock table request_log, request_usage in row exclusive mode');
    const isErased = await erasedSubjects(tx, ids);
    const rows = finished.filter(({ owner, tenant, finishedAt: at }) => !isErased('person', owner, at) && !isErased('tenant', tenant, at));
    const kept = counts
      .filter(({ tenant, since }) => !isErased('tenant', tenant, since))
      .map((count) => (isErased('person', count.owner, count.since) ? nobodys(count) : count));
    await insertRows(tx, rows);
    // In the order of their keys, so that two processes wait for one another instead of failing.
    const ordered = kept.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    if (ordered.length > 0) await tx.query(ADD_USAGE[tx.dialect], valuesOf(tx, USAGE, ordered));
  }, CONFLICT_RETRIES);
}

function nobodys(count: CountedRequests): CountedRequests {
  return { ...count, owner: '' };
}

function named(ids: readonly string[]): string[] {
  return [...new Set(ids)].filter((id) => id !== '');
}

async function insertRows(tx: Db, rows: readonly FinishedRequest[]): Promise<void> {
  if (tx.dialect === 'sqlite')
    for (const row of rows)
      await tx.execute(
        INSERT_ROW,
        LOG.map(([, , value]) => value(row)),
      );
  else if (rows.length > 0) await tx.query(INSERT_LOG, valuesOf(tx, LOG, rows));
}

/** Rows that one statement removes. */
const BATCH = 2000;

/** Removes a batch of rows from before these times; returns how many. Those of people and tenants under a legal hold stay. */
export async function removeOld(db: Db, rowsBefore: Date, usageBefore: Date): Promise<number> {
  const skip = skipLocked(db);
  const holds = await heldSubjects(db);
  const old: unknown[] = [uuidv7LowerBound(rowsBefore)];
  const used: unknown[] = [usageBefore.toISOString().slice(0, 10)];
  const rows = await db.execute(
    `delete from request_log where id in (select id from request_log where id < $1${exceptHeld(holds, requestLog, 'request_log', old)} order by id limit ${BATCH}${skip})`,
    old,
  );
  const usage = await db.execute(
    `delete from request_usage where id in (select id from request_usage where day < $1${exceptHeld(holds, requestUsage, 'request_usage', used)} order by day, id limit ${BATCH}${skip})`,
    used,
  );
  return rows.count + usage.count;
}
