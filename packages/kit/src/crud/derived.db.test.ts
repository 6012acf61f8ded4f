import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { UserTable } from '../auth/people/user-table.ts';
import { createApp, StartUpError } from '../app/index.ts';
import { byName, people as persons, type Person } from '../../test/crud/shop.ts';
import { createTable, insert, migration, model, t, whereSql } from '../db/index.ts';
import { hasRule, isAuthenticated, isOwner, isStaff } from '../permissions/index.ts';
import { fakeClock } from '../testing/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { count, CrudController, derived, many, one, people, resource, visibleTo } from './index.ts';

const projects = model('projects', { id: t.int().pk(), org: t.text(20).readOnly(), is_open: t.bool().nullable() });
const tickets = model('tickets', {
  id: t.int().pk(),
  org: t.text(20).readOnly(),
  owner_id: t.text(60).readOnly(),
  project_id: t.ref<number>(() => projects, { type: t.int() }).nullable(),
  title: t.text(40).nullable(),
  closed_at: t.timestamp().nullable(),
  due_at: t.timestamp().nullable(),
  weight: t.decimal(8, 2).nullable(),
  is_hot: t.bool().nullable(),
});

const NAMES = ['closed', 'hot', 'overdue', 'frozen', 'left', 'heavy', "it's open"] as const;
const state = derived(NAMES, {
  closed: () => ({ closed_at: { isnull: false } }),
  hot: () => ({ or: [{ is_hot: true }, { and: [{ title: { starts: 'URGENT' } }, { not: { is_hot: false } }] }] }),
  overdue: ({ now }) => ({ due_at: { lte: now } }),
  frozen: () => ({ not: { project: { is: { is_open: true } } }, project_id: { isnull: false } }),
  left: () => ({ not: { owner: { is: { is_active: true } } } }),
  heavy: () => ({ weight: { gt: '9.50' }, title: { nin: ['a', 'b'] } }),
});

const relations = { project: one(() => projects, 'project_id'), owner: people('owner_id') };
const ticketResource = resource(tickets, {
  tenant: 'org',
  owner: { column: 'owner_id', unless: isStaff },
  relations,
  computed: { state },
  audiences: { office: { rows: true } },
});
const projectResource = resource(projects, { tenant: 'org', relations: { tickets: many(() => tickets, 'project_id', { limit: 100 }) } });
const offered = {
  permission: isAuthenticated,
  filters: { state: ['eq', 'ne', 'in', 'nin'], title: ['eq'] },
  stats: { by: ['state'], metrics: { number: count() } },
  export: ['csv'],
  expand: ['project'],
  meta: true,
} as const;
class Tickets extends CrudController(ticketResource, offered) {}
class Office extends CrudController(ticketResource, { ...offered, audience: 'office' }) {}
class Projects extends CrudController(projectResource, { permission: isAuthenticated, expand: ['tickets'] }) {}

const module = {
  name: 'tickets',
  models: [projects, tickets],
  migrations: [
    migration('0001_initial', [
      createTable('projects', projects.columns),
      createTable('tickets', { ...tickets.columns, project_id: t.ref<number>('projects', { type: t.int() }).nullable() }),
    ]),
  ],
};
const users: UserTable = {
  name: 'members',
  id: 'id',
  username: 'name',
  email: 'name',
  isActive: 'enabled',
  isStaff: 'staff',
  isSuperuser: 'staff',
};
const NOW = '2026-06-01T12:00:00.000Z';

