import { describe, expect, test, vi } from 'vitest';
import { isBehindPooler, NOTIFICATIONS_ARE_LOST } from '../../../../../../test/provision/behind-pooler.ts';
import { z } from 'zod';
import { describeJobs } from '../../../../test/jobs/describe-jobs.ts';
import { countQueries, type Db } from '../../../db/index.ts';
import { cancelJob } from '../manage/cancel.ts';
import { job } from '../declare/job.ts';
import { pruneJobs } from '../running/prune.ts';
import { runById } from '../running/run-by-id.ts';
import { retryFailed, retryJob } from '../manage/retry.ts';
import { startJob, startJobs, startJobSync } from './start-job.ts';
import { WAKE_CHANNEL } from './start-store.ts';
import { findJob } from '../rows/store.ts';
import type { SyncSqlExecutor } from '../../../db/engine/foreign/sql-executor.ts';

const input = z.object({ n: z.int() });
const ran: number[] = [];
let fails = false;
const count = job('count', {
  input,
  concurrency: 1,
  retry: { attempts: 1 },
  run: async ({ input: { n } }) => {
    if (fails) throw new Error('no');
    ran.push(n);
  },
});
const other = job('other', { input, queue: 'elsewhere', run: () => undefined });
const unlisted = job('unlisted', { input, run: () => undefined });

