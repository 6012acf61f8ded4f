import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  customerResource,
  itemResource,
  OrderController,
  orderResource,
  orders,
  people,
  type Person,
  startShop,
} from '../../../test/crud/shop.ts';
import { firmResource, lineResource, startDesk, ticketResource } from '../../../test/crud/desk.ts';
import { CrudController } from '../../crud/index.ts';
import { find } from '../../db/index.ts';
import { route } from '../../http/declare/route.ts';
import { isAuthenticated, Permission } from '../../permissions/index.ts';
import type { TestDatabase } from '../databases.ts';
import type { TestApp } from '../test-app.ts';
import { crudChecks } from './checks.ts';
import { crudTests } from './crud-tests.ts';
import { CrudSubject } from './subject.ts';
import { tenantChecks } from './tenant-checks.ts';

const user = (username: Person) => ({ id: people[username].id, username });
const callers = { owner: user('ann'), stranger: user('bob'), tenantless: user('nil') };
const input = (number: number) => ({
  item: `thing ${number}`,
  quantity: 1 + (number % 3),
  total: `${number}.00`,
  due_at: number % 2 === 0 ? null : '2026-01-01T00:00:00Z',
});

const ticket = (number: number) => ({ sku: `sku ${number}`, title: `ticket ${number}` });
const startTickets = (controller: abstract new () => object, database?: TestDatabase) =>
  startDesk({
    ...(database === undefined ? {} : { database: database.db }),
    mount: { '/v1': { '/tickets': controller as never } },
    resources: [firmResource, lineResource],
  });
class StrictTicketController extends CrudController(ticketResource, {
  permission: isAuthenticated,
  filters: { title: ['eq'], status: ['eq'] },
  search: ['title'],
  ordering: { by: ['created_at', 'title', 'cost'] },
  expand: ['firm', 'lines'],
  bulk: { create: true },
  restore: true,
  export: ['csv'],
  idempotency: 'required',
  etag: 'required',
}) {}

crudTests(OrderController, { app: (database) => startShop({ database: database.db }), callers, input });
crudTests(StrictTicketController, { app: (database) => startTickets(StrictTicketController, database), callers, input: ticket });

const Anything = z.record(z.string(), z.unknown());
const facts = { permission: isAuthenticated, response: Anything } as const;
const options = { permission: isAuthenticated, search: ['item'], ordering: { by: ['item'] }, filters: { item: ['eq'] } } as const;

/** Not known to admit everyone before it runs: start-up refuses `allowAny` for rows of an owner. */
const anyone = new Permission({ name: 'anyone', evaluate: () => true });

/** Where orders do not offer what the guarantee is about: another resource. */
interface Elsewhere {
  readonly start: (controller: abstract new () => object) => Promise<TestApp>;
  readonly input: (number: number) => object;
}
const atTheDesk: Elsewhere = { start: startTickets, input: ticket };

