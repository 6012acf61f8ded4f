import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { countQueries } from '../../db/engine/query-observer.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { describeDatabases } from '../../testing/index.ts';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { isAuthenticated } from '../../permissions/built-ins.ts';
import { AuditController } from '../audit/controller.ts';
import { audit } from '../audit/module.ts';
import { accepted, acceptsJob } from './start/accepted.ts';
import { JobController } from './controller.ts';
import { defineErrors } from '../../errors/catalog.ts';
import { job } from './declare/job.ts';
import { jobs } from './module.ts';
import { findJob } from './rows/store.ts';
import { startJob } from './start/start-job.ts';
import { runDueJobs, startJobWorker } from './manage/work-jobs.ts';

/** A job as the API shows it. */
interface JobRecord {
  readonly id: string;
  readonly status: string;
}

const shopErrors = defineErrors('jobs_controller_test', { closed: { status: 409, detail: 'The shop is closed.' } });
const input = z.object({ n: z.int(), token: z.string() });
let gate: Promise<void> | undefined;
const work = job('work', {
  input,
  result: z.object({ n: z.int(), token: z.string() }),
  retry: { attempts: 1 },
  sensitive: ['token'],
  async run({ input: { n, token }, progress }) {
    await progress(40, 'rendered');
    await gate;
    if (n < 0) throw shopErrors.closed();
    return { n, token };
  },
});

/** `x-user: ann` is ann; `x-scopes` are the scopes of her key. */
const byHeader: Authenticator = {
  name: 'header',
  securityScheme: { type: 'apiKey', in: 'header', name: 'x-user' },
  async authenticate({ headers }) {
    const id = headers['x-user'];
    if (typeof id !== 'string') return null;
    const scopes = headers['x-scopes'];
    const user = { id, username: id, email: null, is_active: true, is_staff: id === 'staff', is_superuser: false };
    return { user, scheme: 'header', scopes: typeof scopes === 'string' ? scopes.split(' ') : null };
  },
};

class WorkController extends Controller {
  create = route.post('/', { ...acceptsJob, permission: isAuthenticated }, (context) =>
    context.db.transaction(async (tx) => accepted(await startJob(tx, work, { n: 1, token: 'secret' }, { owner: context.user.id }))),
  );
}

