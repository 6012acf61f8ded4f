import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import type { Module } from '../app/index.ts';
import { many, one, resource, visibleTo } from '../crud/index.ts';
import { createTable, insert, insertMany, migration, model, t } from '../db/index.ts';
import { countQueries } from '../db/engine/query-observer.ts';
import { denyAll } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { modelResource } from './screen.ts';

const customerColumns = { id: t.uuidv7().pk(), name: t.text(80), code: t.text(20).unique(), is_vip: t.bool().dbDefault(false) };
const orderColumns = {
  id: t.uuidv7().pk(),
  reference: t.text(20),
  total: t.int(),
  cost: t.int().dbDefault(0),
};
const lineColumns = {
  id: t.uuidv7().pk(),
  sku: t.text(20),
  amount: t.int(),
  margin: t.int().dbDefault(0),
  is_draft: t.bool().dbDefault(false),
};
const commentColumns = { id: t.uuidv7().pk(), body: t.text(80), author_id: t.uuid().readOnly() };

const customers = model('customers', customerColumns);
const agents = model('agents', { id: t.uuidv7().pk(), name: t.text(80) });
const orders = model('orders', { ...orderColumns, agent_id: t.ref(() => agents).nullable(), customer_id: t.ref(() => customers) });
const lines = model('order_lines', { ...lineColumns, order_id: t.ref(() => orders) });
const comments = model('order_comments', { ...commentColumns, order_id: t.ref(() => orders) });

// The name of a customer is for nobody, and very important ones are not in the site.
const customerResource = resource(customers, { unscoped: true, hidden: ['name'], admin: { rows: { is_vip: false } } });
const agentResource = resource(agents, { unscoped: true, admin: { rows: true } });
const lineResource = resource(lines, { unscoped: true, fields: { margin: visibleTo(denyAll) }, admin: { rows: { is_draft: false } } });
// Not in the site.
const commentResource = resource(comments, { owner: 'author_id' });
const orderResource = resource(orders, {
  unscoped: true,
  fields: { cost: visibleTo(denyAll) },
  relations: {
    agent: one(() => agents, 'agent_id'),
    lines: many(() => lines, 'order_id', { order: ['-amount'], limit: 2 }),
    comments: many(() => comments, 'order_id'),
  },
  computed: {
    size: { requires: ['total'], response: z.string(), value: ({ total }: { total: number }) => (total > 100 ? 'large' : 'small') },
    profit: {
      requires: ['cost', 'total'],
      response: z.number(),
      value: ({ cost, total }: Record<string, number>) => (total ?? 0) - (cost ?? 0),
    },
  },
  admin: { rows: true },
});

const shop: Module = {
  name: 'shop',
  models: [customers, agents, orders, lines, comments],
  resources: [customerResource, agentResource, lineResource, commentResource, orderResource],
  migrations: [
    migration('0001_initial', [
      createTable('customers', customerColumns),
      createTable('agents', agents.columns),
      createTable('orders', { ...orderColumns, agent_id: t.ref('agents').nullable(), customer_id: t.ref('customers') }),
      createTable('order_lines', { ...lineColumns, order_id: t.ref('orders') }),
      createTable('order_comments', { ...commentColumns, order_id: t.ref('orders') }),
    ]),
  ],
  admin: {
    resources: [
      modelResource(orderResource, {
        singular: 'order',
        title: 'reference',
        columns: ['reference', 'size', 'customer_id', 'total', 'profit'],
      }),
      modelResource(agentResource, { singular: 'agent' }),
      modelResource(customerResource, { singular: 'customer' }),
    ],
  },
};

