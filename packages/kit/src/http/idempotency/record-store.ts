import { idempotency } from '../../db/core/models.ts';
import type { Db } from '../../db/db.ts';
import type { Dialect } from '../../db/dialect.ts';
import { statementsOf } from '../../db/model-statements.ts';
import type { Row } from '../../db/rows.ts';

export type IdempotencyRecord = Row<typeof idempotency>;

/** How long a claim holds without being prolonged. */
export const LEASE_MS = 60_000;
/** How long a record is kept. */
export const KEPT_MS = 24 * 3_600_000;

/** A request that wants to run. */
export interface Claim {
  readonly scopeHash: string;
  readonly key: string;
  readonly caller: string;
  readonly operation: string;
  readonly fingerprint: string;
  /** New with every attempt: one that lost its claim cannot complete. */
  readonly token: string;
}

/** What is kept of an answer. */
export interface KeptAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Null: not kept. */
  readonly body: Uint8Array | null;
  readonly audience: string;
}

const { list } = statementsOf(idempotency);
const column = (name: string) => statementsOf(idempotency).column(name);
const encoded = (name: string, value: unknown) => column(name).encode(value);

/** Claims a free key. A key that is taken costs no write: nothing is locked and nothing waits for the disk. */
export async function claimNewKey(db: Db, claim: Claim): Promise<boolean> {
  return (await db.query(`${CLAIM} do nothing returning ${CLAIMED[db.dialect]}`, claimValues(db, claim))).length > 0;
}

/**
 * Takes over what is expired, or whose worker is gone (its lease ended) and then with the same fingerprint only. Two at once: the row is locked
 * by the first, and the second sees what it wrote. False: another request has the key.
 */
export async function claimKey(db: Db, claim: Claim): Promise<boolean> {
  const text =
    `${CLAIM} do update set key = excluded.key, caller = excluded.caller, operation = excluded.operation, ` +
    `fingerprint = excluded.fingerprint, token = excluded.token, state = 'running', lease_until = excluded.lease_until, ` +
    `created_at = excluded.created_at, expires_at = excluded.expires_at, status = null, headers = null, body = null, audience = null ` +
    `where kit_idempotency.expires_at <= $8 or (kit_idempotency.state = 'running' and kit_idempotency.lease_until <= $8 ` +
    `and kit_idempotency.fingerprint = excluded.fingerprint) returning ${CLAIMED[db.dialect]}`;
  return (await db.query(text, claimValues(db, claim))).length > 0;
}

const CLAIM =
  `insert into kit_idempotency (scope_hash, key, caller, operation, fingerprint, token, state, lease_until, created_at, expires_at) ` +
  `values ($1, $2, $3, $4, $5, $6, 'running', $7, $8, $9) on conflict (scope_hash)`;

/**
 * On PostgreSQL the commit of a claim does not wait for the disk. The change and its outcome are committed after it, in the same log: whenever
 * they are on disk, so is the claim. After a loss of power without them the key is free, and nothing was done under it.
 */
const CLAIMED: Readonly<Record<Dialect, string>> = { postgres: `set_config('synchronous_commit', 'off', true)`, sqlite: 'token' };

function claimValues({ clock }: Db, claim: Claim): unknown[] {
  const now = clock.now();
  return [
    claim.scopeHash,
    claim.key,
    claim.caller,
    claim.operation,
    claim.fingerprint,
    encoded('token', claim.token),
    encoded('lease_until', new Date(now.getTime() + LEASE_MS)),
    encoded('created_at', now),
    encoded('expires_at', new Date(now.getTime() + KEPT_MS)),
  ];
}

/** Whether a record may be taken over; the statement that does it decides. */
export function isAbandoned({ clock }: Db, { expires_at, state, lease_until, fingerprint }: IdempotencyRecord, claim: Claim): boolean {
  const now = clock.now();
  return expires_at <= now || (state === 'running' && lease_until <= now && fingerprint === claim.fingerprint);
}

export async function findRecord(db: Db, scopeHash: string): Promise<IdempotencyRecord | undefined> {
  const [record] = await db.query<IdempotencyRecord>(`select ${list} from kit_idempotency where scope_hash = $1`, [scopeHash]);
  return record;
}

/** Written in the transaction of the change. False: another request has the claim by now. */
export async function completeClaim(db: Db, { scopeHash, token }: Claim, answer: KeptAnswer): Promise<boolean> {
  const { count } = await db.execute(
    `update kit_idempotency set state = 'complete', status = $3, headers = $4, body = $5, audience = $6 ` +
      `where scope_hash = $1 and token = $2 and state = 'running'`,
    [scopeHash, encoded('token', token), answer.status, encoded('headers', answer.headers), encoded('body', answer.body), answer.audience],
  );
  return count === 1;
}

/** The key is free again. */
export async function releaseClaim(db: Db, { scopeHash, token }: Claim): Promise<void> {
  await db.execute(`delete from kit_idempotency where scope_hash = $1 and token = $2 and state = 'running'`, [
    scopeHash,
    encoded('token', token),
  ]);
}

export async function prolongClaim(db: Db, { scopeHash, token }: Claim): Promise<void> {
  const until = new Date(db.clock.now().getTime() + LEASE_MS);
  await db.execute(`update kit_idempotency set lease_until = $3 where scope_hash = $1 and token = $2 and state = 'running'`, [
    scopeHash,
    encoded('token', token),
    encoded('lease_until', until),
  ]);
}

export interface RecordFilter {
  readonly key?: string | undefined;
  readonly state?: 'running' | 'complete' | undefined;
}

/** Newest first. */
export async function listRecords(db: Db, { key, state }: RecordFilter, limit: number): Promise<IdempotencyRecord[]> {
  const parameters: unknown[] = [];
  const terms = [
    ...(key === undefined ? [] : [`key = $${parameters.push(key)}`]),
    ...(state === undefined ? [] : [`state = $${parameters.push(state)}`]),
  ];
  const where = terms.length === 0 ? '' : ` where ${terms.join(' and ')}`;
  return db.query(`select ${list} from kit_idempotency${where} order by created_at desc limit $${parameters.push(limit)}`, parameters);
}

/** Removes records whatever their state; a request that is running then changes nothing. */
export async function removeRecord(db: Db, scopeHash: string): Promise<boolean> {
  return (await db.execute('delete from kit_idempotency where scope_hash = $1', [scopeHash])).count > 0;
}

/** Records per statement: short ones, so that pruning never holds up requests. */
const PRUNE_ROWS = 1000;

/** Removes expired records. Returns how many there were. */
export async function pruneRecords(db: Db): Promise<number> {
  for (let removed = 0; ;) {
    const { count } = await db.execute(
      `delete from kit_idempotency where scope_hash in (select scope_hash from kit_idempotency where expires_at <= $1 order by expires_at limit ${PRUNE_ROWS})`,
      [encoded('expires_at', db.clock.now())],
    );
    removed += count;
    if (count < PRUNE_ROWS) return removed;
  }
}
