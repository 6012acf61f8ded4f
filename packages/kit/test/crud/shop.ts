import { z } from 'zod';
import type { Authenticator } from '../../src/auth/request/authenticator.ts';
import { CrudController, filter, many, one, resource, visibleTo, writableBy } from '../../src/crud/index.ts';
import { createTable, migration, model, t, timestamps, userStamps, versioned } from '../../src/db/index.ts';
import type { Module } from '../../src/app/declare/module.ts';
import { testApp, type TestApp, type TestAppOptions } from '../../src/testing/test-app.ts';
import { isAuthenticated, isOwner, isStaff } from '../../src/permissions/index.ts';

/** People by name: `ann` and `bob` are of tenant `north`, `cid` of `south`, `sue` is staff of `north`, `nil` has no tenant, `root` of `north` is a superuser and not staff. */
export const people = {
  ann: { id: '00000000-0000-7000-8000-0000000000a1', tenant: 'north' },
  bob: { id: '00000000-0000-7000-8000-0000000000b2', tenant: 'north' },
  cid: { id: '00000000-0000-7000-8000-0000000000c3', tenant: 'south' },
  sue: { id: '00000000-0000-7000-8000-0000000000d4', tenant: 'north' },
  nil: { id: '00000000-0000-7000-8000-0000000000e5', tenant: null },
  root: { id: '00000000-0000-7000-8000-0000000000f6', tenant: 'north' },
} as const;
export type Person = keyof typeof people;

export const byName: Authenticator = {
  name: 'name',
  securityScheme: { type: 'http', scheme: 'name' },
  authenticate({ headers: { 'x-user': name } }) {
    if (typeof name !== 'string' || !(name in people)) return null;
    const { id } = people[name as Person];
    const user = { id, username: name, email: null, is_active: true, is_staff: name === 'sue', is_superuser: name === 'root' };
    return { user, scheme: 'name', scopes: null };
  },
};

export const customers = model('customers', {
  id: t.uuidv7().pk(),
  org: t.text(20).readOnly(),
  name: t.text(100),
  terms: t.int().dbDefault(30),
  credit: t.decimal(12, 2).nullable(),
});

const indexes = [{ columns: ['org', 'owner_id', '-created_at', '-id'] }, { columns: ['org', 'owner_id', '-id'] }];

export const orders = model(
  'orders',
  {
    id: t.uuidv7().pk(),
    org: t.text(20).readOnly(),
    owner_id: t.uuid().readOnly(),
    customer_id: t.ref(() => customers).nullable(),
    item: t.text({ min: 1, max: 120 }),
    quantity: t.int({ min: 1, max: 1000 }),
    total: t.decimal(12, 2),
    margin: t.decimal(12, 2).nullable(),
    discount: t.int().dbDefault(0),
    note: t.text(500).nullable(),
    internal_note: t.text(500).nullable(),
    code: t.text(40).nullable().unique(),
    status: t.enum(['open', 'paid', 'cancelled']).dbDefault('open'),
    due_at: t.timestamp().nullable(),
    big: t.bigint().dbDefault(9007199254740993n),
    blob: t.bytes().nullable(),
    data: t.json().nullable(),
    labels: t.array(t.text()).nullable(),
    secret: t.text(100).nullable().sensitive(),
    ...timestamps(),
    ...versioned(),
    ...userStamps(),
  },
  { indexes },
);

export const orderItems = model('order_items', {
  id: t.uuidv7().pk(),
  order_id: t.ref(() => orders, { onDelete: 'cascade' }),
  sku: t.text(40),
  amount: t.int(),
  cancelled: t.bool().dbDefault(false),
  product_id: t.ref(() => products).nullable(),
});

export const products = model('products', { id: t.uuidv7().pk(), title: t.text(100), price: t.decimal(10, 2) });

export const customerResource = resource(customers, {
  tenant: 'org',
  fields: { credit: visibleTo(isStaff) },
});

export const productResource = resource(products, { unscoped: true });

export const itemResource = resource(orderItems, {
  rows: () => ({ order: { is: {} } }),
  relations: { order: one(() => orders, 'order_id'), product: one(() => products, 'product_id') },
});

export const changes: unknown[] = [];

