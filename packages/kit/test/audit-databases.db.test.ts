import { expect, test } from 'vitest';
import { openDatabase } from '../src/db/index.ts';
import { audit, sealEntries, verifyChain } from '../src/contrib/audit/index.ts';
import { createEndpoint, webhooks } from '../src/contrib/webhooks/index.ts';
import { createApp } from '../src/app/index.ts';
import { createSqliteDatabase, describeDatabases, testApp } from '../src/testing/index.ts';
import { LOOPBACK } from './webhooks/outbox.ts';

describeDatabases('changes in several databases', (database) => {
  const start = async (modules: ReturnType<typeof audit>[]) => {
    const place = await createSqliteDatabase();
    const shop = await openDatabase(place.url, { name: 'shop' });
    const app = await testApp({ database: { default: database.db, shop }, modules, mount: {} });
    const end = async () => {
      await app.close();
      await shop.close();
      await place.remove();
    };
    return { app: app.app, shop, [Symbol.asyncDispose]: end };
  };
  const endpoint = { owner: 'ann', url: 'http://127.0.0.1:9/', events: ['*'] };

  test('are recorded where they happen, each database with a chain of its own', async () => {
    const modules = [audit({ databases: ['default', 'shop'] }), webhooks({ databases: ['default', 'shop'], urlPolicy: LOOPBACK })];
    await using started = await start(modules);
    const { app, shop } = started;
    await shop.transaction(async (tx) => {
      const created = await createEndpoint(tx, endpoint);
      await app.registry.audit?.record(tx, [{ action: 'tried', target_type: 'endpoint', target_id: created.endpoint.id }]);
    });
    await sealEntries(shop, { wait: true });
    expect(await verifyChain(shop)).toMatchObject({ ok: true, checked: 1 });
    expect(await verifyChain(database.db)).toMatchObject({ ok: true, checked: 0 });
  });

  test('a change that cannot be recorded does not happen, and the reason says what to do', async () => {
    await using started = await start([audit(), webhooks({ databases: ['default', 'shop'], urlPolicy: LOOPBACK })]);
    const { app, shop } = started;
    const change = shop.transaction(async (tx) => {
      await createEndpoint(tx, endpoint);
      await app.registry.audit?.record(tx, [{ action: 'tried', target_type: 'endpoint', target_id: 'x' }]);
    });
    await expect(change).rejects.toThrow('Use audit({ databases: ["default","shop"] }).');
    expect(await shop.query('select id from webhook_endpoints')).toEqual([]);
  });

  test('a database that was opened under another name than the app uses is refused at start-up', () => {
    const make = () => createApp({ database: { default: database.db, shop: database.db }, mount: {} });
    expect(make).toThrow('The database passed as "shop" was opened as "default". openDatabase(url, { name: "shop" })');
  });

  test('invalid options, or no database at all, are refused', () => {
    expect(() => audit({ databases: [] })).toThrow('databases is empty');
    expect(() => audit({ database: 'shop' } as never)).toThrow('Did you mean "databases"?');
  });
});
