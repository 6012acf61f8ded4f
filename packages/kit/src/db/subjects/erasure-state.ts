import type { Row } from '../declare/rows.ts';
import { CONFLICT_RETRIES } from '../engine/conflict-retries.ts';
import type { Db } from '../engine/db.ts';
import { find, findBy, insert, list, remove, update } from '../rows/repository.ts';
import { erasures, type legalHolds as holdModel, legalHolds, SUBJECT_KINDS } from './models.ts';
import type { Erasing } from '../declare/personal-column.ts';
import type { Subject } from './subject.ts';

export type Erasure = Row<typeof erasures>;
export type LegalHold = Row<typeof holdModel>;

const OPEN = { state: { in: ['waiting', 'running'] as const } } as const;

/** The erasure of a person or tenant that is not finished. */
export async function openErasure(db: Db, { kind, id }: Subject): Promise<Erasure | undefined> {
  return findBy(db, erasures, { kind, subject_id: id, ...OPEN });
}

/** When each of the ids was erased last; null: it is being erased. A legal hold stops an erasure that has begun. */
export async function endsOfErasures(db: Db, kind: Subject['kind'], ids: readonly string[]): Promise<ReadonlyMap<string, Date | null>> {
  if (ids.length === 0) return new Map();
  const found = await list(db, erasures, { where: { kind, subject_id: { in: ids }, state: { in: ['running', 'finished'] } } });
  const running = found.filter(({ state }) => state === 'running').map(({ subject_id: id }) => id);
  const holds = running.length === 0 ? [] : await list(db, legalHolds, { where: { kind, subject_id: { in: running } } });
  const held = new Set(holds.map(({ subject_id: id }) => id));
  const ends = new Map<string, Date | null>();
  for (const { subject_id: id, finished_at: at } of found.toSorted((a, b) => (a.id < b.id ? -1 : 1)))
    if (at !== null || !held.has(id)) ends.set(id, at);
  return ends;
}

/** The newest erasures first. */
export async function listErasures(db: Db, limit: number): Promise<Erasure[]> {
  return list(db, erasures, { orderBy: ['-id'], limit });
}

/** Those whose time has come, without those that a legal hold keeps or that failed a short time ago: they must not stand before the others. */
export async function dueErasures(db: Db, kind: Subject['kind'], limit: number): Promise<Erasure[]> {
  const now = db.clock.now();
  const found = await db.query<{ id: string }>(
    `select e.id from kit_erasures e where e.kind = $1 and ${OPEN_SQL} and e.due_at <= $2 and (e.retry_at is null or e.retry_at <= $2) and not ${OWN_HOLD_SQL}` +
      ` order by e.due_at, e.id limit ${limit}`,
    [kind, now],
  );
  return list(db, erasures, { where: { id: { in: found.map(({ id }) => id) } }, orderBy: ['due_at', 'id'] });
}

const RETRY_MS = 60_000;
const RETRY_MS_MAX = 6 * 3_600_000;
const ERROR_LENGTH_MAX = 500;

/** It is tried again later, and each time a while later. */
export async function noteFailure(db: Db, id: string, error: unknown): Promise<void> {
  await db.transaction(async (tx) => {
    const erasure = await find(tx, erasures, id, { lock: true });
    if (erasure === undefined || erasure.state === 'finished' || erasure.state === 'cancelled') return;
    const failures = erasure.failures + 1;
    const waitMs = Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** Math.min(failures - 1, 20));
    const last_error = (error instanceof Error ? error.message : String(error)).slice(0, ERROR_LENGTH_MAX);
    await update(tx, erasures, id, { failures, retry_at: new Date(tx.clock.now().getTime() + waitMs), last_error });
  }, CONFLICT_RETRIES);
}

const KEPT_RETRY_MS = 3_600_000;

/** It did what a legal hold of another person or tenant leaves, which is no failure. It is tried again when a hold ends, and now and then. */
export async function noteKept(tx: Db, id: string, tables: readonly string[]): Promise<void> {
  const last_error = `A legal hold of another person or tenant keeps rows of ${tables.join(', ')}.`.slice(0, ERROR_LENGTH_MAX);
  await update(tx, erasures, id, { failures: 0, retry_at: new Date(tx.clock.now().getTime() + KEPT_RETRY_MS), last_error });
}

const OPEN_SQL = `e.state <> 'finished' and e.state <> 'cancelled'`;
/** As `noteKept` leaves it. */
const KEPT_SQL = 'e.failures = 0 and e.last_error is not null';
const OWN_HOLD_SQL = 'exists (select 1 from kit_legal_holds h where h.kind = e.kind and h.subject_id = e.subject_id)';

