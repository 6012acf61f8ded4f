import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import { setTimeout as pause } from 'node:timers/promises';
import type { Db } from '../../../db/engine/db.ts';
import { drop, NO_OUTCOME, noRows, type Batch, type Result } from './result-batch.ts';
import { bareFailureRow, healthChanges, resultRow } from './result-rows.ts';
import { decideOutcome, type Outcome } from './delivery-outcome.ts';
import { destinationNameOf } from '../publishing/audience.ts';
import { announcedWrite } from '../publishing/announced-write.ts';
import { disableEndpoint } from '../endpoints/disable.ts';

import { countLostClaims } from './maintenance-store.ts';
import { parseSchedule, type RetrySchedule } from '../endpoints/retry-schedule.ts';
import {
  changeHealth,
  finalise,
  isSuccess,
  lockFree,
  releaseClaims,
  succeed,
  unwritten,
  type Finalised,
  type HealthChange,
  type Success,
  type WrittenResult,
} from './result-store.ts';
import type { SendReport } from './sender.ts';
import type { Webhooks } from '../webhooks.ts';
import { isLockTimeout, limitLockWait, LOCKED_MS } from '../../../work/lock-patience.ts';
import { isValueRejected, storeInParts } from '../../../work/store-in-parts.ts';

/** What a worker has done so far; the line that `kit webhooks deliver` prints. */
export interface DeliverySummary {
  readonly succeeded: number;
  readonly retrying: number;
  readonly failed: number;
  readonly disabled_endpoints: number;
  /** Results that came too late: the lease had ended and another worker had claimed the delivery. The receiver got a duplicate. */
  readonly lost_claims: number;
}

/**
 * One of at most `WRITERS_MAX` loops: it gathers results, writes the batch, and goes round again while there are more.
 * `gathering` ends by itself after `GATHER_MS`, or early with `end()` when the batch is full or awaited.
 */
type Writer = { state: 'gathering'; end: () => void } | { state: 'writing' };

/** Results written by one statement. */
const BATCH_MAX = 200;
/** While results come by the dozen, a statement waits this long for more of them: two hundred cost the database 8 % less for each than one hundred. */
const GATHER_MS = 20;
const MANY = 25;
const WRITERS_MAX = 2;
const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 5000;

/** Writes the results of attempts in batches: everything that arrived while the last batch was being written. */
export class ResultWriter {
  readonly #webhooks: Webhooks;
  readonly #workerName: string;
  readonly #onStored: (reports: readonly SendReport[]) => void;
  readonly #counters = { succeeded: 0, retrying: 0, failed: 0, disabled_endpoints: 0, lost_claims: 0 };
  readonly #schedules = new WeakMap<readonly number[], RetrySchedule>();
  /** The last of them still takes results. */
  readonly #waiting: Batch[] = [];
  readonly #unstored = new Set<Promise<void>>();
  /** Endpoints with a failure since their last success here: they may have been healthy still when a later success was claimed. */
  readonly #failing = new Set<string>();
  readonly #writers = new Set<{ current: Writer }>();
  /** The batch that was begun last, and the size of the one that was written last. */
  readonly #last: { stored: Promise<void> | undefined; size: number } = { stored: undefined, size: 0 };
  /** What is done with results that cannot be written. */
  #onFailure: 'retry' | 'drop' = 'retry';

  /** `onStored` is told when reports are stored, or given up. */
  constructor(webhooks: Webhooks, workerName: string, onStored: (reports: readonly SendReport[]) => void) {
    this.#webhooks = webhooks;
    this.#workerName = workerName;
    this.#onStored = onStored;
  }

