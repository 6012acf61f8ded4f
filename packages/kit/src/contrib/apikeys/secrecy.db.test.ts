import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { prepareAccountsAndKeys, startKeyApp } from '../../../test/key-app.ts';
import { auditMigrations } from '../audit/migrations/all.ts';
import { audit } from '../audit/module.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { requestId, requestLog } from '../../middleware/index.ts';
import { isAuthenticated } from '../../permissions/built-ins.ts';
import { describeDatabases, type TestDatabase } from '../../testing/databases.ts';
import { formatKey, keyPattern, newSecret } from './key/key.ts';
import { revokeApiKey } from './manage/revoke.ts';

class FailingController extends Controller {
  fail = route.get('/', { permission: isAuthenticated }, () => {
    throw new Error('something unexpected');
  });
}

async function dump(database: TestDatabase): Promise<string> {
  const tables =
    database.dialect === 'sqlite'
      ? "select name from sqlite_master where type = 'table'"
      : "select tablename as name from pg_tables where schemaname = 'public'";
  const texts: string[] = [];
  for (const { name } of await database.db.query<{ name: string }>(tables)) {
    const rows = await database.db.query(`select * from "${name}"`);
    texts.push(JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)));
  }
  if (database.dialect === 'sqlite') {
    // Also what the file keeps of rows that were overwritten.
    const file = database.url.slice('sqlite:'.length);
    for (const part of [file, `${file}-wal`]) texts.push((await readFile(part).catch(() => Buffer.alloc(0))).toString('latin1'));
  } else {
    for (const { query } of await database.db.query<{ query: string }>('select query from pg_stat_activity')) texts.push(query);
  }
  return texts.join('\n');
}

describeDatabases(
  'secrecy',
  (database) => {
    test('neither the database nor any log at any level contains a raw key or a secret part', async () => {
      await migrate(database.db, [{ name: 'audit', migrations: auditMigrations }]);
      const kit = await startKeyApp(database.db, {
        modules: [audit()],
        app: { middleware: [requestId(), requestLog()], mount: { '/bad': { '/': FailingController } }, trustedProxies: ['loopback'] },
      });
      await kit.user('ada');
      const keys: string[] = [];
      for (let round = 0; round < 5; round += 1) {
        const { body } = await kit.call('POST', '/v1/api-keys', { 'x-act-as': 'ada' }, { name: `key ${round}`, scopes: ['orders:read'] });
        const rotated = await kit.call('POST', `/v1/api-keys/${body.id}/rotate`, { 'x-act-as': 'ada' }, { grace_seconds: 60 });
        const wrong = formatKey('kit', { prefix: String(body.prefix), secret: newSecret() });
        keys.push(String(body.key), String(rotated.body.key), wrong);
        for (const raw of [String(body.key), String(rotated.body.key), wrong, `${wrong}x`]) {
          const from = { 'x-forwarded-for': `192.0.2.${round}` };
          await kit.call('GET', '/v1/orders', { 'x-api-key': raw, ...from });
          await kit.call('GET', '/v1/invoices', { authorization: `Bearer ${raw}`, ...from });
          await kit.call('GET', '/bad', { 'x-api-key': raw, ...from });
          await kit.call('POST', '/v1/api-keys', { 'x-api-key': raw, ...from }, { name: raw, scopes: [raw] });
          // Keys where no key belongs: as a name, an id, an address, a request id, a program's name.
          const misplaced = await kit.call('POST', '/v1/api-keys', { 'x-act-as': 'ada' }, { name: `mine: ${raw}`, scopes: [] });
          expect([misplaced.status, misplaced.body.errors[0].location]).toEqual([422, ['body', 'name']]);
          await kit.call('PATCH', `/v1/api-keys/${body.id}`, { 'x-act-as': 'ada' }, { name: raw });
          await kit.call('DELETE', `/v1/api-keys/${raw}`, { 'x-act-as': 'ada', 'user-agent': `client/${raw}` });
          await kit.call('PATCH', `/v1/api-keys/${body.id}`, { 'x-act-as': 'ada', 'x-request-id': raw }, { name: `renamed ${round}` });
          await kit.call('GET', `/${raw}?key=${raw}`, from);
        }
        await revokeApiKey(kit.db, String(body.id), { reason: `found in a log: ${String(rotated.body.key)}` });
      }
      await kit.app.close();
      const log = kit.log.join('');
      expect(log).toContain('something unexpected');
      const places = { database: await dump(database), log };
      for (const [place, text] of Object.entries(places)) {
        expect({ place, key: keyPattern.exec(text)?.[0].slice(0, 16) }).toEqual({ place, key: undefined });
        for (const raw of keys) {
          const parts = [raw, raw.slice(17), raw.slice(17, 60)];
          expect({ place, found: parts.filter((part) => text.includes(part)).length }).toEqual({ place, found: 0 });
        }
      }
    });
  },
  { prepare: prepareAccountsAndKeys, template: 'accounts_and_keys' },
);
