import { setTimeout as sleep } from 'node:timers/promises';
import { CONFLICT_RETRIES } from '../engine/conflict-retries.ts';
import type { Database, Db } from '../engine/db.ts';
import { find, update } from '../rows/repository.ts';
import { statementsOf } from '../sql/model-statements.ts';
import { awaitWriters } from './await-writers.ts';
import { type ErasureListeners, eraseRows, jsonKey, lockRows } from './erase-rows.ts';
import { counted, type Erasure, legalHoldOf, listLegalHolds, NO_FAILURE, noteKept, type StepDone } from './erasure-state.ts';
import { exceptHeldSql, heldSql, type HeldTables } from './held-rows.ts';
import { erasures } from './models.ts';
import type { Subject, SubjectPath, SubjectTable } from './subject.ts';
import type { SubjectPlan } from './subject-plan.ts';
import { bindOnce, pathSql } from './subject-where.ts';

/** A database and the tables in it. */
export interface PlannedDatabase {
  readonly database: Database;
  readonly plan: SubjectPlan;
  /** Whose the rows are else: a legal hold of another person or tenant keeps theirs. */
  readonly tables?: HeldTables;
}

export interface ErasureRun extends ErasureListeners {
  /** Where the state is: the default database. */
  readonly database: Database;
  readonly planned: readonly PlannedDatabase[];
  readonly signal?: AbortSignal;
  /** Rows of one transaction. Default: 500. */
  readonly batch?: number;
  /** When no row is left but that of the person or tenant itself: for what is erased in another way. Called again after a kill. */
  readonly beforeFinish?: () => Promise<void>;
  /** In the transaction that removes the person or tenant itself, which is the last one. */
  readonly onFinish?: (tx: Db, erasure: Erasure) => Promise<void>;
  readonly onProgress?: (done: StepDone) => void;
}

/**
 * finished  no row is left
 * held      a legal hold keeps the rows
 * kept      a legal hold of another person or tenant keeps some of the rows; the others are erased
 * waiting   its time has not come, or it was cancelled
 * stopped   by the signal
 */
export type ErasureOutcome = 'finished' | 'held' | 'kept' | 'waiting' | 'stopped';

const BATCH = 500;
/** Between two batches as long as the batch took, at most. */
const REST_MS_MAX = 1000;

const NO_TABLES: HeldTables = { models: [], whose: () => ({}) };

interface Step {
  readonly id: string;
  readonly database: Database;
  readonly tables: HeldTables;
  readonly table: SubjectTable;
  readonly path: SubjectPath;
}

/**
 * Erases the rows of a person or tenant in batches, and the progress with each batch, in one transaction: a process that is killed is continued by the next one, and
 * two at once do every batch once. Passes over all tables are repeated until one finds nothing, so that a row which was written meanwhile goes, too.
 */
export async function runErasure(id: string, run: ErasureRun): Promise<ErasureOutcome> {
  const { database, signal, onProgress = () => {} } = run;
  const steps = stepsOf(run.planned);
  const passing = steps.filter(({ table }) => !table.isRoot);
  const begun = signal?.aborted === true ? 'stopped' : await begin(id, run);
  if (begun !== 'running') return begun;
  for (;;) {
    if (signal?.aborted === true) return 'stopped';
    const startedAt = performance.now();
    const outcome = await database.transaction((tx) => nextBatch(tx, id, passing, run), CONFLICT_RETRIES);
    if (outcome === 'passed') {
      if (await database.transaction((tx) => keepsRows(tx, id, steps), CONFLICT_RETRIES)) return 'kept';
      await run.beforeFinish?.();
      const ended = await database.transaction((tx) => finish(tx, id, steps, run), CONFLICT_RETRIES);
      await emptyFreePages(run.planned);
      return ended;
    }
    if (typeof outcome === 'string') return outcome;
    if (outcome.rows === 0) continue;
    onProgress(outcome);
    await sleep(Math.min(REST_MS_MAX, performance.now() - startedAt), undefined, signal === undefined ? {} : { signal }).catch(
      () => undefined,
    );
  }
}

/**
 * From here on everybody can see that the erasure runs. Transactions that began before and were not told may write rows of the subject: they are waited for, and a
 * whole pass comes after them.
 */
async function begin(id: string, { database, planned }: ErasureRun): Promise<ErasureOutcome | 'running'> {
  const outcome = await database.transaction(async (tx) => {
    const erasure = await lockErasure(tx, id);
    if (typeof erasure === 'string') return erasure;
    await update(tx, erasures, id, {
      state: 'running',
      started_at: erasure.started_at ?? tx.clock.now(),
      pass_rows: erasure.pass_rows > 0n || erasure.step === null ? erasure.pass_rows : 1n,
    });
    return 'running';
  }, CONFLICT_RETRIES);
  if (outcome === 'running')
    for (const { database: each, plan } of planned)
      await awaitWriters(
        each,
        plan.tables.map(({ model }) => model.name),
      );
  return outcome;
}

function stepsOf(planned: readonly PlannedDatabase[]): Step[] {
  return planned.flatMap(({ database, plan, tables = NO_TABLES }) =>
    plan.tables.flatMap((table) =>
      table.paths
        .filter(({ erase }) => erase !== 'keep')
        .map((path) => ({
          id: `${table.model.name}.${path.column}`,
          database,
          // A row that stays takes none along.
          tables: path.erase === 'delete' ? tables : { ...tables, models: [] },
          table,
          path,
        })),
    ),
  );
}

