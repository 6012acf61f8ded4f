import { setTimeout as pause } from 'node:timers/promises';
import { deliverDue } from '../../src/contrib/webhooks/delivery/deliver.ts';
import { createEndpoint } from '../../src/contrib/webhooks/endpoints/create-endpoint.ts';
import { unbindWebhooks, useWebhooks } from '../../src/contrib/webhooks/webhooks.ts';
import type { DeliverySummary } from '../../src/contrib/webhooks/delivery/result-writer.ts';
import { openDatabase, type Database } from '../../src/db/index.ts';
import { killAtRandom, type RandomKills } from '../crash/kill-at-random.ts';
import { Processes } from '../crash/processes.ts';
import { LOOPBACK, migrateWebhooks } from './outbox.ts';
import { startReceiver, type Receiver } from './receiver.ts';

export interface CrashLoopOptions extends RandomKills {
  readonly url: string;
  readonly workers: number;
  readonly publishers: number;
}

/** What was promised against what happened. */
export interface Reconciliation {
  readonly kills: number;
  readonly restarts: number;
  /** Committed events times endpoints. */
  readonly published: number;
  readonly received: number;
  readonly duplicates: number;
  /** Promised and never received: must be 0. */
  readonly lost: number;
  /** Received though rolled back: must be 0. */
  readonly unpromised: number;
  /** Deliveries that are neither succeeded nor failed at the end: must be 0. */
  readonly stuck: number;
  /** Accepted requests whose results were not stored, because their worker was killed first. */
  readonly interrupted: number;
  /** Accepted requests whose results were not stored although their worker went on. */
  readonly unstored: number;
  /** Results that came too late, as workers that were not killed counted them: explains every one of `unstored`. */
  readonly lost_claims: number;
}

const OWNER = 'crash-loop';
const PATHS = ['/1', '/2', '/3'];
/** Longer than any lease. */
const AFTER_LEASES_MS = 5 * 60_000;
const TIMEOUT_MS = 5000;
/** The name of the worker that finishes what is left. */
const LAST = 'last';

/** A request that was answered with 200. */
interface Accepted {
  readonly key: string;
  readonly worker: string;
}

/** Kills workers and publishers under load, then lets one worker finish and compares what was committed with what arrived. */
export async function runCrashLoop(options: CrashLoopOptions): Promise<Reconciliation> {
  const { url, kills, restarts = 0 } = options;
  const receiver = await startReceiver();
  const accepted: Accepted[] = [];
  for (const path of PATHS) {
    receiver.answer(path, ({ body, headers }, response) => {
      // One of them fails now and then, so that retries are part of it.
      const fails = path === '/2' && Math.random() < 0.2;
      const { data } = JSON.parse(body) as { data: { id: string } };
      if (!fails) accepted.push({ key: `${path} ${data.id}`, worker: String(headers['x-worker'] ?? LAST) });
      response.writeHead(fails ? 503 : 200).end();
    });
  }
  await prepare(url, receiver);
  const processes = new Processes<'worker' | 'publisher', DeliverySummary>({
    worker: { script: new URL('./worker-process.ts', import.meta.url), args: [url, String(TIMEOUT_MS)] },
    publisher: { script: new URL('./publisher-process.ts', import.meta.url), args: [url, OWNER] },
  });
  try {
    for (let n = 0; n < options.workers; n++) await processes.start('worker');
    for (let n = 0; n < options.publishers; n++) await processes.start('publisher');
    await killAtRandom(processes, 'worker', options);
    await pause(300);
    await processes.end('publisher');
    await pause(500);
    await processes.end('worker');
    return { kills, restarts, ...(await reconcile(url, accepted, processes)) };
  } finally {
    await processes.killAll();
    await receiver.close();
  }
}

async function prepare(url: string, receiver: Receiver): Promise<void> {
  await using(url, 0, async (database) => {
    await migrateWebhooks(database);
    await database.query('create table business_rows (id varchar(36) primary key)');
    await database.transaction(async (tx) => {
      for (const path of PATHS) await createEndpoint(tx, { owner: OWNER, url: receiver.url(path), events: ['business.*'] });
    });
  });
}

async function using<R>(url: string, offsetMs: number, work: (database: Database) => Promise<R>): Promise<R> {
  const database = await openDatabase(url, { clock: { now: () => new Date(Date.now() + offsetMs) } });
  useWebhooks(database, { urlPolicy: LOOPBACK, schedule: Array.from({ length: 40 }, () => 0) });
  try {
    return await work(database);
  } finally {
    unbindWebhooks(database);
    await database.close();
  }
}

type Comparison = Omit<Reconciliation, 'kills' | 'restarts'>;

async function reconcile(
  url: string,
  accepted: readonly Accepted[],
  { summaries, killed }: Pick<Processes<string, DeliverySummary>, 'summaries' | 'killed'>,
): Promise<Comparison> {
  return using(url, AFTER_LEASES_MS, async (database) => {
    const last = await deliverDue(database, { name: LAST });
    const [pending] = await database.query<{ count: number }>(`select count(*) as count from webhook_deliveries where status = 'pending'`);
    const rows = await database.query<{ id: string }>('select id from business_rows');
    const promised = new Set(rows.flatMap(({ id }) => PATHS.map((path) => `${path} ${id}`)));
    const received = new Set(accepted.map(({ key }) => key));
    // Each worker has sent so many more than it has stored: the one number that tells whose results were lost.
    const unstored = new Map<string, number>();
    for (const { worker } of accepted) unstored.set(worker, (unstored.get(worker) ?? 0) + 1);
    for (const { worker } of await database.query<{ worker: string }>('select worker from webhook_attempts where status_code = 200'))
      unstored.set(worker, (unstored.get(worker) ?? 0) - 1);
    const sumOf = (isCounted: (worker: string) => boolean): number =>
      [...unstored].reduce((sum, [worker, count]) => sum + (isCounted(worker) ? count : 0), 0);
    return {
      published: promised.size,
      received: received.size,
      duplicates: accepted.length - received.size,
      lost: [...promised].filter((key) => !received.has(key)).length,
      unpromised: [...received].filter((key) => !promised.has(key)).length,
      stuck: pending?.count ?? -1,
      interrupted: sumOf((worker) => killed.has(worker)),
      unstored: sumOf((worker) => !killed.has(worker)),
      lost_claims: [...summaries.values(), last].reduce((sum, each) => sum + each.lost_claims, 0),
    };
  });
}