describeJobs('starting jobs', { jobs: [count, other] }, (bench) => {
  const { start, read, run, clock } = bench;
  const begin = (): void => {
    ran.length = 0;
    fails = false;
  };

  test('is one statement, and two when a unique key is hit', async () => {
    begin();
    await bench.db.transaction(async (tx) => {
      const first = await countQueries(() => startJob(tx, count, { n: 1 }, { uniqueKey: 'k' }));
      const second = await countQueries(() => startJob(tx, count, { n: 1 }, { uniqueKey: 'k' }));
      expect([first.count, second.count]).toEqual([1, 2]);
    });
  });

  test('workers are woken after the commit and by no statement of the transaction, which would let transactions commit one at a time', async (context) => {
    context.skip(bench.db.dialect === 'postgres' && isBehindPooler(), NOTIFICATIONS_ARE_LOST);
    begin();
    const woken: string[] = [];
    const stop = await bench.db.listen(WAKE_CHANNEL, (payload) => woken.push(payload));
    const starting = async (tx: Db) => {
      await startJob(tx, count, { n: 1 });
      await startJobs(tx, other, [{ n: 1 }, { n: 2 }], { delaySeconds: 60 });
    };
    const failing = bench.db.transaction(async (tx) => {
      await starting(tx);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    const { queries } = await countQueries(() =>
      bench.db.transaction(async (tx) => {
        await starting(tx);
        expect(woken).toEqual([]);
      }),
    );
    expect(queries.length).toBeGreaterThan(1);
    expect(queries.filter(({ sql }) => /notify/i.test(sql))).toEqual([]);
    await vi.waitFor(() => expect(woken.toSorted()).toEqual(['+default', '~elsewhere']), { timeout: 300_000 });
    await stop();
  });

  test('a unique key returns the first job until it has finished, and refuses other input', async () => {
    begin();
    const options = { uniqueKey: 'k', owner: 'ann', tenantKey: 't' };
    const first = await start(count, { n: 1 }, options);
    expect(await start(count, { n: 1 }, options)).toEqual({ ...first, created: false });
    await expect(start(count, { n: 2 }, options)).rejects.toMatchObject({ code: 'unique_key_reused', status: 409 });
    // One name, tenant and owner: others have keys of their own.
    for (const mine of [
      { ...options, owner: 'bob' },
      { ...options, tenantKey: 'u' },
    ])
      expect(await start(count, { n: 1 }, mine)).toMatchObject({ created: true });
    expect(await start(other, { n: 1 }, options)).toMatchObject({ created: true });
    await run();
    const second = await start(count, { n: 1 }, options);
    expect(second.created).toBe(true);
  });

  test('of ten starts with one unique key at once exactly one creates the job', async () => {
    begin();
    const started = await Promise.all(Array.from({ length: 10 }, () => start(count, { n: 1 }, { uniqueKey: 'race' })));
    expect(started.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(started.map(({ id }) => id)).size).toBe(1);
  });

  test('a key that is unique until started is free while the job runs; a retry of a job whose key is taken is refused', async () => {
    begin();
    const options = { uniqueKey: 'k', uniqueUntil: 'started' } as const;
    const first = await start(count, { n: 1 }, options);
    expect((await start(count, { n: 1 }, options)).created).toBe(false);
    fails = true;
    await run();
    const second = await start(count, { n: 2 }, options);
    expect(second.created).toBe(true);
    await expect(bench.db.transaction((tx) => retryJob(tx, first.id))).rejects.toMatchObject({ code: 'unique_key_taken', status: 409 });
    await bench.db.transaction((tx) => cancelJob(tx, second.id));
    await bench.db.transaction((tx) => retryJob(tx, first.id));
    expect((await read(first.id)).status).toBe('queued');
  });

  test('runAt and delaySeconds: not before their time', async () => {
    begin();
    await start(count, { n: 1 }, { runAt: new Date(clock.now().getTime() + 60_000) });
    await start(count, { n: 2 }, { delaySeconds: 30 });
    await run();
    expect(ran).toEqual([]);
    clock.advance(30_000);
    await run();
    expect(ran).toEqual([2]);
    clock.advance(30_000);
    await run();
    expect(ran).toEqual([2, 1]);
  });

  test('a thousand jobs are started by one statement, all or none', async () => {
    begin();
    const inputs = Array.from({ length: 1000 }, (_, n) => ({ n }));
    const counted = await bench.db.transaction((tx) => countQueries(() => startJobs(tx, count, inputs, { owner: 'ann' })));
    expect(counted.count).toBe(1);
    const { ids } = counted.result;
    expect(new Set(ids).size).toBe(1000);
    const last = await read(ids[999] ?? '');
    expect(last).toMatchObject({ input: '{"n":999}', owner_id: 'ann' });
    const bad = [...inputs.slice(0, 3), { n: 'x' as unknown as number }];
    await expect(bench.db.transaction((tx) => startJobs(tx, count, bad))).rejects.toMatchObject({ code: 'input_invalid' });
    await expect(bench.db.transaction((tx) => startJobs(tx, count, [...inputs, { n: 1 }]))).rejects.toMatchObject({ code: 'too_many' });
  });

  test.each(['+010000-01-01T00:00:00.000Z', '+275760-09-13T00:00:00.000Z', '-000001-01-01T00:00:00.000Z'])(
    'a runAt outside the years that every database sorts is rejected: %s',
    async (text) => {
      begin();
      await expect(start(count, { n: 1 }, { runAt: new Date(text) })).rejects.toMatchObject({
        code: 'option_invalid',
        message: 'runAt must be a Date in the years 1 to 9999.',
      });
      await expect(bench.db.transaction((tx) => startJobs(tx, count, [{ n: 1 }], { runAt: new Date(text) }))).rejects.toThrow('runAt');
      await start(count, { n: 1 }, { runAt: new Date('9999-12-31T23:59:59.999Z') });
      await run();
      expect(ran).toEqual([]);
    },
  );

  test('tenants take turns where jobs have no owner, and owners keep theirs', async () => {
    begin();
    for (let n = 1; n <= 20; n++) await start(count, { n }, { tenantKey: 'large' });
    await start(count, { n: 101 }, { tenantKey: 'small' });
    for (let n = 201; n <= 203; n++) await start(count, { n }, { owner: 'ann', tenantKey: 'large' });
    await run();
    expect(ran).toHaveLength(24);
    // Three have a turn: the first round serves each of them once.
    expect(new Set(ran.slice(0, 3).map((n) => Math.floor(n / 100)))).toEqual(new Set([0, 1, 2]));
    expect(ran.indexOf(203)).toBeLessThan(10);
  });

  test('a failed job that is started again has its turn', async () => {
    begin();
    const { id } = await start(count, { n: 1 }, { tenantKey: 'small' });
    fails = true;
    await run();
    await bench.db.query(`update jobs set turn_key = ''`);
    await bench.db.transaction((tx) => retryJob(tx, id));
    expect(await bench.db.query('select turn_key from jobs')).toEqual([{ turn_key: 'small' }]);
  });

  test('an id that is not a UUID is no job, and one in capitals is the same job', async () => {
    begin();
    const { id } = await start(count, { n: 1 });
    for (const wrong of ['', 'x', `${id}0`, `{${id}}`, id.replaceAll('-', ''), null, 7] as string[])
      await bench.db.transaction(async (tx) => {
        expect(await findJob(tx, wrong)).toBeNull();
        await expect(cancelJob(tx, wrong)).rejects.toMatchObject({ code: 'job_not_found' });
        await expect(retryJob(tx, wrong)).rejects.toMatchObject({ code: 'job_not_found' });
        // The transaction goes on.
        expect(await findJob(tx, id)).not.toBeNull();
      });
    const capitals = id.toUpperCase();
    expect(await findJob(bench.db, capitals)).toMatchObject({ id });
    expect(await bench.db.transaction((tx) => cancelJob(tx, capitals))).toMatchObject({ id, status: 'cancelled' });
    expect(await bench.db.transaction((tx) => retryJob(tx, capitals))).toMatchObject({ id, status: 'queued' });
    expect(await runById(bench.jobs, 'x')).toBe(false);
    expect(await runById(bench.jobs, capitals)).toBe(true);
    expect(ran).toEqual([1]);
  });

  test('higher priorities come first, then owners in turn, then age', async () => {
    begin();
    for (let n = 0; n < 6; n++) await start(count, { n }, { owner: 'ann' });
    await start(count, { n: 10 }, { owner: 'bob' });
    await start(count, { n: 11 }, { owner: 'cat' });
    await start(count, { n: 12 });
    await start(count, { n: 20 }, { owner: 'zoe', priority: 5 });
    await start(count, { n: 30 }, { owner: 'zoe', priority: -5 });
    await run();
    expect(ran[0]).toBe(20);
    expect(ran.at(-1)).toBe(30);
    const middle = ran.slice(1, -1);
    // The first job of every owner before the second of any, whichever owner began.
    expect(new Set(middle.slice(0, 4))).toEqual(new Set([0, 10, 11, 12]));
    expect(middle.slice(4)).toEqual([1, 2, 3, 4, 5]);
  });

  test('jobs with one serial key run one after the other, in order, also when one is tried again', async () => {
    begin();
    const inputs = [0, 1, 2, 3];
    for (const n of inputs) await start(count, { n }, { serialKey: 'a' });
    for (const n of inputs) await start(count, { n: 100 + n }, { serialKey: 'b' });
    fails = true;
    await run();
    // The first of each key has failed permanently, and with it every other: nothing ran.
    expect(ran).toEqual([]);
    fails = false;
    expect(await retryFailed(bench.db, { name: 'count' })).toEqual({ retried: 8, refused: 0 });
    await run({ concurrency: 8 });
    expect(ran.filter((n) => n < 100)).toEqual(inputs);
    expect(ran.filter((n) => n >= 100)).toEqual(inputs.map((n) => 100 + n));
  });

  test('of the jobs of a serial key at most one is running, whatever the number of workers', async () => {
    begin();
    for (let n = 0; n < 10; n++) await start(count, { n }, { serialKey: 'one' });
    await Promise.all([run({ concurrency: 4 }), run({ concurrency: 4 }), run({ concurrency: 4 })]);
    await run();
    expect(ran).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test('a serial job that waits for its time keeps the others waiting', async () => {
    begin();
    await start(count, { n: 1 }, { serialKey: 'later', delaySeconds: 60 });
    await start(count, { n: 2 }, { serialKey: 'later' });
    await run();
    expect(ran).toEqual([]);
    clock.advance(60_000);
    await run();
    expect(ran).toEqual([1, 2]);
  });

  test('prune removes what finished before a time, with its attempts and steps', async () => {
    begin();
    fails = true;
    await start(count, { n: 1 });
    await run();
    clock.advance(86_400_000);
    const waiting = await start(count, { n: 2 }, { delaySeconds: 60 });
    expect(await pruneJobs(bench.db, new Date(clock.now().getTime() - 3_600_000), 10)).toBe(1);
    expect(await bench.db.query('select id from job_attempts')).toEqual([]);
    expect((await read(waiting.id)).status).toBe('queued');
  });

  test('what is wrong is refused before anything is written', async () => {
    begin();
    const refusals: [string, () => Promise<unknown>][] = [
      ['input_invalid', () => start(count, { n: 'x' } as never)],
      ['payload_too_large', () => start(count, { n: 1, more: 'x'.repeat(300_000) } as never)],
      ['option_unknown', () => start(count, { n: 1 }, { unique_key: 'k' } as never)],
      ['option_invalid', () => start(count, { n: 1 }, { priority: 0.5 })],
      ['option_invalid', () => start(count, { n: 1 }, { runAt: new Date(Number.NaN) })],
      ['key_invalid', () => start(count, { n: 1 }, { owner: '' })],
      ['key_invalid', () => start(count, { n: 1 }, { serialKey: 'a\0b' })],
      ['job_unknown', () => start(unlisted, { n: 1 })],
      ['no_transaction', () => startJob(bench.db, count, { n: 1 })],
      ['wrong_database', () => start(count, { n: 1 }, { using: 'elsewhere' })],
    ];
    for (const [code, refused] of refusals) await expect(refused()).rejects.toMatchObject({ code });
    const many = start(count, { n: 1 }, { priority: 0.5, runAt: new Date(Number.NaN), owner: '' });
    await expect(many).rejects.toThrow(/runAt must be a Date in the years 1 to 9999\. priority must be .* owner must be a string/);
    expect(await bench.db.query('select id from jobs')).toEqual([]);
  });

  test('a misspelt option names the right one', async () => {
    await expect(start(count, { n: 1 }, { serialkey: 'k' } as never)).rejects.toThrow('serialKey');
  });
});

describe('startJobSync', () => {
  test('writes before it returns, on a synchronous library', async () => {
    const { DatabaseSync } = await import('node:sqlite');
    const { nodeSqliteTransaction } = await import('../../../db/engine/foreign/node-sqlite.ts');
    const { createSqliteDatabase } = await import('../../../testing/test-database.ts');
    const { openDatabase } = await import('../../../db/index.ts');
    const { migrateJobs } = await import('../../../../test/jobs/describe-jobs.ts');
    const place = await createSqliteDatabase();
    const db = await openDatabase(place.url);
    await migrateJobs(db);
    await db.close();
    const library = new DatabaseSync(place.url.replace('sqlite:', ''));
    library.exec('begin');
    const { id } = startJobSync(nodeSqliteTransaction(library), count, { n: 1 });
    expect(library.prepare('select id from jobs').all()).toEqual([{ id }]);
    library.exec('commit');
    library.close();
    expect(() => startJobSync({ query: () => [] } as unknown as SyncSqlExecutor, count, { n: 1 })).toThrow('await startJob');
    await place.remove();
  });
});
