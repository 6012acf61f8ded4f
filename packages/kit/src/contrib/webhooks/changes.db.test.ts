import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepareAccountsAndKeys, startKeyApp, type KeyApp } from '../../../test/key-app.ts';
import { migrateWebhooks } from '../../../test/webhooks/outbox.ts';
import type { User } from '../../auth/index.ts';
import { migrate } from '../../db/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { auditMigrations } from '../audit/migrations/all.ts';
import { audit } from '../audit/module.ts';
import { verifyChain } from '../audit/chain/verify-chain.ts';
import { WebhookEndpointController } from './controller.ts';
import { disableEndpoint } from './endpoints/disable.ts';
import { webhooks } from './module.ts';
import { auditLog } from '../../../test/audit-log.ts';

interface Entry {
  readonly action: string;
  readonly before: Record<string, unknown> | null;
  readonly after: Record<string, unknown> | null;
  readonly request_id: unknown;
}

describeDatabases('audit entries of webhook endpoints', (database) => {
  let kit: KeyApp;
  let ada: User;
  beforeAll(async () => {
    await prepareAccountsAndKeys(database.db);
    await migrateWebhooks(database.db);
    await migrate(database.db, [{ name: 'audit', migrations: auditMigrations }]);
    const mount = { '/v2': { '/hooks': WebhookEndpointController } };
    kit = await startKeyApp(database.db, { modules: [audit(), webhooks()], app: { mount } });
    ada = await kit.user('ada');
  });
  afterAll(() => kit.app.close());

  const call = (method: string, path: string, payload?: object) => kit.call(method, `/v2/hooks${path}`, { 'x-act-as': 'ada' }, payload);
  const create = () => call('POST', '', { url: 'https://hooks.example.com/a', events: ['order.*'], description: 'first' });
  const entriesOf = async (id: string) => (await auditLog(database.db, { target_id: id })) as unknown as readonly Entry[];

  test('a ping and a recovery leave an entry, whether their owner or staff asks', async () => {
    const { id } = (await create()).body;
    const { body: delivery } = await call('POST', `/${id}/ping`);
    await call('POST', `/${id}/recover`, { since: '2029-01-01T00:00:00Z' });
    expect((await entriesOf(id)).slice(1)).toMatchObject([
      { action: 'webhook_endpoint.pinged', actor_id: ada.id, metadata: { delivery_id: delivery.id } },
      { action: 'webhook_endpoint.recovered', actor_id: ada.id, metadata: { requeued: 0, added: 0 } },
    ]);
    await call('DELETE', `/${id}`);
  });

  test('a staff member gets the fields of every owner over HTTP: the owner is shown in the admin site', async () => {
    const { id } = (await create()).body;
    const before = Object.keys((await call('GET', `/${id}`)).body);
    await database.db.query('update users set is_staff = $2 where id = $1', [ada.id, true]);
    expect(Object.keys((await call('GET', `/${id}`)).body)).toEqual(before);
    expect(before).not.toContain('owner_id');
    await database.db.query('update users set is_staff = $2 where id = $1', [ada.id, false]);
    await call('DELETE', `/${id}`);
  });

  test('create, change, rotate, disable, enable and delete each leave one entry that says who, what and in which request', async () => {
    const { body: created } = await create();
    const { id } = created;
    await call('PATCH', `/${id}`, { description: 'second', events: ['*'] });
    const { body: rotated } = await call('POST', `/${id}/rotate-secret`);
    await call('PATCH', `/${id}`, { is_active: false });
    await call('PUT', `/${id}`, { is_active: true });
    await call('DELETE', `/${id}`);
    const entries = await entriesOf(id);
    expect(entries.map(({ action }) => action)).toEqual([
      'webhook_endpoint.created',
      'webhook_endpoint.updated',
      'webhook_endpoint.secret_rotated',
      'webhook_endpoint.updated',
      'webhook_endpoint.updated',
      'webhook_endpoint.deleted',
    ]);
    for (const entry of entries) {
      expect(entry).toMatchObject({
        actor_id: ada.id,
        actor_name: 'ada',
        actor_scheme: 'session',
        target_type: 'webhook_endpoint',
        metadata: { owner_id: ada.id },
      });
      expect(entry.request_id).toBeTypeOf('string');
    }
    const [made, changed, turned, disabled, enabled, deleted] = entries;
    expect(made).toMatchObject({ before: null, after: { url: 'https://hooks.example.com/a', events: ['order.*'], description: 'first' } });
    expect(changed).toMatchObject({
      before: { description: 'first', events: ['order.*'] },
      after: { description: 'second', events: ['*'] },
    });
    // The name says secret, so the value is masked, as every such value is.
    expect([turned?.before?.['previous_secret_expires_at'], turned?.after?.['previous_secret_expires_at']]).toEqual([null, '[masked]']);
    expect(disabled).toMatchObject({ before: { is_active: true }, after: { is_active: false, disabled_reason: 'manual' } });
    expect(enabled).toMatchObject({ before: { is_active: false }, after: { is_active: true, disabled_reason: null } });
    expect(deleted).toMatchObject({ before: { description: 'second' }, after: null });
    const told = JSON.stringify(entries.map(({ before, after }) => [before, after]));
    for (const { secret } of [created, rotated]) expect(told).not.toContain(String(secret).slice('whsec_'.length));
    expect(await verifyChain(database.db)).toMatchObject({ ok: true });
  });

  test('an endpoint that the worker disables leaves an entry by the worker', async () => {
    const { body } = await create();
    await database.db.transaction((tx) => disableEndpoint(tx, body.id, 'gone'));
    expect((await entriesOf(body.id)).slice(1)).toMatchObject([
      {
        action: 'webhook_endpoint.disabled',
        actor_id: null,
        actor_name: 'webhook worker',
        before: { is_active: true, disabled_reason: null, disabled_at: null },
        after: { is_active: false, disabled_reason: 'gone' },
        request_id: null,
      },
    ]);
    await database.db.transaction((tx) => disableEndpoint(tx, body.id, 'gone'));
    expect(await entriesOf(body.id)).toHaveLength(2);
    await call('DELETE', `/${body.id}`);
  });

  test('what was refused leaves no entry, and an entry that cannot be written leaves no change', async () => {
    const { body } = await create();
    expect((await call('PATCH', `/${body.id}`, { url: 'https://127.0.0.1/' })).status).toBe(422);
    expect(await entriesOf(body.id)).toHaveLength(1);
    await database.db.query('alter table audit_inbox rename to gone');
    for (const [method, path, payload] of [
      ['POST', '', { url: 'https://hooks.example.com/b', events: ['*'] }],
      ['PATCH', `/${body.id}`, { description: 'lost' }],
      ['POST', `/${body.id}/rotate-secret`],
      ['DELETE', `/${body.id}`],
    ] as const)
      expect((await call(method, path, payload)).status).toBe(500);
    await database.db.query('alter table gone rename to audit_inbox');
    expect((await call('GET', '')).body).toMatchObject({
      items: [{ id: body.id, description: 'first', previous_secret_expires_at: null }],
      count: 1,
    });
  });
});
