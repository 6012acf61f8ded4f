import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { createEndpoint, publish, webhooks } from '../contrib/webhooks/index.ts';
import { describeDatabases } from '../testing/databases.ts';

const MISSING = '01890000-0000-7000-8000-000000000000';

describeDatabases('dry runs of the lists of modules', (database) => {
  let site: AdminApp;
  let staff: Browser;
  let reader: Browser;
  beforeAll(async () => {
    const roles = {
      of: ({ username }: { username: string }) => (username === 'reader' ? ('read_only' as const) : ('administrator' as const)),
    };
    site = await new AdminApp(database.db, [apiKeys(), webhooks()], {}, { roles }).ready();
    staff = await site.browser();
    reader = await site.browser({ username: 'reader', is_staff: true });
  });
  afterAll(() => site.close());

  const preview = (list: string, action: string, ids: readonly string[], by = staff) =>
    site.send(by, 'POST', `resources/${list}/actions/${action}/preview`, { ids, fields: {} });
  const table = (name: string) => database.db.query(`select * from ${name} order by 1`);
  const traces = async () => ({
    keys: await table('api_keys'),
    users: await table('users'),
    sessions: (await table('sessions')).length,
    endpoints: await table('webhook_endpoints'),
    deliveries: await table('webhook_deliveries'),
    events: (await table('webhook_events')).length,
    // In one statement: entries move from one table to the other meanwhile.
    audit: await database.db.query('select (select count(*) from audit_inbox) + (select count(*) from audit_entries) as entries'),
  });

  /** A record of each list, and one that cannot be changed or is not there. */
  const made = async () => {
    const user = await site.newUser();
    const { apiKey } = await createApiKey(database.db, { user, name: 'key', scopes: [] });
    const endpoint = await database.db.transaction(async (tx) => {
      const created = await createEndpoint(tx, { owner: user.id, url: 'https://example.com/hook', events: ['*'] });
      await publish(tx, 'order.paid', {}, { owner: user.id });
      return created.endpoint;
    });
    return { user: user.id, key: apiKey.id, endpoint: endpoint.id };
  };

  test('say how many can be done and why others cannot, as the action then does, and leave no trace', async () => {
    const { user, key, endpoint } = await made();
    const cases = [
      ['api-keys', 'revoke', key, MISSING, 'revoked'],
      ['endpoints', 'disable', endpoint, MISSING, 'disabled'],
      ['endpoints', 'enable', endpoint, MISSING, 'enabled'],
      ['users', 'deactivate', user, staff.userId, 'deactivated'],
      ['users', 'activate', user, MISSING, 'activated'],
      ['users', 'make-staff', user, MISSING, 'made staff'],
      ['endpoints', 'delete-selected', endpoint, MISSING, 'deleted'],
      ['users', 'delete-selected', user, staff.userId, 'deleted'],
    ] as const;
    for (const [list, action, able, unable, outcome] of cases) {
      const before = await traces();
      const { body } = await preview(list, action, [able, unable]);
      expect([list, action, body.message]).toEqual([list, action, `1 record will be ${outcome}, 1 cannot.`]);
      expect(body.failures.map(({ id }: { id: string }) => id)).toEqual([unable]);
      expect(await traces()).toEqual(before);
      const done = await site.act(staff, list, action, [able, unable]);
      expect([list, action, done.body.failures]).toEqual([list, action, body.failures]);
      expect(await traces()).not.toEqual(before);
    }
  });

  test('a ping sends a request to the receiver: it has no dry run', async () => {
    const { endpoint } = await made();
    expect(await preview('endpoints', 'ping', [endpoint])).toMatchObject({ status: 404, body: { code: 'action_not_found' } });
  });

  test('say besides what the action does to waiting deliveries', async () => {
    const { endpoint } = await made();
    expect((await preview('endpoints', 'disable', [endpoint])).body).toMatchObject({
      able: 1,
      tone: 'warning',
      message: '1 record will be disabled.',
      note: '1 delivery will fail. They can be sent again after enabling.',
    });
  });

  test('need the role of the action', async () => {
    const { key, endpoint, user } = await made();
    const refused = [
      ['api-keys', 'revoke', key],
      ['endpoints', 'disable', endpoint],
      ['endpoints', 'delete-selected', endpoint],
      ['users', 'deactivate', user],
    ] as const;
    for (const [list, action, id] of refused) expect([action, (await preview(list, action, [id], reader)).status]).toEqual([action, 403]);
  });
});
