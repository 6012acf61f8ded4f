import { z } from 'zod';
import { CrudController, many, one, resource, visibleTo, writableBy, count, sum, type Change } from '../../src/crud/index.ts';
import { createTable, migration, model, softDelete, softDeleteUnique, t, timestamps, userStamps, versioned } from '../../src/db/index.ts';
import { route } from '../../src/http/declare/route.ts';
import { jsonSchema } from '../../src/http/declare/json-schema.ts';
import type { AuditEntry } from '../../src/auth/request/audit-sink.ts';
import type { EventEntry } from '../../src/app/declare/registry.ts';
import type { Module } from '../../src/app/declare/module.ts';
import { isAuthenticated, isStaff } from '../../src/permissions/index.ts';
import type { TestAppOptions } from '../../src/testing/test-app.ts';
import { startShop, type ShopApp } from './shop.ts';

/** A help desk: one resource with every feature, so that a rule can be tried on every path that reaches its rows. */
export const firms = model('firms', { id: t.uuidv7().pk(), org: t.text(20).readOnly(), name: t.text(60) });

const indexes = [softDeleteUnique('owner_id', 'sku')];
export const tickets = model(
  'tickets',
  {
    id: t.uuidv7().pk(),
    org: t.text(20).readOnly(),
    owner_id: t.uuid().readOnly(),
    firm_id: t.ref(() => firms).nullable(),
    sku: t.text(40),
    title: t.text({ min: 1, max: 80 }).dbDefault('untitled'),
    cost: t.int().nullable(),
    discount: t.int().dbDefault(0),
    status: t.enum(['open', 'paid']).dbDefault('open'),
    extra: t
      .json(z.object({ color: z.string(), door: z.object({ pin: z.string().min(4).meta({ 'x-sensitive': true }) }).optional() }))
      .nullable(),
    ...timestamps(),
    ...userStamps(),
    ...versioned(),
    ...softDelete({ by: true }),
  },
  { indexes },
);
export const lines = model('lines', {
  id: t.uuidv7().pk(),
  ticket_id: t.ref(() => tickets),
  firm_id: t.ref(() => firms).nullable(),
  name: t.text(40),
  points: t.int().dbDefault(0),
  ...timestamps(),
  ...userStamps(),
  ...versioned(),
});

/** What was told about changes, newest last. `failing` makes one of them fail. */
export const desk: {
  tickets: Change[];
  lines: Change[];
  audited: AuditEntry[];
  published: EventEntry[];
  failing: 'hook' | 'onChange' | 'audit' | 'events' | undefined;
} = { tickets: [], lines: [], audited: [], published: [], failing: undefined };

export function forget(): void {
  for (const list of [desk.tickets, desk.lines, desk.audited, desk.published]) list.length = 0;
  desk.failing = undefined;
}

const failWhen = (place: typeof desk.failing) => {
  if (desk.failing === place) throw new Error(`the ${String(place)} fails`);
};
const around = <V>(next: () => V): V => {
  failWhen('hook');
  return next();
};

export const firmResource = resource(firms, { tenant: 'org' });
export const ticketResource = resource(tickets, {
  tenant: 'org',
  owner: { column: 'owner_id', unless: isStaff },
  version: 'version',
  relations: {
    firm: one(() => firms, 'firm_id'),
    lines: many(() => lines, 'ticket_id', { order: ['name'], limit: 20 }),
  },
  nested: { lines: { input: ['name', 'points', 'firm_id'], missing: 'delete', max: 20 } },
  fields: { cost: visibleTo(isStaff), discount: writableBy(isStaff) },
  state: 'status',
  transitions: { pay: { from: ['open'], to: 'paid' } },
  hooks: {
    create: async ({ input }, next) => around(() => next(input)),
    update: async ({ input }, next) => around(() => next(input)),
    destroy: async (_, next) => around(() => next()),
    transition: async (_, next) => around(() => next()),
  },
  onChange: (change) => {
    failWhen('onChange');
    desk.tickets.push(change);
  },
  events: true,
  admin: { rows: true, tenant: 'all' },
});
export const lineResource = resource(lines, {
  rows: () => ({ ticket: { is: {} } }),
  version: 'version',
  relations: { ticket: one(() => tickets, 'ticket_id') },
  fields: { points: writableBy(isStaff) },
  onChange: (change) => void desk.lines.push(change as unknown as Change),
});

const Found = jsonSchema<{ id: string; title: string }>({
  type: 'object',
  properties: { id: { type: 'string' }, title: { type: 'string' } },
  required: ['id', 'title'],
});

export class TicketController extends CrudController(ticketResource, {
  permission: isAuthenticated,
  filters: { status: ['eq', 'in'], title: ['contains'], cost: ['gte'], created_at: ['gte'], 'firm.name': ['eq'] },
  search: ['title'],
  ordering: { by: ['created_at', 'title', 'cost'] },
  expand: ['firm', 'lines'],
  restore: true,
  bulk: { create: true, update: true, destroy: true },
  export: ['csv', 'jsonl'],
  import: { formats: ['csv', 'jsonl'], by: 'sku' },
  stats: { by: ['status', 'cost'], metrics: { tickets: count(), spent: sum('cost') } },
  meta: true,
}) {
  label = route.get('/:id/label', { params: this.keyParams, permission: isAuthenticated, response: Found }, async (context) => {
    const { id, title } = await this.find(context, context.params.id);
    return { id, title };
  });
}
/** The same rows with items that fail one by one, and with tags that are required. */
export class PartialController extends CrudController(ticketResource, {
  permission: isAuthenticated,
  bulk: { create: true, update: true, destroy: true, mode: 'partial' },
  etag: 'required',
}) {}
export class FirmController extends CrudController(firmResource, { permission: isAuthenticated }) {}
export class LineController extends CrudController(lineResource, { permission: isAuthenticated, expand: ['ticket'] }) {}

const tables = migration('0001_initial', [
  createTable('firms', firms.columns),
  createTable('tickets', { ...tickets.columns, firm_id: t.ref('firms').nullable() }, { indexes }),
  createTable('lines', { ...lines.columns, ticket_id: t.ref('tickets'), firm_id: t.ref('firms').nullable() }),
]);

export const deskModule: Module = {
  name: 'desk',
  models: [firms, tickets, lines],
  migrations: [tables],
  provides: () => ({
    audit: {
      record: async (tx, entries) => {
        failWhen('audit');
        await tx.query('select 1');
        desk.audited.push(...entries);
      },
    },
    events: {
      publish: async (tx, events) => {
        failWhen('events');
        await tx.query('select 1');
        desk.published.push(...events);
      },
    },
  }),
};

/** `/v1/tickets`, `/v1/partial`, `/v1/firms`, `/v1/lines`, with the people of the shop. */
export function startDesk(options: Partial<TestAppOptions> = {}): Promise<ShopApp> {
  return startShop({
    mount: { '/v1': { '/tickets': TicketController, '/partial': PartialController, '/firms': FirmController, '/lines': LineController } },
    modules: [deskModule],
    ...options,
  });
}
