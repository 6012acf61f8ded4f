import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import type { Module } from '../app/declare/module.ts';
import { CrudController, resource } from '../crud/index.ts';
import { createTable, insert, migration, model, t, versioned } from '../db/index.ts';
import { defineErrors } from '../errors/index.ts';
import { denyAll, isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { modelResource } from '../screens/screen.ts';

const parcels = model('parcels', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  name: t.text(40),
  sends: t.int().dbDefault(0).readOnly(),
  is_lost: t.bool().dbDefault(false),
  ...versioned(),
});
const errors = defineErrors('parcels', { parcel_lost: { status: 409, detail: 'The parcel is lost.', remedy: 'Find it.' } });
let called = 0;
const parcelResource = resource(parcels, {
  owner: 'owner_id',
  version: 'version',
  audiences: { staff: { rows: true } },
  actions: {
    send: {
      input: z.object({ carrier: z.string().min(2) }),
      summary: 'Send again',
      run: ({ row }, next) => {
        if (row.is_lost) throw errors.parcel_lost();
        return next({ sends: row.sends + 1 });
      },
    },
    call: { effects: 'outside', audience: 'staff', run: () => void (called += 1) },
    forbidden: { permission: denyAll, run: () => undefined },
    mine: { run: () => undefined },
  },
});
class ParcelController extends CrudController(parcelResource, { permission: isAuthenticated }) {}

const module: Module = {
  name: 'parcels',
  requires: ['accounts'],
  models: [parcels],
  migrations: [migration('0001_initial', [createTable('parcels', parcels.columns)])],
  mount: { '/v1/parcels': new ParcelController() },
  admin: { resources: [modelResource(parcelResource)] },
};

describeDatabases('actions of a resource in the admin site', (database) => {
  let site: AdminApp;
  let staff: Browser;
  beforeAll(async () => {
    site = await new AdminApp(database.db, [module]).ready();
    staff = await site.browser();
  });
  afterAll(() => site.close());

  const made = async (isLost = false) => {
    const { id: owner_id } = await site.newUser();
    return (await insert(database.db, parcels, { owner_id, name: 'box', is_lost: isLost })).id;
  };
  const read = async (id: string) => (await site.get(staff, `resources/parcels/${id}`)).body.values;
  const preview = (action: string, ids: readonly string[], fields: object = {}) =>
    site.send(staff, 'POST', `resources/parcels/actions/${action}/preview`, { ids, fields });

  test('they are offered with their input as fields, and with a dry run where nothing outside the database happens', async () => {
    const shape = (await site.get(staff, 'session')).body.site.resources.find((each: { name: string }) => each.name === 'parcels');
    expect(shape.actions).toMatchObject([
      { name: 'send', label: 'Send again', previews: true, fields: [{ name: 'carrier', kind: 'text', required: true }] },
      { name: 'call', label: 'Call' },
      { name: 'forbidden' },
      { name: 'mine' },
      { name: 'edit-selected' },
      { name: 'delete-selected' },
    ]);
    expect(shape.actions[1]).not.toHaveProperty('previews');
  });

  test('a dry run says how many can be done and changes nothing; then each record has its result', async () => {
    const [one, lost] = [await made(), await made(true)];
    const tried = await preview('send', [one, lost], { carrier: 'post' });
    expect(tried.body).toMatchObject({ able: 1, failures: [{ id: lost, message: 'The parcel is lost.' }] });
    expect((await read(one)).sends).toBe(0);
    const done = await site.act(staff, 'parcels', 'send', [one, lost], { carrier: 'post' });
    expect(done.body).toMatchObject({ message: '1 parcel done; 1 failed.', failures: [{ id: lost }] });
    expect((await read(one)).sends).toBe(1);
    const wrong = await site.act(staff, 'parcels', 'send', [one], { carrier: 'x' });
    expect(wrong.body.errors[0].location).toEqual(['body', 'fields', 'carrier']);
  });

  test('the permission of an action holds in the site, too', async () => {
    const id = await made();
    expect((await site.act(staff, 'parcels', 'forbidden', [id])).body.failures).toHaveLength(1);
    expect((await site.act(staff, 'parcels', 'call', [id])).body.message).toBe('1 parcel done.');
    expect(called).toBeGreaterThan(0);
  });
});
