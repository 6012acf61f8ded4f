import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { desk, forget, startDesk, ticketResource } from '../../test/crud/desk.ts';
import { people, type Called, type Person, type ShopApp } from '../../test/crud/shop.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { AdminAccess } from './staff/admin-access.ts';
import { crudOf } from './index.ts';

const UNKNOWN = '01890000-0000-7000-8000-000000000000';
const JSON_LINES = 'application/x-ndjson';

describeDatabases('every path to the rows of a resource', (database) => {
  let shop: ShopApp;
  const clock = fakeClock();
  const firms = { north: '', south: '' };
  let number = 0;
  const sku = () => `sku-${(number += 1)}`;

  beforeAll(async () => {
    shop = await startDesk({ database: database.db, clock });
    firms.north = (await shop.call('ann', 'POST', 'firms', { name: 'North' })).body.id as string;
    firms.south = (await shop.call('cid', 'POST', 'firms', { name: 'South' })).body.id as string;
  });
  beforeEach(() => {
    forget();
    clock.advance(1000);
  });
  afterAll(() => shop.close());

  /** Like `call`, for files. */
  const send = async (person: Person, url: string, payload: string, headers: Record<string, string> = {}) => {
    const response = await shop.inject({
      method: 'POST',
      url: `/v1/${url}`,
      headers: { 'x-user': person, 'content-type': JSON_LINES, ...headers },
      payload,
    });
    return { status: response.statusCode, body: response.json(), text: response.body, headers: response.headers } as Called;
  };
  const read = async (person: Person, url: string) => {
    const response = await shop.inject({ url: `/v1/${url}`, headers: { 'x-user': person } });
    return { status: response.statusCode, text: response.body };
  };
  const make = async (more: object = {}, person: Person = 'ann') => {
    const made = await shop.call(person, 'POST', 'tickets?expand=lines', { sku: sku(), title: 'a ticket', ...more });
    expect([made.status, made.text]).toEqual([201, made.text]);
    return made.body as { id: string; sku: string; version: number; lines: { id: string }[] };
  };
  const stored = async (table: 'tickets' | 'lines', id: string) =>
    (await database.db.query<Record<string, unknown>>(`select version, updated_by, updated_at from ${table} where id = $1`, [id]))[0];
  const caller = (person: Person) => ({
    user: { id: people[person].id, username: person, email: null, is_active: true, is_staff: person === 'sue', is_superuser: false },
    tenant: people[person].tenant,
  });
  const any = { 'if-match': '*' };

  type Target = Awaited<ReturnType<typeof make>>;
  interface Path {
    readonly name: string;
    /** Done before the change that is looked at. */
    readonly before?: (target: Target) => Promise<unknown>;
    readonly run: (target: Target, headers: Record<string, string>) => Promise<unknown>;
    /** Of the ticket and of its line. */
    readonly told: readonly (readonly [string, string])[];
    readonly lines?: readonly (readonly [string, string])[];
    /** The change made a row of its own: it starts at version 1. */
    readonly isNew?: true;
    readonly as?: Person;
  }
  /** POST operations take a key: those that look at the headers they are given. */
  const isKeyed = ({ run }: Path) => run.length === 2;
  const remove = (id: string) => shop.call('ann', 'DELETE', `tickets/${id}`, undefined, any);
  const admin = () => new AdminAccess(shop.app, ticketResource, caller('sue'));
  const program = () => crudOf(shop.app, ticketResource).as(caller('ann')).write();
  const post = (path: string, body: object | undefined, headers: Record<string, string>) => shop.call('ann', 'POST', path, body, headers);

  const paths: readonly Path[] = [
    {
      name: 'create',
      run: ({ sku: own }, headers) => post('tickets', { sku: `${own}-new` }, headers),
      told: [['create', 'single']],
      isNew: true,
    },
    {
      name: 'PUT',
      run: ({ id, sku: same, lines }) =>
        shop.call('ann', 'PUT', `tickets/${id}`, { sku: same, title: 'put', lines: lines.map((line) => ({ id: line.id })) }),
      told: [['update', 'single']],
    },
    { name: 'PATCH', run: ({ id }) => shop.call('ann', 'PATCH', `tickets/${id}`, { title: 'patched' }), told: [['update', 'single']] },
    { name: 'DELETE', run: ({ id }) => remove(id), told: [['destroy', 'single']] },
    {
      name: 'restore',
      before: ({ id }) => remove(id),
      run: ({ id }, headers) => post(`tickets/${id}/restore`, undefined, headers),
      told: [['restore', 'single']],
    },
    { name: 'transition', run: ({ id }, headers) => post(`tickets/${id}/pay`, undefined, headers), told: [['transition:pay', 'single']] },
    {
      name: 'bulk create',
      run: ({ sku: own }, headers) => post('tickets/bulk', { items: [{ sku: `${own}-new` }] }, headers),
      told: [['create', 'bulk']],
      isNew: true,
    },
    {
      name: 'bulk update of items',
      run: ({ id }, headers) => post('tickets/bulk-update', { items: [{ id, title: 'bulk' }] }, headers),
      told: [['update', 'bulk']],
    },
    {
      name: 'bulk update of ids',
      run: ({ id }, headers) => post('tickets/bulk-update', { ids: [id], changes: { title: 'bulk' } }, headers),
      told: [['update', 'bulk']],
    },
    { name: 'bulk deletion', run: ({ id }, headers) => post('tickets/bulk-delete', { ids: [id] }, headers), told: [['destroy', 'bulk']] },
    {
      name: 'partial bulk create',
      run: ({ sku: own }, headers) => post('partial/bulk', { items: [{ sku: `${own}-new` }] }, headers),
      told: [['create', 'bulk']],
      isNew: true,
    },
    {
      name: 'partial bulk update',
      run: ({ id, version }, headers) => post('partial/bulk-update', { items: [{ id, version, title: 'partial' }] }, headers),
      told: [['update', 'bulk']],
    },
    { name: 'import', run: () => send('ann', 'tickets/import', JSON.stringify({ sku: sku() })), told: [['create', 'import']], isNew: true },
    {
      name: 'import that changes',
      run: ({ sku: same }) => send('ann', 'tickets/import?mode=upsert', JSON.stringify({ sku: same, title: 'imported' })),
      told: [['update', 'import']],
    },
    {
      name: 'nested creation',
      run: ({ id, lines: [line] }) => shop.call('ann', 'PATCH', `tickets/${id}`, { lines: [{ id: line?.id }, { name: 'new' }] }),
      told: [],
      lines: [['create', 'nested']],
    },
    {
      name: 'nested change',
      run: ({ id, lines: [line] }) => shop.call('ann', 'PATCH', `tickets/${id}`, { lines: [{ id: line?.id, name: 'changed' }] }),
      told: [],
      lines: [['update', 'nested']],
    },
    {
      name: 'nested deletion',
      run: ({ id }) => shop.call('ann', 'PATCH', `tickets/${id}`, { lines: [] }),
      told: [],
      lines: [['destroy', 'nested']],
    },
    {
      name: 'an edit of the admin site',
      run: ({ id }) => admin().update(id, { title: 'edited' }, { sent: ['title'] }),
      told: [['update', 'admin']],
      as: 'sue',
    },
    {
      name: 'a transition of the admin site',
      run: ({ id }) => admin().transition(id, 'pay'),
      told: [['transition:pay', 'admin']],
      as: 'sue',
    },
    { name: 'a deletion of the admin site', run: ({ id }) => admin().destroy(id), told: [['destroy', 'admin']], as: 'sue' },
    {
      name: 'a restore of the admin site',
      before: ({ id }) => remove(id),
      run: ({ id }) => admin().restore(id),
      told: [['restore', 'admin']],
      as: 'sue',
    },
    { name: 'a change of a program', run: ({ id }) => program().update(id, { title: 'by program' }), told: [['update', 'single']] },
    { name: 'a transition of a program', run: ({ id }) => program().transition(id, 'pay'), told: [['transition:pay', 'single']] },
    {
      name: 'a restore of a program',
      before: ({ id }) => remove(id),
      run: ({ id }) => program().restore(id),
      told: [['restore', 'single']],
    },
  ];

  describe('46, 47, 91: onChange, one audit entry, one event, updated_at, updated_by and version', () => {
    test.each(paths.map((path) => [path.name, path] as const))('%s', async (_, path) => {
      const target = await make({ lines: [{ name: 'a line' }] });
      await path.before?.(target);
      const id = target.id;
      await database.db.execute(`update tickets set updated_at = '2020-01-01T00:00:00Z', updated_by = null where id = $1`, [id]);
      const before = await stored('tickets', id);
      forget();
      clock.advance(1000);
      const headers = { 'idempotency-key': `${path.name.replaceAll(' ', '-')}-${Math.random()}` };
      const answer = (await path.run(target, headers)) as Partial<Called> | undefined;
      const shown = (changes: typeof desk.tickets) => changes.map(({ operation, via }) => [operation, via]);
      const state = () => [shown(desk.tickets), shown(desk.lines), desk.audited.length, desk.published.length];
      const { told, lines = [] } = path;
      expect([answer?.text, state()]).toEqual([answer?.text, [told, lines, told.length + lines.length, told.length]]);
      // The same request under the same key is not done again.
      const again = isKeyed(path) ? ((await path.run(target, headers)) as Called).headers['idempotent-replayed'] : 'true';
      expect([again, state()]).toEqual(['true', [told, lines, told.length + lines.length, told.length]]);
      const rowId = path.isNew === true ? String((desk.tickets[0]?.after as { id: string } | null)?.id) : id;
      const after = await stored('tickets', rowId);
      expect(after).toMatchObject({
        updated_by: people[path.as ?? 'ann'].id,
        version: path.isNew === true ? 1 : Number(before?.['version']) + 1,
      });
      // Timestamps come from the database's own clock.
      expect(new Date(after?.['updated_at'] as string).getFullYear()).toBeGreaterThan(2020);
    });
  });

  describe('45: nothing is saved when a hook, onChange, the audit sink or the event publisher fails', () => {
    const everything = async () => ({
      tickets: await database.db.query('select * from tickets order by id'),
      lines: await database.db.query('select * from lines order by id'),
    });
    test.each(paths.filter(({ told }) => told.length > 0).map((path) => [path.name, path] as const))('%s', async (_, path) => {
      // A restore has no hook of its own.
      const places = (['hook', 'onChange', 'audit', 'events'] as const).filter(
        (place) => place !== 'hook' || !path.name.includes('restore'),
      );
      const target = await make({ lines: [{ name: 'a line' }] });
      await path.before?.(target);
      const before = await everything();
      for (const place of places) {
        desk.failing = place;
        const failed = await path.run(target, { 'idempotency-key': `fails-${Math.random()}` }).then(
          (answer) => (answer as Called).status,
          () => 500,
        );
        expect([place, failed]).toEqual([place, 500]);
        desk.failing = undefined;
        expect(await everything()).toEqual(before);
      }
    });
  });

  /** Ways to reach one row; each gives the status and the body without its request id. */
  const reaches: readonly [string, (as: Person, id: string) => Promise<Called | { status: number; text: string }>][] = [
    ['GET', (as, id) => shop.call(as, 'GET', `tickets/${id}`)],
    ['GET expanded', (as, id) => shop.call(as, 'GET', `tickets/${id}?expand=lines,firm`)],
    ['PUT', (as, id) => shop.call(as, 'PUT', `tickets/${id}`, { sku: 'x', lines: [] })],
    ['PATCH', (as, id) => shop.call(as, 'PATCH', `tickets/${id}`, { title: 'x' })],
    ['PATCH with children', (as, id) => shop.call(as, 'PATCH', `tickets/${id}`, { lines: [] })],
    ['DELETE', (as, id) => shop.call(as, 'DELETE', `tickets/${id}`)],
    ['restore', (as, id) => shop.call(as, 'POST', `tickets/${id}/restore`)],
    ['transition', (as, id) => shop.call(as, 'POST', `tickets/${id}/pay`)],
    ['transitions', (as, id) => shop.call(as, 'GET', `tickets/${id}/transitions`)],
    ['a route of its own', (as, id) => shop.call(as, 'GET', `tickets/${id}/label`)],
    ['bulk update', (as, id) => shop.call(as, 'POST', 'tickets/bulk-update', { items: [{ id, title: 'x' }] })],
    ['bulk deletion', (as, id) => shop.call(as, 'POST', 'tickets/bulk-delete', { ids: [id] })],
  ];
  const plain = ({ status, text }: { status: number; text: string }, id: string) => [
    status,
    text.replace(/"request_id":"[^"]*"/, '').replaceAll(id, '<id>'),
  ];

  test.each(reaches)(
    '1: %s of a row of another owner or tenant is the 404 of an unknown and of a malformed id, for a superuser too',
    async (_, reach) => {
      const { id } = await make();
      const before = await stored('tickets', id);
      const unknown = plain(await reach('ann', UNKNOWN), UNKNOWN);
      expect(unknown[0]).toBe(404);
      for (const stranger of ['bob', 'cid', 'root'] as const) expect(plain(await reach(stranger, id), id)).toEqual(unknown);
      expect(plain(await reach('ann', 'not-a-uuid'), 'not-a-uuid')).toEqual(unknown);
      expect(await stored('tickets', id)).toEqual(before);
    },
  );

  test('2: an import that changes rows does not find those of another owner', async () => {
    const { id, sku: same } = await make();
    const made = await send('bob', 'tickets/import?mode=upsert', JSON.stringify({ sku: same, title: 'of bob' }));
    expect([made.status, made.body.created, made.body.updated]).toEqual([201, 1, 0]);
    expect((await shop.call('ann', 'GET', `tickets/${id}`)).body).toMatchObject({ title: 'a ticket', version: 1 });
  });

  test('3: owner, tenant, key, version and state are taken from no client, on no path', async () => {
    const {
      id,
      lines: [line],
    } = await make({ lines: [{ name: 'x' }] });
    const forbidden = { owner_id: people.bob.id, org: 'south', id: UNKNOWN, status: 'paid', created_by: 'x', deleted_at: null };
    const sent: [string, unknown, (body: object) => Promise<Called>][] = Object.entries(forbidden).flatMap(([name, value]) =>
      (
        [
          ['create', (body: object) => shop.call('ann', 'POST', 'tickets', { sku: sku(), ...body })],
          ['PUT', (body: object) => shop.call('ann', 'PUT', `tickets/${id}`, { sku: sku(), lines: [], ...body })],
          ['PATCH', (body: object) => shop.call('ann', 'PATCH', `tickets/${id}`, body)],
          ['bulk', (body: object) => shop.call('ann', 'POST', 'tickets/bulk', { items: [{ sku: sku(), ...body }] })],
          ['bulk update', (body: object) => shop.call('ann', 'POST', 'tickets/bulk-update', { ids: [id], changes: body })],
          ['nested', (body: object) => shop.call('ann', 'PATCH', `tickets/${id}`, { lines: [{ name: 'y', ticket_id: UNKNOWN, ...body }] })],
        ] as const
      ).map(([path, run]): [string, unknown, (body: object) => Promise<Called>] => [
        `${path} ${name}`,
        value,
        () => run({ [name]: value }),
      ]),
    );
    for (const [name, , run] of sent) {
      const refused = await run({});
      expect([name, refused.status]).toEqual([name, 422]);
      expect(refused.body.errors.map(({ code }: { code: string }) => code)).toContain('unknown_field');
    }
    const imported = await send(
      'ann',
      'tickets/import',
      JSON.stringify({ sku: sku(), owner_id: people.bob.id, org: 'south', status: 'paid' }),
    );
    expect([imported.status, imported.body.ignored]).toEqual([201, ['owner_id', 'org', 'status']]);
    expect(desk.tickets.at(-1)?.after).toMatchObject({ owner_id: people.ann.id, org: 'north', status: 'open' });
    expect((await stored('tickets', id))?.['version']).toBe(1);
    expect((await stored('lines', String(line?.id)))?.['version']).toBe(1);
  });

  test('rows of a to-many relation in an imported file are refused, not left out', async () => {
    const file = (child: string) => `{"sku":"with children ${child}","${child}":[{"name":"lost"}]}`;
    for (const child of ['lines', 'linse']) {
      const { status, body } = await send('ann', 'tickets/import', file(child));
      expect([status, body.errors?.[0]]).toMatchObject([422, { location: ['body', 1, child], code: 'unknown_field' }]);
    }
  });

  test('5: a reference to a row of another tenant is unknown_reference on create, PUT, PATCH, bulk, import and nested writes', async () => {
    const { id } = await make();
    const firm_id = firms.south;
    const answers: [string, Called][] = [
      ['create', await shop.call('ann', 'POST', 'tickets', { sku: sku(), firm_id })],
      ['PUT', await shop.call('ann', 'PUT', `tickets/${id}`, { sku: sku(), lines: [], firm_id })],
      ['PATCH', await shop.call('ann', 'PATCH', `tickets/${id}`, { firm_id })],
      ['bulk', await shop.call('ann', 'POST', 'tickets/bulk', { items: [{ sku: sku(), firm_id }] })],
      ['bulk update', await shop.call('ann', 'POST', 'tickets/bulk-update', { items: [{ id, firm_id }] })],
      ['bulk update of ids', await shop.call('ann', 'POST', 'tickets/bulk-update', { ids: [id], changes: { firm_id } })],
      ['import', await send('ann', 'tickets/import', JSON.stringify({ sku: sku(), firm_id }))],
      ['nested', await shop.call('ann', 'PATCH', `tickets/${id}`, { lines: [{ name: 'x', firm_id }] })],
    ];
    for (const [name, { status, body }] of answers) {
      expect([name, status, body.errors?.[0]?.code]).toEqual([name, 422, 'unknown_reference']);
      expect(body.errors[0].location.at(-1)).toBe('firm_id');
    }
    expect(desk.tickets).toHaveLength(1);
    expect((await shop.call('ann', 'PATCH', `tickets/${id}`, { firm_id: firms.north })).status).toBe(200);
  });

  test('6: without a tenant every operation is 403 tenant_required, before the body is read', async () => {
    const operations = shop.app.routes.filter(({ controller, metadata }) => controller === 'TicketController' && 'crud' in metadata);
    expect(operations.length).toBeGreaterThan(17);
    for (const { method, path, field } of operations) {
      // Not even JSON: who has no tenant is told so before anybody looks.
      const hasBody = method !== 'GET' && method !== 'DELETE';
      const response = await shop.inject({
        method: method as 'GET',
        url: path.replace(':id', UNKNOWN),
        headers: { 'x-user': 'nil', ...(hasBody ? { 'content-type': 'application/json' } : {}) },
        ...(hasBody ? { payload: '{ not JSON' } : {}),
      });
      expect([field, response.statusCode, response.json<{ code: string }>().code]).toEqual([field, 403, 'tenant_required']);
    }
  });

  test('33, 34: a hidden column is on no answer, file, expansion, event or statistic, and cannot be used by callers who may not see it', async () => {
    const made = await make({ cost: 7 }, 'sue');
    const { body: own } = await shop.call('ann', 'POST', 'tickets?expand=lines', { sku: sku(), lines: [{ name: 'x' }] });
    await database.db.execute('update tickets set cost = 4711 where id = $1', [own.id]);
    const line = own.lines[0].id as string;
    const texts = [
      (await shop.call('ann', 'GET', 'tickets')).text,
      (await shop.call('ann', 'GET', `tickets/${own.id}`)).text,
      (await shop.call('ann', 'PATCH', `tickets/${own.id}`, { title: 'x' })).text,
      (await shop.call('ann', 'POST', `tickets/${own.id}/pay`)).text,
      (await shop.call('ann', 'GET', `lines/${line}?expand=ticket`)).text,
      (await shop.call('ann', 'GET', 'tickets/meta')).text,
      (await read('ann', 'tickets/export')).text,
      (await read('ann', 'tickets/export?format=jsonl')).text,
      JSON.stringify(desk.published),
    ];
    // The second group of an id is a time: it is 4711 now and then.
    for (const text of texts) expect(text).not.toMatch(/cost|(?<!-)\b4711\b(?!-)/);
    const unknown = ['cost=1', 'cost__gte=1', 'ordering=cost', 'fields=cost'].map((query) => `tickets?${query}`);
    const grouped = [
      'tickets/stats?metrics=spent',
      'tickets/stats?group_by=cost&metrics=tickets',
      'tickets/export?ordering=cost',
      'tickets/export?fields=cost',
    ];
    for (const url of [...unknown, ...grouped]) expect([url, (await read('ann', url)).status]).toEqual([url, 422]);
    for (const url of [...unknown.slice(1), ...grouped]) expect([url, (await read('sue', url)).status]).toEqual([url, 200]);
    expect((await shop.call('sue', 'GET', `tickets/${made.id}`)).body.cost).toBe(7);
  });

  test('35: a field the caller may not write is 403 with its name on create, PUT, PATCH, bulk, import and nested writes', async () => {
    const { id } = await make();
    const row = { sku: sku(), discount: 5 };
    const answers: [string, string, Called][] = [
      ['create', 'discount', await shop.call('ann', 'POST', 'tickets', row)],
      ['PUT', 'discount', await shop.call('ann', 'PUT', `tickets/${id}`, { ...row, lines: [] })],
      ['PATCH', 'discount', await shop.call('ann', 'PATCH', `tickets/${id}`, { discount: 5 })],
      ['bulk', 'discount', await shop.call('ann', 'POST', 'tickets/bulk', { items: [row] })],
      ['bulk update', 'discount', await shop.call('ann', 'POST', 'tickets/bulk-update', { ids: [id], changes: { discount: 5 } })],
      ['import', 'discount', await send('ann', 'tickets/import', JSON.stringify(row))],
      ['nested', 'points', await shop.call('ann', 'PATCH', `tickets/${id}`, { lines: [{ name: 'x', points: 1 }] })],
    ];
    for (const [name, field, { status, body }] of answers) {
      expect([name, status, body.code]).toEqual([name, 403, 'permission_denied']);
      expect([name, JSON.stringify(body.fields)]).toEqual([name, expect.stringContaining(field)]);
    }
    expect((await shop.call('ann', 'PUT', `tickets/${id}`, { sku: sku(), lines: [] })).status).toBe(200);
    expect((await shop.call('sue', 'PATCH', `tickets/${id}`, { discount: 5 })).body.discount).toBe(5);
  });

  test('81: /meta describes the children that a body takes, with what of them this caller may send', async () => {
    const lines = async (person: Person) => {
      const { input, patch } = (await shop.call(person, 'GET', 'tickets/meta')).body;
      return [input, patch].map((schema: { properties: Record<string, { maxItems?: number; items?: object }> }) => {
        const { maxItems, items } = schema.properties['lines'] ?? {};
        const text = JSON.stringify(items ?? {});
        return [maxItems, text.includes('"name"'), text.includes('"points"'), text.includes('"ticket_id"')];
      });
    };
    expect(await lines('ann')).toEqual([
      [20, true, false, false],
      [20, true, false, false],
    ]);
    expect(await lines('sue')).toEqual([
      [20, true, true, false],
      [20, true, true, false],
    ]);
  });

  test('62: a deleted row is in no list, count, file, statistic, expansion, search or reference', async () => {
    const word = `word${Math.random().toString(36).slice(2)}`;
    const {
      id,
      lines: [line],
    } = await make({ title: word, lines: [{ name: 'x' }] });
    const everywhere = async () => [
      (await shop.call('ann', 'GET', `tickets?title__contains=${word}`)).body.count as number,
      (await shop.call('ann', 'GET', `tickets?search=${word}`)).body.items.length as number,
      (await read('ann', `tickets/export?title__contains=${word}&format=jsonl`)).text.split('\n').filter(Boolean).length,
      Number((await shop.call('ann', 'GET', `tickets/stats?metrics=tickets&title__contains=${word}`)).body.items[0]?.tickets ?? 0),
      (await shop.call('ann', 'GET', `lines/${line?.id}`)).status === 200 ? 1 : 0,
      (await shop.call('ann', 'POST', 'lines', { ticket_id: id, name: 'y' })).status === 201 ? 1 : 0,
    ];
    expect(await everywhere()).toEqual([1, 1, 1, 1, 1, 1]);
    expect((await remove(id)).status).toBe(204);
    expect(await everywhere()).toEqual([0, 0, 0, 0, 0, 0]);
  });

  test('a sensitive member inside a JSON column leaves on no path, is masked in the audit, and is never quoted', async () => {
    const pin = 'pin-90210';
    const extra = { color: 'red', door: { pin } };
    const {
      id,
      lines: [line],
    } = await make({ extra, lines: [{ name: 'x' }] });
    const texts = [
      (await shop.call('ann', 'GET', 'tickets')).text,
      (await shop.call('ann', 'GET', `tickets/${id}`)).text,
      (await shop.call('ann', 'GET', `tickets/${id}?fields=extra`)).text,
      (await shop.call('ann', 'PATCH', `tickets/${id}`, { extra })).text,
      (await shop.call('ann', 'POST', 'tickets/bulk', { items: [{ sku: sku(), extra }] })).text,
      (await shop.call('ann', 'GET', `lines/${line?.id}?expand=ticket`)).text,
      (await read('ann', 'tickets/export')).text,
      (await read('ann', 'tickets/export?format=jsonl')).text,
      JSON.stringify(desk.published),
      JSON.stringify(desk.audited),
      JSON.stringify(
        await crudOf(shop.app, ticketResource)
          .as(caller('ann'))
          .present(await crudOf(shop.app, ticketResource).as(caller('ann')).find(id)),
      ),
    ];
    for (const text of texts) {
      expect(text).not.toContain(pin);
      expect(text).toContain('red');
    }
    expect(JSON.stringify(desk.audited[0]?.after)).toContain('"door":{"pin":"[masked]"}');
    const kept = await crudOf(shop.app, ticketResource).as(caller('ann')).find(id);
    expect(kept.extra).toEqual(extra);
    for (const refused of [
      await shop.call('ann', 'PATCH', `tickets/${id}`, { extra: { color: 'red', door: { pin: 'zq' } } }),
      await shop.call('ann', 'POST', 'tickets/bulk', { items: [{ sku: sku(), extra: { color: 'red', door: { pin: 'zq' } } }] }),
    ]) {
      expect(refused.status).toBe(422);
      expect(refused.text).not.toContain('zq');
    }
  });
});