export interface ErasureTotals {
  readonly kind: Subject['kind'];
  /** The last attempt failed, and the next one may as well. */
  readonly failing: number;
  /** Their time has come, and a legal hold stops them, or keeps some of their rows. */
  readonly held: number;
}

/** How many erasures do not end, by kind. */
export async function countErasures(db: Db): Promise<readonly ErasureTotals[]> {
  const found = await db.query<{ kind: string; failing: number | bigint; held: number | bigint }>(
    `select kind, sum(case when is_held = 0 and failures > 0 then 1 else 0 end) as failing, sum(case when is_held = 1 and due_at <= $1 then 1 else 0 end) as held` +
      ` from (select e.kind, e.failures, e.due_at, case when ${OWN_HOLD_SQL} or (${KEPT_SQL}) then 1 else 0 end as is_held` +
      ` from kit_erasures e where ${OPEN_SQL}) open group by kind`,
    [db.clock.now()],
  );
  return SUBJECT_KINDS.map((kind) => {
    const { failing, held } = found.find((each) => each.kind === kind) ?? { failing: 0, held: 0 };
    return { kind, failing: Number(failing), held: Number(held) };
  });
}

/** Whether a legal hold stops an erasure, or keeps some of the rows. */
export function isHeld({ kind, subject_id: id, state, failures, last_error: error }: Erasure, holds: readonly LegalHold[]): boolean {
  if (state === 'finished' || state === 'cancelled') return false;
  return (failures === 0 && error !== null) || holds.some((hold) => hold.kind === kind && hold.subject_id === id);
}

/** A batch was done. */
export const NO_FAILURE = { failures: 0, retry_at: null, last_error: null } as const;

export async function findErasure(db: Db, id: string): Promise<Erasure | undefined> {
  return find(db, erasures, id);
}

export interface ErasureRequest {
  readonly dueAt: Date;
  /** A user's id, or the name of a program. */
  readonly by: string | null;
}

/** Asks for an erasure, in a transaction. One that is already asked for stays as it is. */
export async function requestErasure(tx: Db, subject: Subject, { dueAt, by }: ErasureRequest): Promise<Erasure> {
  const known = await openErasure(tx, subject);
  if (known !== undefined) return known;
  return insert(tx, erasures, {
    kind: subject.kind,
    subject_id: subject.id,
    state: 'waiting',
    requested_at: tx.clock.now(),
    requested_by: by,
    due_at: dueAt,
    pass_rows: 0n,
    counts: {},
  });
}

/** False where there is none, or it has begun: what is gone does not come back. */
export async function cancelErasure(tx: Db, subject: Subject): Promise<boolean> {
  const known = await openErasure(tx, subject);
  if (known === undefined) return false;
  const locked = await find(tx, erasures, known.id, { lock: true });
  if (locked?.state !== 'waiting') return false;
  await update(tx, erasures, known.id, { state: 'cancelled', finished_at: tx.clock.now() });
  return true;
}

/** What a batch did. */
export interface StepDone {
  readonly table: string;
  readonly erasing: Erasing;
  readonly rows: number;
  readonly step: string;
  /** The key of the last row, as JSON; null: the step is done. */
  readonly position: string | null;
}

export function counted({ counts }: Pick<Erasure, 'counts'>, { table, erasing, rows }: StepDone): Erasure['counts'] {
  if (rows === 0) return counts;
  const known = counts[table] ?? {};
  return { ...counts, [table]: { ...known, [erasing]: (known[erasing] ?? 0) + rows } };
}

/** The hold that keeps the rows of a person or tenant as they are. */
export async function legalHoldOf(db: Db, { kind, id }: Subject): Promise<LegalHold | undefined> {
  return find(db, legalHolds, { kind, subject_id: id });
}

export async function listLegalHolds(db: Db): Promise<LegalHold[]> {
  return list(db, legalHolds, { orderBy: ['kind', 'subject_id'] });
}

/** Keeps the rows of a person or tenant as they are, until it is released. */
export async function setLegalHold(
  tx: Db,
  { kind, id }: Subject,
  hold: { readonly reason: string; readonly by: string | null },
): Promise<void> {
  const values = { reason: hold.reason, held_by: hold.by };
  if ((await update(tx, legalHolds, { kind, subject_id: id }, values)) !== undefined) return;
  await insert(tx, legalHolds, { kind, subject_id: id, held_at: tx.clock.now(), ...values });
}

/** False where there is none. Erasures that it may have kept from their end go on at once. */
export async function releaseLegalHold(tx: Db, { kind, id }: Subject): Promise<boolean> {
  const isReleased = await remove(tx, legalHolds, { kind, subject_id: id });
  if (isReleased)
    await tx.query(
      `update kit_erasures set retry_at = null where id in (select e.id from kit_erasures e where ${OPEN_SQL} and ${KEPT_SQL})`,
    );
  return isReleased;
}
