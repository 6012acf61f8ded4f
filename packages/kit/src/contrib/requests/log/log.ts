import { moduleState } from '../../../app/assemble/module-state.ts';
import type { Clock } from '../../../db/clock.ts';
import type { Database } from '../../../db/engine/db.ts';
import { isConnectionFailure } from '../../../db/engine/postgres/connection-failure.ts';
import type { DbLog } from '../../../db/log.ts';
import type { Exchange } from '../../../http/exchange/exchange.ts';
import type { Counter } from '../../../observe/metric-registry.ts';
import { DelayedWrite } from '../../../work/delayed-write.ts';
import { dayOf, finishedRequest, provenTenant, type FinishedRequest } from './finished-request.ts';
import type { RequestsSettings } from '../options.ts';
import { writeRequests } from './store.ts';
import { Tally } from './tally.ts';

/** Rows are collected this long: what a process that is killed may lose. */
const FLUSH_AFTER_MS = 1000;
/** Rows of one transaction. On SQLite it runs in this thread: 500 rows take about 5 ms. */
const BATCH = 500;
/** Different counts that wait while the database takes no writes. */
const COUNTS_MAX = 10_000;
/** Requests of strangers fill at most this part of the queue: a flood of them does not push out the rows of callers that are known. */
const STRANGERS = 0.25;

export const LOG_OUTCOMES = ['written', 'dropped', 'left_out'] as const;

export interface LogSurroundings {
  readonly clock: Clock;
  readonly log: DbLog;
  readonly settings: Pick<RequestsSettings, 'sampleRatio' | 'queueMax'>;
  readonly rows: Counter<'outcome'> | undefined;
  readonly random?: () => number;
}

/**
 * Rows and counts of finished requests, written behind the requests: `finished` only remembers, a timer writes, and `stop` writes what is left. Nothing here
 * can slow down or fail a request.
 */
export class RequestLog {
  readonly #database: Database;
  readonly #surroundings: LogSurroundings;
  #queue: FinishedRequest[] = [];
  #strangers = 0;
  readonly #tally = new Tally(COUNTS_MAX);
  readonly #pending = new Set<Promise<void>>();
  readonly #delayed = new DelayedWrite(FLUSH_AFTER_MS, () => this.#write());
  #isFlushing = false;

  constructor(database: Database, surroundings: LogSurroundings) {
    this.#database = database;
    this.#surroundings = surroundings;
  }

  get clock(): Clock {
    return this.#surroundings.clock;
  }

  finished(exchange: Exchange): void {
    const request = finishedRequest(exchange, this.#surroundings.clock);
    const tenant = provenTenant(exchange);
    if (!(tenant instanceof Promise)) {
      if (tenant !== undefined) request.tenant = tenant ?? '';
      return this.#remember(request);
    }
    const known = this.#rememberWith(request, tenant).finally(() => this.#pending.delete(known));
    this.#pending.add(known);
  }

  async #rememberWith(request: FinishedRequest, tenant: Promise<string | null>): Promise<void> {
    request.tenant = (await tenant) ?? '';
    this.#remember(request);
  }

  /** Writes what waits. Never rejects. */
  async flush(): Promise<void> {
    await Promise.all(this.#pending);
    await this.#delayed.flush();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#pending);
    await this.#delayed.stop();
    const { length } = this.#queue;
    if (length === 0) return;
    this.#count('dropped', length);
    this.#surroundings.log.warn({ rows: length }, 'could not write the last rows of the request log before the process ended');
  }

  #remember(request: FinishedRequest): void {
    const { settings, random = Math.random } = this.#surroundings;
    this.#tally.add(request, dayOf(request.finishedAt));
    if (!request.failed && settings.sampleRatio < 1 && random() >= settings.sampleRatio) this.#count('left_out', 1);
    else if (!this.#hasRoomFor(request)) this.#count('dropped', 1);
    else {
      this.#queue.push(request);
      if (request.owner === '') this.#strangers += 1;
    }
    if (this.#queue.length >= BATCH && !this.#isFlushing) void this.#delayed.flush();
    else this.#delayed.schedule();
  }

  #hasRoomFor({ owner }: FinishedRequest): boolean {
    const { queueMax } = this.#surroundings.settings;
    return this.#queue.length < queueMax && (owner !== '' || this.#strangers < Math.max(1, queueMax * STRANGERS));
  }

  async #write(): Promise<void> {
    this.#isFlushing = true;
    try {
      let rows: FinishedRequest[];
      let isFirst = true;
      do {
        rows = this.#queue.splice(0, BATCH);
        const counts = isFirst ? this.#tally.take() : [];
        isFirst = false;
        for (const { owner } of rows) if (owner === '') this.#strangers -= 1;
        if (!(await this.#writeBatch(rows, counts))) return;
      } while (rows.length === BATCH);
    } finally {
      this.#isFlushing = false;
    }
  }

  /** False: the database takes no writes now. */
  async #writeBatch(rows: readonly FinishedRequest[], counts: ReturnType<Tally['take']>): Promise<boolean> {
    if (rows.length === 0 && counts.length === 0) return true;
    try {
      await writeRequests(this.#database, rows, counts);
      this.#count('written', rows.length);
      return true;
    } catch (error) {
      this.#tally.putBack(counts);
      const isAway = isConnectionFailure(error);
      // A batch that the database refused would be refused again.
      if (isAway) this.#putBack(rows);
      else this.#count('dropped', rows.length);
      this.#surroundings.log.warn(
        { err: error, rows: rows.length },
        isAway
          ? 'could not write the request log yet; requests are not affected'
          : 'rows of the request log were rejected; requests are not affected',
      );
      this.#delayed.schedule();
      return !isAway;
    }
  }

  /** As many as there is room for again: meanwhile others came. */
  #putBack(rows: readonly FinishedRequest[]): void {
    const room = Math.max(0, this.#surroundings.settings.queueMax - this.#queue.length);
    const kept = rows.slice(0, room);
    this.#queue = [...kept, ...this.#queue];
    for (const { owner } of kept) if (owner === '') this.#strangers += 1;
    this.#count('dropped', rows.length - kept.length);
  }

  #count(outcome: (typeof LOG_OUTCOMES)[number], rows: number): void {
    if (rows > 0) this.#surroundings.rows?.add({ outcome }, rows);
  }
}

/** The logs of the open databases of apps with this module. */
export const requestLogs = moduleState<RequestLog>({ name: 'Requests', setUp: 'add requests() to the modules of createApp' });