describeDatabases('derived states', (database) => {
  let app: TestApp;
  const clock = fakeClock(NOW);

  beforeAll(async () => {
    const { db } = database;
    await db.query(
      `create table members (id ${db.dialect === 'postgres' ? 'uuid' : 'text'} primary key, name text, enabled boolean, staff boolean)`,
    );
    for (const [name, { id }] of Object.entries(persons))
      await db.query('insert into members values ($1, $2, $3, false)', [id, name, name !== 'bob']);
    app = await testApp({
      database: db,
      clock,
      authenticators: [byName],
      users: { table: users },
      tenant: ({ user }) => (user === null ? null : persons[user.username as Person].tenant),
      modules: [module],
      mount: { '/v1': { '/tickets': Tickets, '/office': Office, '/projects': Projects } },
    });
    for (const [id, is_open] of [true, false, null].entries()) await insert(db, projects, { id: id + 1, org: 'north', is_open });
    await insert(db, projects, { id: 9, org: 'south', is_open: true });
    // Every combination of values that the conditions tell apart, NULL among them.
    const before = new Date(Date.parse(NOW) - 1000);
    const after = new Date(Date.parse(NOW) + 1000);
    let id = 0;
    for (const closed_at of [null, before])
      for (const is_hot of [null, true, false])
        for (const title of [null, 'URGENT x', 'a'])
          for (const due_at of [null, new Date(NOW), after])
            for (const project_id of [null, 1, 2, 3, 9])
              for (const [owner_id, weight] of [
                [persons.ann.id, null],
                [persons.bob.id, '9.50'],
                [persons.ann.id, '10.00'],
                ['', '100.00'],
              ] as const) {
                id += 1;
                if (id % 3 !== 0 && closed_at !== null) continue;
                await db.query('insert into tickets values ($1, $2, $3, $4, $5, $6, $7, $8, $9)', [
                  id,
                  'north',
                  owner_id,
                  project_id,
                  title,
                  ...[closed_at, due_at].map((at) => at?.toISOString() ?? null),
                  weight,
                  is_hot,
                ]);
              }
  }, 120_000);
  afterAll(() => app.close());

  const get = async (who: Person, path: string, method: 'GET' | 'QUERY' = 'GET', payload?: object) => {
    const response = await app.inject({
      method: method as 'GET',
      url: `/v1/${path}`,
      headers: { 'x-user': who },
      ...(payload && { payload }),
    });
    return {
      status: response.statusCode,
      text: response.body,
      body: response.body.startsWith('{') ? JSON.parse(response.body) : response.body,
    };
  };
  const listed = async (who: Person, path: string, method: 'GET' | 'QUERY' = 'GET', payload?: object) => {
    const { status, body } = await get(who, path, method, payload);
    expect({ path, status }).toEqual({ path, status: 200 });
    return body.items as { id: number; state: string }[];
  };
  const ids = (items: readonly { id: number }[]) => items.map(({ id }) => id).toSorted((a, b) => a - b);

  test.each([
    ['ann', 'tickets'],
    ['ann', 'office'],
    ['sue', 'office'],
  ] as const)('what %s sees in %s: the field, every filter and the statistics agree on each row', async (who, path) => {
    const all = await listed(who, `${path}?limit=1000`);
    expect(new Set(all.map((each) => each.state)).size).toBeGreaterThan(path === 'office' ? NAMES.length - 1 : 4);
    for (const name of NAMES) {
      const own = ids(all.filter((each) => each.state === name));
      const others = ids(all.filter((each) => each.state !== name));
      const asked = encodeURIComponent(name);
      expect(ids(await listed(who, `${path}?limit=1000&state=${asked}`))).toEqual(own);
      expect(ids(await listed(who, `${path}?limit=1000&state__ne=${asked}`))).toEqual(others);
      expect(ids(await listed(who, `${path}?limit=1000&state__nin=${asked}`))).toEqual(others);
    }
    const some = ids(all.filter((each) => each.state === 'hot' || each.state === 'closed'));
    expect(ids(await listed(who, `${path}?limit=1000&state__in=hot,closed`))).toEqual(some);
    expect(ids(await listed(who, `${path}?limit=1000`, 'QUERY', { where: { not: { state: { in: ['hot', 'closed'] } } } }))).toEqual(
      ids(all.filter((each) => each.state !== 'hot' && each.state !== 'closed')),
    );
    const groups = (await get(who, `${path}/stats?group_by=state`)).body.items as { state: string; number: number }[];
    expect(Object.fromEntries(groups.map((each) => [each.state, each.number]))).toEqual(
      Object.fromEntries([...Map.groupBy(all, (each) => each.state)].map(([name, rows]) => [name, rows.length])),
    );
  });

  test('time alone changes the state, at the same moment in the field and the filter', async () => {
    const was = ids(await listed('ann', 'office?limit=1000&state=overdue'));
    clock.advance(2000);
    const is = await listed('ann', 'office?limit=1000&state=overdue');
    clock.advance(-2000);
    expect(is.length).toBeGreaterThan(was.length);
    expect(is.every((each) => each.state === 'overdue')).toBe(true);
  });

  test('a single record, an export, an expanded relation and a written row have the state', async () => {
    const [first] = await listed('ann', 'tickets?state=closed&limit=1');
    expect((await get('ann', `tickets/${first?.id}`)).body.state).toBe('closed');
    expect((await get('ann', `tickets/${first?.id}?fields=state`)).body).toEqual({ id: first?.id, state: 'closed' });
    expect((await get('ann', 'tickets/export?fields=state&state=overdue')).text.split('\r\n')[1]).toMatch(/^\d+,overdue$/);
    const { body } = await get('ann', 'projects/1?expand=tickets');
    expect((body.tickets as { state: string }[]).every((each) => (NAMES as readonly string[]).includes(each.state))).toBe(true);
    const patched = await app.inject({
      method: 'PATCH',
      url: `/v1/tickets/${first?.id}`,
      headers: { 'x-user': 'ann' },
      payload: { closed_at: null, is_hot: true },
    });
    expect(patched.json()).toMatchObject({ is_hot: true, state: 'hot' });
  });

  test('an unknown state is a 422 with the known ones, and documents have them', async () => {
    const { status, body } = await get('ann', 'tickets?state=gone');
    expect({ status, code: body.errors[0].code }).toEqual({ status: 422, code: 'invalid' });
    expect((await get('ann', 'tickets/meta')).body.output.properties.state.enum).toEqual(NAMES);
    const document = (await app.inject({ url: '/openapi.json' })).json();
    expect(document.components.schemas.Ticket.properties.state).toMatchObject({ type: 'string', enum: NAMES });
    expect(document.components.parameters.State.schema.enum).toEqual(NAMES);
  });
});