/** One controller per guarantee that breaks it. */
const broken: Readonly<Record<string, readonly [message: string, controller: abstract new () => object, elsewhere?: Elsewhere]>> = {
  1: [
    'tells a stranger that the row exists',
    class Broken extends CrudController(orderResource, options) {
      override destroy = route.delete('/:id', { ...facts, params: this.keyParams, status: 200 }, async ({ db, params, user: caller }) => {
        const row = await find(db, orders, params.id);
        if (row === undefined || caller === null) return { gone: true };
        return { denied: row.owner_id !== caller.id };
      });
    },
  ],
  2: [
    'A stranger can tell',
    class Broken extends CrudController(orderResource, options) {
      override list = this.wrap('list', {}, async ({ db }, next) => {
        const [row] = await db.query<{ count: number | bigint }>('select count(*) as count from orders');
        return { ...(await next()), count: Number(row?.count) };
      });
    },
  ],
  3: [
    'instead of 422',
    class Broken extends CrudController(orderResource, options) {
      override create = route.post('/', { ...facts, body: Anything, status: 201 }, async (context) => {
        const { owner_id: _owner, org: _org, version: _version, due_at: _due, ...values } = context.body;
        return this.present(context, await this.write(context).create(values as never));
      });
    },
  ],
  6: [
    'instead of 403',
    class Broken extends CrudController(orderResource, options) {
      override retrieve = route.get('/:id', { ...facts, params: this.keyParams }, async ({ db, params }) => {
        const row = await find(db, orders, params.id);
        return { id: row?.id };
      });
    },
  ],
  'rows of an owner': [
    'instead of 401',
    class Broken extends CrudController(orderResource, { ...options, permission: anyone }) {
      override list = route.get('/', { ...facts, permission: anyone }, () => ({ items: [], count: 0, next: null, previous: null }));
    },
  ],
  13: [
    'leaves rows out',
    class Broken extends CrudController(orderResource, options) {
      override list = this.wrap('list', {}, async (_context, next) => {
        const page = await next();
        return page.next === null ? { ...page, items: page.items.slice(0, -1) } : page;
      });
    },
  ],
  16: [
    'instead of 422',
    class Broken extends CrudController(orderResource, options) {
      override list = this.wrap('list', {}, async ({ query }, next) => {
        if (query['cursor'] === undefined) return next();
        return { items: [], count: 0, next: null, previous: null };
      });
    },
  ],
  21: [
    'instead of 422',
    class Broken extends CrudController(orderResource, options) {
      override list = route.get('/', { ...facts, query: Anything }, async (context) => ({ items: await this.rows(context) }));
    },
  ],
  24: [
    'does not find the row',
    class Broken extends CrudController(orderResource, { ...options, filters: { item: ['eq'], quantity: ['eq'] } }) {
      override list = this.wrap('list', {}, async ({ query }, next) => {
        const page = await next();
        return query['quantity'] === undefined ? page : { ...page, items: [], next: null };
      });
    },
  ],
  29: [
    'statements for few rows',
    class Broken extends CrudController(orderResource, options) {
      override list = this.wrap('list', {}, async ({ db }, next) => {
        const page = await next();
        for (const { id } of page.items) await db.query('select id from order_items where order_id = $1', [id]);
        return page;
      });
    },
  ],
  31: [
    'shows other members',
    class Broken extends CrudController(orderResource, options) {
      override retrieve = this.wrap('retrieve', {}, async ({ query }, next) => {
        const item = await next();
        return query['fields'] === undefined ? item : { ...item, item: 'x' };
      });
    },
  ],
  32: [
    'internal_note is hidden',
    class Broken extends CrudController(orderResource, options) {
      override retrieve = route.get('/:id', { ...facts, params: this.keyParams }, async (context) => {
        const row = await this.find(context, context.params.id);
        return { ...(await this.present(context, row)), internal_note: row.internal_note };
      });
    },
  ],
  42: [
    'not what GET shows',
    class Broken extends CrudController(orderResource, options) {
      override create = this.wrap('create', { response: Anything } as never, async (_context, next) => ({
        ...(await next()),
        item: 'another',
      }));
    },
  ],
  'a body with an unknown member': [
    'instead of 422',
    class Broken extends CrudController(orderResource, options) {
      override create = route.post('/', { ...facts, body: Anything, status: 201 }, async (context) => {
        const { item, quantity, total } = context.body as { item: string; quantity: number; total: string };
        return this.present(context, await this.write(context).create({ item, quantity, total }));
      });
    },
  ],
  'a change is what the next read shows': [
    'An empty PATCH changed the row',
    class Broken extends CrudController(orderResource, options) {
      override partialUpdate = this.wrap('partialUpdate', {}, async (context, next) => {
        const answer = await next();
        await this.write(context).update(context.params.id, { item: 'always the same' });
        return answer;
      });
    },
  ],
  49: [
    'null } answered 200',
    class Broken extends CrudController(orderResource, options) {
      override partialUpdate = route.patch('/:id', { ...facts, params: this.keyParams, body: Anything }, async (context) => {
        const sent = Object.entries(context.body).filter(([, value]) => value !== null);
        return this.present(context, await this.write(context).update(context.params.id, Object.fromEntries(sent)));
      });
    },
  ],
  51: [
    'A 304 has a body',
    class Broken extends CrudController(orderResource, options) {
      override retrieve = route.get('/:id', { ...facts, params: this.keyParams }, async (context) => {
        context.reply.header('etag', '"always"');
        if (context.request.headers['if-none-match'] !== undefined) context.reply.code(304);
        return this.present(context, await this.find(context, context.params.id));
      });
    },
  ],
  52: [
    'instead of 412',
    class Broken extends CrudController(orderResource, options) {
      override partialUpdate = this.wrap('partialUpdate', {}, async (context) => {
        return this.present(context, await this.write(context).update(context.params.id, context.body));
      });
    },
  ],
  53: [
    'Changes were lost',
    class Broken extends CrudController(orderResource, options) {
      override partialUpdate = this.wrap('partialUpdate', {}, async (context) => {
        const row = await this.find(context, context.params.id);
        const isCurrent = String(context.request.headers['if-match']).startsWith(`"${row.version}`);
        if (!isCurrent) throw new Error('stale');
        return this.present(context, await this.write(context).update(context.params.id, context.body));
      });
    },
  ],
  'a deleted row is gone': [
    'instead of 404',
    class Broken extends CrudController(orderResource, options) {
      override destroy = this.wrap('destroy', {}, () => undefined);
    },
  ],
  57: [
    'answered 400 instead of 201',
    class Broken extends CrudController(orderResource, { ...options, idempotency: 'optional' }) {
      override create = route.post('/', { ...facts, body: Anything, status: 201 }, async (context) => {
        const { due_at: _due, ...values } = context.body;
        return this.present(context, await this.write(context).create(values as never));
      });
    },
  ],
  62: [
    'instead of 200',
    class Broken extends CrudController(ticketResource, { permission: isAuthenticated, restore: true }) {
      override restore = route.post('/:id/restore', { ...facts, params: this.keyParams }, () => ({}));
    },
    atTheDesk,
  ],
  69: [
    'instead of 422',
    class Broken extends CrudController(orderResource, { ...options, bulk: { create: true } }) {
      override bulkCreate = route.post('/bulk', { ...facts, body: Anything, status: 201 }, () => ({ items: [] }));
    },
  ],
  66: [
    'requests were accepted',
    class Broken extends CrudController(orderResource, options) {
      override transitions = route.get('/:id/transitions', { ...facts, params: this.keyParams }, () => ({
        items: [{ name: 'cancel', to: 'x' }],
      }));
    },
  ],
};

