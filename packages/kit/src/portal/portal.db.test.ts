import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { AdminApp, type Browser, PASSWORD, siteFolder } from '../../test/admin/admin-app.ts';
import { ApiKeyController, apiKeys } from '../contrib/apikeys/index.ts';
import { QuotaController, RequestController, requests, UsageController } from '../contrib/requests/index.ts';
import { requestLogs } from '../contrib/requests/log/log.ts';
import { eventType, publish, WebhookEndpointController, webhooks } from '../contrib/webhooks/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { portal } from './index.ts';

const OrderPaid = eventType('order.paid', z.object({ id: z.number() }), { description: 'An order was <b>paid</b>.', example: { id: 7 } });
const OrderSent = eventType('order.sent', z.object({ id: z.number() }), { deprecated: 'Use order.paid.' });
class Keys extends ApiKeyController {
  static override readonly grantableScopes = ['requests:read', 'webhooks:read'];
}

describeDatabases("the developers' portal", (database) => {
  const clock = fakeClock('2030-01-15T10:00:00.000Z');
  const files = siteFolder();
  let app: AdminApp;
  let ada: Browser;
  let bob: Browser;

  beforeAll(async () => {
    app = await new AdminApp(
      database.db,
      [
        apiKeys(),
        webhooks({ eventTypes: [OrderPaid, OrderSent] }),
        requests({ quotas: { key: '100/month' } }),
        portal({ site: files.url, title: 'Acme' }),
      ],
      {
        clock,
        mount: {
          '/v1': {
            '/api-keys': Keys,
            '/hooks': WebhookEndpointController,
            '/requests': RequestController,
            '/usage': UsageController,
            '/quotas': QuotaController,
          },
        },
      },
    ).ready();
    [ada, bob] = [await logIn(), await logIn()];
  });
  afterAll(async () => {
    await app.close();
    files.remove();
  });

  async function logIn(): Promise<Browser> {
    const user = await app.newUser();
    const answer = await app.call('POST', '/portal/api/login', {}, { login: user.username, password: PASSWORD });
    expect(answer.status).toBe(200);
    const [cookie = ''] = String(answer.headers['set-cookie']).split(';', 1);
    return { userId: user.id, cookie, csrf: answer.body.csrf_token };
  }
  const get = (who: Browser, path: string) => app.call('GET', `/portal/api/${path}`, { cookie: who.cookie });
  const send = (who: Browser, method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) =>
    app.call(method, `/portal/api/${path}`, { cookie: who.cookie, 'x-csrf-token': who.csrf }, body);
  const act = (who: Browser, list: string, action: string, id: string, fields: object = {}) =>
    send(who, 'POST', `resources/${list}/actions/${action}`, { ids: [id], fields });
  const items = async (who: Browser, path: string) => (await get(who, `resources/${path}`)).body.items;

  test('a customer logs in and sees the pages of what is mounted; the admin site stays closed', async () => {
    const { status, body } = await get(ada, 'session');
    expect(status).toBe(200);
    expect(body.site.title).toBe('Acme');
    expect(body.site.resources.map(({ name }: { name: string }) => name)).toEqual([
      'api-keys',
      'endpoints',
      'deliveries',
      'events',
      'event-types',
      'requests',
      'usage',
      'quotas',
    ]);
    const [keys] = body.site.resources;
    expect(keys.creation.fields.map(({ name }: { name: string }) => name)).toEqual(['name', 'scopes', 'expires_at']);
    expect(keys.creation.fields[1].suggestions).toEqual(['requests:read', 'webhooks:read']);
    expect((await app.call('GET', '/admin/api/session', { cookie: ada.cookie })).body.code).toBe('staff_only');
    expect((await app.call('GET', '/portal/api/resources/api-keys')).status).toBe(401);
  });

  test('no page is framed, cached, or runs a script that is not its own', async () => {
    const page = await app.call('GET', '/portal/');
    expect(page.headers).toMatchObject({ 'cache-control': 'no-store', 'x-frame-options': 'DENY', 'x-content-type-options': 'nosniff' });
    const policy = String(page.headers['content-security-policy']);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).not.toContain('unsafe');
    for (const path of ['session', 'resources/api-keys', 'overview'])
      expect((await get(ada, path)).headers['content-security-policy'], `path ${path}`).toContain("default-src 'none'");
  });

  test('a key: created and shown once, used, rotated, edited, revoked', async () => {
    const made = await send(ada, 'POST', 'resources/api-keys', { name: 'CI', scopes: ['requests:read'] });
    expect(made).toMatchObject({ status: 201, body: { message: 'CI created.', secret: { label: 'API key' } } });
    const { id, secret } = made.body;
    const use = async (raw: string) => (await app.call('GET', '/v1/requests', { 'x-api-key': raw })).status;
    expect(await use(secret.value)).toBe(200);
    const listed = await items(ada, 'api-keys');
    expect(listed).toMatchObject([{ id, title: 'CI', values: { name: 'CI', state: { value: 'active', tone: 'good' } } }]);
    expect(JSON.stringify(listed)).not.toContain(secret.value);

    const rotated = await act(ada, 'api-keys', 'rotate', id, { grace_seconds: 60 });
    expect(rotated).toMatchObject({ status: 200, body: { message: 'The key has a new secret.' } });
    expect([await use(rotated.body.secret.value), await use(secret.value)]).toEqual([200, 200]);
    clock.advance(61_000);
    expect(await use(secret.value)).toBe(401);

    expect((await send(ada, 'PATCH', `resources/api-keys/${id}`, { name: 'Nightly' })).status).toBe(200);
    const record = (await get(ada, `resources/api-keys/${id}`)).body;
    expect(record).toMatchObject({ title: 'Nightly', removable: true, actions: ['rotate'], form: { values: { name: 'Nightly' } } });
    expect(JSON.stringify(record)).not.toContain(rotated.body.secret.value);

    expect((await send(ada, 'DELETE', `resources/api-keys/${id}`)).status).toBe(200);
    expect(await use(rotated.body.secret.value)).toBe(401);
    expect((await items(ada, 'api-keys?filter.state=revoked')).map((each: { id: string }) => each.id)).toEqual([id]);
    const [first, second] = await Promise.all(
      ['one', 'two'].map((name) => send(ada, 'POST', 'resources/api-keys', { name, scopes: ['requests:read'] })),
    );
    const many = await send(ada, 'POST', 'resources/api-keys/actions/delete-selected', { ids: [first!.body.id, second!.body.id] });
    expect(many.body.failures ?? []).toEqual([]);
    expect(await items(ada, 'api-keys?filter.state=active')).toEqual([]);
  });

  test('what the controller rejects, the page rejects: scopes, limits, a login that is old, a missing CSRF token', async () => {
    const wrong = await send(ada, 'POST', 'resources/api-keys', { name: 'x', scopes: ['other:write'] });
    expect(wrong).toMatchObject({ status: 422, body: { errors: [{ code: 'scope_not_grantable', location: ['body', 'scopes', 0] }] } });
    expect((await send(ada, 'POST', 'resources/api-keys', { name: 'x', scopes: ['requests:read'], quota: '1/day' })).status).toBe(422);
    const forged = await app.call('POST', '/portal/api/resources/api-keys', { cookie: ada.cookie }, { name: 'x', scopes: [] });
    expect(forged).toMatchObject({ status: 403, body: { code: 'csrf_failed' } });
    const late = await logIn();
    clock.advance(3_600_000);
    const refused = await send(late, 'POST', 'resources/api-keys', { name: 'x', scopes: ['requests:read'] });
    expect(refused).toMatchObject({ status: 403, body: { code: 'recent_login_required' } });
    expect(await items(late, 'api-keys')).toEqual([]);
    [ada, bob] = [await logIn(), await logIn()];
  });

  test('an endpoint: created, pinged, its deliveries, a new secret, disabled', async () => {
    const made = await send(ada, 'POST', 'resources/endpoints', { url: 'https://hooks.example.com/a', events: ['order.paid'] });
    expect(made).toMatchObject({ status: 201, body: { secret: { label: 'Signing secret' } } });
    const { id } = made.body;
    const pinged = await act(ada, 'endpoints', 'ping', id);
    expect(pinged.body).toMatchObject({ message: 'It is on its way: the response appears here.', next: { resource: 'deliveries' } });
    expect((await get(ada, `resources/deliveries/${pinged.body.next.id}`)).body.title).toBe('webhook.ping');
    await app.app.db.transaction((tx) => publish(tx, OrderPaid, { id: 1 }, { owner: ada.userId }));
    const all = await items(ada, 'deliveries');
    expect(all.map(({ title }: { title: string }) => title)).toContain('webhook.ping');
    expect(await items(ada, `deliveries?filter.endpoint_id=${id}`)).toHaveLength(all.length);
    const ping = all.find(({ title }: { title: string }) => title === 'webhook.ping');
    expect((await get(ada, `resources/deliveries/${ping.id}`)).body).toMatchObject({ title: 'webhook.ping', actions: ['retry'] });
    const rotated = await act(ada, 'endpoints', 'rotate-secret', id);
    expect(rotated.body.secret.value).toMatch(/^whsec_/);
    expect((await send(ada, 'PATCH', `resources/endpoints/${id}`, { is_active: false })).status).toBe(200);
    expect((await get(ada, `resources/endpoints/${id}`)).body.values.is_active).toMatchObject({ value: 'disabled', tone: 'bad' });
    const refused = await act(ada, 'endpoints', 'ping', id);
    expect(refused).toMatchObject({ status: 409, body: { code: 'endpoint_disabled' } });
    const wrong = await act(ada, 'endpoints', 'recover', id, {});
    expect(wrong).toMatchObject({ status: 422, body: { errors: [{ location: ['body', 'fields', 'since'] }] } });
  });

  test('event types: schema, example, subscribe from there, send the example, see its deliveries', async () => {
    // After everything that other tests published.
    clock.advance(1000);
    const { id } = (await send(ada, 'POST', 'resources/endpoints', { url: 'https://hooks.example.com/b', events: ['webhook.*'] })).body;
    const other = (await send(ada, 'POST', 'resources/endpoints', { url: 'https://hooks.example.com/c', events: ['order.paid'] })).body;
    expect(await items(ada, 'event-types')).toMatchObject([{ id: 'order.paid' }, { id: 'order.sent' }]);
    const record = async () => (await get(ada, 'resources/event-types/order.paid')).body;
    const { sections, actions } = await record();
    expect(actions).toEqual(['subscribe', 'send-example']);
    const parts = Object.fromEntries(
      sections.map(({ title, value, values }: { title: string; value: object; values: object }) => [title, value ?? values]),
    );
    expect(parts).toMatchObject({
      'Event type': { name: 'order.paid', description: 'An order was <b>paid</b>.' },
      Schema: { properties: { id: { type: 'number' } } },
      Example: { id: 7 },
    });
    expect((await get(ada, 'resources/event-types/order.lost')).status).toBe(404);
    expect((await get(ada, 'resources/event-types/order.sent')).body.values).toMatchObject({
      state: { value: 'deprecated', tone: 'warning', hint: 'Use order.paid.' },
      deprecated: 'Use order.paid.',
      version: 1,
      versions: ['order.sent'],
    });

    expect((await act(ada, 'event-types', 'subscribe', 'order.paid', { other: id })).body.message).toBe('The endpoint is subscribed.');
    expect((await get(ada, `resources/endpoints/${id}`)).body.values.events).toEqual(['webhook.*', 'order.paid']);
    const sent = await act(ada, 'event-types', 'send-example', 'order.paid', { other: id });
    expect(sent.body.next.resource).toBe('deliveries');
    const delivery = (await get(ada, `resources/deliveries/${sent.body.next.id}`)).body;
    expect(delivery).toMatchObject({ title: 'order.paid', values: { payload: { type: 'order.paid', data: { id: 7 } } } });
    expect((await record()).sections.map(({ title }: { title: string }) => title)).toContain('Deliveries');
    const without = await act(ada, 'event-types', 'send-example', 'order.sent', { other: id });
    expect(without).toMatchObject({ status: 422, body: { errors: [{ code: 'no_example' }] } });

    // Another endpoint that subscribes to it has missed no example.
    await act(ada, 'endpoints', 'recover', other.id, { since: '2030-01-01T00:00:00Z' });
    expect(await items(ada, `deliveries?filter.endpoint_id=${other.id}`)).toEqual([]);
  });

  test('charts of the overview and of a key count what the lists have', async () => {
    const newcomer = await logIn();
    const { keys, endpoints } = await things(newcomer);
    await requestLogs.of(app.app.db).flush();
    const charts = (parts: { charts?: { title: string; series: { values: number[] }[] }[] }[]) =>
      Object.fromEntries(
        parts
          .flatMap((part) => part.charts ?? [])
          .map(({ title, series }) => [title, series.map(({ values }) => values.reduce((sum, each) => sum + (each ?? 0), 0))]),
      );
    const { parts } = (await get(newcomer, 'overview?range=24h')).body;
    expect(charts(parts)).toMatchObject({ Requests: [1, 0], Deliveries: [0, 1, 0], Latency: [expect.any(Number)] });
    const ofRecord = async (path: string) => {
      const { sections, range } = (await get(newcomer, `resources/${path}`)).body;
      return {
        range,
        charts: charts([{ charts: sections.flatMap(({ chart }: { chart?: object }) => (chart === undefined ? [] : [chart])) }]),
      };
    };
    expect(await ofRecord(`api-keys/${keys[0]}?range=24h`)).toMatchObject({ range: '24h', charts: { Requests: [1, 0] } });
    expect(await ofRecord(`endpoints/${endpoints[0]}`)).toMatchObject({ range: '7d', charts: { Deliveries: [0, 1, 0] } });
  });

  test('requests, usage and quotas, with a file', async () => {
    const { secret } = (await send(ada, 'POST', 'resources/api-keys', { name: 'Reader', scopes: ['requests:read'] })).body;
    await app.call('GET', '/v1/requests', { 'x-api-key': secret.value });
    await app.call('GET', '/v1/hooks', { 'x-api-key': secret.value });
    await requestLogs.of(app.app.db).flush();
    const failed = await items(ada, 'requests?filter.failed=true');
    expect(failed[0]).toMatchObject({
      values: {
        route: '/v1/hooks',
        status: { value: '403 Forbidden', tone: 'warning' },
        error_code: 'insufficient_scope',
        meaning: expect.stringContaining('scope'),
        key_id: { resource: 'api-keys', text: 'Reader' },
      },
    });
    expect((await get(ada, `resources/requests/${failed[0].id}`)).body.sections[0].values).toMatchObject({ method: 'GET' });
    const called = (await items(ada, 'usage')).map(({ values }: { values: { route: string } }) => values.route);
    expect(called).toContain('/v1/hooks');
    expect(called, 'looking at the portal is no use of the API').not.toContain('/v1/quotas');
    expect(await items(ada, 'quotas')).toContainEqual(
      expect.objectContaining({ values: expect.objectContaining({ used: '1', quota: '100' }) }),
    );
    const file = await get(ada, 'lists/usage/export?format=csv');
    expect(file.status).toBe(200);
    expect(file.text).toContain('/v1/hooks');
    const { parts } = (await get(ada, 'overview')).body;
    expect(parts.flatMap(({ tiles }: { tiles: { label: string }[] }) => tiles.map(({ label }) => label))).toEqual(
      expect.arrayContaining(['Active keys', 'Endpoints', 'Requests', 'Failed requests']),
    );
  });

  test('keys that expire soon are counted, and the figure leads to them', async () => {
    const who = await logIn();
    const inDays = (days: number) => new Date(clock.now().getTime() + days * 86_400_000).toISOString();
    for (const [name, days] of Object.entries({ soon: 13, later: 15 }))
      await send(who, 'POST', 'resources/api-keys', { name, scopes: ['requests:read'], expires_at: inDays(days) });
    await send(who, 'POST', 'resources/api-keys', { name: 'never', scopes: ['requests:read'] });
    const gone = (await send(who, 'POST', 'resources/api-keys', { name: 'gone', scopes: ['requests:read'], expires_at: inDays(1) })).body
      .id;
    await send(who, 'DELETE', `resources/api-keys/${gone}`);
    const { parts } = (await get(who, 'overview')).body as {
      parts: { tiles: { label: string; link: { filters: Record<string, string> } }[] }[];
    };
    const tile = parts.flatMap(({ tiles }) => tiles).find(({ label }) => label.startsWith('Expire within'));
    expect(tile).toMatchObject({ value: 1, tone: 'bad', link: { resource: 'api-keys', filters: { state: 'active' } } });
    const filters = new URLSearchParams(
      Object.entries(tile?.link.filters ?? {}).map(([name, value]): [string, string] => [`filter.${name}`, value]),
    );
    expect((await items(who, `api-keys?${filters.toString()}`)).map(({ title }: { title: string }) => title)).toEqual(['soon']);
  });

  test('events: what was published for them, also to no endpoint, with its deliveries and nothing of others', async () => {
    const [cleo, dan] = [await logIn(), await logIn()];
    const publishFor = (who: Browser) => app.app.db.transaction((tx) => publish(tx, OrderPaid, { id: 1 }, { owner: who.userId }));
    await publishFor(cleo);
    const endpoint = { url: 'https://hooks.example.com/cleo', events: ['order.*'] };
    expect((await send(cleo, 'POST', 'resources/endpoints', endpoint)).status).toBeLessThan(300);
    await publishFor(cleo);
    const found = await items(cleo, 'events');
    expect(found).toMatchObject([
      { title: 'order.paid', values: { type: 'order.paid', sent: { value: 'pending', tone: 'info' } } },
      { title: 'order.paid', values: { sent: { value: 'to no endpoint', tone: 'neutral' } } },
    ]);
    expect(await items(dan, 'events')).toEqual([]);
    const [event] = found;
    const { body } = await get(cleo, `resources/events/${event.id}`);
    // Its deliveries, and no charts: it is one moment.
    expect(body.sections.map(({ title }: { title: string }) => title)).toEqual(['Event', 'Deliveries']);
    expect(JSON.stringify(body)).not.toContain('ordering_key');
    expect(await items(cleo, `deliveries?filter.event_id=${event.id}`)).toMatchObject([{ title: 'order.paid' }]);
    expect((await get(dan, `resources/events/${event.id}`)).status).toBe(404);
    expect(await items(dan, `deliveries?filter.event_id=${event.id}`)).toEqual([]);
  });

  test('a key is called by its name, and its page shows its requests; one that was removed has its id', async () => {
    const hostile = '<img src=x onerror=alert(1)>';
    const { id, secret } = (await send(ada, 'POST', 'resources/api-keys', { name: hostile, scopes: ['requests:read'] })).body;
    await app.call('GET', '/v1/requests', { 'x-api-key': secret.value });
    await requestLogs.of(app.app.db).flush();
    for (const name of ['requests', 'usage', 'quotas'])
      expect(await items(ada, `${name}?filter.key_id=${id}`), `list ${name}`).toEqual([
        expect.objectContaining({ values: expect.objectContaining({ key_id: { resource: 'api-keys', id, text: hostile } }) }),
      ]);
    const { sections } = (await get(ada, `resources/api-keys/${id}`)).body;
    const titles = sections.map(({ title }: { title: string }) => title);
    expect(titles).toEqual(expect.arrayContaining(['Requests', 'Usage', 'Quotas']));
    expect((await get(ada, 'lists/api-keys/choices')).body.items).toContainEqual({ id, title: hostile });
    const [request] = await items(ada, `requests?filter.key_id=${id}`);
    const { values } = (await get(ada, `resources/requests/${request.id}`)).body.sections[0];
    expect(values).toMatchObject({ key_id: { resource: 'api-keys', id, text: hostile }, status: { value: '200 OK', tone: 'good' } });
  });

  test('first steps are checked off by what is there, and gone when all are done', async () => {
    const newcomer = await logIn();
    const steps = async () => {
      const { parts } = (await get(newcomer, 'overview')).body as { parts: { steps?: { title: string; isDone: boolean; at: object }[] }[] };
      return parts.flatMap((part) => part.steps ?? []);
    };
    const done = async () => (await steps()).map(({ isDone }) => isDone);
    expect(await steps()).toMatchObject([
      { title: 'Create an API key', isDone: false, at: { resource: 'api-keys', page: 'create' } },
      { title: 'Send your first request', isDone: false, at: { resource: 'requests', page: 'list' } },
      { title: 'Add an endpoint', isDone: false, at: { resource: 'endpoints', page: 'create' } },
      { title: 'Receive a delivery', isDone: false, at: { resource: 'deliveries', page: 'list' } },
    ]);
    const { keys, endpoints } = await things(newcomer);
    await requestLogs.of(app.app.db).flush();
    expect(keys).toHaveLength(1);
    expect(await done()).toEqual([true, true, true, false]);
    await database.db.query(`update webhook_deliveries set status = 'succeeded' where endpoint_id = $1`, [endpoints[0]]);
    expect(await done()).toEqual([]);
  });

  test('twins: of two customers with the same things, no route of the portal tells one anything of the other', async () => {
    const mine = await things(ada);
    const theirs = await things(bob);
    await requestLogs.of(app.app.db).flush();
    const lists = (await get(ada, 'session')).body.site.resources as { name: string; actions: { name: string }[] }[];
    for (const { name, actions } of lists) {
      // The catalog of the API is the same for everybody.
      if (name === 'event-types') continue;
      const [own, others] = [await items(ada, `${name}?limit=100`), await items(bob, `${name}?limit=100`)];
      expect(own.length, `list ${name}`).toBeGreaterThan(0);
      expect(others.length, `list ${name}`).toBeGreaterThan(0);
      const ids = new Set(own.map(({ id }: { id: string }) => id));
      for (const { id } of others as { id: string }[]) {
        expect(ids.has(id), `${name}: the list`).toBe(false);
        const missing = id.replaceAll(/[0-9a-f]{8}-/g, '00000000-');
        for (const [method, path, body] of [
          ['GET', `resources/${name}/${id}`],
          ['PATCH', `resources/${name}/${id}`, { name: 'taken', description: 'taken' }],
          ['DELETE', `resources/${name}/${id}`],
          ...actions.map(
            (action) => ['POST', `resources/${name}/actions/${action.name}`, { ids: [id], fields: FIELDS[action.name] ?? {} }] as const,
          ),
        ] as const) {
          const at = (target: string) => JSON.parse(JSON.stringify(body ?? null).replaceAll(id, target)) as object | null;
          const [asked, absent] = await Promise.all(
            [id, missing].map((target) =>
              method === 'GET' ? get(ada, path.replace(id, target)) : send(ada, method, path.replace(id, target), at(target) ?? undefined),
            ),
          );
          // Of a selection, each record that is not there is told in the response.
          const missed = path.endsWith('/delete-selected') ? asked!.body.failures.length === 1 : asked!.status === 404;
          expect(missed, `${method} ${path}: ${asked!.text}`).toBe(true);
          expect(stripped(asked!.body, id), `${method} ${path}`).toEqual(stripped(absent!.body, missing));
        }
        expect((await get(ada, `lists/${name}/choices?id=${encodeURIComponent(id)}`)).body).toEqual({ items: [] });
      }
    }
    expect((await get(ada, `resources/deliveries?filter.endpoint_id=${theirs.endpoints[0]}`)).status).toBe(404);
    for (const name of ['requests', 'usage', 'quotas']) expect(await items(ada, `${name}?filter.key_id=${theirs.keys[0]}`)).toEqual([]);
    for (const action of ['subscribe', 'send-example']) {
      const answer = await act(ada, 'event-types', action, 'order.paid', { other: theirs.endpoints[0] });
      expect(answer, `${action} with an endpoint of another`).toMatchObject({
        status: 422,
        body: { errors: [{ location: ['body', 'fields', 'other'] }] },
      });
    }
    const everything = await Promise.all(
      ['overview', ...lists.flatMap(({ name }) => [`resources/${name}?limit=100`, `lists/${name}/choices`])].map((path) => get(ada, path)),
    );
    const told = everything.map(({ text }) => text).join('\n');
    for (const secret of [bob.userId, ...theirs.keys, ...theirs.endpoints]) expect(told).not.toContain(secret);
    for (const own of mine.keys) expect(told).toContain(own);
    // Nothing that was tried on the other's things has changed them.
    expect((await get(bob, `resources/api-keys/${theirs.keys[0]}`)).body).toMatchObject({
      title: 'twin',
      values: { state: { value: 'active' } },
    });
  });

  const FIELDS: Readonly<Record<string, object>> = { recover: { since: '2030-01-01T00:00:00Z' }, rotate: {}, retry: {} };

  /** The sentence of a 404 may repeat the id that was asked for. */
  const stripped = (body: { request_id?: string }, id: string) =>
    JSON.parse(JSON.stringify({ ...body, request_id: undefined, instance: undefined }).replaceAll(id, 'ID')) as object;

  async function things(who: Browser) {
    const key = await send(who, 'POST', 'resources/api-keys', { name: 'twin', scopes: ['requests:read'] });
    const endpoint = await send(who, 'POST', 'resources/endpoints', { url: 'https://hooks.example.com/twin', events: ['*'] });
    await act(who, 'endpoints', 'ping', endpoint.body.id);
    await app.call('GET', '/v1/requests', { 'x-api-key': key.body.secret.value });
    return { keys: [key.body.id as string], endpoints: [endpoint.body.id as string] };
  }
});
