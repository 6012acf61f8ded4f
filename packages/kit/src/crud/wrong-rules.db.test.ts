import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { noteResource, forgetReturned, paperResource, returned, ruledApp, TABLES } from '../../test/crud/ruled.ts';
import { people } from '../../test/crud/shop.ts';
import { standingsOf } from '../app/declare/standing.ts';
import { type RuleKind, ruleKinds, ruleResult } from '../auth/rights/rule-result.ts';
import { groupsOf, scopesOf, tenantOf } from '../contrib/jwt/token-claims.ts';
import { whereSql } from '../db/sql/where/where-sql.ts';
import { observeQueries } from '../db/engine/query-observer.ts';
import { describeDatabases } from '../testing/databases.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { crudOf } from './index.ts';
import { AdminAccess } from './staff/admin-access.ts';

class Rule {
  readonly owner_id = 'ann';
}

/** What a rule may return by mistake. Each is wrong for every kind that does not name it in `accepts`. */
const VALUES: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  'an empty string': () => '',
  'a string': () => 'ann',
  zero: () => 0,
  'a number': () => 7,
  NaN: () => Number.NaN,
  'a bigint': () => 7n,
  'a symbol': () => Symbol('rule'),
  true: () => true,
  false: () => false,
  'an empty list': () => [],
  'a list of strings': () => ['ann'],
  'an empty object': () => ({}),
  'an unknown column': () => ({ nosuch: 1 }),
  'a function': () => () => true,
  'a Date': () => new Date(0),
  'a Map': () => new Map(),
  'an instance of a class': () => new Rule(),
  'a promise of undefined': () => Promise.resolve(undefined),
  'a promise of a promise of a string': () => Promise.resolve(Promise.resolve('ann')),
};
/** Data of the right kind, which would be a condition for more rows than were meant. */
const CONDITIONS: Readonly<Record<string, () => unknown>> = {
  'a column that is undefined': () => ({ title: undefined }),
  'an operator that is undefined': () => ({ title: { eq: undefined } }),
  'a list with undefined': () => ({ title: { in: [undefined] } }),
  'a column without an operator': () => ({ title: {} }),
  'and: undefined': () => ({ and: undefined }),
  'or: undefined': () => ({ or: undefined }),
  'not: undefined': () => ({ not: undefined }),
  'undefined in a list': () => ({ and: [{ title: 'a' }, undefined] }),
  'whereSql without a text': () => whereSql(undefined as never),
  'whereSql with an undefined value': () => whereSql('this.title = $1', [undefined]),
  'whereSql without a value': () => whereSql('this.title = $1'),
};
const OPEN: Readonly<Record<string, () => unknown>> = {
  'an empty part': () => ({ or: [{ title: 'a' }, {}] }),
  'a negated empty part': () => ({ not: {} }),
};

type Request = readonly [method: string, url: string, payload?: unknown, headers?: Readonly<Record<string, string>>];
interface Case {
  /** Of {@link VALUES}: valid for this kind. */
  readonly accepts: readonly string[];
  readonly more?: Readonly<Record<string, () => unknown>>;
  /** Every way to the rule. */
  readonly requests?: (id: string) => readonly Request[];
  /** Where the rule is not asked with a request: rejects with the error. */
  readonly ask?: (value: unknown) => unknown;
}

const LINE = JSON.stringify({ title: 'imported' });
const FILE = { 'content-type': 'application/x-ndjson' };
const reads = (path: string, id: string): Request[] => [
  ['GET', path],
  ['GET', `${path}?title=secret`],
  ['QUERY', path, { where: { title: 'secret' } }],
  ['GET', `${path}/${id}`],
  ['GET', `${path}/export?format=jsonl`],
  ['GET', `${path}/stats?metrics=n`],
];
const changes = (path: string, id: string): Request[] => [
  ['PATCH', `${path}/${id}`, { title: 'changed' }],
  ['PUT', `${path}/${id}`, { title: 'changed' }],
  ['DELETE', `${path}/${id}`],
  ['POST', `${path}/bulk-update`, { items: [{ id, title: 'changed' }] }],
  ['POST', `${path}/bulk-delete`, { ids: [id] }],
];
const creations = (path: string): Request[] => [
  ['POST', path, { title: 'made' }],
  ['POST', `${path}/bulk`, { items: [{ title: 'made' }] }],
  ['POST', `${path}/import`, LINE, FILE],
];
const whole = (path: string, id: string): Request[] => [...reads(path, id), ...changes(path, id), ...creations(path)];
const meta = (path: string): Request => ['GET', `${path}/meta`];
const FOLLOW: Request = ['GET', 'own/follow'];
const pay = (path: string, id: string): Request => ['POST', `${path}/${id}/pay`];

