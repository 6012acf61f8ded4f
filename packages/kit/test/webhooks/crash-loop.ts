import { fork, type ChildProcess } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { deliverDue } from '../../src/contrib/webhooks/deliver.ts';
import { createEndpoint } from '../../src/contrib/webhooks/create-endpoint.ts';
import type { DeliverySummary } from '../../src/contrib/webhooks/result-writer.ts';
import { unbindWebhooks, useWebhooks } from '../../src/contrib/webhooks/webhooks.ts';
import { openDatabase, type Database } from '../../src/db/index.ts';
import { LOOPBACK, migrateWebhooks } from './outbox.ts';
import { startReceiver, type Receiver } from './receiver.ts';

export interface CrashLoopOptions {
  readonly url: string;
  readonly workers: number;
  readonly publishers: number;
  /** How often a random worker or publisher is killed with SIGKILL. */
  readonly kills: number;
  /** Called a few times in between: restarts the database server. */
  readonly restart?: (() => Promise<void>) | undefined;
  readonly restarts?: number;
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
  /** Deliveries that killed workers held: their requests may have arrived before the kill. */
  readonly interrupted: number;
  /** Results that came too late, as the surviving workers counted them. */
  readonly lost_claims: number;
}

const OWNER = 'crash-loop';
const PATHS = ['/1', '/2', '/3'];
/** Longer than any lease. */
const AFTER_LEASES_MS = 5 * 60_000;

/** Kills workers and publishers under load, then lets one worker finish and compares what was committed with what arrived. */
export async function runCrashLoop(options: CrashLoopOptions): Promise<Reconciliation> {
  const { url, kills, restart, restarts = 0 } = options;
  const receiver = await startReceiver();
  const accepted: string[] = [];
  for (const path of PATHS) {
    receiver.answer(path, ({ body }, response) => {
      // One of them fails now and then, so that retries are part of it.
      const fails = path === '/2' && Math.random() < 0.2;
      if (!fails) accepted.push(`${path} ${(JSON.parse(body) as { data: { id: string } }).data.id}`);
      response.writeHead(fails ? 503 : 200).end();
    });
  }
  await prepare(url, receiver);
  const processes = new Processes(url);
  try {
    for (let n = 0; n < options.workers; n++) await processes.start('worker');
    for (let n = 0; n < options.publishers; n++) await processes.start('publisher');
    const restartEvery = restarts === 0 ? Infinity : Math.floor(kills / (restarts + 1));
    for (let n = 1; n <= kills; n++) {
      await pause(50 + Math.random() * 250);
      await processes.killOne();
      if (restart !== undefined && n % restartEvery === 0 && n / restartEvery <= restarts) await restart();
    }
    await pause(300);
    await processes.end('publisher');
    await pause(500);
    await processes.end('worker');
    return { kills, restarts, ...(await reconcile(url, accepted, processes.summaries)) };
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

async function reconcile(url: string, accepted: readonly string[], summaries: readonly DeliverySummary[]): Promise<Comparison> {
  return using(url, AFTER_LEASES_MS, async (database) => {
    const count = async (where: string): Promise<number> =>
      (await database.query<{ count: number }>(`select count(*) as count from webhook_deliveries where ${where}`))[0]?.count ?? 0;
    const interrupted = await count('claim_token is not null');
    const last = await deliverDue(database);
    const stuck = await count(`status = 'pending'`);
    const rows = await database.query<{ id: string }>('select id from business_rows');
    const promised = new Set(rows.flatMap(({ id }) => PATHS.map((path) => `${path} ${id}`)));
    const received = new Set(accepted);
    return {
      published: promised.size,
      received: received.size,
      duplicates: accepted.length - received.size,
      lost: [...promised].filter((key) => !received.has(key)).length,
      unpromised: [...received].filter((key) => !promised.has(key)).length,
      stuck,
      interrupted,
      lost_claims: [...summaries, last].reduce((sum, each) => sum + each.lost_claims, 0),
    };
  });
}

type Kind = 'worker' | 'publisher';

class Processes {
  readonly summaries: DeliverySummary[] = [];
  readonly #url: string;
  readonly #running = new Map<ChildProcess, Kind>();

  constructor(url: string) {
    this.#url = url;
  }

  async start(kind: Kind): Promise<void> {
    const script = fileURLToPath(new URL(`./${kind}-process.ts`, import.meta.url));
    const child = fork(script, [this.#url, kind === 'worker' ? '0' : OWNER], {
      execArgv: ['--conditions=source'],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    this.#running.set(child, kind);
    child.on('exit', () => this.#running.delete(child));
    child.on('message', (message: { summary?: DeliverySummary }) => {
      if (message.summary !== undefined) this.summaries.push(message.summary);
    });
    await new Promise<void>((resolve) => {
      child.once('message', () => resolve());
      child.once('exit', () => resolve());
    });
  }

  /** Kills any of them, wherever it is, and starts another in its place. */
  async killOne(): Promise<void> {
    const all = [...this.#running];
    const chosen = all[Math.floor(Math.random() * all.length)];
    if (chosen === undefined) return this.start('worker');
    const [child, kind] = chosen;
    await ended(child, 'SIGKILL');
    await this.start(kind);
  }

  async end(kind: Kind): Promise<void> {
    const children = [...this.#running].filter(([, each]) => each === kind).map(([child]) => child);
    await Promise.all(children.map((child) => ended(child, 'SIGTERM')));
  }

  async killAll(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((child) => ended(child, 'SIGKILL')));
  }
}

function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill(signal);
  });
}