describe('derived states, checked at startup', () => {
  function faults(policy: object, options: object = {}): string[] {
    class Wrong extends CrudController(resource(tickets, { unscoped: true, relations, ...policy }), {
      permission: isAuthenticated,
      ...options,
    }) {}
    try {
      const resources = [projectResource];
      createApp({
        database: 'sqlite::memory:',
        log: { level: 'silent' },
        docs: false,
        users: { table: users },
        tenant: () => null,
        rules: { back: () => true },
        resources,
        mount: { '/v1': { '/t': Wrong } },
      });
      return [];
    } catch (error) {
      if (!(error instanceof StartUpError)) throw error;
      return error.faults.map(({ id, message }) => `${id} ${message}`).filter((each) => !each.startsWith('E015'));
    }
  }
  const of = (condition: unknown) => ({ computed: { state: derived(['a', 'b'], { a: (() => condition) as never }) } });

  test.each([
    ['a misspelt column', { closd_at: null }, /closd_at/],
    ['a misspelt column of a relation', { project: { is: { opn: true } } }, /opn/],
    ['SQL', { or: [{ is_hot: true }, whereSql('this.is_hot')] }, /SQL cannot be evaluated/],
    ['nothing', undefined, /undefined|must return/],
    ['an empty condition', {}, /must return/],
    ['a value that the column cannot have', { due_at: 'soon' }, /due_at/],
  ])('E012: %s', (_name, condition, problem) => {
    expect(faults(of(condition)).filter((each) => each.startsWith('E012 ') && problem.test(each))).toHaveLength(1);
  });

  test('a filter needs a field that conditions decide, and that no rule about the row hides', () => {
    expect(
      faults({ computed: { state } }, { filters: { state: ['eq', 'in'] }, stats: { by: ['state'], metrics: { n: count() } } }),
    ).toEqual([]);
    expect(faults({ computed: { state } }, { filters: { state: ['gt'] } })).toEqual([]);
    expect(faults({ computed: { state } }, { ordering: { by: ['state'] } })).toEqual([
      expect.stringMatching(/E012 .*unknown column "state"/),
    ]);
    expect(faults({ computed: { title: state } })).toEqual([expect.stringMatching(/E018/)]);
    expect(faults({ computed: { state }, fields: { is_hot: visibleTo(isOwner()) } }, { filters: { state: ['eq'] } })).toEqual([
      expect.stringMatching(/E016 .*"state"/),
    ]);
    expect(faults({ computed: { state }, fields: { is_hot: visibleTo(hasRule('back')) } }, { filters: { state: ['eq'] } })).toEqual([]);
  });

  test('names and conditions belong together', () => {
    const none = () => ({});
    expect(() => derived(['a', 'b'], { c: none } as never)).toThrow(/"a" has no condition, "c" is not one of its names/);
    expect(() => derived(['a', 'b'], { a: none, b: none } as never)).toThrow(/"b" is the last, which needs no condition/);
    expect(() => derived(['a', 'a'], { a: none })).toThrow(/twice/);
  });

  test('what types can say does not compile', () => {
    const wrong = () => {
      // @ts-expect-error -- a state without its condition
      derived(['a', 'b', 'c'], { a: () => true });
      // @ts-expect-error -- an unknown state
      derived(['a', 'b'], { a: () => true, d: () => true });
      const own = resource(tickets, { unscoped: true, computed: { state: derived(['a', 'b'], { a: () => true }) } });
      // @ts-expect-error -- states have no order
      CrudController(own, { permission: isAuthenticated, filters: { state: ['gt'] } });
      // @ts-expect-error -- a misspelt name
      CrudController(own, { permission: isAuthenticated, filters: { stat: ['eq'] } });
      CrudController(own, { permission: isAuthenticated, filters: { state: ['eq'] }, output: ['state'] });
    };
    expect(wrong).toBeTypeOf('function');
  });
});