const cases: { readonly [K in RuleKind]: Case } = {
  rows: {
    accepts: ['true', 'false'],
    more: { ...CONDITIONS, ...OPEN },
    requests: (id) => [...whole('notes', id), pay('notes', id), ['POST', `notes/${id}/restore`]],
  },
  access: {
    accepts: ['true', 'false'],
    more: { ...CONDITIONS, ...OPEN },
    requests: (id) => [...whole('papers', id), pay('papers', id), ['POST', `papers/${id}/restore`]],
  },
  filter: {
    accepts: ['true', 'false', 'an empty object'],
    more: CONDITIONS,
    requests: () => [
      ['GET', 'bills?mine=true'],
      ['GET', 'bills/export?mine=true&format=jsonl'],
      ['GET', 'bills/stats?metrics=n&mine=true'],
      ['QUERY', 'bills', { where: { mine: true } }],
    ],
  },
  search: {
    accepts: [],
    more: { ...CONDITIONS, ...OPEN },
    requests: () => [
      ['GET', 'bills?search=secret'],
      ['GET', 'bills/export?search=secret&format=jsonl'],
      ['GET', 'bills/stats?metrics=n&search=secret'],
      ['QUERY', 'bills', { search: 'secret' }],
    ],
  },
  guard: { accepts: ['true', 'false', 'a string'], requests: (id) => [pay('bills', id), ['GET', `bills/${id}/transitions`]] },
  validate: {
    accepts: ['an empty list'],
    more: {
      'no errors but the names of columns': () => ['title'],
      'an error without a place in the body': () => [{ location: ['title'], code: 'wrong', message: 'Wrong.' }],
      'an error without a message': () => [{ location: ['body', 'title'], code: 'wrong' }],
    },
    requests: (id) => [
      ...changes('bills', id).filter(([method, url]) => method !== 'DELETE' && !url.endsWith('bulk-delete')),
      ...creations('bills'),
      ['POST', 'bills', { title: 7, unknown: true }],
      ['PATCH', `bills/${id}`, { title: 7, unknown: true }],
    ],
  },
  events: {
    accepts: ['null'],
    more: {
      'no audience': () => ({ type: 'bill.made', data: {} }),
      'an empty audience': () => ({ type: 'bill.made', data: {}, audience: {} }),
      'an audience whose tenant is undefined': () => ({ type: 'bill.made', data: {}, audience: { owner: 'ann', tenantKey: undefined } }),
      'an audience with an unknown member': () => ({ type: 'bill.made', data: {}, audience: { tenant: 'north' } }),
      'broadcast: false': () => ({ type: 'bill.made', data: {}, audience: { broadcast: false } }),
    },
    requests: (id) => [...changes('bills', id), ...creations('bills'), pay('bills', id)],
  },
  permission: {
    accepts: ['true', 'false'],
    more: { 'another verdict': () => 'yes' },
    requests: (id) => [...whole('guarded', id), ...whole('drafts', id), meta('guarded'), meta('drafts'), FOLLOW],
  },
  'permission rows': {
    accepts: ['true', 'false'],
    more: { ...CONDITIONS, ...OPEN },
    requests: () => [
      ['GET', 'guarded'],
      ['GET', 'guarded/export?format=jsonl'],
      ['GET', 'guarded/stats?metrics=n'],
    ],
  },
  // An unknown column is found where the condition is compiled: as that of `access`, which the backend is a part of.
  'grant condition': { accepts: ['true', 'false', 'an unknown column'], more: { ...OPEN }, requests: (id) => whole('sheets', id) },
  'grant decision': { accepts: ['true', 'false'], requests: (id) => [['GET', `own/sheet/${id}`]] },
  authenticate: {
    accepts: ['undefined', 'null', 'a promise of undefined'],
    more: {
      'a principal without a user': () => ({ user: undefined, scheme: 'name', scopes: null }),
      'a user instead of a principal': () => ({ id: people.ann.id, is_active: true }),
      'scopes that are undefined': () => ({ user: { id: people.ann.id, is_active: true }, scheme: 'name', scopes: undefined }),
    },
    requests: (id) => [...whole('bills', id), meta('bills'), FOLLOW],
  },
  tenant: {
    accepts: ['null', 'an empty string', 'a string', 'a promise of a promise of a string'],
    requests: (id) => [...whole('offices', id), pay('offices', id), FOLLOW],
  },
  membership: {
    accepts: ['null'],
    more: { 'roles that are undefined': () => ({ roles: undefined }), 'one role': () => ({ roles: 'admin' }) },
    requests: (id) => [...whole('offices', id), pay('offices', id), FOLLOW],
  },
  memberships: {
    accepts: ['null'],
    ask: (value) => {
      const principal = { user: { id: people.ann.id, is_active: true }, scheme: 'name', scopes: null } as never;
      const standings = standingsOf({ users: null, tenants: { memberships: async () => [value as never] } });
      return standings.of({} as never, [{ userId: people.ann.id, tenant: 'north', principal }]);
    },
  },
  'throttle key': { accepts: ['null', 'an empty string', 'a string'], requests: () => [['GET', 'own/measured']] },
  'throttle rate': { accepts: ['null'], more: { 'half of a rate': () => ({ count: 1 }) }, requests: () => [['GET', 'own/measured']] },
  'idempotency caller': {
    accepts: ['an empty string', 'a string'],
    requests: () => [['POST', 'own/once', undefined, { 'idempotency-key': '"one"', 'x-user': '' }]],
  },
  'token tenant': { accepts: ['null', 'an empty string', 'a string'], ask: (value) => tenantOf({}, { tenant: () => value as never }) },
  'token names': {
    accepts: ['an empty list', 'a list of strings'],
    ask: (value) =>
      [() => scopesOf({}, { scopes: () => value as never }), () => groupsOf({}, { groups: () => value as never })].map((each) => each()),
  },
  user: { accepts: ['null'], ask: (value) => ruleResult('user', 'users.findById', value) },
  isInTenant: { accepts: ['true', 'false'], ask: (value) => ruleResult('isInTenant', 'objectGrants()', value) },
  groupsOf: { accepts: ['an empty list', 'a list of strings'], requests: (id) => whole('sheets', id) },
  hasActiveMember: { accepts: ['true', 'false'], ask: (value) => ruleResult('hasActiveMember', 'group directory', value) },
  scan: { accepts: [], ask: (value) => ruleResult('scan', 'uploads()', value) },
};

