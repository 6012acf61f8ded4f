import { expect, test } from 'vitest';
import { jobs } from '../../src/contrib/jobs/index.ts';
import { runDueJobs } from '../../src/contrib/jobs/manage/work-jobs.ts';
import { diskStore, type Scan, type UploadStore } from '../../src/contrib/uploads/index.ts';
import { describeDatabases } from '../../src/testing/index.ts';
import { uploadApp } from './upload-app.ts';

const text = Buffer.from('hello, world');
const HOUR_MS = 3_600_000;

describeDatabases('uploads where the jobs module is installed', (database) => {
  const start = (more: Parameters<typeof uploadApp>[0] = {}) =>
    uploadApp({ database: database.db, modules: [jobs({ jobs: [] })], ...more });
  const jobRows = async (name: string) =>
    database.db.query<{ status: string; attempts: number }>('select status, attempts from jobs where name = $1 order by id', [name]);

  test('a file in quarantine is scanned by a job, and a scanner that fails is asked again', async () => {
    let verdicts: (() => Awaited<ReturnType<Scan>>)[] = [
      () => {
        throw new Error('the scanner is down');
      },
      () => ({ clean: true }),
    ];
    await using app = await start({ scan: async () => (verdicts.shift() ?? (() => ({ clean: true })))() });
    const { body } = await app.upload(text);
    const state = async () => (await app.call('GET', `/v1/uploads/${body.id}`)).body['state'];
    expect(await state()).toBe('quarantined');
    await runDueJobs(app.db);
    expect(await state()).toBe('quarantined');
    expect(await jobRows('uploads.scan')).toMatchObject([{ status: 'queued', attempts: 1 }]);
    app.clock.advance(HOUR_MS);
    await runDueJobs(app.db);
    expect(await state()).toBe('complete');
    expect(await jobRows('uploads.scan')).toMatchObject([{ status: 'succeeded', attempts: 2 }]);
    verdicts = [() => ({ clean: false, reason: 'Evil' })];
    const infected = await app.upload(text);
    await runDueJobs(app.db);
    expect((await app.call('GET', `/v1/uploads/${infected.body.id}`)).body['state']).toBe('rejected');
    expect(await app.files()).toHaveLength(1);
  });

  test('a file is removed by a job of the transaction that deletes its row, and a store that fails is asked again', async () => {
    let isDown = true;
    const store = (folder: string): UploadStore => {
      const disk = diskStore({ folder });
      const remove = disk.remove.bind(disk);
      disk.remove = (key) => (isDown ? Promise.reject(new Error('the store is down')) : remove(key));
      return disk;
    };
    await using app = await start({ store });
    const { body } = await app.upload(text);
    // The pending name of the bytes, and the final one.
    expect(await app.files()).toHaveLength(2);
    expect(await app.call('DELETE', `/v1/uploads/${body.id}`)).toMatchObject({ status: 204 });
    await runDueJobs(app.db);
    expect(await app.files()).toHaveLength(2);
    isDown = false;
    app.clock.advance(HOUR_MS);
    await runDueJobs(app.db);
    expect(await app.files()).toEqual([]);
    expect((await app.db.query('select id from upload_removals')).length).toBe(0);
    const statuses = (await jobRows('uploads.remove')).map(({ status }) => status);
    expect(statuses.slice(-2)).toEqual(['succeeded', 'succeeded']);
  });

  test('a deletion that is rolled back starts no job', async () => {
    await using app = await start();
    const { body } = await app.upload(text);
    await runDueJobs(app.db);
    const before = (await jobRows('uploads.remove')).length;
    expect(await app.call('DELETE', `/v1/uploads/${body.id}`, undefined, { 'x-user': 'bob' })).toMatchObject({ status: 404 });
    expect(await jobRows('uploads.remove')).toHaveLength(before);
    expect(await app.files()).toHaveLength(1);
  });
});
