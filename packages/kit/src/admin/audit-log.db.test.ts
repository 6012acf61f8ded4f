import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { addGroupMember, createGroup } from '../contrib/accounts/index.ts';
import { apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { createEndpoint, publish, webhooks } from '../contrib/webhooks/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';

const clock = fakeClock();

describeDatabases(
  'the audit log in the admin site',
  (database) => {
    let site: AdminApp;
    let staff: Browser;

    beforeAll(async () => {
      site = await new AdminApp(database.db, [apiKeys(), webhooks()], { clock }).ready();
      staff = await site.browser();
    });
    afterAll(() => site.close());

    const newest = async (action: string) => {
      const [item] = (await site.get(staff, `resources/audit-log?filter.action=${action}`)).body.items;
      return { item, record: (await site.get(staff, `resources/audit-log/${item.id}`)).body };
    };
    const changes = (record: { sections: { kind: string; title: string; rows: unknown[] }[] }) =>
      record.sections.find(({ kind }) => kind === 'changes');

    test('names what was changed by the name it has today, with a link, and shows the difference field by field', async () => {
      const owner = await site.newUser();
      const { apiKey } = await createApiKey(database.db, { user: owner, name: 'Nightly', scopes: ['orders:read', 'orders:write'] });
      await site.send(staff, 'PATCH', `resources/api-keys/${apiKey.id}`, { name: 'Weekly', scopes: ['orders:read'], rate_limit: '5/min' });
      const { item, record } = await newest('api_key.updated');
      expect(item.values.target).toEqual({ resource: 'api-keys', id: apiKey.id, text: 'Weekly' });
      const section = changes(record);
      expect(section?.title).toBe('Changes');
      expect(section?.rows).toEqual(
        expect.arrayContaining([
          { name: 'name', before: 'Nightly', after: 'Weekly' },
          { name: 'scopes', before: ['orders:read', 'orders:write'], after: ['orders:read'] },
          { name: 'rate_limit', after: '5/min' },
        ]),
      );
      // The difference stands for both states: no dump of either.
      expect(record.sections.filter(({ kind, title }: { kind: string; title: string }) => kind === 'json' && title !== 'Metadata')).toEqual(
        [],
      );
    });

    test('what has no name in its entry is named too, and ids of other records among the values lead to them', async () => {
      const owner = await site.newUser();
      const { endpoint } = await database.db.transaction((tx) =>
        createEndpoint(tx, { owner: owner.id, url: 'https://named.example.com/in', events: ['*'] }),
      );
      await database.db.transaction((tx) => publish(tx, 'order.paid', {}, { owner: owner.id }));
      const [delivery] = await database.db.query<{ id: string; event_id: string }>(
        'select id, event_id from webhook_deliveries where endpoint_id = $1',
        [endpoint.id],
      );
      await database.db.query(`update webhook_deliveries set status = 'failed' where id = $1`, [delivery?.id]);
      await site.act(staff, 'deliveries', 'send-again', [delivery?.id ?? '']);
      const { item } = await newest('webhook_delivery.sent_again');
      expect(item.values.target).toEqual({ resource: 'deliveries', id: delivery?.id, text: 'order.paid to named.example.com/in' });
      const group = await createGroup(database.db, { name: 'Front desk', tenantKey: null });
      await addGroupMember(database.db, group.id, owner.id);
      expect((await newest('group.member_added')).item.values.target).toEqual({ resource: 'groups', id: group.id, text: 'Front desk' });
      await site.send(staff, 'DELETE', `resources/endpoints/${endpoint.id}`);
      const deleted = await newest('webhook_endpoint.deleted');
      expect(deleted.item.values.target).toMatchObject({ text: 'https://named.example.com/in' });
      expect(changes(deleted.record)).toMatchObject({ title: 'Values it had' });
    });
  },
  { database: { clock } },
);