export const orderResource = resource(orders, {
  tenant: 'org',
  owner: { column: 'owner_id', unless: isStaff },
  version: 'version',
  relations: {
    customer: one(() => customers, 'customer_id'),
    items: many(() => orderItems, 'order_id', { order: ['sku'], limit: 5, where: { cancelled: false } }),
  },
  input: [
    'customer_id',
    'item',
    'quantity',
    'total',
    'margin',
    'discount',
    'note',
    'code',
    'due_at',
    'big',
    'blob',
    'data',
    'labels',
    'secret',
  ],
  hidden: ['internal_note'],
  fields: {
    margin: visibleTo(isStaff, { hidden: 'omit' }),
    discount: writableBy(isStaff),
    note: visibleTo(isOwner()),
  },
  computed: {
    overdue: {
      requires: ['due_at', 'customer.terms'],
      response: z.boolean(),
      value: (row, { now }) => row.due_at !== null && row.due_at < now,
    },
  },
  state: 'status',
  transitions: {
    pay: { from: ['open'], to: 'paid', guard: (row) => row.total !== '0.00' || 'Nothing to pay.' },
    cancel: { from: ['open'], to: 'cancelled', permission: isStaff },
  },
});

export class OrderController extends CrudController(orderResource, {
  permission: isAuthenticated,
  filters: {
    status: ['eq', 'ne', 'in', 'nin'],
    total: ['eq', 'gte', 'lte', 'gt', 'lt'],
    item: ['eq', 'contains', 'starts', 'ends'],
    created_at: ['gte', 'lt'],
    due_at: ['isnull', 'lt'],
    margin: ['gte'],
    'customer.name': ['eq', 'contains'],
    'customer.credit': ['gte'],
    mine: filter(z.boolean(), (value, { user }) => (value && user !== null ? { owner_id: user.id } : {})),
  },
  search: ['item', 'code'],
  ordering: { by: ['created_at', 'total', 'due_at', 'item', 'margin'] },
  expand: ['customer', 'items', 'items.product'],
  page: { default: 20, max: 100, count: { upTo: 100 } },
}) {}

export class CustomerController extends CrudController(customerResource, { permission: isAuthenticated }) {}
export class ItemController extends CrudController(itemResource, { permission: isAuthenticated, etag: false, expand: ['order'] }) {}

const tables = migration('0001_initial', [
  createTable('customers', customers.columns),
  createTable('products', products.columns),
  createTable('orders', { ...orders.columns, customer_id: t.ref('customers').nullable() }, { indexes }),
  createTable('order_items', {
    ...orderItems.columns,
    order_id: t.ref('orders', { onDelete: 'cascade' }),
    product_id: t.ref('products').nullable(),
  }),
]);

export const shop: Module = {
  name: 'shop',
  models: [customers, products, orders, orderItems],
  migrations: [tables],
  resources: [productResource],
};

export interface Called {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server answered
  readonly body: any;
  readonly text: string;
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>;
}

export type Call = (
  person: Person | null,
  method: string,
  url: string,
  payload?: unknown,
  headers?: Record<string, string>,
) => Promise<Called>;

export interface ShopApp extends TestApp {
  readonly call: Call;
}

/** The shop on this database: `/v1/orders`, `/v1/customers`, `/v1/items`. */
export async function startShop(options: Partial<TestAppOptions> = {}): Promise<ShopApp> {
  const started = await testApp({
    authenticators: [byName],
    tenant: ({ user }) => (user === null ? null : people[user.username as Person].tenant),
    mount: { '/v1': { '/orders': OrderController, '/customers': CustomerController, '/items': ItemController } },
    modules: [shop],
    ...options,
  });
  const call: Call = async (person, method, url, payload, headers = {}) => {
    const response = await started.inject({
      method: method as 'GET',
      url: url.startsWith('/') ? url : `/v1/${url}`,
      headers: { ...(person === null ? {} : { 'x-user': person }), ...headers },
      ...(payload === undefined ? {} : { payload: payload as object }),
    });
    const text = response.body;
    return {
      status: response.statusCode,
      body: text === '' ? undefined : (JSON.parse(text) as unknown),
      text,
      headers: response.headers,
    };
  };
  return { ...started, call };
}
