import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { KitProgram, sourceOf } from '../../../../test/cli/kit-program.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { job } from '../declare/job.ts';
import { unbindJobs, useJobs } from '../rows/jobs.ts';
import { startJob } from '../start/start-job.ts';
import { findJob } from '../rows/store.ts';

const input = z.object({ kind: z.string() });
const work = job('work', { input, retry: { attempts: 1 }, run: () => undefined });

describeDatabases('kit jobs', (database) => {
  let folder = '';
  let program: KitProgram;
  async function run(...args: string[]) {
    const { code, stdout, stderr } = await program.run(['jobs', ...args]);
    return { code, stdout: stdout.trimEnd(), stderr };
  }
  const started = async (kind: string): Promise<string> => (await database.db.transaction((tx) => startJob(tx, work, { kind }))).id;
  const statusOf = async (id: string) => (await findJob(database.db, id))?.status;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-jobs-'));
    program = new KitProgram(folder);
    await writeFile(
      join(folder, 'kit.config.ts'),
      `import { createApp } from ${sourceOf('index.ts')};
import { job, jobs } from ${sourceOf('contrib/jobs/index.ts')};
import { metrics } from ${sourceOf('contrib/metrics/index.ts')};
import { jsonSchema } from ${sourceOf('http/declare/json-schema.ts')};
const input = jsonSchema<{ kind: string }>({ type: 'object' });
const work = job('work', {
  input, retry: { attempts: 1 }, timeoutMs: 30_000, schedule: { cron: '0 3 * * *', input: { kind: 'nightly' } },
  async run({ input: { kind }, progress, signal }) {
    await progress(50, 'half');
    if (kind === 'fails') throw new Error('no');
    if (kind === 'hangs') await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  },
});
const deaf = job('deaf', { input, queue: 'deaf', concurrency: 1, timeoutMs: 50, run: () => new Promise<void>(() => undefined) });
export default createApp({ database: ${JSON.stringify(database.url)}, modules: [jobs({ jobs: [work, deaf], stopTimeoutMs: 200 }), metrics({ port: 0 })], mount: {} });
`,
    );
    expect(await program.run(['migrate'])).toMatchObject({ code: 0 });
    useJobs(database.db, { jobs: [work] });
  });
  afterAll(async () => {
    unbindJobs(database.db);
    await program.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('work --once runs what is due; list, stats, retry, cancel, prune, schedules and follow say what there is', async () => {
    const [good, bad] = [await started('good'), await started('fails')];
    expect(await run('work', '--once')).toMatchObject({ code: 0, stdout: 'succeeded=1 retrying=0 failed=1 released=0 lost=0' });
    expect((await run('list', '--status', 'failed')).stdout).toContain(bad);
    expect((await run('follow', '--id', good)).stdout).toBe('work succeeded [####################] 100% half');
    expect(await run('follow', '--id', bad)).toMatchObject({ code: 1 });
    expect(JSON.parse((await run('stats')).stdout)).toMatchObject({ failed: 1, expired_leases: 0 });
    expect((await run('stats', '--prometheus')).stdout).toContain('kit_jobs_failed{database="default"} 1');
    expect(await run('retry', '--id', good)).toMatchObject({ code: 1 });
    expect((await run('retry', '--failed', '--name', 'work')).stdout).toBe('1 jobs are queued again, 0 were left as they were.');
    expect((await run('cancel', '--id', bad)).stdout).toBe(`Job ${bad} is cancelled.`);
    expect((await run('schedules')).stdout).toContain('work  0 3 * * *  UTC');
    expect(JSON.parse((await run('schedules', '--json')).stdout)).toMatchObject([{ name: 'work', cron: '0 3 * * *' }]);
    const listed = JSON.parse((await run('list', '--json')).stdout) as { id: string }[];
    expect(listed.map(({ id }) => id).sort()).toEqual([good, bad].sort());
    expect((await run('list', '--status', 'running')).stdout).toBe('There are no such jobs.');
    expect((await run('prune', '--days', '0')).stdout).toContain('2 jobs from before');
    expect(await statusOf(good)).toBeUndefined();
  }, 120_000);

  test('work runs until SIGTERM, says where its own metrics are, then gives back what is under way', async () => {
    const id = await started('hangs');
    const child = program.start(['jobs', 'work']);
    let logged = '';
    child.stderr.on('data', (chunk: Buffer) => (logged += chunk.toString()));
    await vi.waitUntil(async () => (await statusOf(id)) === 'running', { timeout: 300_000, interval: 50 });
    const address = await vi.waitUntil(() => /^Metrics for Prometheus: (http:\/\/127\.0\.0\.1:\d+\/metrics)$/m.exec(logged)?.[1], {
      timeout: 300_000,
      interval: 50,
    });
    expect(await (await fetch(address)).text()).toContain('kit_jobs_running{database="default",queue="default"} 1');
    child.kill('SIGTERM');
    expect(await once(child, 'close')).toEqual([0, null]);
    expect(await findJob(database.db, id)).toMatchObject({ status: 'queued', attempts: 0 });
    await database.db.query('delete from jobs');
  }, 60_000);

  test('work ends with an error when handlers that ignore their signal have every slot', async () => {
    const id = await started('good');
    await database.db.query(`update jobs set name = 'deaf', queue = 'deaf' where id = $1`, [id]);
    const { code, stderr } = await program.spawn(['jobs', 'work', '--queue', 'deaf']);
    expect(code).not.toBe(0);
    expect(stderr).toContain('All 1 slots of the queue "deaf"');
    expect(await findJob(database.db, id)).toMatchObject({ status: 'failed', error_code: 'timed_out' });
  }, 60_000);

  test('mistakes are sentences', async () => {
    expect((await run('work', '--queue', 'no')).stderr).toContain('No job has the queue "no". There are default, deaf.');
    expect((await run('retry')).stderr).toContain('Give --id <id>, or --failed');
    const id = ['--id', '01890000-0000-7000-8000-000000000000'];
    expect((await run('retry', ...id, '--name', 'a.job')).stderr).toContain('--name, --queue and --code require --failed.');
    expect((await run('follow', ...id, '--name', 'a.job')).stderr).toContain('Give --id <id> or --name <name>, not both.');
    expect((await run('cancel', ...id)).stderr).toContain('The job does not exist.');
  }, 60_000);
});
