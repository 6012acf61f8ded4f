import { afterAll, beforeAll, expect, test } from 'vitest';
import { accountsOf } from '../src/contrib/accounts/users/accounts.ts';
import { AccountController } from '../src/contrib/accounts/index.ts';
import { createUser } from '../src/contrib/accounts/users/manage-users.ts';
import { formatKey, newPrefix, newSecret } from '../src/contrib/apikeys/key/key.ts';
import { rotateApiKey } from '../src/contrib/apikeys/index.ts';
import { audit } from '../src/contrib/audit/index.ts';
import { sealEntries } from '../src/contrib/audit/chain/seal.ts';
import { metrics } from '../src/contrib/metrics/index.ts';
import { migrate } from '../src/db/index.ts';
import { allowAny } from '../src/index.ts';
import { describeDatabases } from '../src/testing/index.ts';
import { prepareAccountsAndKeys, startKeyApp, type KeyApp } from './key-app.ts';

describeDatabases(
  'metrics of the modules',
  (database) => {
    let kit: KeyApp;
    beforeAll(async () => {
      const modules = [audit(), metrics({ path: '/metrics', permission: allowAny, process: false })];
      kit = await startKeyApp(database.db, {
        modules,
        keys: { failedAttempts: '8/min' },
        app: { mount: { '/': { '/account': AccountController } } },
      });
    });
    afterAll(() => kit.app.close());

    const scrape = async () => (await kit.app.inject('/metrics')).body;
    const count = (exposition: string, series: string) =>
      Number(
        exposition
          .split('\n')
          .find((line) => line.startsWith(`${series} `))
          ?.slice(series.length),
      );
    const use = (key: string) => kit.call('GET', '/v1/plain', { 'x-api-key': key });

    test('API keys are counted by outcome, and no key becomes a label', async () => {
      const key = await kit.key(await kit.user('ada'));
      const rotated = await rotateApiKey(database.db, key, { graceSeconds: 3600 });
      expect((await use(rotated.raw)).status).toBe(200);
      expect((await use(key.raw)).status).toBe(200);
      for (let index = 0; index < 4; index += 1) await use(`not-a-key-${index}`);
      const unknown = () => use(formatKey('kit', { prefix: newPrefix(), secret: newSecret() }));
      for (let index = 0; index < 4; index += 1) expect((await unknown()).status).toBe(401);
      expect((await unknown()).status).toBe(429);
      const exposition = await scrape();
      const of = (outcome: string) => count(exposition, `kit_apikeys_verifications_total{outcome="${outcome}"}`);
      expect(['accepted', 'previous', 'malformed', 'refused', 'throttled'].map(of)).toEqual([1, 1, 4, 4, 1]);
      expect(exposition).not.toMatch(/not-a-key|kit_[a-z0-9]{12}_/);
      expect(count(exposition, 'kit_authentications_total{scheme="none",outcome="refused"}')).toBe(8);
    });

    test('logins are counted by outcome, and no name becomes a label', async () => {
      const password = 'correct horse battery';
      await createUser(database.db, { username: 'grace', password }, accountsOf(kit.app.db).management(null));
      const logIn = async (login: string, given: string) =>
        (await kit.call('POST', '/account/login', {}, { login, password: given })).status;
      expect(await logIn('grace', password)).toBe(200);
      const statuses: number[] = [];
      for (let index = 0; index < 11; index += 1) statuses.push(await logIn('grace', 'wrong wrong wrong'));
      expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
      const exposition = await scrape();
      const of = (outcome: string) => count(exposition, `kit_accounts_logins_total{outcome="${outcome}"}`);
      expect(['succeeded', 'refused', 'throttled'].map(of)).toEqual([1, 10, 1]);
      expect(exposition).not.toContain('grace');
    });

    test('audit entries are counted by action once they are committed', async () => {
      const sink = kit.app.registry.audit!;
      const entry = (action: string) => ({ action, target_type: 'thing', target_id: 't1' });
      await database.db.transaction((tx) => sink.record(tx, [entry('thing.made'), entry('thing.made')]));
      await sink.record(database.db, [entry('thing.made')]);
      await expect(
        database.db.transaction(async (tx) => {
          await sink.record(tx, [entry('thing.undone')]);
          throw new Error('rolled back');
        }),
      ).rejects.toThrow('rolled back');
      for (let index = 0; index < 150; index += 1) await sink.record(database.db, [entry(`made.up.${index}`)]);
      const exposition = await scrape();
      expect(count(exposition, 'kit_audit_entries_total{action="thing.made"}')).toBe(3);
      expect(exposition).not.toContain('thing.undone');
      expect(exposition.match(/^kit_audit_entries_total\{/gm)?.length).toBeLessThanOrEqual(101);
    });

    test('the age of audit entries that are not sealed yet is shown, and 0 once all are', async () => {
      const age = async () => count(await scrape(), 'kit_audit_unsealed_age_seconds{database="default"}');
      await sealEntries(database.db);
      expect(await age()).toBe(0);
      const at = new Date(kit.app.clock.now().getTime() - 90_000);
      await database.db.query(
        `insert into audit_inbox (id, at, action, target_type, target_id, content_hash) values ($1, $2, 'a', 'b', 'c', 'd')`,
        ['01890000-0000-7000-8000-000000000000', at],
      );
      expect(await age()).toBeGreaterThanOrEqual(90);
      await database.db.query('delete from audit_inbox');
    });
  },
  {
    async prepare(db) {
      await prepareAccountsAndKeys(db);
      await migrate(db, [audit()]);
    },
  },
);
