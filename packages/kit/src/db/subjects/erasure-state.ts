import type { Row } from '../declare/rows.ts';
import type { Db } from '../engine/db.ts';
import { find, findBy, insert, list, remove, update } from '../rows/repository.ts';
import { erasures, type legalHolds as holdModel, legalHolds } from './models.ts';
import type { Erasing } from '../declare/personal-column.ts';
import type { Subject } from './subject.ts';

export type Erasure = Row<typeof erasures>;
export type LegalHold = Row<typeof holdModel>;

const OPEN = { state: { in: ['waiting', 'running'] as const } } as const;

/** The erasure of a person or tenant that is not finished. */
export async function openErasure(db: Db, { kind, id }: Subject): Promise<Erasure | undefined> {
  return findBy(db, erasures, { kind, subject_id: id, ...OPEN });
}

/** The newest erasures first. */
export async function listErasures(db: Db, limit: number): Promise<Erasure[]> {
  return list(db, erasures, { orderBy: ['-id'], limit });
}

/** Those whose time has come. */
export async function dueErasures(db: Db, limit: number): Promise<Erasure[]> {
  return list(db, erasures, { where: { ...OPEN, due_at: { lte: db.clock.now() } }, orderBy: ['due_at', 'id'], limit });
}

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

/** False where there is none. */
export async function releaseLegalHold(tx: Db, { kind, id }: Subject): Promise<boolean> {
  return remove(tx, legalHolds, { kind, subject_id: id });
}