describe('a resource that breaks a guarantee fails its test', () => {
  const apps = new Map<string, TestApp>();
  beforeAll(async () => {
    for (const [name, [, controller, elsewhere]] of Object.entries(broken))
      apps.set(
        name,
        await (elsewhere?.start(controller) ??
          startShop({
            database: 'sqlite',
            mount: { '/v1': { '/orders': controller as never } },
            resources: [customerResource, itemResource],
          })),
      );
  });
  afterAll(async () => {
    for (const app of apps.values()) await app.close();
  });

  // tenant-checks.db.test.ts breaks those of tenants.
  test.each(crudChecks.filter((check) => !tenantChecks.includes(check)).map(({ name }) => [name]))('%s', async (name) => {
    const check = crudChecks.find((each) => each.name === name);
    const isAbout = (start: string) => (/^\d+$/.test(start) ? new RegExp(`^${start}[:,]`).test(name) : name.startsWith(start));
    const key = Object.keys(broken).find(isAbout);
    if (check === undefined || key === undefined) throw new Error(`No broken resource for "${name}".`);
    const [message, controller, elsewhere] = broken[key] as (typeof broken)[string];
    const subject = new CrudSubject(apps.get(key) as TestApp, controller, { callers, input: elsewhere?.input ?? input });
    expect(check.appliesTo(subject)).toBe(true);
    await expect(check.run(subject)).rejects.toThrow(message);
  });
});
