// Run in a project with the packed kit and one version of a job engine: node start-through.mjs <engine> <PostgreSQL URL> <Redis URL>. The engine
// runs the job of a committed transaction once, and none of a rolled-back one.
import assert from 'node:assert/strict';
import { allowAny, Controller, createApp, migrateApp, route } from 'kit';
import { bullMqQueue, findJob, graphileQueue, job, jobs, pgBossQueue, startJob } from 'kit/contrib/jobs';

const [, , engine, url, redisUrl] = process.argv;
const ran = [];
const anything = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };
const work = job('work', { input: anything, run: ({ id }) => void ran.push(id) });

/** Each returns the queue, how to start the engine on a database, and how to stop it. */
const engines = {
  async 'graphile-worker'() {
    const { run, runMigrations } = await import('graphile-worker');
    await runMigrations({ connectionString: url });
    const queue = graphileQueue();
    let runner;
    const start = async (db) => {
      runner = await run({ connectionString: url, taskList: queue.taskList(db), pollInterval: 100, noHandleSignals: true });
    };
    return { queue, start, stop: () => runner.stop() };
  },
  async 'pg-boss'() {
    const { default: PgBoss } = await import('pg-boss');
    const boss = new PgBoss({ connectionString: url });
    boss.on('error', () => undefined);
    await boss.start();
    await boss.createQueue('kit_jobs');
    const queue = pgBossQueue(boss);
    return { queue, start: (db) => queue.work({ pollingIntervalSeconds: 0.5 }, db), stop: () => boss.stop({ graceful: false }) };
  },
  async bullmq() {
    const { Queue, Worker } = await import('bullmq');
    const connection = { url: redisUrl };
    const bull = new Queue('kit-peers', { connection });
    const queue = bullMqQueue(bull);
    let worker;
    return {
      queue,
      start: async (db) => void (worker = new Worker('kit-peers', queue.processor(db), { connection })),
      stop: async () => {
        await worker.close();
        await bull.close();
      },
    };
  },
};

const { queue, start, stop } = await engines[engine]();
class Things extends Controller {
  list = route.get('/', { permission: allowAny }, () => undefined);
}
const app = createApp({
  database: url,
  log: { level: 'silent' },
  modules: [jobs({ jobs: [work], taskQueue: queue })],
  mount: { '/v1': { '/things': Things } },
});
await migrateApp(app);
await app.ready();
await start(app.db);
const undone = app.db.transaction(async (tx) => {
  await startJob(tx, work, {});
  throw new Error('undo');
});
await assert.rejects(undone, /undo/);
const { id } = await app.db.transaction((tx) => startJob(tx, work, {}));
for (const end = Date.now() + 120_000; (await findJob(app.db, id)).status !== 'succeeded';) {
  assert.ok(Date.now() < end, 'the engine has not run the job within two minutes');
  await new Promise((resolve) => setTimeout(resolve, 50));
}
assert.deepEqual(ran, [id]);
await stop();
await app.close();
process.exit(0);
