import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import type { User } from '../../auth/people/principal.ts';
import { count, CrudController, crudOf, many, one, resource } from '../../crud/index.ts';
import { createTable, find, insert, insertMany, migration, model, t } from '../../db/index.ts';
import { Controller, route } from '../../http/index.ts';
import { hasRule, isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { accounts, createUser } from '../accounts/index.ts';
import { accountsOf } from '../accounts/users/accounts.ts';
import { grants } from './grant/access.ts';
import { grant } from './grant/grant.ts';
import { grantedCondition } from './rows/granted-condition.ts';
import { actionsOf, explainAccess, objectsOf } from './grant/holdings.ts';
import { objectGrants } from './module.ts';
import { objectActions } from './declare/object-actions.ts';
import { hasGrant } from './rows/permission.ts';
import { sharing } from './serve/sharing.ts';

/** Tickets of customers: agents, whom a rule of the app names, see and change all of them. Remarks are written by those who may `remark`. */
const tickets = model('tickets', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(50) });
const remarks = model('remarks', { id: t.uuidv7().pk(), ticket_id: t.ref(() => tickets), text: t.text(50) });
const ticketActions = objectActions(tickets, {
  actions: ['view', 'change', 'delete', 'share', 'remark'],
  sets: { viewer: ['view'], guest: ['viewer', 'remark'], manager: ['guest', 'change', 'delete', 'share'] },
});
const remarkActions = objectActions(remarks, {
  actions: ['view', 'change', 'delete', 'remark'],
  through: 'ticket_id',
  parentAction: 'remark',
  creator: 'view',
});
const ticketResource = resource(tickets, {
  owner: { column: 'owner_id', unless: hasRule('is_agent') },
  access: grants(tickets),
  relations: { remarks: many(() => remarks, 'ticket_id', { limit: 10 }) },
  nested: { remarks: { input: ['text'], max: 10 } },
});
const remarkResource = resource(remarks, { access: grants(remarks), relations: { ticket: one(() => tickets, 'ticket_id') } });
class Tickets extends CrudController(ticketResource, {
  permission: isAuthenticated,
  ordering: { by: ['title'] },
  filters: { title: ['eq'] },
  export: ['jsonl'],
  stats: { metrics: { n: count() } },
  bulk: { create: true, update: true, destroy: true },
  page: { default: 1, count: 'exact' },
}) {}
class TicketController extends sharing(Tickets) {}
class RemarkController extends CrudController(remarkResource, {
  permission: isAuthenticated,
  bulk: { create: true },
  import: { formats: ['jsonl'] },
  expand: ['ticket'],
}) {}
/** Guarded by the action itself, on lists and rows. */
class ChangeableController extends CrudController(ticketResource, {
  permission: hasGrant('change'),
  operations: { create: false, destroy: false },
  page: { count: 'exact' },
}) {}
class ByHand extends Controller {
  one = route.get('/:id', { permission: hasGrant('change', tickets as never) }, async ({ db, params, authorize }) => {
    await authorize(await find(db, tickets, (params as { id: string }).id));
  });
}

const PEOPLE = ['owner', 'agent', 'retired', 'viewer', 'guest', 'nobody'] as const;

