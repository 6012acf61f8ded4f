import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { createPostgresDatabase } from 'kit/testing';
import { startLedger, steps } from '../../../test/idempotency/ledger.ts';
import { TcpProxy } from '../../../../../test/provision/tcp-proxy.ts';
import { openDatabase } from '../../db/open/open-database.ts';
import { LEASE_MS } from './record-store.ts';

test('the key of a request whose commit failed is free as soon as the database is back, not when its lease ends', async () => {
  const place = await createPostgresDatabase(inject('postgresUrl'));
  const direct = Number(new URL(place.url).port);
  const proxy = await TcpProxy.start(direct);
  const db = await openDatabase(proxy.through(place.url), { connectMsMax: 500, silenceMsMax: 300, waitMsMax: 500 });
  const ledger = await startLedger({ database: db });
  onTestFinished(async () => {
    steps.after = undefined;
    await ledger.close();
    await db.close();
    await proxy.stop();
    await place.remove();
  });
  const pay = () => ledger.call('ann', 'POST', 'payments', { account: 'a', amount: 5 }, { 'idempotency-key': 'key-1' });
  const rows = async () => (await db.query('select 1 from payments')).length;

  steps.after = () => {
    proxy.lead('nowhere');
    proxy.reset();
  };
  expect((await pay()).status).toBe(503);
  steps.after = undefined;
  const began = performance.now();
  proxy.lead(direct);
  await vi.waitFor(async () => expect((await pay()).status).toBe(201), { timeout: LEASE_MS - 10_000, interval: 50 });
  expect(performance.now() - began).toBeLessThan(LEASE_MS - 10_000);
  expect(await rows()).toBe(1);
  expect((await pay()).headers['idempotent-replayed']).toBe('true');
});