describeDatabases('the job controller', (database) => {
  let kit: TestApp;
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      modules: [jobs({ jobs: [work] }), audit()],
      authenticators: [byHeader],
      mount: { '/v1': { '/jobs': JobController, '/work': WorkController, '/audit': AuditController } },
    });
  });
  afterAll(() => kit.close());

  const call = async (method: 'GET' | 'POST', url: string, user = 'ann', scopes?: string) => {
    const headers = { 'x-user': user, ...(scopes === undefined ? {} : { 'x-scopes': scopes }) };
    const { statusCode: status, headers: answered, body } = await kit.inject({ method, url: `/v1${url}`, headers });
    return { status, headers: answered, json: (body === '' ? null : JSON.parse(body)) as never };
  };
  const entriesOf = async (id: string) => {
    const { json } = await kit.inject({ url: `/v1/audit?target_type=job&target_id=${id}`, headers: { 'x-user': 'staff' } });
    return json<{ items: Record<string, unknown>[] }>().items.toReversed();
  };
  const started = async (owner: string, n = 1): Promise<string> =>
    (await database.db.transaction((tx) => startJob(tx, work, { n, token: 'secret' }, { owner }))).id;

  test('202 with an address that shows the job, its input and result masked', async () => {
    const answer = await call('POST', '/work');
    const { id, status, url } = answer.json as { id: string; status: string; url: string };
    expect([answer.status, answer.headers['location'], status]).toEqual([202, url, 'queued']);
    expect(url).toBe(`/v1/jobs/${id}`);
    await runDueJobs(database.db);
    const read = (await call('GET', `/jobs/${id}`)).json as JobRecord;
    expect(read).toMatchObject({
      status: 'succeeded',
      progress: 100,
      input: { n: 1, token: '***' },
      result: { n: 1, token: '***' },
      error: null,
    });
    expect(JSON.stringify(kit.records)).not.toContain('"secret"');
  });

  test("404 for another owner's job, exactly as for a missing one; staff see all", async () => {
    const id = await started('ann');
    const missing = await call('GET', '/jobs/01890000-0000-7000-8000-000000000000');
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/cancel'],
      ['POST', '/retry'],
      ['GET', '/events'],
    ] as const) {
      const answer = await call(method, `/jobs/${id}${path}`, 'bob');
      expect(answer.status).toBe(404);
      expect((answer.json as { code: string }).code).toBe((missing.json as { code: string }).code);
    }
    expect((await call('GET', `/jobs/${id}`, 'staff')).status).toBe(200);
  });

  test('403 without the scope', async () => {
    const id = await started('ann');
    expect((await call('GET', `/jobs/${id}`, 'ann', 'jobs:read')).status).toBe(200);
    expect((await call('POST', `/jobs/${id}/cancel`, 'ann', 'jobs:read')).status).toBe(403);
    expect((await call('GET', '/jobs', 'ann', 'orders:read')).status).toBe(403);
    expect((await kit.inject('/v1/jobs')).statusCode).toBe(401);
  });

  test('a list pages through the own jobs, forwards and back, and cursors are bound to caller and filter', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.unshift(await started('eve', n));
    const first = (await call('GET', '/jobs?limit=2', 'eve')).json as {
      items: JobRecord[];
      count: number;
      next: string;
      previous: string | null;
    };
    expect([first.items.map(({ id }) => id), first.count, first.previous]).toEqual([ids.slice(0, 2), 5, null]);
    const second = (await call('GET', `/jobs${first.next}`, 'eve')).json as typeof first;
    expect(second.items.map(({ id }) => id)).toEqual(ids.slice(2, 4));
    const last = (await call('GET', `/jobs${second.next}`, 'eve')).json as { items: JobRecord[]; next: string | null };
    expect([last.items.map(({ id }) => id), last.next]).toEqual([ids.slice(4), null]);
    const back = (await call('GET', `/jobs${second.previous}`, 'eve')).json as typeof first;
    expect([back.items.map(({ id }) => id), back.previous]).toEqual([ids.slice(0, 2), null]);
    // Clients that keep the value of `next` alone, or its cursor, get the same page.
    const bare = new URLSearchParams(first.next.slice(1)).get('cursor') ?? '';
    for (const cursor of [first.next, bare])
      expect((await call('GET', `/jobs?limit=2&cursor=${encodeURIComponent(cursor)}`, 'eve')).json).toEqual(second);
    // Pages that were emptied lead back to every job that is left.
    const page = async (cursor: string | null) => (await call('GET', `/jobs${cursor}`, 'eve')).json as typeof first;
    await kit.app.db.query('delete from jobs where id = $1', [ids[4]]);
    const emptyLast = await page(second.next);
    expect([emptyLast.items, emptyLast.next]).toEqual([[], null]);
    expect((await page(emptyLast.previous)).items.map(({ id }) => id)).toEqual(ids.slice(2, 4));
    for (const id of ids.slice(0, 2)) await kit.app.db.query('delete from jobs where id = $1', [id]);
    const emptyFirst = await page(second.previous);
    expect([emptyFirst.items, emptyFirst.previous]).toEqual([[], null]);
    expect((await page(emptyFirst.next)).items.map(({ id }) => id)).toEqual(ids.slice(2, 4));
    expect((await call('GET', `/jobs${first.next}`, 'ann')).status).toBe(422);
    expect((await call('GET', `/jobs${first.next}&status=queued`, 'eve')).status).toBe(422);
    expect((await call('GET', '/jobs?limit=101', 'eve')).status).toBe(422);
  });

  test('a list reads the rows of an owner by their partial index, and those of all by the key', async () => {
    const { db } = database;
    const isPostgres = db.dialect === 'postgres';
    const id = isPostgres
      ? `cast(lpad(to_hex(i), 8, '0') || '-0000-7000-8000-000000000000' as uuid)`
      : `printf('%08x-0000-7000-8000-000000000000', i)`;
    await db.query(
      `with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
       insert into jobs (id, name, version, queue, status, is_ready, input, attempts_max, run_at, owner_id, created_at)
       select ${id}, 'work', 1, 'default', 'succeeded', false, '{}', 1, $1, 'owner ' || (i % 500), $1 from n`,
      [new Date()],
    );
    if (isPostgres) await db.query('analyze jobs');
    for (const [user, index] of [
      ['owner 7', /jobs_of_owner/],
      ['staff', isPostgres ? /jobs_pkey/ : /autoindex_jobs/],
    ] as const)
      for (const query of ['', '&status=succeeded', '&name=work&queue=default']) {
        const { result, queries } = await countQueries(() => call('GET', `/jobs?limit=2${query}`, user));
        expect([result.status, (result.json as { items: unknown[] }).items.length]).toEqual([200, 2]);
        const pages = queries.filter(({ sql }) => /from "jobs".* order by/s.test(sql));
        expect(pages.length).toBe(1);
        for (const { sql } of pages) {
          const plan = isPostgres
            ? await db.query(`explain (generic_plan, costs off) ${sql}`, [], { replanned: true })
            : await db.query(
                `explain query plan ${sql}`,
                sql.match(/\$\d+/g)?.map(() => null),
              );
          expect(JSON.stringify(plan)).toMatch(index);
        }
      }
    await db.query(`delete from jobs where owner_id like 'owner %'`);
  });

  test('cancel answers 200 and leaves what has ended unchanged; retry is for failed and cancelled jobs only', async () => {
    const id = await started('ann', -1);
    expect((await call('POST', `/jobs/${id}/retry`)).status).toBe(409);
    expect((await call('POST', `/jobs/${id}/cancel`)).json).toMatchObject({ status: 'cancelled' });
    expect(await call('POST', `/jobs/${id}/cancel`)).toMatchObject({ status: 200, json: { status: 'cancelled' } });
    expect((await call('POST', `/jobs/${id}/retry`)).json).toMatchObject({ status: 'queued', attempts: 0 });
    await runDueJobs(database.db);
    expect((await call('GET', `/jobs/${id}`)).json).toMatchObject({
      status: 'failed',
      error: { code: 'closed', message: 'The shop is closed.' },
    });
  });

  test('many jobs are cancelled and retried by one request, each with its own result, and a dry run changes none', async () => {
    const [own, other] = [await started('ann'), await started('bob')];
    const cancel = async (body: object) => {
      const { json } = await kit.inject({ method: 'POST', url: '/v1/jobs/actions/cancel', headers: { 'x-user': 'ann' }, payload: body });
      const { results, dry_run: isDry } = json<{ results: { status: number; code?: string; data?: JobRecord }[]; dry_run: boolean }>();
      return [isDry, ...results.map(({ status, code, data }) => [status, code ?? data?.status])];
    };
    const statusOf = async (id: string) => (await findJob(database.db, id))?.status;
    expect(await cancel({ ids: [own, other], dry_run: true })).toEqual([true, [200, 'cancelled'], [404, 'job_not_found']]);
    expect([await statusOf(own), await entriesOf(own)]).toEqual(['queued', []]);
    expect(await cancel({ ids: [own, other] })).toEqual([false, [200, 'cancelled'], [404, 'job_not_found']]);
    expect([await statusOf(own), await statusOf(other)]).toEqual(['cancelled', 'queued']);
  });

  test('cancel and retry are recorded with their caller, and without the input', async () => {
    const id = await started('ann');
    await call('POST', `/jobs/${id}/cancel`);
    await call('POST', `/jobs/${id}/retry`, 'staff');
    expect(await entriesOf(id)).toMatchObject([
      { action: 'job.cancelled', actor_id: 'ann', before: { status: 'queued' }, after: { status: 'cancelled' } },
      { action: 'job.retried', actor_id: 'staff', before: { status: 'cancelled' }, after: { status: 'queued' } },
    ]);
    expect(JSON.stringify(await entriesOf(id))).not.toMatch(/token|secret/);
  });

  test('events tell the progress until the end, and a client that reconnects gets only what is new', async () => {
    const open = Promise.withResolvers<void>();
    gate = open.promise;
    const id = await started('ann');
    const worker = await startJobWorker(database.db, { pollIntervalMs: 20 });
    const address = await kit.listen();
    const follow = async (headers: Record<string, string> = {}) => {
      const response = await fetch(`${address}/v1/jobs/${id}/events`, { headers: { 'x-user': 'ann', ...headers } });
      let text = '';
      for await (const chunk of response.body ?? []) {
        text += Buffer.from(chunk).toString();
        if (text.includes('"progress":40')) open.resolve();
      }
      return text;
    };
    const text = await follow();
    gate = undefined;
    await worker.stop();
    expect(text).toContain('event: progress');
    expect(text).toContain('"progress_message":"rendered"');
    expect(text).toMatch(/event: end[\s\S]*"status":"succeeded"/);
    const last = [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? '';
    expect(await follow({ 'last-event-id': last })).toBe('event: end\ndata: null\n\n');
  });
});
