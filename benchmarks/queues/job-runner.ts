// One contender of jobs-throughput: stores `jobs` jobs, then measures until all of them have run.
import { openDatabase } from '../../packages/kit/src/db/index.ts';
import { contending } from '../harness/contender-process.ts';
import { kitQueue } from './kit-queue.ts';
import { QUEUES, type Queue, type QueueName } from './webhook-queues.ts';

export interface JobRunnerOptions {
  /** `kit, live`: while a list of the jobs is live, triggers log each change of a job. */
  readonly name: 'kit' | 'kit, live' | QueueName;
  readonly postgresUrl: string;
  readonly redisUrl: string;
  /** Where the queues are installed. */
  readonly peers: string;
  readonly jobs: number;
  readonly concurrency: number;
}

async function queueOf(options: JobRunnerOptions): Promise<Queue> {
  const { name, jobs, concurrency, postgresUrl: url } = options;
  const isLive = name === 'kit, live';
  if (name !== 'kit' && !isLive) return QUEUES[name](options.peers, { ...options, message: {}, send: async () => undefined });
  let ran = 0;
  const queue = await kitQueue({ url, concurrency, isLive, handle: () => void ran++ });
  return {
    async fill() {
      ran = 0;
      await queue.add(jobs);
    },
    async drain() {
      await queue.drain();
      if (ran !== jobs) throw new Error(`${ran} of ${jobs} jobs ran`);
    },
  };
}

/** Does what earlier rounds and filling have left to do; left to the server, the moment at which it does so would decide. */
async function tidyUp(url: string): Promise<void> {
  const database = await openDatabase(url);
  await database.query('vacuum (analyze)');
  await database.query('checkpoint');
  await database.close();
}

const options = JSON.parse(process.argv[2] ?? '') as JobRunnerOptions;
const queue = await queueOf(options);
contending(async () => {
  await queue.fill();
  if (options.name !== 'bullmq') await tidyUp(options.postgresUrl);
  const began = performance.now();
  await queue.drain();
  return options.jobs / ((performance.now() - began) / 1000);
});
