import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createPostgresDatabase } from 'kit/testing';
import { TcpProxy } from '../../../../../../test/provision/tcp-proxy.ts';
import { runUntilKilled } from '../../../../test/run-until-killed.ts';
import type { Authenticator } from '../../../auth/index.ts';
import { openDatabase } from '../../../db/open/open-database.ts';
import { Controller, jsonSchema, route } from '../../../http/index.ts';
import { allowAny } from '../../../permissions/index.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { testApp } from '../../../testing/test-app.ts';
import { metrics } from '../../metrics/index.ts';
import { requests } from '../index.ts';
import { requestLogs } from './log.ts';

class Open extends Controller {
  get = route.get('/', { permission: allowAny, response: jsonSchema<object>({}) }, () => ({}));
}
const named: Authenticator = {
  name: 'named',
  securityScheme: { type: 'http', scheme: 'named' },
  authenticate({ headers }) {
    const id = headers['x-name'];
    if (typeof id !== 'string') return null;
    return {
      user: { id, username: id, email: null, is_active: true, is_staff: false, is_superuser: false },
      scheme: 'named',
      scopes: null,
    };
  },
};

test('while the database is away requests go on, the queue fills up to its limit and the rest is counted; then it is written', async () => {
  const place = await createPostgresDatabase(inject('postgresUrl'));
  const direct = Number(new URL(place.url).port);
  const proxy = await TcpProxy.start(direct);
  const db = await openDatabase(proxy.through(place.url), { connectMsMax: 500, silenceMsMax: 300, waitMsMax: 500 });
  const kit = await testApp({
    database: db,
    authenticators: [named],
    modules: [requests({ queueMax: 20 }), metrics({ path: '/metrics', permission: allowAny, process: false })],
    mount: { '/v1': { '/open': Open } },
  });
  onTestFinished(async () => {
    await kit.close();
    await db.close();
    await proxy.stop();
    await place.remove();
  });
  const ask = async (headers: Record<string, string> = {}) => (await kit.inject({ url: '/v1/open', headers })).statusCode;
  const dropped = async () =>
    Number(/kit_request_log_rows_total\{outcome="dropped"\} (\d+)/.exec((await kit.inject('/metrics')).body)?.[1] ?? 0);
  const log = requestLogs.of(db);
  const owners = async () =>
    (
      await db.query<{ owner_id: string; n: number | bigint }>(
        'select owner_id, count(*) as n from request_log group by owner_id order by owner_id',
      )
    ).map(({ owner_id: owner, n }) => [owner, Number(n)]);
  proxy.lead('nowhere');
  proxy.reset();
  // A flood of strangers takes a quarter of the queue and no more.
  for (let call = 0; call < 30; call += 1) expect(await ask()).toBe(200);
  expect(await dropped()).toBe(25);
  for (let call = 0; call < 20; call += 1) expect(await ask({ 'x-name': 'ada' })).toBe(200);
  await log.flush();
  expect(await dropped()).toBe(30);
  proxy.lead(direct);
  await expect
    .poll(
      async () => {
        await log.flush();
        return owners().catch(() => []);
      },
      { timeout: 60_000 },
    )
    .toEqual([
      ['', 5],
      ['ada', 15],
    ]);
  // The counts are whole: they need a place per caller and operation, not per request.
  const counted = await db.query<{ owner_id: string; requests: string }>('select owner_id, requests from request_usage order by owner_id');
  expect(counted.map(({ owner_id: owner, requests: calls }) => [owner, Number(calls)])).toEqual([
    ['', 30],
    ['ada', 20],
  ]);
});

describeDatabases('processes that are killed while they write the request log', (database) => {
  test('lose at most what waited, and rows and counts agree', async () => {
    for (const lines of [2, 9]) {
      const [before] = lines === 2 ? [undefined] : await database.db.query<{ n: number | bigint }>('select count(*) as n from request_log');
      const served = await runUntilKilled(join(import.meta.dirname, '../../../../test/log-until-killed.ts'), [database.url], lines);
      const [rows] = await database.db.query<{ n: number | bigint }>('select count(*) as n from request_log');
      const [counts] = await database.db.query<{ n: number | bigint }>('select sum(requests) as n from request_usage');
      expect(served).toBeGreaterThan(0);
      expect(Number(rows?.n)).toBeGreaterThanOrEqual(Number(before?.n ?? 0) + served);
      expect(Number(counts?.n)).toBe(Number(rows?.n));
    }
  }, 240_000);
});