describeDatabases('owner: { unless }, sharing and parents', (database) => {
  let started: TestApp;
  let ticket = '';
  const users = new Map<string, User>();
  const byName: Authenticator = {
    name: 'name',
    securityScheme: { type: 'http', scheme: 'name' },
    authenticate: ({ headers: { 'x-user': name } }) => {
      const user = users.get(String(name));
      return user === undefined ? null : { user, scheme: 'name', scopes: null };
    },
  };
  const ask = async (person: string, method: string, url: string, payload?: object) => {
    const response = await started.inject({
      method: method as 'GET',
      url: `/v1/${url}`,
      headers: { 'x-user': person },
      ...(payload === undefined ? {} : { payload }),
    });
    return { status: response.statusCode, body: response.body === '' ? undefined : response.json() };
  };
  beforeAll(async () => {
    started = await testApp({
      database: database.db,
      authenticators: [byName],
      rules: { is_agent: ({ user }) => user?.username === 'agent' || user?.username === 'retired' },
      mount: {
        '/v1': { '/tickets': TicketController, '/remarks': RemarkController, '/hand': ByHand, '/changeable': ChangeableController },
      },
      modules: [
        accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }),
        objectGrants({ objects: [ticketActions, remarkActions] }),
        {
          name: 'desk',
          models: [tickets, remarks],
          migrations: [
            migration('0001_initial', [
              createTable('tickets', tickets.columns),
              createTable('remarks', { ...remarks.columns, ticket_id: t.ref('tickets') }),
            ]),
          ],
        },
      ],
    });
    const { db } = started.app;
    for (const username of PEOPLE) {
      const { id, email, is_staff, is_superuser } = await createUser(db, { username }, accountsOf(db).management(null));
      users.set(username, { id, username, email, is_staff, is_superuser, is_active: username !== 'retired' });
    }
    ticket = (await insert(db, tickets, { owner_id: users.get('owner')?.id as string, title: 'broken' })).id;
    for (const name of ['viewer', 'guest'])
      await grant(db, { subject: `user:${users.get(name)?.id}`, set: name, object: { type: tickets, id: ticket } });
  });
  afterAll(() => started.close());
  const db0 = () => started.app.db;

  test('whom the owner rule exempts holds every action, on every path', async () => {
    const { db } = started.app;
    const object = { type: tickets, id: ticket };
    for (const [name, holds] of [
      ['owner', true],
      ['agent', true],
      ['retired', false],
      ['nobody', false],
    ] as const) {
      const asker = { user: users.get(name) as User, tenant: null };
      const statuses = [
        (await ask(name, 'GET', `tickets/${ticket}`)).status,
        (await ask(name, 'PATCH', `tickets/${ticket}`, { title: 'fixed' })).status,
        (await ask(name, 'GET', `tickets/${ticket}/grants`)).status,
        (await ask(name, 'PUT', `tickets/${ticket}/grants`, { subject: `user:${users.get('viewer')?.id}`, set: 'viewer' })).status,
        (await ask(name, 'GET', `hand/${ticket}`)).status,
      ];
      expect([name, statuses]).toEqual([name, holds ? [200, 200, 200, 200, 204] : [404, 404, 404, 404, 404]]);
      expect([name, [...(await actionsOf(db, asker, object))]]).toEqual([name, holds ? [...ticketActions.actions] : []]);
      expect([name, await objectsOf(db, asker, tickets as never, 'change')]).toEqual([name, holds ? [ticket] : []]);
      expect([name, (await grantedCondition(db, asker, tickets, 'share')) === false]).toEqual([name, name === 'retired']);
      const { allowed, reason } = await explainAccess(db, asker, object, 'share');
      const why = { owner: 'owner', agent: 'owner_unless', retired: 'inactive', nobody: 'not_granted' }[name];
      expect([allowed, reason]).toEqual([holds, why]);
    }
  });

  test('whom the owner rule exempts reads and writes as the owner does: lists, pages, files, statistics, bulk, programs and grants', async () => {
    const { db } = started.app;
    const others = await insertMany(
      db,
      tickets,
      ['b', 'c'].map((title) => ({ owner_id: users.get('owner')?.id as string, title })),
    );
    const expected: Readonly<Record<string, number>> = { owner: 3, agent: 3, viewer: 1, guest: 1, nobody: 0, retired: 0 };
    for (const [name, rows] of Object.entries(expected)) {
      const isExempt = name === 'owner' || name === 'agent';
      for (const start of ['tickets?', 'tickets?ordering=-title', 'tickets?title=c', 'changeable?limit=1']) {
        // A deactivated user holds no action, so that the permission refuses the list itself.
        if (name === 'retired' && start.startsWith('changeable')) continue;
        let found = 0;
        const own = start.startsWith('changeable') && !isExempt ? 0 : start.includes('title=c') ? Number(isExempt) : rows;
        for (let url: string | null = start; url !== null;) {
          const { body } = await ask(name, 'GET', url);
          found += body.items.length;
          expect([name, start, body.count]).toEqual([name, start, own]);
          url = body.next === null ? null : `${start.split('?')[0]}${body.next}`;
        }
        expect([name, start, found]).toEqual([name, start, own]);
      }
      expect([name, (await ask(name, 'GET', 'tickets/stats?metrics=n')).body.items]).toEqual([name, [{ n: rows }]]);
      const file = await started.inject({ url: '/v1/tickets/export', headers: { 'x-user': name } });
      expect([name, file.body.split('\n').filter((line) => line !== '').length]).toEqual([name, rows]);
      const program = crudOf(started.app, ticketResource).as({ user: users.get(name) as User, tenant: null });
      expect([name, (await program.rows()).length]).toEqual([name, rows]);
      const [first, second] = others.map(({ id }) => id);
      const bulk = await ask(name, 'POST', 'tickets/bulk-update', {
        items: [
          { id: first, title: 'b' },
          { id: second, title: 'c' },
        ],
      });
      expect([name, bulk.status]).toEqual([name, isExempt ? 200 : 404]);
      const body = { subject: `user:${users.get('nobody')?.id}`, set: 'viewer' };
      const shared = await ask(name, 'PUT', `tickets/${first}/grants`, body);
      expect([name, shared.status]).toEqual([name, isExempt ? 200 : 404]);
      await database.db.query('delete from grants where object_id = $1', [first]);
    }
    for (const name of ['owner', 'agent']) {
      const [first] = others.map(({ id }) => id);
      const subject = `user:${users.get('nobody')?.id}`;
      await ask(name, 'PUT', `tickets/${first}/grants`, { subject, set: 'viewer' });
      const { items } = (await ask(name, 'GET', `tickets/${first}/grants`)).body as { items: { id: string; subject: string }[] };
      const entry = items.find((each) => each.subject === subject);
      expect((await ask(name, 'DELETE', `tickets/${first}/grants/${entry?.id}`)).status).toBe(204);
    }
    const made = await ask('agent', 'POST', 'tickets', { title: 'made by an agent' });
    expect(made.status).toBe(201);
    const ids = [...others.map(({ id }) => id), made.body.id];
    expect((await ask('nobody', 'POST', 'tickets/bulk-delete', { ids })).status).toBe(404);
    expect((await ask('agent', 'POST', 'tickets/bulk-delete', { ids })).status).toBe(204);
  });

  test('the action on the parent is needed on every path that creates a child', async () => {
    const before = Number((await db0().query<{ n: number }>('select count(*) as n from remarks'))[0]?.n);
    const imported = async (name: string) => {
      const headers = { 'x-user': name, 'content-type': 'application/x-ndjson' };
      const payload = JSON.stringify({ ticket_id: ticket, text: name });
      return (await started.inject({ method: 'POST', url: '/v1/remarks/import', headers, payload })).statusCode;
    };
    const nested = async (name: string) => (await ask(name, 'PATCH', `tickets/${ticket}`, { remarks: [{ text: name }] })).status;
    let made = 0;
    for (const [name, byImport, byNested] of [
      ['owner', 201, 200],
      ['agent', 201, 200],
      // A guest may remark, and may not change the ticket: that takes the action of the operation.
      ['guest', 201, 403],
      ['viewer', 403, 403],
      ['nobody', 422, 404],
    ] as const) {
      expect([name, await imported(name)]).toEqual([name, byImport]);
      expect([name, await nested(name)]).toEqual([name, byNested]);
      made += Number(byImport === 201) + Number(byNested === 200);
    }
    expect(Number((await db0().query<{ n: number }>('select count(*) as n from remarks'))[0]?.n)).toBe(before + made);
    await db0().query('delete from remarks where id in (select id from remarks order by id desc limit $1)', [made]);
  });

  test('creating a child takes the declared action on its parent', async () => {
    for (const [name, status] of [
      ['owner', 201],
      ['agent', 201],
      ['guest', 201],
      ['viewer', 403],
      ['nobody', 422],
    ] as const) {
      const body = { ticket_id: ticket, text: name };
      expect([name, (await ask(name, 'POST', 'remarks', body)).status]).toEqual([name, status]);
      expect([name, (await ask(name, 'POST', 'remarks/bulk', { items: [body] })).status]).toEqual([name, status]);
    }
    expect((await ask('viewer', 'POST', 'remarks', { ticket_id: ticket, text: 'x' })).body).toMatchObject({
      code: 'cannot_grant',
      actions: ['remark'],
    });
    expect((await ask('viewer', 'GET', 'remarks')).body.items.length).toBe(6);
  });
});
