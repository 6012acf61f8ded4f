// An application that other projects reference: everything is exported, nothing is annotated, declarations are emitted.
import {
  all,
  command,
  Controller,
  defineErrors,
  domainEvent,
  hasRule,
  hasScopes,
  isAuthenticated,
  isOwner,
  isStaff,
  on,
  page,
  raw,
  route,
} from 'kit';
import { AccountController, accounts } from 'kit/contrib/accounts';
import { ApiKeyController, apiKeys } from 'kit/contrib/apikeys';
import { audit } from 'kit/contrib/audit';
import { grants, hasGrant, objectActions, objectGrants, sharing } from 'kit/contrib/grants';
import { accepted, acceptsJob, job, JobController, jobs, startJob } from 'kit/contrib/jobs';
import { uploadRef, uploadRelation, UploadController, uploads, diskStore } from 'kit/contrib/uploads';
import { WebhookEndpointController, webhooks } from 'kit/contrib/webhooks';
import { count, CrudController, crudOf, filter, fullText, many, one, resource, sum, visibleTo, writableBy } from 'kit/crud';
import { createTable, find, list, migration, model, softDelete, t, timestamps, userStamps, versioned } from 'kit/db';
import { scoped, service, singleton, value } from 'kit/di';
import { HealthController, responseVersions } from 'kit/middleware';
import { clientThrottle, userThrottle } from 'kit/throttle';
import { z } from 'zod';

export const customers = model('customers', { id: t.uuidv7().pk(), name: t.text(80), terms: t.int().dbDefault(30) });
export const columns = {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  customer_id: t.ref(() => customers),
  status: t.enum(['open', 'paid']).dbDefault('open'),
  total: t.decimal(12, 2),
  note: t.text(200).nullable(),
  data: t.json<{ readonly a: number }>().nullable(),
  file_id: uploadRef().nullable(),
  ...timestamps(),
  ...userStamps(),
  ...versioned(),
  ...softDelete(),
};
export const orders = model('orders', columns, { fullText: [{ columns: ['note'] }] });
export const orderItems = model('order_items', { id: t.uuidv7().pk(), order_id: t.ref(() => orders), sku: t.text(40), ...softDelete() });
export const guardedRows = model('guarded_rows', { id: t.uuidv7().pk(), name: t.text(10) }, { guarded: true });
export const migrations = [migration('0001_initial', [createTable('orders', orders.columns)])];

export const orderActions = objectActions(orders, { actions: ['view', 'change', 'delete', 'share'], sets: { editor: ['view', 'change'] } });
export const access = grants(orders);
export const fields = { note: visibleTo(isOwner()), total: writableBy(isStaff) };
export const relations = {
  customer: one(() => customers, 'customer_id'),
  items: many(() => orderItems, 'order_id', { order: ['sku'], limit: 50 }),
  file: uploadRelation('file_id'),
};
export const orderResource = resource(orders, {
  owner: 'owner_id',
  version: 'version',
  access,
  relations,
  fields,
  softDelete: { cascade: ['items'] },
  state: 'status',
  transitions: { pay: { from: ['open'], to: 'paid', input: z.object({ reference: z.string() }) } },
  nested: { items: { input: ['sku'] } },
  computed: { is_late: { requires: ['status'], response: z.boolean(), value: (row) => row.status === 'open' } },
  rows: ({ user }) => (user.is_staff ? true : { or: [{ owner_id: user.id }, { status: 'open' }] }),
  hooks: { create: async ({ input }, next) => next({ ...input, created_by: null, updated_by: null }) },
  events: true,
});
export const customerResource = resource(customers, { unscoped: true });
export const mine = filter(z.boolean(), (value, { user }) => (value && user !== null ? { owner_id: user.id } : {}));
export const everything = {
  permission: hasScopes({ allowUnscoped: true }),
  scope: 'orders',
} as const;
export const OrderBase = CrudController(orderResource, {
  ...everything,
  filters: { status: ['eq', 'in'], 'customer.name': ['contains'], mine },
  search: fullText({ columns: ['note'] }),
  ordering: { by: ['created_at'], default: ['-created_at'] },
  expand: ['customer', 'items'],
  bulk: { create: true, update: true, destroy: true },
  export: ['csv'],
  import: { formats: ['csv'] },
  stats: { by: ['status'], metrics: { orders: count(), revenue: sum('total') } },
  restore: true,
  operations: { update: false },
});
export class OrderController extends sharing(OrderBase) {
  static override readonly tags = ['orders'];
  override list = this.wrap('list', { summary: 'Your orders' }, async (_context, next) => next());
  invoice = route.get(
    '/:id/invoice',
    { params: this.keyParams, response: raw('application/pdf'), permission: hasGrant('view', orders) },
    async (context) => Buffer.from((await this.find(context, context.params.id)).id),
  );
  first = async (context: Parameters<typeof this.rows>[0]) => this.rows(context, { status: 'open' }, 1);
  writer = (context: Parameters<typeof this.rows>[0]) => this.write(context);
}
export class CustomerController extends CrudController(customerResource, { permission: isStaff, operations: { destroy: false } }) {}
export const byProgram = (app: Parameters<typeof crudOf>[0]) => crudOf(app, orderResource).as({ user: null });

