import { expect, test } from 'vitest';
import { createTable, migration, model, t } from '../../db/index.ts';
import { CrudController, resource, visibleTo } from '../../crud/index.ts';
import { isAuthenticated, isSuperuser } from '../../permissions/index.ts';
import { createApiKey } from '../apikeys/index.ts';
import { TenantAuditController } from '../audit/index.ts';
import { describeTenantApp } from '../../../test/tenants/tenant-app.ts';
import { suspendTenant } from './manage/suspend.ts';

const notes = model('notes', {
  id: t.uuidv7().pk(),
  tenant_id: t.uuid().readOnly(),
  title: t.text(50),
  price: t.text(20).nullable(),
});
const noteResource = resource(notes, { tenant: 'tenant_id', fields: { price: visibleTo(isSuperuser) } });
const NoteController = CrudController(noteResource, { permission: isAuthenticated });

let count = 0;
const fresh = (name: string) => `${name}${(count += 1)}`;

interface Entry {
  readonly id: string;
  readonly action: string;
  readonly target_id: string;
  readonly actor_name: string | null;
  readonly after: unknown;
  readonly values_hidden: boolean;
  readonly values_erased: boolean;
}

describeTenantApp(
  'the audit log of a tenant',
  {},
  (app) => {
    const { call, person, tenantOf, join } = app;
    const items = async (user: Awaited<ReturnType<typeof person>>, slug: string, query = '') => {
      const { status, body } = await call(user, 'GET', `/tenant-audit?limit=100${query}`, undefined, { 'x-tenant': slug });
      expect(status).toBe(200);
      return body.items as readonly Entry[];
    };

    test('is read by who manages the tenant, and shows its entries alone', async () => {
      const [ada, bob, mia, eve] = [
        await person(fresh('ada')),
        await person(fresh('bob')),
        await person(fresh('mia')),
        await person(fresh('eve')),
      ];
      const north = await tenantOf(ada);
      const south = await tenantOf(eve);
      await join(ada, north.id, bob, ['admin']);
      await join(ada, north.id, mia, ['member']);
      const inNorth = { 'x-tenant': north.slug };
      const made = await call(mia, 'POST', '/notes', { title: 'ours' }, inNorth);
      expect(made.status).toBe(201);
      await call(eve, 'POST', '/notes', { title: 'theirs' }, { 'x-tenant': south.slug });
      const key = await createApiKey(app.database.db, { user: ada, name: 'ci', scopes: [], tenant: north.id });

      for (const reader of [ada, bob]) {
        const found = await items(reader, north.slug);
        expect(found.map(({ action }) => action).toSorted()).toEqual([
          'api_key.created',
          'member.added',
          'member.added',
          'member.added',
          'note.created',
          'tenant.created',
          'tenant_invitation.accepted',
          'tenant_invitation.accepted',
          'tenant_invitation.created',
          'tenant_invitation.created',
        ]);
        const note = found.find(({ action }) => action === 'note.created');
        // Only columns that the reader sees.
        expect(note).toMatchObject({ target_id: made.body.id, actor_name: mia.username, after: { title: 'ours' }, values_hidden: false });
        expect(note?.after).not.toHaveProperty('price');
        expect(found.find(({ target_id }) => target_id === key.apiKey.id)).toBeDefined();
      }
      const [entry] = await items(ada, north.slug);
      const path = `/tenant-audit/${entry?.id}`;
      expect((await call(ada, 'GET', path, undefined, inNorth)).body.id).toBe(entry?.id);
      expect((await call(eve, 'GET', path, undefined, { 'x-tenant': south.slug })).status).toBe(404);
      expect((await call(mia, 'GET', '/tenant-audit', undefined, inNorth)).body.code).toBe('permission_denied');
      expect((await call(eve, 'GET', '/tenant-audit', undefined, inNorth)).body.code).toBe('not_a_member');
      expect((await call(ada, 'GET', '/tenant-audit')).body.code).toBe('tenant_required');
      expect((await items(eve, south.slug)).map(({ action }) => action).toSorted()).toEqual([
        'member.added',
        'note.created',
        'tenant.created',
      ]);
      expect(await items(ada, north.slug, '&action=note.created'), 'filters').toHaveLength(1);
    });

    test('hides the values of records that the reader does not see, and says which were erased', async () => {
      const ada = await person(fresh('ada'));
      const { id, slug } = await tenantOf(ada);
      const { db } = app.database;
      const audit = app.kit.app.registry.audit;
      await audit?.record(db, [{ action: 'margin.changed', target_type: 'margin', target_id: 'm1', after: { margin: 12 }, tenant: id }]);
      const hidden = (await items(ada, slug)).find(({ action }) => action === 'margin.changed');
      expect(hidden).toMatchObject({ after: null, values_hidden: true, values_erased: false });
      await audit?.erase?.(db, { target_type: 'tenant', target_id: id, tenant: id, by: 'a test' });
      const found = await items(ada, slug);
      expect(found.every(({ values_erased, actor_name, after }) => values_erased && actor_name === null && after === null)).toBe(true);
    });

    test('is closed while the tenant is suspended', async () => {
      const ada = await person(fresh('ada'));
      const { id, slug } = await tenantOf(ada);
      await suspendTenant(app.database.db, id);
      expect((await call(ada, 'GET', '/tenant-audit', undefined, { 'x-tenant': slug })).body.code).toBe('tenant_suspended');
    });
  },
  {
    modules: [
      {
        name: 'notes',
        models: [notes],
        resources: [noteResource],
        migrations: [migration('0001_initial', [createTable('notes', notes.columns)])],
      },
    ],
    mount: { '/v1': { '/notes': NoteController, '/tenant-audit': TenantAuditController } },
  },
);
