import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../../test/admin/admin-app.ts';
import { auditLog } from '../../../test/audit-log.ts';
import type { Module } from '../../app/index.ts';
import { users } from '../../contrib/accounts/index.ts';
import { apiKeys, createApiKey } from '../../contrib/apikeys/index.ts';
import { createEndpoint, webhooks } from '../../contrib/webhooks/index.ts';
import { createTable, insert, migration, model, t } from '../../db/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { modelResource } from '../../screens/screen.ts';
import type { AdminRole } from '../options.ts';

const columns = { id: t.uuidv7().pk(), title: t.text(80) };
const letters = model('letters', { ...columns, owner_id: t.ref(() => users) });
const post: Module = {
  name: 'post',
  requires: ['accounts'],
  models: [letters],
  migrations: [migration('0001_initial', [createTable('letters', { ...columns, owner_id: t.ref('users') })])],
  admin: { resources: [modelResource(letters, { singular: 'letter', auditReads: true })] },
};

const clock = fakeClock();

describeDatabases(
  'roles of staff in the admin site',
  (database) => {
    let site: AdminApp;
    const staff = {} as Record<AdminRole | 'superuser', Browser>;

    beforeAll(async () => {
      const roles = {
        of: ({ username }: { username: string }) => username.split('-')[0] as AdminRole,
        needs: { 'api-keys': { revoke: 'operator' }, 'audit-log': { read: 'operator' } },
      } as const;
      site = await new AdminApp(database.db, [apiKeys(), webhooks(), post], { clock }, { roles }).ready();
      for (const role of ['read_only', 'operator', 'administrator'] as const)
        staff[role] = await site.browser({ is_staff: true, username: `${role}-1` });
      staff.superuser = await site.browser({ is_staff: true, is_superuser: true, username: 'nobody-special' });
    });
    afterAll(() => site.close());

    const shape = async (role: AdminRole, name: string) =>
      (await site.get(staff[role], 'session')).body.site.resources.find((each: { name: string }) => each.name === name);
    const newEndpoint = async () => {
      const owner = await site.newUser();
      const input = { owner: owner.id, url: 'https://roles.example.com/', events: ['*'] };
      return (await database.db.transaction((tx) => createEndpoint(tx, input))).endpoint;
    };

    test('each role does what it may and is told why not for the rest; a superuser may do everything', async () => {
      const endpoint = await newEndpoint();
      const path = `resources/endpoints/${endpoint.id}`;
      const statuses = async (role: AdminRole | 'superuser') => [
        (await site.get(staff[role], path)).status,
        (await site.act(staff[role], 'endpoints', 'ping', [endpoint.id])).status,
        (await site.send(staff[role], 'PATCH', path, { description: role })).status,
        (await site.act(staff[role], 'endpoints', 'disable', [endpoint.id])).status,
        (await site.act(staff[role], 'endpoints', 'enable', [endpoint.id])).status,
      ];
      expect(await statuses('read_only')).toEqual([200, 403, 403, 403, 403]);
      expect(await statuses('operator')).toEqual([200, 200, 403, 403, 200]);
      expect(await statuses('administrator')).toEqual([200, 200, 200, 200, 200]);
      expect(await statuses('superuser')).toEqual([200, 200, 200, 200, 200]);
      const refused = await site.send(staff.operator, 'DELETE', path);
      expect(refused).toMatchObject({
        status: 403,
        body: { code: 'role_required', detail: expect.stringContaining('This needs the role administrator; yours is operator.') },
      });
      expect((await site.send(staff.read_only, 'POST', 'resources/endpoints', {})).status).toBe(403);
      const preview = 'resources/endpoints/actions/disable/preview';
      expect((await site.send(staff.operator, 'POST', preview, { ids: [endpoint.id] })).status).toBe(403);
    });

    test('the site is told what to offer: no form, no delete, actions with the reason why not, and no list that may not be read', async () => {
      const endpoint = await newEndpoint();
      const record = (await site.get(staff.operator, `resources/endpoints/${endpoint.id}`)).body;
      expect(record).toMatchObject({ removable: false });
      expect(record.form).toBeUndefined();
      const shown = await shape('operator', 'endpoints');
      expect(shown).toMatchObject({ editable: false, removable: false, creation: { refused: expect.stringContaining('administrator') } });
      const refusals = Object.fromEntries(shown.actions.map(({ name, refused }: { name: string; refused?: string }) => [name, refused]));
      expect(refusals).toMatchObject({
        ping: undefined,
        disable: expect.stringContaining('This needs the role administrator; yours is operator.'),
      });
      expect(await shape('read_only', 'audit-log')).toBeUndefined();
      expect((await site.get(staff.read_only, 'resources/audit-log')).status).toBe(403);
      expect(await shape('operator', 'audit-log')).toBeDefined();
    });

    test('what an operation needs can be said for each list and action', async () => {
      const { apiKey } = await createApiKey(database.db, { user: await site.newUser(), name: 'k', scopes: [] });
      expect((await site.act(staff.read_only, 'api-keys', 'revoke', [apiKey.id])).status).toBe(403);
      expect((await site.act(staff.operator, 'api-keys', 'revoke', [apiKey.id])).status).toBe(200);
    });

    test('the reason of an action is in the audit log, at the record it was done to', async () => {
      const endpoint = await newEndpoint();
      await site.act(staff.administrator, 'endpoints', 'disable', [endpoint.id], { reason: 'The receiver leaks tokens' });
      const [entry] = await auditLog(database.db, { action: 'webhook_endpoint.reason_given', target_id: endpoint.id });
      expect(entry).toMatchObject({
        actor_id: staff.administrator.userId,
        metadata: { action: 'disable', reason: 'The receiver leaks tokens' },
      });
    });

    test('reading a record is recorded where its list says so', async () => {
      const owner = await site.newUser();
      const letter = await insert(database.db, letters, { title: 'Dear all', owner_id: owner.id });
      await site.get(staff.read_only, `resources/letters/${letter.id}`);
      const entries = await auditLog(database.db, { action: 'letters.read', target_id: letter.id });
      expect(entries.map(({ actor_id }) => actor_id)).toEqual([staff.read_only.userId]);
      // What belongs to a user is on the page of the user.
      const { sections } = (await site.get(staff.read_only, `resources/users/${owner.id}`)).body;
      const related = sections.find(({ title }: { title: string }) => title === 'Letters');
      expect(related).toMatchObject({
        rows: [{ id: letter.id, values: { title: { resource: 'letters', id: letter.id, text: 'Dear all' } } }],
        more: { resource: 'letters', filters: { owner_id: owner.id } },
      });
      expect((await site.get(staff.read_only, `resources/letters?filter.owner_id=${owner.id}`)).body.count).toBe(1);
    });
  },
  { database: { clock } },
);