describeDatabases('what a CRUD declaration adds to the page of a record', (database) => {
  let site: AdminApp;
  let staff: Browser;
  let order: { readonly id: string };
  let agent: { readonly id: string };
  let [plain, vip] = ['', ''];

  beforeAll(async () => {
    site = await new AdminApp(database.db, [shop]).ready();
    staff = await site.browser();
    const { db } = database;
    plain = (await insert(db, customers, { name: 'Ada Lovelace', code: 'C-1' })).id;
    vip = (await insert(db, customers, { name: 'The Queen', code: 'C-2', is_vip: true })).id;
    agent = await insert(db, agents, { name: 'Charles' });
    order = await insert(db, orders, { reference: 'BL-1', total: 120, cost: 90, customer_id: plain, agent_id: agent.id });
    await insert(db, orders, { reference: 'BL-2', total: 5, customer_id: vip });
    await insertMany(
      db,
      lines,
      [1, 2, 3, 4].map((amount) => ({ sku: `S-${amount}`, amount, margin: 77, is_draft: amount === 4, order_id: order.id })),
    );
    await insert(db, comments, { body: 'between us', author_id: staff.userId, order_id: order.id });
  });
  afterAll(() => site.close());

  const read = async () => site.get(staff, `resources/orders/${order.id}`);

  test('rows of a relation are shown in the order and number it declares, by the rules of their own resource', async () => {
    const { body, text } = await read();
    const section = body.sections.find(({ title }: { title: string }) => title.startsWith('Lines'));
    expect(section).toMatchObject({
      kind: 'table',
      title: 'Lines, the first 2',
      rows: [{ values: { sku: 'S-3', amount: 3 } }, { values: { sku: 'S-2', amount: 2 } }],
    });
    expect(section.columns.map(({ label }: { label: string }) => label)).toEqual(['SKU', 'Amount', 'Draft']);
    // A column that is for nobody, a row that is not in the site, and a resource that is not.
    for (const hidden of ['"margin"', 'S-4', 'between us']) expect(text).not.toContain(hidden);
  });

  test('computed fields are on the page, but not those that need a column which staff may not see', async () => {
    const [facts] = (await read()).body.sections;
    expect(facts.values).toMatchObject({ size: 'large', total: 120 });
    expect(facts.columns).toContainEqual({ name: 'size', label: 'Size', kind: 'text' });
    expect(facts.values).not.toHaveProperty('profit');
    expect(facts.values).not.toHaveProperty('cost');
  });

  test('computed fields are columns of the list where it names them, read for all rows at once, and of no one who may not see what they need', async () => {
    const column = { name: 'size', label: 'Size', kind: 'text', sortNote: 'Cannot be sorted: it is computed from other columns.' };
    expect(site.app.modules.find(({ name }) => name === 'shop')?.admin?.resources?.[0]?.columns[1]).toEqual(column);
    const { queries, result } = await countQueries(() => site.get(staff, 'resources/orders'));
    const sizes = result.body.items.map(({ title, values }: { title: string; values: Record<string, unknown> }) => [title, values['size']]);
    expect(sizes.sort()).toEqual([
      ['BL-1', 'large'],
      ['BL-2', 'small'],
    ]);
    expect(result.text).not.toContain('profit');
    // The page, its count, and the computed fields.
    expect(queries.filter(({ sql }) => sql.includes('from "orders"')).length).toBeLessThanOrEqual(3);
  });

  test('a record that a relation leads to is shown by its name with a link, without a foreign key too', async () => {
    const { values } = (await read()).body;
    expect(values.agent_id).toEqual({ resource: 'agents', id: agent.id, text: 'Charles' });
  });

  test('a record that is referred to has no name where its resource hides the name or the record', async () => {
    const { body, text } = await site.get(staff, 'resources/orders');
    const customer = (reference: string) =>
      body.items.find(({ title }: { title: string }) => title === reference).values.customer_id as unknown;
    expect(customer('BL-1')).toEqual({ resource: 'customers', id: plain, text: 'C-1' });
    expect(customer('BL-2')).toEqual({ resource: 'customers', id: vip, text: vip });
    for (const hidden of ['Ada Lovelace', 'The Queen', 'C-2']) expect(text).not.toContain(hidden);
  });
});
