import { afterAll, beforeAll, expect, test } from 'vitest';
import type { User } from '../src/auth/index.ts';
import { createApiKey, revokeApiKey, rotateApiKey } from '../src/contrib/apikeys/index.ts';
import { createEndpoint, deliverDue, verifySignature, webhooks, type CreatedEndpoint } from '../src/contrib/webhooks/index.ts';
import { generateFernetKey } from '../src/db/sealing/fernet.ts';
import { describeDatabases, fakeClock } from '../src/testing/index.ts';
import { prepareAccountsAndKeys, startKeyApp, type KeyApp } from './key-app.ts';
import { LOOPBACK, migrateWebhooks } from './webhooks/outbox.ts';
import { startReceiver, type Received, type Receiver } from './webhooks/receiver.ts';

interface Message {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const clock = fakeClock('2030-01-01T00:00:00.000Z');
const ALL = ['api_key.created', 'api_key.updated', 'api_key.rotated', 'api_key.revoked'];

describeDatabases(
  'changes of API keys as webhooks',
  (database) => {
    let kit: KeyApp;
    let receiver: Receiver;
    let people = 0;
    beforeAll(async () => {
      receiver = await startReceiver();
      kit = await startKeyApp(database.db, { clock, modules: [webhooks({ urlPolicy: LOOPBACK, secretKeys: [generateFernetKey()] })] });
    });
    afterAll(async () => {
      await kit.app.close();
      await receiver.close();
    });

    async function subscriber(): Promise<{ user: User; path: string; created: CreatedEndpoint }> {
      const user = await kit.user(`person${++people}`);
      const path = `/${user.username}`;
      const created = await createEndpoint(kit.db, { owner: user.id, url: receiver.url(path), events: ['api_key.*'] });
      return { user, path, created };
    }
    const messages = (received: readonly Received[]) => received.map(({ body }) => JSON.parse(body) as Message);
    const eventsOf = (user: User) =>
      database.db.query<{ type: string }>('select type from webhook_events where owner_id = $1 order by id', [user.id]);

    test('create, edit, rotate and revoke reach the owner, signed, in that order and without a secret', async () => {
      const { user, path, created } = await subscriber();
      const stranger = await subscriber();
      const headers = { 'x-act-as': user.username };
      // A millisecond apart: the worker sends what became due first.
      const later = (method: string, path: string, payload?: object) => (
        clock.advance(1),
        kit.call(method, `/v1/api-keys${path}`, headers, payload)
      );
      const { body } = await later('POST', '', { name: 'CI', scopes: ['orders:read'] });
      await later('PATCH', `/${body.id}`, { name: 'CI 2' });
      const rotated = await later('POST', `/${body.id}/rotate`, {});
      await later('DELETE', `/${body.id}`);
      expect((await eventsOf(user)).map(({ type }) => type)).toEqual(ALL);
      expect(receiver.of(path), 'nothing is sent from the request').toEqual([]);

      await deliverDue(kit.db, { concurrency: 1 });
      const received = receiver.of(path);
      expect(messages(received).map(({ type }) => type)).toEqual(ALL);
      for (const { headers: signed, body: text } of received) verifySignature(created.secret, signed, text, { now: clock.now() });
      for (const { data } of messages(received)) expect(data).toMatchObject({ id: body.id, prefix: body.prefix });
      expect(messages(received).map(({ data }) => data['name'])).toEqual(['CI', 'CI 2', 'CI 2', 'CI 2']);
      const told = received.map((each) => JSON.stringify(each)).join('\n');
      for (const key of [body.key, rotated.body.key]) expect(told).not.toContain(String(key).slice(17, 60));
      expect(told).not.toMatch(/digest/);
      expect(receiver.of(stranger.path), 'other owners hear nothing').toEqual([]);
    });

    test('what programs do in a transaction that is rolled back is never told', async () => {
      const { user, path } = await subscriber();
      const { apiKey } = await createApiKey(kit.db, { user, name: 'kept', scopes: [] });
      const rolledBack = kit.db.transaction(async (tx) => {
        await createApiKey(tx, { user, name: 'lost', scopes: [] });
        await rotateApiKey(tx, apiKey);
        await revokeApiKey(tx, apiKey);
        const [row] = await tx.query<{ count: number }>('select count(*) as count from webhook_events where owner_id = $1', [user.id]);
        expect(row?.count, 'the events are rows of this transaction').toBe(4);
        throw new Error('no');
      });
      await expect(rolledBack).rejects.toThrow('no');
      await deliverDue(kit.db);
      expect(messages(receiver.of(path)).map(({ type, data }) => `${type} ${String(data['name'])}`)).toEqual(['api_key.created kept']);
    });

    test('a change whose event cannot be stored is not made', async () => {
      const { user } = await subscriber();
      const { apiKey, raw } = await createApiKey(kit.db, { user, name: 'CI', scopes: [] });
      await database.db.query('alter table webhook_events rename to gone');
      await expect(revokeApiKey(kit.db, apiKey)).rejects.toThrow(/webhook_events/);
      await database.db.query('alter table gone rename to webhook_events');
      expect((await kit.call('GET', '/v1/whoami', { 'x-api-key': raw })).status).toBe(200);
      expect((await eventsOf(user)).map(({ type }) => type)).toEqual(['api_key.created']);
    });
  },
  {
    database: { clock },
    template: 'accounts_keys_and_webhooks',
    async prepare(db) {
      await prepareAccountsAndKeys(db);
      await migrateWebhooks(db);
    },
  },
);
