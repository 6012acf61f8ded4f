import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { addGroupMember, createGroup } from '../contrib/accounts/index.ts';
import { apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { createEndpoint, publish, webhooks } from '../contrib/webhooks/index.ts';
import type { Module } from '../app/index.ts';
import type { User } from '../auth/people/principal.ts';
import { crudOf, resource, visibleTo } from '../crud/index.ts';
import { createTable, migration, model, t } from '../db/index.ts';
import { isSuperuser } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { modelResource } from '../screens/screen.ts';

const clock = fakeClock();

/** Staff see public letters, and nobody but superusers sees the price. Notes are not in the site at all. */
const letters = model('letters', {
  id: t.uuidv7().pk(),
  title: t.text(50),
  price: t.text(20).nullable(),
  is_public: t.bool().dbDefault(true),
});
const letterResource = resource(letters, {
  unscoped: true,
  admin: { rows: { is_public: true } },
  fields: { price: visibleTo(isSuperuser) },
});
const notes = model('notes', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(50) });
const noteResource = resource(notes, { owner: 'owner_id' });
const letterTables: Module = {
  name: 'letters',
  models: [letters, notes],
  resources: [letterResource, noteResource],
  migrations: [migration('0001_initial', [createTable('letters', letters.columns), createTable('notes', notes.columns)])],
  admin: { resources: [modelResource(letterResource)] },
};

describeDatabases(
  'the audit log in the admin site',
  (database) => {
    let site: AdminApp;
    let staff: Browser;

    beforeAll(async () => {
      site = await new AdminApp(
        database.db,
        [apiKeys(), webhooks(), letterTables],
        { clock },
        {
          roles: {
            of: ({ username }) => (username.startsWith('narrow') ? 'operator' : 'administrator'),
            needs: { letters: { read: 'administrator' } },
          },
        },
      ).ready();
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
      // In the words of the site, without the columns that every change sets.
      expect(item.values.changed).toEqual(['Name', 'Rate limit', 'Scopes']);
      const section = changes(record);
      expect(section?.title).toBe('Changes');
      expect(section?.rows).toEqual(
        expect.arrayContaining([
          { name: 'name', label: 'Name', before: 'Nightly', after: 'Weekly' },
          { name: 'scopes', label: 'Scopes', before: ['orders:read', 'orders:write'], after: ['orders:read'] },
          { name: 'rate_limit', label: 'Rate limit', after: '5/min' },
        ]),
      );
      // The difference stands for both states: no dump of either.
      expect(record.sections.filter(({ kind, title }: { kind: string; title: string }) => kind === 'json' && title !== 'Metadata')).toEqual(
        [],
      );
    });

    test('shows of a record what the rules of its resource show to this staff member', async () => {
      const root = await site.browser({ username: 'audit-root', is_staff: true, is_superuser: true });
      const user = (await site.app.users?.findById(database.db, root.userId)) as User;
      const write = crudOf(site.app, letterResource).as({ user }).write();
      const open = await write.create({ title: 'open letter', price: 'price-1' });
      const closed = await write.create({ title: 'closed letter', price: 'price-2', is_public: false });
      const note = await crudOf(site.app, noteResource).as({ user }).write().create({ title: 'own note' });
      const gone = await write.create({ title: 'gone letter' });
      await write.destroy(gone.id);
      const seen = async (browser: Browser, id: string) => {
        const { items } = (await site.get(browser, `resources/audit-log?filter.target_id=${id}`)).body;
        const pages = await Promise.all(
          items.map(async (item: { id: string }) => (await site.get(browser, `resources/audit-log/${item.id}`)).text),
        );
        return JSON.stringify(items) + pages.join('');
      };
      const narrow = await site.browser({ username: 'narrow', is_staff: true });
      for (const [browser, id, shown, hidden] of [
        [narrow, open.id, ['You cannot see this record'], ['open letter']],
        [staff, open.id, ['open letter'], ['price-1', '"price"']],
        [staff, closed.id, ['You cannot see this record'], ['closed letter', 'price-2']],
        [staff, note.id, ['You cannot see this record'], ['own note']],
        [staff, gone.id, ['You cannot see this record'], ['gone letter']],
        [root, open.id, ['open letter', 'price-1'], []],
        [root, closed.id, ['closed letter', 'price-2'], []],
        [root, note.id, ['own note'], []],
        [root, gone.id, ['gone letter'], []],
      ] as const) {
        const text = await seen(browser, id);
        for (const value of shown) expect(text).toContain(value);
        for (const value of hidden) expect(text).not.toContain(value);
      }
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
      await site.act(staff, 'deliveries', 'retry', [delivery?.id ?? '']);
      const { item } = await newest('webhook_delivery.sent_again');
      expect(item.values.target).toEqual({ resource: 'deliveries', id: delivery?.id, text: 'order.paid to named.example.com/in' });
      const group = await createGroup(database.db, { name: 'Front desk', tenantKey: null });
      await addGroupMember(database.db, group.id, owner.id);
      expect((await newest('group.member_added')).item.values.target).toEqual({ resource: 'groups', id: group.id, text: 'Front desk' });
      await site.send(staff, 'DELETE', `resources/endpoints/${endpoint.id}`);
      const deleted = await newest('webhook_endpoint.deleted');
      expect(deleted.item.values.target).toMatchObject({ text: 'https://named.example.com/in' });
      expect(changes(deleted.record)).toMatchObject({ title: 'Values of the deleted record' });
    });
  },
  { database: { clock } },
);
