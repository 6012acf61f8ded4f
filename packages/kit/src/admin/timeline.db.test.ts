import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import type { Module } from '../app/index.ts';
import { job, jobs, runDueJobs, startJob } from '../contrib/jobs/index.ts';
import { createEndpoint, publish, webhooks } from '../contrib/webhooks/index.ts';
import { resource } from '../crud/index.ts';
import { createTable, insert, migration, model, t } from '../db/index.ts';
import { Controller, route } from '../http/index.ts';
import { allowAny } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { modelResource } from '../screens/screen.ts';

const columns = { id: t.uuidv7().pk(), name: t.text(40) };
const orders = model('orders', columns);
const invoices = model('invoices', columns);

const orderResource = resource(orders, { unscoped: true, admin: { rows: true } });
const invoiceResource = resource(invoices, { unscoped: true, admin: { rows: true } });

const sendReceipt = job('send_receipt', {
  input: z.object({ order: z.string() }),
  async run({ db, input: { order } }) {
    await db.transaction((tx) => publish(tx, 'receipt.sent', { order }, { broadcast: true }));
  },
});

const Paid = z.object({ orders: z.array(z.string()), invoice: z.string() });

/** One request that changes orders and an invoice, publishes events and starts a job; only some of them name the record. */
class Payments extends Controller {
  pay = route.post(
    '/',
    { permission: allowAny, body: Paid, response: z.object({ request_id: z.string() }) },
    async ({ db, body, requestId }) => {
      await db.transaction(async (tx) => {
        const entry = { actor: null, action: 'order.paid', target_type: 'order', before: null, after: null };
        const audit = site?.app.registry.audit;
        await audit?.record(tx, [
          ...body.orders.map((id) => ({ ...entry, target_id: id })),
          { ...entry, action: 'invoice.closed', target_type: 'invoice', target_id: body.invoice },
        ]);
        for (const id of body.orders) await publish(tx, 'order.paid', { id }, { broadcast: true, orderingKey: `order:${id}` });
        await publish(tx, 'payment.received', {}, { broadcast: true });
        await startJob(tx, sendReceipt, { order: body.orders[0] ?? '' });
      });
      return { request_id: requestId };
    },
  );
}

const shop: Module = {
  name: 'shop',
  models: [orders, invoices],
  resources: [orderResource, invoiceResource],
  migrations: [migration('0001_initial', [createTable('orders', columns), createTable('invoices', columns)])],
  admin: {
    resources: [modelResource(orderResource), modelResource(invoiceResource)],
  },
};

let site: AdminApp | undefined;

interface Entry {
  readonly title: string;
  readonly request_id?: string;
  readonly link?: { readonly resource: string; readonly id: string };
  readonly folded?: readonly Entry[];
}

describeDatabases('the timeline of a record', (database) => {
  let app: AdminApp;
  let staff: Browser;
  let narrow: Browser;
  beforeAll(async () => {
    const roles = {
      of: ({ username }: { username: string }) => (username === 'narrow' ? ('operator' as const) : ('administrator' as const)),
      needs: { events: { read: 'administrator' as const } },
    };
    const modules = [webhooks(), jobs({ jobs: [sendReceipt] }), shop];
    app = await new AdminApp(database.db, modules, { mount: { '/v1': { '/payments': Payments } } }, { roles }).ready();
    site = app;
    staff = await app.browser({ is_staff: true, is_superuser: true });
    narrow = await app.browser({ username: 'narrow', is_staff: true });
    const owner = await app.newUser();
    await database.db.transaction((tx) => createEndpoint(tx, { owner: owner.id, url: 'https://example.com/hook', events: ['payment.*'] }));
  });
  afterAll(() => app.close());

  const entriesOf = async (list: string, id: string, by = staff): Promise<readonly Entry[]> => {
    const { body } = await app.get(by, `resources/${list}/${id}`);
    const sections = body.sections as readonly { readonly kind: string; readonly title: string; readonly entries: readonly Entry[] }[];
    const entries = sections.find(({ kind, title }) => kind === 'timeline' && title === 'History')?.entries ?? [];
    return entries.flatMap((entry) => [entry].concat(entry.folded ?? []));
  };
  const pay = async (ids: readonly string[], invoice: string): Promise<string> =>
    (await app.call('POST', '/v1/payments', {}, { orders: ids, invoice })).body.request_id;

  test('has everything that its requests did, whether or not it names the record, and what the jobs of the requests did', async () => {
    const [first, second, invoice] = [
      await insert(database.db, orders, { name: 'first' }),
      await insert(database.db, orders, { name: 'second' }),
      await insert(database.db, invoices, { name: 'invoice' }),
    ];
    const request = await pay([first.id, second.id], invoice.id);
    await pay([second.id], (await insert(database.db, invoices, { name: 'other' })).id);
    await runDueJobs(database.db);
    const entries = await entriesOf('orders', first.id);
    const titles = entries.map(({ title }) => title).toSorted();
    expect(titles).toEqual([
      'Delivery payment.received to example.com/hook',
      'Event order.paid',
      'Event payment.received',
      'Event receipt.sent',
      'Invoice closed: invoice',
      'Job send_receipt',
      'Order paid',
    ]);
    expect(new Set(entries.map(({ request_id }) => request_id))).toEqual(new Set([request]));
    // The event of the other order is not on this page, and the second request is on the page of the second order alone.
    expect((await entriesOf('orders', second.id)).filter(({ title }) => title === 'Event payment.received')).toHaveLength(2);
    expect((await entriesOf('invoices', invoice.id)).map(({ title }) => title)).toContain('Event payment.received');
  });

  test('of an event or a job leads back to the changes of its request', async () => {
    const [order, invoice] = [await insert(database.db, orders, { name: 'back' }), await insert(database.db, invoices, { name: 'back' })];
    const request = await pay([order.id], invoice.id);
    for (const list of ['events', 'jobs', 'deliveries']) {
      const { items } = (await app.get(staff, `resources/${list}?filter.request_id=${request}`)).body;
      expect([list, items.length > 0]).toEqual([list, true]);
      if (list === 'deliveries') continue;
      const entries = await entriesOf(list, items[0].id);
      const ofChanges = entries.filter(({ link }) => link?.resource === 'audit-log').map(({ title }) => title.split(':')[0]);
      expect([list, ...new Set(ofChanges)]).toEqual([list, 'Order paid', 'Invoice closed']);
    }
    const both = (await app.get(staff, `resources/jobs?filter.request_id=${request},nothing`)).body;
    expect(both.items).toHaveLength(1);
  });

  test('keeps the entries of one request together, and shows nothing of lists that the role cannot read', async () => {
    const [order, invoice] = [await insert(database.db, orders, { name: 'two' }), await insert(database.db, invoices, { name: 'two' })];
    const older = await pay([order.id], invoice.id);
    app.clock.advance(1_000);
    const newer = await pay([order.id], invoice.id);
    app.clock.advance(1_000);
    // The job of the older request publishes after the newer request.
    await runDueJobs(database.db);
    const requests = (await entriesOf('orders', order.id)).map(({ request_id }) => request_id);
    expect(requests.filter((id, index) => id !== requests[index - 1])).toHaveLength(2);
    expect(new Set(requests)).toEqual(new Set([older, newer]));
    const seen = (await entriesOf('orders', order.id, narrow)).map(({ link }) => link?.resource);
    expect(seen).toContain('jobs');
    expect(seen).not.toContain('events');
  });
});
