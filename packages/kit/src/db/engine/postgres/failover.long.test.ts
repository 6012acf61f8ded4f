import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { NO_PATRONI, PatroniCluster } from '../../../../../../test/provision/patroni-cluster.ts';
import { TcpProxy } from '../../../../../../test/provision/tcp-proxy.ts';
import { createApp } from '../../../app/assemble/create-app.ts';
import { migrateApp } from '../../../app/data/migration-modules.ts';
import type { App } from '../../../app/declare/module.ts';
import { job, jobs, startJob } from '../../../contrib/jobs/index.ts';
import { Controller } from '../../../http/compile/controller.ts';
import { route } from '../../../http/declare/route.ts';
import { HealthController } from '../../../middleware/health.ts';
import { allowAny } from '../../../permissions/built-ins.ts';
import { createTable, migration, model, openDatabase, t } from '../../index.ts';
import { engineOf } from '../handle.ts';

if (NO_PATRONI !== undefined) console.warn(NO_PATRONI);

const WRITERS = 4;
/** From the first connection that leads to a server that takes writes to the first write of the app, its readiness and its job. */
const BACK_MS_MAX = 5000;

const columns = { id: t.uuidv7().pk(), key: t.text(40) };
const notes = model('notes', columns);
const effects = model('effects', columns);
const work = job('notes.work', {
  input: z.object({ key: z.string() }),
  retry: { attempts: 20, backoff: 'fixed', firstDelaySeconds: 1 },
  run: ({ input, commit }) =>
    commit(async (tx) => void (await tx.query('insert into effects (id, key) values (gen_random_uuid(), $1)', [input.key]))),
});
class NoteController extends Controller {
  add = route.post(
    '/',
    {
      body: z.object({ key: z.string() }),
      permission: allowAny,
      csrf: false,
      atomic: true,
      idempotent: { anonymous: () => 'everybody' },
    },
    async ({ tx, body }) => {
      await tx.query('insert into notes (id, key) values (gen_random_uuid(), $1)', [body.key]);
      await startJob(tx, work, { key: body.key });
    },
  );
}

const appOn = (url: string): App =>
  createApp({
    database: url,
    modules: [
      {
        name: 'notes',
        models: [notes, effects],
        migrations: [migration('0001_initial', [createTable('notes', columns), createTable('effects', columns)])],
      },
      jobs({ jobs: [work], worker: true }),
    ],
    mount: { '/': { '/notes': NoteController, '/health': HealthController } },
    log: { level: 'silent' },
  });