export const shopErrors = defineErrors('shop', {
  out_of_stock: { status: 409, title: 'Out of stock.', detail: 'There is not enough in stock.', remedy: 'Order less.' },
});
export const itemPage = page(z.object({ id: z.string() }));
export const orderPlaced = domainEvent('order.placed', z.object({ id: z.uuid() }));
export const onPlaced = on(orderPlaced, function mail() {});
export const place = command(z.object({ id: z.uuid() }), async ({ id }) => ({ id }));
export const ownOrders = all(isAuthenticated, hasRule('shop.orders'));
export const sendReport = job('reports.send', {
  input: z.object({ report_id: z.uuid() }),
  result: z.object({ pages: z.int() }),
  run: async ({ input, step }) => ({ pages: await step('render', () => input.report_id.length) }),
});
export class ReportController extends Controller {
  send = route.post('/:id', { ...acceptsJob, params: z.object({ id: z.uuid() }), permission: isAuthenticated }, ({ db, params, user }) =>
    db.transaction(async (tx) => accepted(await startJob(tx, sendReport, { report_id: params.id }, { owner: user.id }))),
  );
  events = route.stream('/events', { permission: isAuthenticated }, async function* () {
    yield { data: { id: 1 } };
  });
}
export class InvoiceController extends UploadController {
  static override readonly policy = { contentTypes: ['application/pdf'], bytesMax: 1000 };
}
export const mailer = service<{ send(to: string): Promise<void> }>('mailer');
export const services = [
  value(mailer, { send: async () => undefined }),
  singleton(service<number>('n'), {}, () => 1),
  scoped(service<string>('s'), { mailer }, () => ''),
];
export const throttles = [clientThrottle('600/min'), userThrottle('60/min')];
export const middleware = [responseVersions({ versions: [{ version: '1' }], default: '1' })];
export const modules = [
  accounts(),
  apiKeys(),
  audit(),
  webhooks({ secretKeys: [] }),
  jobs({ jobs: [sendReport] }),
  uploads({ store: diskStore({ folder: './data' }) }),
  objectGrants({ objects: [orderActions] }),
];
export const mount = {
  '/v1': {
    '/account': AccountController,
    '/keys': ApiKeyController,
    '/jobs': JobController,
    '/hooks': WebhookEndpointController,
    '/health': HealthController,
  },
};
export const readOrder = (db: Parameters<typeof find>[0], id: string) => find(db, orders, id);
export const readOrders = (db: Parameters<typeof find>[0]) => list(db, orders, { where: { status: 'open' } });
