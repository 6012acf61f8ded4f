import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepareAccountsAndKeys, startKeyApp, type KeyApp } from '../../../test/key-app.ts';
import { audit } from '../audit/module.ts';
import { auditMigrations } from '../audit/migrations/all.ts';
import { verifyChain } from '../audit/chain/verify-chain.ts';
import type { Module } from '../../app/declare/module.ts';
import type { User } from '../../auth/people/principal.ts';
import type { Db } from '../../db/engine/db.ts';
import { modelDrift } from '../../db/migrations/drift.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { createApiKey } from './manage/create.ts';
import { apiKeyMigrations } from './migrations/all.ts';
import { apiKeys as model } from './models.ts';
import { revokeApiKey } from './manage/revoke.ts';
import { rotateApiKey } from './manage/rotate.ts';
import { updateApiKey } from './manage/update.ts';
import { auditLog } from '../../../test/audit-log.ts';

interface Published {
  readonly type: string;
  readonly data: Record<string, unknown>;
  readonly audience: object;
}

/** Stands where the webhook module does: writes a row in the transaction it is given. */
const outbox: Module = {
  name: 'outbox',
  provides: () => ({
    events: {
      async publish(tx, events) {
        if (!tx.isTransaction) throw new Error('not in the transaction of the change');
        for (const { type, data, ...audience } of events)
          await tx.query('insert into outbox (event) values ($1)', [JSON.stringify({ type, data, audience })]);
      },
    },
  }),
};

describeDatabases(
  'changes of keys',
  (database) => {
    let kit: KeyApp;
    let ada: User;
    beforeAll(async () => {
      await migrate(database.db, [{ name: 'audit', migrations: auditMigrations }]);
      await database.db.query('create table outbox (event text not null)');
      kit = await startKeyApp(database.db, { modules: [audit(), outbox] });
      ada = await kit.user('ada');
    });
    afterAll(() => kit.app.close());

    const events = async (): Promise<Published[]> =>
      (await database.db.query<{ event: string }>('select event from outbox')).map(({ event }) => JSON.parse(event) as Published);
    const entries = (targetId: string) => auditLog(database.db, { target_id: targetId });
    const counts = async (db: Db) => {
      const [row] = await db.query<Record<string, number | bigint>>(
        'select (select count(*) from api_keys) as keys, (select count(*) from audit_inbox) + (select count(*) from audit_entries) as entries, (select count(*) from outbox) as events',
      );
      return Object.values(row ?? {}).map(Number);
    };

    test('the model is what the migration makes', () => {
      expect(modelDrift([{ name: 'apikeys', models: [model], migrations: apiKeyMigrations }])).toEqual([]);
    });

    test('create, edit, rotate and revoke over HTTP each leave one audit entry and one event', async () => {
      const headers = { 'x-act-as': 'ada' };
      const { body } = await kit.call('POST', '/v1/api-keys', headers, { name: 'CI', scopes: ['orders:read'] });
      await kit.call('PATCH', `/v1/api-keys/${body.id}`, headers, { scopes: ['orders:write'] });
      const rotated = await kit.call('POST', `/v1/api-keys/${body.id}/rotate`, headers, { grace_seconds: 60 });
      await kit.call('DELETE', `/v1/api-keys/${body.id}`, headers);
      await kit.call('DELETE', `/v1/api-keys/${body.id}`, headers);
      const recorded = await entries(String(body.id));
      expect(recorded.map(({ action }) => action)).toEqual(['api_key.created', 'api_key.updated', 'api_key.rotated', 'api_key.revoked']);
      for (const entry of recorded) {
        expect(entry).toMatchObject({ actor_id: ada.id, actor_name: 'ada', actor_scheme: 'session', target_type: 'api_key' });
        expect(entry['request_id']).toBeTypeOf('string');
        expect(entry['metadata']).toMatchObject({ owner_id: ada.id });
      }
      const [created, updated, replaced, revoked] = recorded;
      expect(created).toMatchObject({
        before: null,
        after: { name: 'CI', prefix: body.prefix, scopes: ['orders:read'], rate_limit: null },
      });
      expect(updated).toMatchObject({ before: { scopes: ['orders:read'] }, after: { scopes: ['orders:write'] } });
      const unchanged = { name: 'CI', prefix: body.prefix, scopes: ['orders:write'] };
      expect(replaced).toMatchObject({ before: unchanged, after: unchanged, metadata: { grace_seconds: 60 } });
      expect(revoked).toMatchObject({ before: { revoked_at: null }, after: { revoked_at: kit.clock.now().toISOString() } });
      const published = (await events()).filter(({ data }) => data['id'] === body.id);
      expect(published.map(({ type }) => type)).toEqual(['api_key.created', 'api_key.updated', 'api_key.rotated', 'api_key.revoked']);
      for (const { audience } of published) expect(audience).toEqual({ owner: ada.id });
      const told = JSON.stringify([recorded.map(({ seq: _seq, ...entry }) => entry), published]);
      for (const { key } of [body, rotated.body]) expect(told).not.toContain(String(key).slice(17, 60));
      expect(told).not.toMatch(/digest/);
      expect(await verifyChain(database.db)).toMatchObject({ ok: true });
    });

    test('programs name who acts, and why', async () => {
      const { apiKey } = await createApiKey(kit.db, { user: ada, name: 'CI', scopes: [], by: 'nightly job', requestId: 'r-1' });
      await revokeApiKey(kit.db, apiKey, { by: ada, reason: 'leaked in a log' });
      expect(await entries(apiKey.id)).toMatchObject([
        { action: 'api_key.created', actor_id: null, actor_name: 'nightly job', request_id: 'r-1' },
        { action: 'api_key.revoked', actor_id: ada.id, metadata: { reason: 'leaked in a log' } },
      ]);
    });

    test('change, entry and event are in one transaction: all of them or none', async () => {
      const { apiKey } = await createApiKey(kit.db, { user: ada, name: 'CI', scopes: [] });
      const before = await counts(kit.db);
      const rolledBack = kit.db.transaction(async (tx) => {
        await createApiKey(tx, { user: ada, name: 'other', scopes: [] });
        await rotateApiKey(tx, apiKey);
        await updateApiKey(tx, apiKey, { name: 'renamed' });
        await revokeApiKey(tx, apiKey);
        throw new Error('no');
      });
      await expect(rolledBack).rejects.toThrow('no');
      expect(await counts(kit.db)).toEqual(before);
      await database.db.query('alter table outbox rename to gone');
      await expect(revokeApiKey(kit.db, apiKey)).rejects.toThrow(/outbox/);
      await database.db.query('alter table gone rename to outbox');
      expect(await counts(kit.db)).toEqual(before);
      await expect(rotateApiKey(kit.db, apiKey), 'the key is not revoked').resolves.toBeDefined();
    });

    test('an edit that changes nothing records nothing', async () => {
      const { apiKey } = await createApiKey(kit.db, { user: ada, name: 'CI', scopes: [] });
      const before = await counts(kit.db);
      await updateApiKey(kit.db, apiKey, {});
      expect(await counts(kit.db)).toEqual(before);
    });
  },
  { prepare: prepareAccountsAndKeys, template: 'accounts_and_keys' },
);