describe.runIf(NO_PATRONI === undefined)('an app on a cluster of Patroni', { timeout: 1_800_000 }, () => {
  let cluster: PatroniCluster;
  let proxy: TcpProxy;
  beforeEach(async () => {
    cluster = await PatroniCluster.start();
    proxy = await TcpProxy.start((await cluster.leader())?.port ?? 0);
  });
  afterEach(async () => {
    await proxy?.stop();
    await cluster?.stop();
  });

  /** The first moment at which a new connection leads to a server that takes writes, other than `before`. */
  async function writableAt(url: string, before: number): Promise<number> {
    for (;;) {
      const client = new pg.Client({ connectionString: url.replace(/\?.*/, ''), connectionTimeoutMillis: 500 });
      client.on('error', () => undefined);
      try {
        await client.connect();
        const { rows } = await client.query<{ port: string; value: string }>(
          `select current_setting('port') as port, current_setting('transaction_read_only') as value`,
        );
        if (rows[0]?.value === 'off' && Number(rows[0].port) !== before) return performance.now();
      } catch {
        // not yet
      } finally {
        client.end().catch(() => undefined);
      }
      await delay(50);
    }
  }

  async function failover(url: string, where: () => string, turn: (follow: Promise<void>) => Promise<unknown>): Promise<void> {
    const before = (await cluster.leader())?.port ?? 0;
    proxy.lead(before);
    const app = appOn(url);
    await migrateApp(app);
    await app.start();
    const acknowledged: string[] = [];
    const writes: number[] = [];
    const answers = new Map<string, number>();
    const over = new AbortController();
    const writer = async (index: number): Promise<void> => {
      for (let count = 0; !over.signal.aborted; count += 1) {
        const key = `${url.length}-${before}-${index}-${count}`;
        for (let isDone = false; !isDone;) {
          const headers = { 'content-type': 'application/json', 'idempotency-key': key };
          const response = await app.inject({ method: 'POST', url: '/notes', headers, payload: JSON.stringify({ key }) });
          const answer = `${response.statusCode} ${response.statusCode < 300 ? '' : response.json<{ code: string }>().code}`;
          answers.set(answer, (answers.get(answer) ?? 0) + 1);
          isDone = response.statusCode < 300;
          await delay(20);
        }
        acknowledged.push(key);
        writes.push(performance.now());
      }
    };
    const writers = Array.from({ length: WRITERS }, (_, index) => writer(index));
    await vi.waitUntil(() => acknowledged.length > 20, { timeout: 60_000 });
    const follow = (async () => {
      while (!over.signal.aborted) {
        const leader = await cluster.leader();
        if (leader !== undefined && leader.port !== before) proxy.lead(leader.port);
        await delay(100);
      }
    })();
    await turn(follow);
    const writable = await writableAt(where(), before);
    await vi.waitUntil(() => writes.some((at) => at > writable), { timeout: 60_000, interval: 20 });
    const backMs = (writes.find((at) => at > writable) as number) - writable;
    await vi.waitUntil(async () => (await app.inject('/health/ready')).statusCode === 200, { timeout: 60_000, interval: 50 });
    const readyMs = performance.now() - writable;
    await delay(3000);
    over.abort();
    await Promise.all([...writers, follow]);
    const count = async (table: string) =>
      Number((await app.db.query<{ n: number }>(`select count(*) as n from ${table} where key = any($1)`, [acknowledged]))[0]?.n);
    await vi.waitUntil(async () => (await count('effects')) >= acknowledged.length, { timeout: 120_000, interval: 200 });
    const rows = await count('notes');
    const done = await count('effects');
    console.log(
      `${expect.getState().currentTestName}: writes back after ${Math.round(backMs)} ms, ready after ${Math.round(readyMs)} ms; ` +
        `${acknowledged.length} acknowledged, ${rows} rows, ${done} jobs; ${JSON.stringify(Object.fromEntries(answers))}`,
    );
    await vi.waitUntil(() => proxy.silentConnections === 0 && proxy.connectionsTo(before) === 0, { timeout: 60_000, interval: 100 });
    await app.close();
    expect({ rows, done }).toEqual({ rows: acknowledged.length, done: acknowledged.length });
    expect([...answers.keys()].filter((answer) => answer.startsWith('500'))).toEqual([]);
    expect(Math.max(backMs, readyMs)).toBeLessThan(BACK_MS_MAX);
  }

  const hosts = () => cluster.url(cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(','));
  const all = () => `${hosts()}?target_session_attrs=read-write`;

  test('behind HAProxy loses and doubles nothing in a switchover', async () => {
    const url = cluster.url(cluster.port);
    await failover(
      url,
      () => url,
      () => cluster.switchover(),
    );
  });

  test('behind HAProxy loses and doubles nothing when the server that takes writes is killed', async () => {
    const url = cluster.url(cluster.port);
    await failover(
      url,
      () => url,
      () => cluster.killLeader(),
    );
  });

  test('behind an address that moves new connections only, when its machine vanishes without a word', async () => {
    const url = cluster.url(proxy.port);
    await failover(
      url,
      () => url,
      async () => {
        proxy.silence();
        proxy.lead('nowhere');
        await cluster.killLeader();
      },
    );
  });

  test('with all hosts in the URL, in a switchover', async () => {
    await failover(
      all(),
      () => cluster.url(proxy.port),
      () => cluster.switchover(),
    );
  });

  test('what kit doctor asks tells a replica and its lag from the primary and its replicas', async () => {
    const factsOf = async (wanted: string) => {
      const db = await openDatabase(`${hosts()}?target_session_attrs=${wanted}`);
      try {
        return (await engineOf(db).serverFacts?.())?.server;
      } finally {
        await db.close();
      }
    };
    expect(await factsOf('primary')).toMatchObject({ isStandby: false, isReadOnly: false, replicas: 2, pooler: 'none' });
    expect(await factsOf('standby')).toMatchObject({ isStandby: true, isReadOnly: true, replicaLagMs: expect.any(Number) as number });
  });
});
