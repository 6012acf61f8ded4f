import { idempotency } from '../../db/migrations/core/models.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Dialect } from '../../db/dialect.ts';
import { sendStatement } from '../../db/engine/handle.ts';
import { statementsOf } from '../../db/sql/model-statements.ts';
import type { Row } from '../../db/declare/rows.ts';
import { assertStorableJson } from '../../db/values/storable-text.ts';
import { timestampText } from '../../db/values/timestamp.ts';

export type IdempotencyRecord = Row<typeof idempotency>;

/** How long a claim holds without being prolonged. */
export const LEASE_MS = 60_000;
/** How long a record is kept. */
export const KEPT_MS = 24 * 3_600_000;

/** A request with a key. */
export interface KeyedRequest {
  readonly scopeHash: string;
  readonly key: string;
  readonly caller: string;
  readonly operation: string;
  readonly fingerprint: string;
}

/** A request that wants to run. */
export interface Claim extends KeyedRequest {
  /** A UUID, new with every attempt: one that lost its claim cannot complete. */
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

/** A time as the columns have it. */
function textIn(now: Date, ms: number): string {
  return timestampText(new Date(now.getTime() + ms));
}

function headersText(headers: KeptAnswer['headers']): string {
  return assertStorableJson(JSON.stringify(headers));
}

/**
 * Claims a free key, or finds the record of one that is taken, which costs no write: nothing is locked and nothing waits for the disk. Undefined:
 * neither, because another request claimed or released the key at the same time.
 */
export async function claimOrFind(db: Db, claim: Claim): Promise<Found> {
  if (db.dialect === 'postgres') return foundIn(await db.query<FoundRow>(CLAIM_OR_FIND, claimValues(db, claim), PIPELINED));
  if ((await db.execute(CLAIM_NEW, claimValues(db, claim))).count > 0) return 'claimed';
  return findRecord(db, claim);
}

export async function findRecord(db: Db, { scopeHash }: Claim): Promise<FoundRecord | undefined> {
  const [record] = await db.query<FoundRecord>(FIND, [scopeHash, db.clock.now()], PIPELINED);
  return record;
}

export function isExpired({ is_expired: expired }: FoundRecord): boolean {
  return expired === true || expired === 1;
}

/** What a later request with the same key needs to know. The database compares the times: most records are complete, and reading two dates takes 4 µs. */
export interface FoundRecord extends Pick<IdempotencyRecord, 'fingerprint' | 'state' | 'status' | 'headers' | 'body' | 'audience'> {
  readonly is_expired: boolean | 0 | 1;
  /** Null unless it is running; as SQLite has it, a text. */
  readonly lease_until: Date | string | null;
}
type Found = 'claimed' | FoundRecord | undefined;

/** Without a fingerprint: claimed. */
type FoundRow = FoundRecord | { readonly fingerprint: null };

function foundIn([row]: FoundRow[]): Found {
  return row === undefined || row.fingerprint !== null ? row : 'claimed';
}

const find = (now: string): string =>
  `select fingerprint, state, status, headers, body, audience, expires_at <= ${now} as is_expired, ` +
  `case state when 'running' then lease_until end as lease_until from kit_idempotency where scope_hash = $1`;
const FIND = find('$2');

/**
 * Takes over what is expired, or whose worker is gone (its lease ended) and then with the same fingerprint only. Two at once: the row is locked
 * by the first, and the second sees what it wrote. False: another request has the key.
 */
export async function claimKey(db: Db, claim: Claim): Promise<boolean> {
  return (await db.query(CLAIM_ABANDONED[db.dialect], claimValues(db, claim))).length > 0;
}

const CLAIM_COLUMNS = 'scope_hash, key, caller, operation, fingerprint, token, lease_until, created_at, expires_at';
const CLAIM =
  `insert into kit_idempotency (${CLAIM_COLUMNS}, state) ` +
  `values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'running') on conflict (scope_hash)`;

/** On SQLite a record that is taken over moves to the end of the order in which records are removed. */
const MOVED: Readonly<Record<Dialect, string>> = { postgres: '', sqlite: 'rowid = (select max(rowid) + 1 from kit_idempotency), ' };

/** The new record instead of one that is expired or whose worker is gone. Its `created_at` is the time of the attempt. */
const takeOver = (dialect: Dialect): string =>
  `do update set ${MOVED[dialect]}key = excluded.key, caller = excluded.caller, operation = excluded.operation, ` +
  `fingerprint = excluded.fingerprint, token = excluded.token, state = excluded.state, lease_until = excluded.lease_until, ` +
  `created_at = excluded.created_at, expires_at = excluded.expires_at, ` +
  `status = excluded.status, headers = excluded.headers, body = excluded.body, audience = excluded.audience ` +
  `where kit_idempotency.expires_at <= excluded.created_at or (kit_idempotency.state = 'running' ` +
  `and kit_idempotency.lease_until <= excluded.created_at and kit_idempotency.fingerprint = excluded.fingerprint)`;

/**
 * On PostgreSQL the commit of a claim does not wait for the disk (241 instead of 672 µs for a claim, measured one after another), nor for a
 * standby. The change and its outcome are committed after it, in the same log, and that commit waits as the server is set up: wherever it
 * has arrived, so has the claim. After a loss of power without them the key is free, and nothing was done under it.
 */
const CLAIMED: Readonly<Record<Dialect, string>> = { postgres: `set_config('synchronous_commit', 'off', true)`, sqlite: 'token' };

const claimAbandoned = (dialect: Dialect): string => `${CLAIM} ${takeOver(dialect)} returning ${CLAIMED[dialect]}`;
const CLAIM_ABANDONED: Readonly<Record<Dialect, string>> = { postgres: claimAbandoned('postgres'), sqlite: claimAbandoned('sqlite') };

const CLAIM_NEW = `${CLAIM} do nothing`;
// One round trip for a new key and for a replay. The record is looked up only when nothing was claimed.
const CLAIM_OR_FIND = `with claimed as (${CLAIM} do nothing returning ${CLAIMED.postgres})
${find('$8')} and not exists (select 1 from claimed)
union all select null, null, null, null, null, null, null, null from claimed`;
/** A lookup waits for nothing, a claim for no more than the commit of another request with the same key: they may share a connection with others. */
const PIPELINED = { pipelined: true } as const;

/** In the order of `CLAIM_COLUMNS`. */
function claimValues({ clock }: Db, { scopeHash, key, caller, operation, fingerprint, token }: Claim): unknown[] {
  const now = clock.now();
  return [scopeHash, key, caller, operation, fingerprint, token, textIn(now, LEASE_MS), timestampText(now), textIn(now, KEPT_MS)];
}

/** Whether a record may be taken over; the statement that does it decides. */
export function isAbandoned({ clock }: Db, record: FoundRecord, { fingerprint }: KeyedRequest): boolean {
  if (isExpired(record)) return true;
  return record.lease_until !== null && new Date(record.lease_until) <= clock.now() && record.fingerprint === fingerprint;
}

const COMPLETE =
  `update kit_idempotency set state = 'complete', status = $3, headers = $4, body = $5, audience = $6 ` +
  `where scope_hash = $1 and token = $2 and state = 'running'`;

function completionValues({ scopeHash, token }: Claim, answer: KeptAnswer): unknown[] {
  const { status, headers, body, audience } = answer;
  return [scopeHash, token, status, headersText(headers), body, audience];
}

/** False: another request has the claim by now. */
export async function completeClaim(db: Db, claim: Claim, answer: KeptAnswer): Promise<boolean> {
  return (await db.execute(COMPLETE, completionValues(claim, answer))).count === 1;
}

/** A statement that fails when it changed no row, so that PostgreSQL turns the commit that follows it into a rollback. */
const orFail = (text: string): string => `with changed as (${text} returning 1)\nselect 1 / count(*) as one from changed`;
const COMPLETE_OR_FAIL = orFail(COMPLETE);
const DIVISION_BY_ZERO = '22012';

/**
 * As the last statement in the transaction of the change. When another request has the claim by now, this one or the commit fails with `lost`, and
 * nothing is saved. On PostgreSQL it goes out with the commit.
 */
export async function completeInTransaction(tx: Db, claim: Claim, answer: KeptAnswer, lost: () => Error): Promise<void> {
  if (tx.dialect === 'postgres') {
    const failureOf = (error: unknown): unknown => ((error as { code?: unknown }).code === DIVISION_BY_ZERO ? lost() : error);
    await sendStatement(tx, COMPLETE_OR_FAIL, completionValues(claim, answer), { failureOf });
  } else if (!(await completeClaim(tx, claim, answer))) throw lost();
}

/** The key is free again. */
export async function releaseClaim(db: Db, { scopeHash, token }: Claim): Promise<void> {
  await db.execute(`delete from kit_idempotency where scope_hash = $1 and token = $2 and state = 'running'`, [scopeHash, token]);
}

export async function prolongClaim(db: Db, { scopeHash, token }: Claim): Promise<void> {
  await db.execute(`update kit_idempotency set lease_until = $3 where scope_hash = $1 and token = $2 and state = 'running'`, [
    scopeHash,
    token,
    textIn(db.clock.now(), LEASE_MS),
  ]);
}

export interface RecordFilter {
  readonly key?: string | undefined;
  readonly state?: 'running' | 'complete' | undefined;
  /** What `scope_hash` begins with: lowercase hexadecimal digits. */
  readonly idStart?: string | undefined;
}

/** Newest first. */
export async function listRecords(db: Db, { key, state, idStart }: RecordFilter, limit: number): Promise<IdempotencyRecord[]> {
  const parameters: unknown[] = [];
  const terms = [
    ...(key === undefined ? [] : [`key = $${parameters.push(key)}`]),
    ...(state === undefined ? [] : [`state = $${parameters.push(state)}`]),
    ...(idStart === undefined ? [] : [`substr(scope_hash, 1, ${idStart.length}) = $${parameters.push(idStart)}`]),
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
export function pruneRecords(db: Db): Promise<number> {
  return db.dialect === 'postgres' ? pruneByExpiry(db) : pruneInOrder(db);
}

async function pruneByExpiry(db: Db): Promise<number> {
  for (let removed = 0; ;) {
    const { count } = await db.execute(
      `delete from kit_idempotency where scope_hash in (select scope_hash from kit_idempotency where expires_at <= $1 order by expires_at limit ${PRUNE_ROWS} for update skip locked)`,
      [db.clock.now()],
    );
    removed += count;
    if (count < PRUNE_ROWS) return removed;
  }
}

/** Of SQLite: what it reads and removes at once, during which the event loop stands still. */
const PRUNE_ROWS_IN_ORDER = 200;

/**
 * SQLite has no index on the expiry. Records are in the order of their claims, and kept for the same time: after one that is valid all are. Those of
 * a clock that was ahead are passed over.
 */
async function pruneInOrder(db: Db): Promise<number> {
  const now = db.clock.now();
  for (let removed = 0, after = 0; ;) {
    const records = await db.query<{ readonly id: number; readonly expired: number; readonly ahead: number }>(
      'select rowid as id, expires_at <= $1 as expired, created_at > $1 as ahead from kit_idempotency ' +
        `where rowid > $2 order by rowid limit ${PRUNE_ROWS_IN_ORDER}`,
      [now, after],
    );
    const last = records.at(-1)?.id;
    if (last === undefined) return removed;
    if (records.some(({ expired }) => expired === 1)) {
      const { count } = await db.execute('delete from kit_idempotency where rowid > $1 and rowid <= $2 and expires_at <= $3', [
        after,
        last,
        now,
      ]);
      removed += count;
    }
    if (records.some(({ expired, ahead }) => expired === 0 && ahead === 0)) return removed;
    after = last;
  }
}
