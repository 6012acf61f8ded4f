// Job queues whose handler makes the same signed POST. Installed on demand; each drains `jobs` jobs it has stored itself. A job carries
// its message, as ours do: what is sent was stored, and is read back.
import { installPeers, peerUrl } from '../harness/peers.ts';

export interface QueueOptions {
  readonly postgresUrl: string;
  readonly redisUrl: string;
  readonly jobs: number;
  readonly concurrency: number;
  /** What every job carries. */
  readonly message: object;
  readonly send: (message: object) => Promise<void>;
}

const PEERS = { bullmq: '6.7.0', 'graphile-worker': '0.18.0', 'pg-boss': '12.30.0' };

/** Resolves when `send` has been called `count` times. */
function counter(send: QueueOptions['send']): { handle: QueueOptions['send']; done: (count: number) => Promise<void> } {
  let sent = 0;
  let target = Infinity;
  let resolve: () => void = () => undefined;
  return {
    async handle(message) {
      await send(message);
      if (++sent === target) resolve();
    },
    done(count) {
      sent = 0;
      target = count;
      return new Promise((settle) => (resolve = settle));
    },
  };
}

export const QUEUES = { bullmq: bullMq, 'graphile-worker': graphileWorker, 'pg-boss': pgBoss };
export type QueueName = keyof typeof QUEUES;

/** Where the queues are installed. */
export function installQueues(print: (line: string) => void): string {
  return installPeers(PEERS, print);
}

/** A queue to be drained again and again. */
export interface Queue {
  fill(): Promise<unknown>;
  /** Until the last job was sent, and the queue has said so to itself. */
  drain(): Promise<void>;
}

async function bullMq(folder: string, { redisUrl, jobs, concurrency, message, send }: QueueOptions): Promise<Queue> {
  const { Queue: JobQueue, Worker } = (await import(peerUrl(folder, 'bullmq'))) as {
    Queue: new (name: string, options: object) => { addBulk(jobs: object[]): Promise<unknown> };
    Worker: new (
      name: string,
      handler: (job: { data: object }) => Promise<void>,
      options: object,
    ) => { close(): Promise<void>; run(): Promise<void> };
  };
  const { hostname, port } = new URL(redisUrl);
  const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null };
  const queue = new JobQueue('hooks', { connection, defaultJobOptions: { removeOnComplete: true } });
  const counted = counter(send);
  const fill = () => queue.addBulk(Array.from({ length: jobs }, () => ({ name: 'send', data: message })));
  const drain = async (): Promise<void> => {
    const done = counted.done(jobs);
    const worker = new Worker('hooks', ({ data }) => counted.handle(data), { connection, concurrency, autorun: false });
    void worker.run();
    await done;
    await worker.close();
  };
  return { fill, drain };
}

async function graphileWorker(folder: string, { postgresUrl, jobs, concurrency, message, send }: QueueOptions): Promise<Queue> {
  const { run, makeWorkerUtils } = (await import(peerUrl(folder, 'graphile-worker'))) as {
    run: (options: object) => Promise<{ stop(): Promise<void> }>;
    makeWorkerUtils: (
      options: object,
    ) => Promise<{ migrate(): Promise<void>; addJobs(jobs: object[]): Promise<unknown>; release(): Promise<void> }>;
  };
  const quiet = { logger: new (await graphileLogger(folder))(() => () => undefined) };
  const tools = await makeWorkerUtils({ connectionString: postgresUrl, ...quiet });
  await tools.migrate();
  const counted = counter(send);
  const fill = () => tools.addJobs(Array.from({ length: jobs }, () => ({ identifier: 'send', payload: message })));
  const drain = async (): Promise<void> => {
    const done = counted.done(jobs);
    const runner = await run({
      connectionString: postgresUrl,
      taskList: { send: counted.handle },
      noHandleSignals: true,
      ...quiet,
      // Its batching: a local queue of jobs, and completions and failures written together.
      preset: {
        worker: { concurrentJobs: concurrency, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0, maxPoolSize: 10 },
      },
    });
    await done;
    await runner.stop();
  };
  return { fill, drain };
}

async function graphileLogger(folder: string): Promise<new (factory: () => () => void) => object> {
  const { Logger } = (await import(peerUrl(folder, 'graphile-worker'))) as { Logger: new (factory: () => () => void) => object };
  return Logger;
}

async function pgBoss(folder: string, { postgresUrl, jobs, concurrency, message, send }: QueueOptions): Promise<Queue> {
  const { PgBoss } = (await import(peerUrl(folder, 'pg-boss'))) as {
    PgBoss: new (options: object) => {
      on(event: string, listener: () => void): void;
      start(): Promise<unknown>;
      createQueue(name: string): Promise<void>;
      insert(name: string, jobs: object[]): Promise<unknown>;
      work(name: string, options: object, handler: (jobs: { data: object }[]) => Promise<void>): Promise<string>;
      offWork(name: string): Promise<void>;
      stop(options: object): Promise<void>;
    };
  };
  const boss = new PgBoss({ connectionString: postgresUrl, supervise: false, schedule: false });
  boss.on('error', () => undefined);
  await boss.start();
  await boss.createQueue('hooks');
  const counted = counter(send);
  const fill = () =>
    boss.insert(
      'hooks',
      Array.from({ length: jobs }, () => ({ data: message })),
    );
  const drain = async (): Promise<void> => {
    const done = counted.done(jobs);
    await boss.work('hooks', { batchSize: concurrency, pollingIntervalSeconds: 0.5 }, async (batch) => {
      await Promise.all(batch.map(({ data }) => counted.handle(data)));
    });
    await done;
    await boss.offWork('hooks');
  };
  return { fill, drain };
}