  get summary(): DeliverySummary {
    return { ...this.#counters };
  }

  add(report: SendReport): void {
    let batch = this.#waiting.at(-1);
    if (batch === undefined || batch.results.length >= BATCH_MAX) {
      const stored = Promise.withResolvers<void>();
      batch = { ...noRows(), results: [], isAwaited: false, lost: new Set(), stored, before: this.#last.stored };
      this.#waiting.push(batch);
      this.#last.stored = batch.stored.promise;
      this.#unstored.add(batch.stored.promise);
    }
    const outcome = report.result === null ? NO_OUTCOME : this.#decide(report, report.result);
    batch.results.push({ report, outcome, changesHealth: this.#changesHealth(report, outcome) });
    if (report.result !== null) this.#addRow(batch, resultRow(report, outcome, this.#webhooks.clock));
    batch.isAwaited ||= report.claim.orderingKey !== null;
    const isUrgent = batch.isAwaited || batch.results.length >= BATCH_MAX;
    const gathering = isUrgent ? this.#gathering() : undefined;
    if (gathering !== undefined) gathering.end();
    else if (this.#writers.size === 0 || (isUrgent && this.#writers.size < WRITERS_MAX)) void this.#write();
  }

  /** At most one writer gathers: another one finds its batch taken. */
  #gathering(): { end: () => void } | undefined {
    for (const { current } of this.#writers) if (current.state === 'gathering') return current;
    return undefined;
  }

  #addRow(batch: Batch, row: Finalised): void {
    if (this.#webhooks.database.dialect === 'postgres' && isSuccess(row)) batch.successes.push(row);
    else batch.others.push(row);
  }

  /** Resolves when everything added so far is stored, or given up. */
  async flush(): Promise<void> {
    // Results whose rows are locked are added again while the others are waited for.
    while (this.#unstored.size > 0) await Promise.all(this.#unstored);
  }

  /** From now on a batch that cannot be written is dropped: its claims run out and the deliveries are sent again. */
  abandon(): void {
    this.#onFailure = 'drop';
  }

  #decide({ claim, endedAt }: SendReport, result: NonNullable<SendReport['result']>): Outcome {
    const { settings } = this.#webhooks;
    const { failing_since: failingSince, consecutive_failures: consecutiveFailures, schedule } = claim.endpoint;
    return decideOutcome(claim.attempts, result, { failingSince, consecutiveFailures }, endedAt, {
      schedule: schedule === null ? settings.schedule : this.#scheduleOf(schedule),
      random: settings.jitter ? Math.random : null,
      // The operator's own destination is never given up: it is down for everybody.
      disableAfterMs: destinationNameOf(claim.endpoint) === null ? settings.disableAfterMs : Infinity,
    });
  }

  /** Asked once of each result, in the order in which they came. */
  #changesHealth({ claim: { endpoint } }: SendReport, { delivery, health }: Outcome): boolean {
    if (health === null) return false;
    const wasFailing = endpoint.failing_since !== null || endpoint.consecutive_failures > 0;
    if (delivery.status === 'succeeded') return this.#failing.delete(endpoint.id) || wasFailing;
    this.#failing.add(endpoint.id);
    return true;
  }

  #scheduleOf(stored: readonly number[]): RetrySchedule {
    let schedule = this.#schedules.get(stored);
    if (schedule === undefined) {
      try {
        schedule = parseSchedule(stored);
      } catch {
        schedule = this.#webhooks.settings.schedule;
      }
      this.#schedules.set(stored, schedule);
    }
    return schedule;
  }

  async #write(): Promise<void> {
    const writer: { current: Writer } = { current: { state: 'writing' } };
    this.#writers.add(writer);
    do {
      await this.#gather(writer);
      const batch = this.#waiting.shift();
      if (batch === undefined) break;
      this.#last.size = batch.results.length;
      await this.#persist(batch);
      this.#onStored(batch.results.map(({ report }) => report));
      batch.stored.resolve();
      this.#unstored.delete(batch.stored.promise);
      // Another one that gathers takes what is waiting.
    } while (this.#waiting.length > 0 && this.#gathering() === undefined);
    // In the same turn as the last look: what is added from here on finds no writer and starts one.
    this.#writers.delete(writer);
  }

  /** Whatever else ends in this turn of the event loop joins the batch, or in the next milliseconds when there is much to write. */
  async #gather(writer: { current: Writer }): Promise<void> {
    const [batch] = this.#waiting;
    if (batch === undefined || batch.results.length >= BATCH_MAX) return;
    if (batch.isAwaited || this.#last.size < MANY) return new Promise((resolve) => setImmediate(resolve));
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, GATHER_MS);
      const end = (): void => {
        clearTimeout(timer);
        resolve();
      };
      writer.current = { state: 'gathering', end };
    });
    writer.current = { state: 'writing' };
  }

  async #persist(batch: Batch): Promise<void> {
    for (let backoffMs = BACKOFF_MS_MIN; ; backoffMs = Math.min(2 * backoffMs, BACKOFF_MS_MAX)) {
      try {
        await this.#store(batch);
        return;
      } catch (error) {
        this.#webhooks.log.warn({ err: error, deliveries: batch.results.length }, 'could not store the results of webhooks');
        if (this.#onFailure === 'drop') return;
      }
      await pause(backoffMs);
    }
  }