/** Rules about a row, or a change of one, that was found. */
const READS_FIRST: ReadonlySet<RuleKind> = new Set<RuleKind>(['guard', 'validate', 'events', 'permission', 'grant decision']);
const ROWS = new RegExp(`from "?(${TABLES.join('|')})`);

/** The rules that a program and the admin site ask, too. */
const programs: Readonly<Record<string, (app: TestApp, id: string) => Promise<unknown>>> = {
  'crudOf().rows()': ({ app }) => asAnn(app).rows(),
  'crudOf().find()': ({ app }, id) => asAnn(app).find(id),
  'crudOf().write().update()': ({ app }, id) => asAnn(app).write().update(id, { title: 'changed' }),
  'crudOf().write().destroy()': ({ app }, id) => asAnn(app).write().destroy(id),
  'crudOf().write().create()': ({ app }) => asAnn(app).write().create({ title: 'made' }),
};
const asAnn = (app: TestApp['app']) =>
  crudOf(app, noteResource).as({
    user: { id: people.ann.id, username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false },
    tenant: 'north',
  });

const wrongValues = (kind: RuleKind): [string, () => unknown][] => [
  ...Object.entries(VALUES).filter(([name]) => !cases[kind].accepts.includes(name)),
  ...Object.entries(cases[kind].more ?? {}),
];

/** What a rule returns is judged by `ruleResult`, conditions also where they are compiled. On each path these show that it is asked there. */
const onPaths = (kind: RuleKind): [string, () => unknown][] => {
  const few = new Set(['undefined', 'an unknown column', 'a promise of undefined', ...Object.keys(cases[kind].more ?? {})]);
  return wrongValues(kind).filter(([name]) => few.has(name));
};
const judged = (kind: RuleKind): [string, () => unknown][] => {
  const tried = new Set(onPaths(kind).map(([name]) => name));
  return wrongValues(kind).filter(([name]) => name === 'undefined' || !tried.has(name));
};

const kinds = (has: (each: Case) => boolean) =>
  (Object.entries(cases) as [RuleKind, Case][])
    .filter(([, each]) => has(each))
    .map(([kind, { requests, ask }]) => ({ kind, requests, ask }));

test('every kind of rule has its wrong results here', () => {
  expect(Object.keys(cases).sort()).toEqual(Object.keys(ruleKinds).sort());
});

describe.each(kinds(({ ask }) => ask !== undefined))('$kind', ({ kind, ask }) => {
  test.each(wrongValues(kind))('%s is rejected with invalid_rule, and the name of the rule', async (_, value) => {
    await expect((async () => ask?.(value()))()).rejects.toMatchObject({
      code: 'invalid_rule',
      message: expect.stringContaining(`"${kind}" returned`),
    });
  });
});