async function nextBatch(tx: Db, id: string, passing: readonly Step[], run: ErasureRun): Promise<StepDone | ErasureOutcome | 'passed'> {
  const erasure = await lockErasure(tx, id);
  if (typeof erasure === 'string') return erasure;
  // A step that a newer version does not have any more: the pass begins again.
  const index = Math.max(
    0,
    passing.findIndex((step) => step.id === erasure.step),
  );
  const step = passing[index];
  if (step === undefined) return 'passed';
  const done = await eraseBatch(tx, step, erasure, run);
  const next = done.position === null ? passing[index + 1] : step;
  const passRows = erasure.pass_rows + BigInt(done.rows);
  const progress = { ...NO_FAILURE, counts: counted(erasure, done) };
  if (next !== undefined) await update(tx, erasures, id, { ...progress, step: next.id, position: done.position, pass_rows: passRows });
  else if (passRows > 0n) await update(tx, erasures, id, { ...progress, step: null, position: null, pass_rows: 0n });
  else return 'passed';
  return done;
}

/** The erasure, locked until the transaction ends; or why nothing is to be done. */
async function lockErasure(tx: Db, id: string): Promise<Erasure | ErasureOutcome> {
  const erasure = await find(tx, erasures, id, { lock: true });
  if (erasure === undefined || erasure.state === 'cancelled' || erasure.due_at > tx.clock.now()) return 'waiting';
  if (erasure.state === 'finished') return 'finished';
  const subject: Subject = { kind: erasure.kind, id: erasure.subject_id };
  return (await legalHoldOf(tx, subject)) === undefined ? erasure : 'held';
}

async function eraseBatch(
  tx: Db,
  step: Step,
  erasure: Erasure,
  { batch = BATCH, beforeErase, afterErase, database }: ErasureRun,
): Promise<StepDone> {
  const { model } = step.table;
  const { erase: erasing } = step.path;
  const after = erasure.step === step.id && erasure.position !== null ? (JSON.parse(erasure.position) as unknown[]) : null;
  const holds = await holdsOfOthers(tx, erasure);
  const erase = async (own: Db): Promise<StepDone> => {
    await overwriteDeleted(own);
    const where = (values: unknown[]) => {
      const theirs = pathSql(model, step.path, [erasure.subject_id], 'r', bindOnce(values));
      return theirs === undefined ? undefined : theirs + exceptHeldSql(holds, step.tables, model, 'r', values);
    };
    const rows = await lockRows(own, { model, where, after, limit: batch });
    const columns = step.path.through === null ? [step.path.column] : [];
    await eraseRows(own, model, rows, { erasing, columns, beforeErase, afterErase, hasChangeLog: step.database === database });
    const last = rows.length < batch ? undefined : rows.at(-1);
    const position = last === undefined ? null : JSON.stringify(jsonKey(model, last));
    return { table: model.name, erasing, rows: rows.length, step: step.id, position };
  };
  return step.database === database ? erase(tx) : step.database.transaction(erase);
}

async function holdsOfOthers(tx: Db, { kind, subject_id: id }: Erasure): Promise<Subject[]> {
  const holds = await listLegalHolds(tx);
  return holds.map((hold) => ({ kind: hold.kind, id: hold.subject_id })).filter((hold) => hold.kind !== kind || hold.id !== id);
}

/** Whether rows stay because they are also those of somebody who is held. */
async function keepsRows(tx: Db, id: string, steps: readonly Step[]): Promise<boolean> {
  const erasure = await lockErasure(tx, id);
  if (typeof erasure === 'string') return false;
  const holds = await holdsOfOthers(tx, erasure);
  const kept = new Set<string>();
  for (const { database, tables, table, path } of steps) {
    const values: unknown[] = [];
    const theirs = pathSql(table.model, path, [erasure.subject_id], 'r', bindOnce(values));
    const held = theirs === undefined ? undefined : heldSql(holds, tables, table.model, 'r', values);
    if (held === undefined) continue;
    const text = `select 1 as found from ${statementsOf(table.model).table} r where ${theirs} and ${held} limit 1`;
    if ((await (database === tx.database ? tx : database).query(text, values)).length > 0) kept.add(table.model.name);
  }
  if (kept.size > 0) await noteKept(tx, id, [...kept].toSorted());
  return kept.size > 0;
}

/** The rows of the person or tenant itself, the last ones. */
async function finish(tx: Db, id: string, steps: readonly Step[], run: ErasureRun): Promise<ErasureOutcome> {
  const erasure = await lockErasure(tx, id);
  if (typeof erasure === 'string') return erasure;
  const fromFirst = { ...erasure, step: null, position: null };
  let { counts } = erasure;
  for (const step of steps.filter(({ table }) => table.isRoot)) counts = counted({ counts }, await eraseBatch(tx, step, fromFirst, run));
  await run.onFinish?.(tx, { ...erasure, counts });
  await update(tx, erasures, erasure.id, {
    ...NO_FAILURE,
    state: 'finished',
    step: null,
    position: null,
    counts,
    finished_at: tx.clock.now(),
  });
  return 'finished';
}

/** SQLite leaves the bytes of a deleted row in its page until another row takes the place. */
async function overwriteDeleted(tx: Db): Promise<void> {
  if (tx.dialect === 'sqlite') await tx.query('pragma secure_delete = on');
}

/** The write-ahead log of SQLite contains earlier versions of pages. */
async function emptyFreePages(planned: readonly PlannedDatabase[]): Promise<void> {
  for (const { database } of planned) if (database.dialect === 'sqlite') await database.query('pragma wal_checkpoint(truncate)');
}