  /** Safe to repeat: what was written is not written again. */
  async #store(batch: Batch): Promise<void> {
    const { database } = this.#webhooks;
    const parked = batch.results.filter(({ report }) => report.result === null).map(({ report }) => report.claim);
    // A claim that cannot be given back because its row is locked runs out by itself.
    const park = () => announcedWrite(database, 'webhook_deliveries', (db) => releaseClaims(db, parked, { park: true }));
    if (parked.length > 0) await park().catch((error: unknown) => rethrowUnlessLocked(error));
    await this.#finalise(batch);
    const ours = batch.lost.size === 0 ? batch.results : batch.results.filter(({ report }) => !batch.lost.has(report.claim.id));
    const changes = healthChanges(ours);
    if (changes.length > 0) {
      // The last result decides, and this batch may have overtaken the one before it.
      await batch.before;
      await this.#changeHealth(changes);
    }
    await this.#disable(ours);
  }

  async #finalise(batch: Batch): Promise<void> {
    const reject = async ({ id }: Finalised, error: unknown): Promise<void> => this.#rejected(batch, id, error);
    const giveUp = async ({ id }: Finalised, error: unknown): Promise<void> => this.#givenUp(batch, id, error);
    try {
      await storeInParts(batch.successes, (part) => this.#writeSuccesses(batch, part), reject);
      await storeInParts(batch.others, (part) => this.#writeOthers(batch, part), reject);
      await storeInParts(batch.rejections, (part) => this.#writeOthers(batch, part), giveUp);
    } catch (error) {
      if (!isLockTimeout(error) || !(await this.#leaveLocked(batch))) throw error;
      await this.#finalise(batch);
    }
  }

  async #writeSuccesses(batch: Batch, part: readonly Success[]): Promise<void> {
    const written = await announcedWrite(this.#webhooks.database, 'webhook_deliveries', (db) => succeed(db, part, this.#workerName));
    await this.#countSuccesses(batch, part, written);
    drop(batch, part);
  }

  async #writeOthers(batch: Batch, part: readonly Finalised[]): Promise<void> {
    const written = await announcedWrite(this.#webhooks.database, 'webhook_deliveries', (db) => finalise(db, part, this.#workerName));
    await this.#count(batch, part, written);
    drop(batch, part);
  }

  /** The database rejects a value of this result, today and tomorrow: the delivery fails, and the other results are stored. */
  #rejected(batch: Batch, id: string, error: unknown): void {
    this.#webhooks.log.error({ err: error, delivery_id: id }, 'the database rejected the result of a webhook; the delivery fails');
    const report = batch.results.find((result) => result.report.claim.id === id)?.report;
    drop(batch, [{ id }]);
    // It says nothing about the endpoint.
    batch.lost.add(id);
    if (report !== undefined) batch.rejections.push(bareFailureRow(report, this.#webhooks.clock));
  }

  /** Even the bare failure cannot be stored: the claim expires, and the delivery is sent again. */
  #givenUp(batch: Batch, id: string, error: unknown): void {
    this.#webhooks.log.error({ err: error, delivery_id: id }, 'could not store that a webhook failed; its claim will expire');
    drop(batch, [{ id }]);
  }

  /** Another transaction has locked some of the rows: they are tried again beside the results that follow. False: none is locked now. */
  async #leaveLocked(batch: Batch): Promise<boolean> {
    const { database } = this.#webhooks;
    const rows = [...batch.successes, ...batch.others, ...batch.rejections];
    const ids = rows.map(({ id }) => id);
    const free = await database.transaction((tx) => lockFree(tx, ids), CONFLICT_RETRIES);
    const missing = rows.filter(({ id }) => !free.has(id));
    // What is not found is deleted.
    const locked = new Set((await unwritten(database, missing)).map(({ id }) => id));
    this.#storeLater(batch, locked);
    return locked.size > 0;
  }

  /** Moves results out of their batch into one of their own, which only `flush` waits for. */
  #storeLater(batch: Batch, ids: ReadonlySet<string>): void {
    const isLocked = ({ report }: Result): boolean => ids.has(report.claim.id);
    const results = batch.results.filter(isLocked);
    if (results.length === 0) return;
    const later: Batch = {
      ...batch,
      results,
      successes: batch.successes.filter(({ id }) => ids.has(id)),
      others: batch.others.filter(({ id }) => ids.has(id)),
      rejections: batch.rejections.filter(({ id }) => ids.has(id)),
      lost: new Set(batch.lost),
      stored: Promise.withResolvers<void>(),
      before: undefined,
    };
    batch.results = batch.results.filter((result) => !isLocked(result));
    drop(
      batch,
      results.map(({ report }) => report.claim),
    );
    this.#webhooks.log.warn({ deliveries: results.length }, 'results of webhooks wait for rows that another transaction has locked');
    this.#beside(async () => {
      if (this.#onFailure === 'retry') await this.#persist(later);
      this.#onStored(later.results.map(({ report }) => report));
    });
  }

  /** Runs after a pause, beside what else is written. */
  #beside(work: () => Promise<void>): void {
    const done = pause(LOCKED_MS)
      .then(work)
      .finally(() => this.#unstored.delete(done));
    this.#unstored.add(done);
  }

  async #changeHealth(changes: readonly HealthChange[]): Promise<void> {
    const { database } = this.#webhooks;
    try {
      await announcedWrite(database, 'webhook_endpoints', (db) => changeHealth(db, changes));
    } catch (error) {
      const isRejected = isValueRejected(error);
      if (!isRejected) rethrowUnlessLocked(error);
      // One endpoint is locked, or its change is rejected: the others do not wait for it.
      if (changes.length > 1) for (const change of changes) await this.#changeHealth([change]);
      else if (isRejected)
        this.#webhooks.log.error({ err: error, endpoint_id: changes[0]?.id }, 'could not store the health of a webhook endpoint');
      else if (this.#onFailure === 'retry') this.#beside(() => this.#changeHealth(changes));
    }
  }

  async #countSuccesses(batch: Batch, successes: readonly Success[], written: number): Promise<void> {
    if (written === successes.length) this.#counters.succeeded += written;
    else await this.#count(batch, successes, []);
  }

  async #count({ lost }: Batch, rows: readonly Finalised[], written: readonly WrittenResult[]): Promise<void> {
    const ids = new Set(written.map(({ id }) => id));
    const missing = rows.filter((row) => !ids.has(row.id));
    // Deleted with its endpoint or event while the request was under way: nothing left to write, nothing lost.
    const found = missing.length === 0 ? [] : await unwritten(this.#webhooks.database, missing);
    for (const { status } of [...written, ...found.filter(({ is_ours }) => is_ours)])
      this.#counters[status === 'pending' ? 'retrying' : status]++;
    const late = found.filter(({ is_ours }) => !is_ours);
    for (const { id } of late) {
      lost.add(id);
      this.#counters.lost_claims++;
      this.#webhooks.metrics?.lostClaims.add({ database: this.#webhooks.database.using });
      this.#webhooks.log.warn({ delivery_id: id, worker: this.#workerName }, 'the claim on a webhook was lost before its result came');
    }
    if (late.length > 0) await this.#countLost(late.length);
  }

  /** For operators, who do not see the counters of a worker that runs. The count must not hold up results. */
  async #countLost(count: number): Promise<void> {
    try {
      await countLostClaims(this.#webhooks.database, count);
    } catch (error) {
      this.#webhooks.log.warn({ err: error, count }, 'could not count lost claims');
    }
  }

  async #disable(results: readonly Result[]): Promise<void> {
    const { database, log } = this.#webhooks;
    const reasons = new Map<string, readonly [endpoint: SendReport['claim']['endpoint'], reason: NonNullable<Outcome['disable']>]>();
    for (const { report, outcome } of results) {
      const { endpoint } = report.claim;
      if (outcome.disable !== null) reasons.set(`${endpoint.id} ${outcome.disable} ${endpoint.url}`, [endpoint, outcome.disable]);
    }
    for (const [{ id, url }, reason] of reasons.values()) {
      try {
        if (!(await database.transaction((tx) => disableUnlocked(tx, id, reason, url), CONFLICT_RETRIES))) continue;
      } catch (error) {
        // The next failed attempt is a reason again. Other endpoints' results do not wait for this one.
        log.error({ err: error, endpoint_id: id }, 'could not disable a webhook endpoint');
        continue;
      }
      this.#counters.disabled_endpoints++;
      this.#webhooks.metrics?.disabled.add({ database: database.using });
      // What was to be retried has failed with the other pending deliveries of the endpoint.
      const waiting = results.filter(
        ({ report, outcome }) => report.claim.endpoint.id === id && outcome.delivery.status === 'pending',
      ).length;
      this.#counters.retrying -= waiting;
      this.#counters.failed += waiting;
    }
  }
}

function rethrowUnlessLocked(error: unknown): void {
  if (!isLockTimeout(error)) throw error;
}

/** Gives up at an endpoint that another transaction has locked. */
async function disableUnlocked(tx: Db, id: string, reason: NonNullable<Outcome['disable']>, url: string): Promise<boolean> {
  await limitLockWait(tx);
  return disableEndpoint(tx, id, reason, { url });
}