describe.each(kinds(({ requests }) => requests !== undefined))('$kind', ({ kind }) => {
  test.each(judged(kind))('%s is rejected with invalid_rule', (_, value) => {
    expect(() => ruleResult(kind, 'a rule', value())).toThrow(
      expect.objectContaining({ code: 'invalid_rule', message: expect.stringContaining(`"${kind}" returned`) as string }),
    );
  });
});

describeDatabases('a rule that returns something else', (database) => {
  let started: TestApp;
  const id = '01890000-0000-7000-8000-000000000001';
  const stored = async () =>
    JSON.stringify(await Promise.all(TABLES.map((table) => database.db.query(`select * from ${table} order by id`))));
  let before = '';

  beforeAll(async () => {
    started = await testApp({ ...ruledApp, database: database.db });
    for (const table of TABLES)
      await database.db.execute(`insert into ${table} (id, owner_id, title) values ($1, $2, 'secret')`, [id, people.ann.id]);
    before = await stored();
  });
  afterEach(() => forgetReturned());
  afterAll(() => started.close());

  const send = async ([method, url, payload, headers = {}]: Request) => {
    const from = started.records.length;
    const statements: string[] = [];
    const response = await observeQueries(
      ({ sql }) => void statements.push(sql),
      () =>
        started.inject({
          method: method as 'GET',
          url: url.startsWith('/') ? url : `/v1/${url}`,
          headers: { 'x-user': 'ann', 'if-match': '*', ...headers },
          ...(payload === undefined ? {} : { payload: payload as object }),
        }),
    );
    return { status: response.statusCode, text: response.body, logged: JSON.stringify(started.records.slice(from)), statements };
  };

  test('every way to a rule works while the rule returns what it should', async () => {
    for (const [kind, { requests }] of Object.entries(cases))
      for (const [method, url] of requests?.(id).filter(([each]) => each === 'GET' || each === 'QUERY') ?? []) {
        if (kind === 'search' || kind === 'grant decision') continue;
        const { status, text } = await send([method, url, ...(method === 'QUERY' ? [{ where: {} }] : [])] as unknown as Request);
        expect([kind, method, url, status, text]).toEqual([kind, method, url, expect.toBeOneOf([200, 204]), text]);
      }
  });

  describe.each(kinds(({ requests }) => requests !== undefined))('$kind', ({ kind, requests }) => {
    test.each(onPaths(kind))(
      '%s is 500 invalid_rule on every path, logged with the name of the rule; nothing is read or changed',
      async (_, value) => {
        for (const request of requests?.(id) ?? []) {
          returned[kind] = { value: value() };
          const { status, text, logged, statements } = await send(request);
          const [method, url] = request;
          expect([method, url, status, text]).toEqual([method, url, 500, expect.stringContaining('"code":"invalid_rule"')]);
          expect(text).not.toContain('secret');
          expect(text).not.toContain('returned');
          expect(logged).toContain(JSON.stringify(`the rule "${kind}" returned`).slice(1, -1));
          expect(READS_FIRST.has(kind) ? [] : statements.filter((each) => ROWS.test(each))).toEqual([]);
        }
        expect(await stored()).toBe(before);
      },
    );
  });

  test('a tool of agents ends with invalid_rule, and shows and changes nothing', async () => {
    for (const [, value] of onPaths('rows'))
      for (const call of [
        { name: 'note_list', arguments: {} },
        { name: 'note_partial_update', arguments: { id, title: 'changed' } },
      ]) {
        returned.rows = { value: value() };
        const { text, logged } = await send([
          'POST',
          '/mcp',
          { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call },
          { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' },
        ]);
        expect(text).toContain('invalid_rule');
        expect(text).not.toContain('secret');
        expect(logged).toContain('the rule \\\"rows\\\" returned');
      }
    expect(await stored()).toBe(before);
  });

  test('the admin site rejects with invalid_rule, and shows and changes nothing', async () => {
    const user = { id: people.sue.id, username: 'sue', email: null, is_active: true, is_staff: true, is_superuser: false };
    for (const [, value] of onPaths('access')) {
      const site = new AdminAccess(started.app, paperResource, { user, tenant: 'north' });
      returned.access = { value: value() };
      await expect(site.update(id, { title: 'changed' }, { sent: ['title'] })).rejects.toMatchObject({ code: 'invalid_rule' });
    }
    expect(await stored()).toBe(before);
  });

  test.each(Object.entries(programs))('%s of a program rejects with invalid_rule, and changes nothing', async (_, run) => {
    for (const [, value] of onPaths('rows')) {
      returned.rows = { value: value() };
      await expect(run(started, id)).rejects.toMatchObject({ code: 'invalid_rule' });
      expect(await stored()).toBe(before);
    }
  });
});
