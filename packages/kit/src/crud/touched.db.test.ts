import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { isBehindPooler, NOTIFICATIONS_ARE_LOST } from '../../../../test/provision/behind-pooler.ts';
import { people, type ShopApp, startShop } from '../../test/crud/shop.ts';
import { createTable, type Db, insert, migration, model, remove, t, update } from '../db/index.ts';
import { responseCache } from '../middleware/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, resource, touched } from './index.ts';

const mails = model('mails', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  subject: t.text(40),
  status: t.text(10).default('new').readOnly(),
});
const send = (tx: Db, id: string) => update(tx, mails, id, { status: 'sent' });
const mailResource = resource(mails, {
  owner: 'owner_id',
  writes: 'verbs',
  hooks: {
    create: ({ input, tx, user }) => insert(tx, mails, { owner_id: user!.id, subject: input.subject }),
    update: async ({ before, input, tx }) => (await update(tx, mails, before.id, input)) ?? before,
    destroy: async ({ before, tx }) => void (await remove(tx, mails, before.id)),
  },
  actions: { send: { run: async ({ row, tx }) => void (await send(tx, row.id)) } },
});
class Mails extends CrudController(mailResource, { permission: isAuthenticated }) {}
const module = { name: 'mails', models: [mails], migrations: [migration('0001_initial', [createTable('mails', mails.columns)])] };

describeDatabases('rows that are written without their resource', (database) => {
  let shop: ShopApp;
  beforeAll(async () => {
    shop = await startShop({
      database: database.db,
      modules: [module],
      mount: { '/v1': { '/mails': Mails } },
      middleware: [responseCache({ routes: () => true, maxAgeMs: 600_000 })],
    });
    await insert(database.db, mails, { owner_id: people.ann.id, subject: 'first' });
    // The first cached request begins to listen.
    await vi.waitFor(async () => {
      await listed();
      await insert(database.db, mails, { owner_id: people.ann.id, subject: 'unheard' });
      expect(await listed()).toEqual(await listed());
      expect((await listed()).length).toBeLessThan(await count());
    }, 20_000);
  });
  afterAll(() => shop.close());
  const listed = async () =>
    ((await shop.call('ann', 'GET', 'mails')).body.items as { subject: string; status: string }[]).map(
      ({ subject, status }) => `${subject} ${status}`,
    );
  const count = async () => Number((await database.db.query<{ n: number | string }>('select count(*) as n from mails'))[0]?.n);
  /** On PostgreSQL the notification of the commit arrives a moment later. */
  const eventually = (entry: string) => vi.waitFor(async () => expect(await listed()).toContain(entry), 5_000);

  test('verbs and actions of the resource announce what their functions write', async () => {
    const { body } = await shop.call('ann', 'POST', 'mails', { subject: 'made' });
    await eventually('made new');
    await shop.call('ann', 'PATCH', `mails/${body.id}`, { subject: 'changed' });
    await eventually('changed new');
    expect((await shop.call('ann', 'POST', `mails/${body.id}/send`)).status).toBe(200);
    await eventually('changed sent');
    await shop.call('ann', 'DELETE', `mails/${body.id}`);
    await vi.waitFor(async () => expect(await listed()).not.toContain('changed sent'), 5_000);
  });

  test('touched() announces the rows of a worker when its transaction commits, and not when it is rolled back', async () => {
    const before = await listed();
    const work = (fails: boolean) =>
      database.db.transaction(async (tx) => {
        const row = await insert(tx, mails, { owner_id: people.ann.id, subject: fails ? 'undone' : 'by a worker' });
        await touched(tx, mailResource, [row.id]);
        if (fails) throw new Error('rolled back');
      });
    await expect(work(true)).rejects.toThrow('rolled back');
    expect(await listed()).toEqual(before);
    await work(false);
    await eventually('by a worker new');
    expect(await listed()).not.toContain('undone new');
  });

  test('no rows, no announcement', async ({ skip }) => {
    skip(database.dialect === 'postgres' && isBehindPooler(), NOTIFICATIONS_ARE_LOST);
    await insert(database.db, mails, { owner_id: people.ann.id, subject: 'silent' });
    await touched(database.db, mailResource, []);
    expect(await listed()).not.toContain('silent new');
  });
});
