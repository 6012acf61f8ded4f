import { expect, test } from 'vitest';
import { describeHookApp } from '../../../test/webhooks/hook-app.ts';
import { changeHealth } from './delivery/result-store.ts';
import { disableEndpoint } from './endpoints/disable.ts';
import { signingSecret } from './endpoints/endpoint-secret.ts';
import { publish } from './publishing/publish.ts';
import { findEndpoint, type WebhookDelivery, type WebhookEndpoint } from './endpoints/store.ts';
import { openHeaders } from './endpoints/custom-headers.ts';
import { parseSecret } from './signing/secret.ts';
import { publicKeyOf } from './signing/signature.ts';
import { webhooksOf } from './webhooks.ts';
import { URL_NOT_ALLOWED } from './network/url-policy.ts';

const UNKNOWN_ID = '01890000-0000-7000-8000-000000000000';
const FIELDS = [
  'id',
  'url',
  'events',
  'description',
  'is_active',
  'tenant_key',
  'disabled_reason',
  'disabled_at',
  'failing_since',
  'consecutive_failures',
  'previous_secret_expires_at',
  'created_at',
  'updated_at',
  'header_names',
  'public_key',
  'rate_limit',
  'send_traceparent',
  'schedule',
  'signature',
];

describeHookApp('WebhookEndpointController', { endpointsPerOwnerMax: 3 }, (app) => {
  const { call, create, person } = app;
  const row = async (id: string): Promise<WebhookEndpoint> => {
    const endpoint = await findEndpoint(app.db, id);
    if (endpoint === null) throw new Error('no such endpoint');
    return endpoint;
  };
  const deliveriesOf = (id: string) =>
    app.db.query<WebhookDelivery>('select * from webhook_deliveries where endpoint_id = $1 order by id', [id]);
  const send = (owner: string, type = 'order.paid') => app.db.transaction((tx) => publish(tx, type, { n: 1 }, { owner }));

  test('201: a new endpoint is answered with its secret, which no later answer shows', async () => {
    const user = await person();
    const { status, body, headers } = await create(user, { events: ['order.*', 'order.*'], description: 'mine' });
    expect(status).toBe(201);
    expect(headers['cache-control']).toBe('no-store');
    expect(Object.keys(body).sort()).toEqual([...FIELDS, 'secret'].sort());
    expect(body).toMatchObject({ events: ['order.*'], description: 'mine', is_active: true, tenant_key: '', failing_since: null });
    expect(parseSecret(body.secret)).toMatchObject({ kind: 'symmetric', bytes: { length: 32 } });
    expect(signingSecret(app.db, await row(body.id))).toBe(body.secret);
    const read = await call(user, 'GET', `/hooks/${body.id}`);
    expect(read.status).toBe(200);
    expect(Object.keys(read.body).sort()).toEqual([...FIELDS].sort());
    const list = await call(user, 'GET', '/hooks');
    expect(list.body).toEqual({ items: [read.body], count: 1, next: null, previous: null });
    expect(JSON.stringify([read.body, list.body, app.kit.log])).not.toContain(body.secret.slice('whsec_'.length));
  });

  test('the list is newest first and goes on at the cursor', async () => {
    const user = await person();
    const ids: string[] = [];
    for (let index = 0; index < 3; index++) ids.unshift((await create(user)).body.id);
    const first = await call(user, 'GET', '/hooks?limit=2');
    expect(first.body).toMatchObject({ items: [{ id: ids[0] }, { id: ids[1] }], count: 3, next: expect.stringMatching(/^\?cursor=/) });
    // As it is, as the parameter `cursor`, and as the id of the last endpoint, which `next` once was.
    for (const query of [first.body.next, `?limit=2&cursor=${encodeURIComponent(first.body.next)}`, `?limit=2&cursor=${ids[1]}`]) {
      const second = await call(user, 'GET', `/hooks${query}`);
      expect(second.body).toMatchObject({ items: [{ id: ids[2] }], count: 3, next: null, previous: expect.any(String) });
    }
    expect(await call(user, 'GET', '/hooks?cursor=nonsense')).toMatchObject({ status: 422, body: { code: 'invalid_cursor' } });
  });

  test('ids and cursors may be written in upper case', async () => {
    const user = await person();
    const { body: first } = await create(user);
    const { body: second } = await create(user);
    await send(user.id);
    const upper = (id: string) => id.toUpperCase();
    expect((await call(user, 'GET', `/hooks/${upper(first.id)}`)).body.id).toBe(first.id);
    expect((await call(user, 'GET', `/hooks?cursor=${upper(second.id)}`)).body.items).toMatchObject([{ id: first.id }]);
    expect((await call(user, 'PATCH', `/hooks/${upper(first.id)}`, { description: 'mine' })).status).toBe(200);
    const [delivery] = await deliveriesOf(first.id);
    const path = `/hooks/${upper(first.id)}/deliveries`;
    expect((await call(user, 'GET', `${path}/${upper(delivery?.id ?? '')}`)).body.id).toBe(delivery?.id);
    expect((await call(user, 'GET', `${path}?cursor=${upper(delivery?.id ?? '')}`)).body.items).toEqual([]);
    expect((await call(user, 'POST', `${path}/${upper(delivery?.id ?? '')}/retry`)).status).toBe(200);
  });

  test('401: an anonymous caller has no endpoints', async () => {
    expect(await app.kit.call('GET', '/v2/hooks')).toMatchObject({ status: 401, body: { code: 'not_authenticated' } });
  });

  test('422 url_not_allowed reads the same for every refusal, on create and on change', async () => {
    const user = await person();
    const { body: mine } = await create(user);
    const refused = [
      'http://hooks.example.com/',
      'https://user:pass@hooks.example.com/',
      'https://localhost/',
      'https://127.0.0.1/',
      'https://10.0.0.1/',
      'https://169.254.169.254/latest',
      'https://[::1]/',
      'https://hooks.example.com:22/',
      'not a url',
      `https://hooks.example.com/${'a'.repeat(2048)}`,
    ];
    const answers = new Set<string>();
    for (const url of refused) {
      for (const answer of [await create(user, { url }), await call(user, 'PATCH', `/hooks/${mine.id}`, { url })]) {
        expect(answer).toMatchObject({ status: 422, body: { code: 'url_not_allowed', detail: URL_NOT_ALLOWED } });
        const { request_id: _, ...rest } = answer.body;
        answers.add(JSON.stringify(rest));
      }
    }
    expect(answers.size).toBe(1);
    expect((await row(mine.id)).url).toBe('https://hooks.example.com/a');
    expect((await call(user, 'GET', '/hooks')).body.count).toBe(1);
  });

  test('422 unknown_event: a pattern that matches no available event is refused and named', async () => {
    const user = await person();
    const make = (events: string[]) => call(user, 'POST', '/catalog', { url: 'https://hooks.example.com/', events });
    const refused = await make(['order.*', 'orders.paid', 'cart.*']);
    expect(refused).toMatchObject({ status: 422, body: { code: 'unknown_event' } });
    expect(refused.body.detail).toContain('orders.paid, cart.*');
    const created = await make(['order.*', 'invoice.sent', '*']);
    expect(created.status).toBe(201);
    expect(await call(user, 'PUT', `/catalog/${created.body.id}`, { events: ['cart.*'] })).toMatchObject({ status: 422 });
    expect((await row(created.body.id)).events).toEqual(['order.*', 'invoice.sent', '*']);
  });

  test('422: faulty fields are refused and named', async () => {
    const user = await person();
    for (const [fields, place] of [
      [{ events: [] }, 'body.events'],
      [{ events: Array.from({ length: 51 }, (_, index) => `a.b${index}`) }, 'body.events'],
      [{ events: ['order..paid'] }, 'body.events'],
      [{ events: ['*.paid'] }, 'body.events'],
      [{ events: 'order.paid' }, 'body.events'],
      [{ description: 'x'.repeat(201) }, 'body.description'],
      [{ tenant_key: 'acme' }, 'body.tenant_key'],
      [{ secret: 'whsec_chosen' }, 'body.secret'],
      [{ schedule: [-1] }, 'body.schedule'],
      [{ schedule: 'daily' }, 'body.schedule'],
      [{ signature: 'v2' }, 'body.signature'],
      [{ rate_limit: '10 a second' }, 'body.rate_limit'],
      [{ rate_limit: 10 }, 'body.rate_limit'],
      [{ headers: { 'Webhook-Id': 'x' } }, 'body.headers.Webhook-Id'],
      [{ headers: { host: 'example.com' } }, 'body.headers.host'],
      [{ headers: { 'x-a': 'one\r\nx-b: two' } }, 'body.headers.x-a'],
      [{ headers: { 'x a': 'one' } }, 'body.headers.x a'],
      [{ headers: { 'x-a': 1 } }, 'body.headers'],
      [{ headers: ['x-a: 1'] }, 'body.headers'],
      [{ owner_id: 'somebody' }, 'body.owner_id'],
      [{ events: ['a'.repeat(1_000_000)] }, 'body.events'],
      [{ url: 7 }, 'body.url'],
    ] as const) {
      const { status, body } = await create(user, fields);
      expect([status, body.errors?.[0]?.location.join('.').slice(0, place.length)]).toEqual([422, place]);
    }
  });

  test('422: what the schema refuses and what the rules refuse is reported at once, on create and on change', async () => {
    const user = await person();
    const { body: mine } = await create(user);
    const faulty = {
      url: 'https://127.0.0.1/',
      events: ['order..paid'],
      description: 5,
      schedule: [-1],
      headers: { host: 'x' },
      rate_limit: 'often',
      colour: 'red',
    };
    const places = ['colour', 'description', 'events.0', 'headers.host', 'rate_limit', 'schedule', 'url'];
    for (const answer of [await create(user, faulty), await call(user, 'PATCH', `/hooks/${mine.id}`, faulty)]) {
      expect(answer).toMatchObject({ status: 422, body: { code: 'validation_error' } });
      expect(answer.body.errors?.map(({ location }: { location: string[] }) => location.slice(1).join('.')).toSorted()).toEqual(places);
    }
    expect((await row(mine.id)).url).toBe('https://hooks.example.com/a');
  });

  test('201: the kind of signature, schedule, headers and rate limit are set at creation and shown, values of headers and private keys never', async () => {
    const user = await person();
    const fields = {
      signature: 'v1a',
      schedule: [1, 2.5],
      headers: { 'X-Api-Key': 'of-the-receiver', 'x-route': 'eu' },
      rate_limit: '10/s',
      send_traceparent: true,
    };
    const { status, body } = await create(user, fields);
    expect(status).toBe(201);
    const shown = {
      signature: 'v1a',
      schedule: [1, 2.5],
      header_names: ['x-api-key', 'x-route'],
      rate_limit: '10/s',
      send_traceparent: true,
    };
    expect(body).toMatchObject({ ...shown, secret: null });
    expect(parseSecret(body.public_key)).toMatchObject({ kind: 'public' });
    const stored = await row(body.id);
    expect(publicKeyOf(signingSecret(app.db, stored))).toBe(body.public_key);
    const read = await call(user, 'GET', `/hooks/${body.id}`);
    expect(read.body).toMatchObject({ ...shown, public_key: body.public_key });
    expect(JSON.stringify([body, read.body, app.kit.log])).not.toContain('of-the-receiver');
    const rotated = await call(user, 'POST', `/hooks/${body.id}/rotate-secret`);
    expect(rotated.body).toMatchObject({ signature: 'v1a', secret: null });
    expect(rotated.body.public_key).not.toBe(body.public_key);
    expect((await create(user)).body).toMatchObject({
      signature: 'v1',
      public_key: null,
      schedule: null,
      header_names: [],
      rate_limit: null,
      send_traceparent: false,
    });
  });

  test('PATCH sets and removes headers by name, and resets schedule and rate limit with null', async () => {
    const user = await person();
    const { body } = await create(user, { headers: { 'x-a': '1', 'x-b': '2' }, schedule: [1], rate_limit: '1/s' });
    const path = `/hooks/${body.id}`;
    const changed = await call(user, 'PATCH', path, { headers: { 'X-A': 'new', 'x-b': null, 'x-c': '3' } });
    expect(changed.body).toMatchObject({ header_names: ['x-a', 'x-c'], schedule: [1], rate_limit: '1/s' });
    expect(openHeaders(webhooksOf(app.db).secrets, (await row(body.id)).headers)).toEqual({ 'x-a': 'new', 'x-c': '3' });
    expect((await call(user, 'PATCH', path, { send_traceparent: true })).body).toMatchObject({ rate_limit: '1/s', send_traceparent: true });
    const reset = await call(user, 'PATCH', path, {
      headers: { 'x-a': null, 'x-c': null },
      schedule: null,
      rate_limit: null,
      send_traceparent: false,
    });
    expect(reset.body).toMatchObject({ header_names: [], schedule: null, rate_limit: null, send_traceparent: false });
    expect((await row(body.id)).headers).toBeNull();
  });

  test('409 quota_exceeded: an owner has a bounded number of endpoints, also when created at once', async () => {
    const user = await person();
    const answers = await Promise.all(Array.from({ length: 6 }, () => create(user)));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 201, 201, 409, 409, 409]);
    expect(answers.find(({ status }) => status === 409)?.body).toMatchObject({ code: 'quota_exceeded', limit: 3 });
    const [first] = (await call(user, 'GET', '/hooks')).body.items;
    expect((await call(user, 'DELETE', `/hooks/${first.id}`)).status).toBe(204);
    expect((await create(user)).status).toBe(201);
  });

  test("404: another owner's endpoint is exactly as missing as one that never was, on every route", async () => {
    const [user, other] = [await person(), await person()];
    const { body: theirs } = await create(other);
    await send(other.id);
    const [delivery] = await deliveriesOf(theirs.id);
    for (const [method, path, payload] of [
      ['GET', ''],
      ['PATCH', '', { description: 'mine now' }],
      ['PUT', '', { description: 'mine now' }],
      ['DELETE', ''],
      ['POST', '/rotate-secret'],
      ['GET', '/deliveries'],
      ['GET', `/deliveries/${delivery?.id}`],
      ['POST', `/deliveries/${delivery?.id}/retry`],
      ['POST', '/ping'],
      ['POST', '/recover', { since: '2020-01-01T00:00:00Z' }],
    ] as const) {
      const [foreign, missing] = await Promise.all([theirs.id, UNKNOWN_ID].map((id) => call(user, method, `/hooks/${id}${path}`, payload)));
      expect(foreign).toMatchObject({ status: 404, body: { code: 'endpoint_not_found' } });
      expect({ ...foreign?.body, request_id: '' }).toEqual({ ...missing?.body, request_id: '' });
    }
    expect(await row(theirs.id)).toMatchObject({ description: '', is_active: true });
    expect(await deliveriesOf(theirs.id)).toEqual([delivery]);
  });

  test("a delivery is only found below its own endpoint, also by the endpoints' owner", async () => {
    const user = await person();
    const [{ body: one }, { body: two }] = [await create(user), await create(user)];
    await send(user.id);
    const [delivery] = await deliveriesOf(one.id);
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/retry'],
    ] as const) {
      expect((await call(user, method, `/hooks/${two.id}/deliveries/${delivery?.id}${path}`)).body.code).toBe('delivery_not_found');
      expect((await call(user, method, `/hooks/${one.id}/deliveries/${UNKNOWN_ID}${path}`)).body.code).toBe('delivery_not_found');
    }
  });

  test('PATCH and PUT change what they name and keep the rest, is_active too', async () => {
    const user = await person();
    const { body: mine } = await create(user, { description: 'before' });
    app.clock.advance(1000);
    const patched = await call(user, 'PATCH', `/hooks/${mine.id}`, { url: 'https://other.example.com/', events: ['order.paid'] });
    expect(patched).toMatchObject({
      status: 200,
      body: { url: 'https://other.example.com/', events: ['order.paid'], description: 'before', updated_at: app.clock.now().toISOString() },
    });
    await send(user.id, 'order.paid');
    await send(user.id, 'order.refunded');
    expect((await deliveriesOf(mine.id)).map(({ event_type }) => event_type)).toEqual(['order.paid']);
    await call(user, 'PATCH', `/hooks/${mine.id}`, { is_active: false });
    const put = await call(user, 'PUT', `/hooks/${mine.id}`, { url: 'https://hooks.example.com/b', events: ['*'], description: 'after' });
    expect(put).toMatchObject({ status: 200, body: { is_active: false, disabled_reason: 'manual', description: 'after', events: ['*'] } });
  });

  test('disabling fails what waits with endpoint_disabled and tells the other endpoints; enabling clears the failures', async () => {
    const user = await person();
    const [{ body: mine }, { body: witness }] = [await create(user), await create(user, { events: ['webhook.endpoint.disabled'] })];
    await send(user.id);
    await changeHealth(app.db, [{ id: mine.id, succeeded_at: null, failures: 4, failing_since: app.clock.now() }]);
    const off = await call(user, 'PATCH', `/hooks/${mine.id}`, { is_active: false });
    expect(off.body).toMatchObject({ is_active: false, disabled_reason: 'manual', disabled_at: app.clock.now().toISOString() });
    expect(await deliveriesOf(mine.id)).toMatchObject([{ status: 'failed', failure_reason: 'endpoint_disabled', next_attempt_at: null }]);
    expect(await deliveriesOf(witness.id)).toMatchObject([{ event_type: 'webhook.endpoint.disabled', status: 'pending' }]);
    await send(user.id);
    expect(await deliveriesOf(mine.id)).toHaveLength(1);
    const on = await call(user, 'PATCH', `/hooks/${mine.id}`, { is_active: true });
    expect(on.body).toMatchObject({
      is_active: true,
      disabled_reason: null,
      disabled_at: null,
      failing_since: null,
      consecutive_failures: 0,
    });
  });

  test('saying "active" of an active endpoint does not hide that it is failing', async () => {
    const user = await person();
    const { body: mine } = await create(user);
    await changeHealth(app.db, [{ id: mine.id, succeeded_at: null, failures: 4, failing_since: app.clock.now() }]);
    const { body } = await call(user, 'PATCH', `/hooks/${mine.id}`, { is_active: true, description: 'x' });
    expect(body).toMatchObject({ consecutive_failures: 4, failing_since: app.clock.now().toISOString(), description: 'x' });
  });

  test('a change that is refused changes nothing, not even its other fields', async () => {
    const user = await person();
    const { body: mine } = await create(user);
    const before = await row(mine.id);
    const refused = await call(user, 'PATCH', `/hooks/${mine.id}`, { description: 'half', is_active: false, url: 'https://10.0.0.1/' });
    expect(refused.status).toBe(422);
    expect(await row(mine.id)).toEqual(before);
  });

  test('200: rotating answers a new secret once, and both sign until the overlap ends', async () => {
    const user = await person();
    const { body: mine } = await create(user);
    const { status, body, headers } = await call(user, 'POST', `/hooks/${mine.id}/rotate-secret`);
    expect(status).toBe(200);
    expect(headers['cache-control']).toBe('no-store');
    expect(body.secret).not.toBe(mine.secret);
    expect(body.previous_secret_expires_at).toBe(new Date(app.clock.now().getTime() + 24 * 3_600_000).toISOString());
    expect(await row(mine.id)).toMatchObject({ secret: body.secret, previous_secret: mine.secret });
    expect((await call(user, 'GET', `/hooks/${mine.id}`)).body).not.toHaveProperty('secret');
  });

  test('PATCH, rotation and automatic disabling at the same time undo nothing of each other', async () => {
    for (let round = 0; round < 10; round++) {
      const user = await person();
      const { body: mine } = await create(user);
      const [patched, rotated, disabled] = await Promise.all([
        call(user, 'PATCH', `/hooks/${mine.id}`, { description: 'renamed', events: ['order.paid'] }),
        call(user, 'POST', `/hooks/${mine.id}/rotate-secret`),
        app.db.transaction((tx) => disableEndpoint(tx, mine.id, 'gone')),
      ]);
      expect([patched.status, rotated.status, disabled]).toEqual([200, 200, true]);
      expect(await row(mine.id)).toMatchObject({
        description: 'renamed',
        events: ['order.paid'],
        secret: rotated.body.secret,
        previous_secret: mine.secret,
        is_active: false,
        disabled_reason: 'gone',
      });
    }
  });

  test('204: a deleted endpoint is gone with its deliveries', async () => {
    const user = await person();
    const { body: mine } = await create(user);
    await send(user.id);
    expect((await call(user, 'DELETE', `/hooks/${mine.id}`)).status).toBe(204);
    expect((await call(user, 'GET', `/hooks/${mine.id}`)).status).toBe(404);
    expect((await call(user, 'DELETE', `/hooks/${mine.id}`)).status).toBe(404);
    expect(await deliveriesOf(mine.id)).toEqual([]);
  });

  test('tenant endpoints belong to the tenant that the server names, and to their owner within it', async () => {
    const [user, colleague] = [await person(), await person()];
    const acme = { 'x-tenant': 'acme' };
    const globex = { 'x-tenant': 'globex' };
    const made = await call(user, 'POST', '/tenant', { url: 'https://hooks.example.com/', events: ['*'] }, acme);
    expect(made).toMatchObject({ status: 201, body: { tenant_key: 'acme' } });
    const { id } = made.body;
    expect((await call(user, 'GET', `/tenant/${id}`, undefined, acme)).status).toBe(200);
    for (const [who, headers] of [
      [user, globex],
      [colleague, acme],
    ] as const) {
      expect((await call(who, 'GET', '/tenant', undefined, headers)).body).toMatchObject({ items: [], count: 0 });
      for (const [method, path, payload] of [
        ['GET', ''],
        ['PATCH', '', { description: 'x' }],
        ['DELETE', ''],
        ['GET', '/deliveries'],
        ['POST', '/ping'],
        ['POST', '/rotate-secret'],
        ['POST', '/recover', { since: '2020-01-01T00:00:00Z' }],
        ['POST', `/deliveries/${UNKNOWN_ID}/retry`],
      ] as const)
        expect((await call(who, method, `/tenant/${id}${path}`, payload, headers)).body.code).toBe('endpoint_not_found');
    }
    expect((await call(user, 'GET', `/hooks/${id}`)).body.code).toBe('endpoint_not_found');
    expect((await call(user, 'GET', '/hooks')).body.count).toBe(0);
  });

  test('403 tenant_required: without a tenant there are no tenant endpoints, and never personal ones instead', async () => {
    const user = await person();
    await create(user);
    for (const headers of [{}, { 'x-tenant': '' }]) {
      expect(await call(user, 'GET', '/tenant', undefined, headers)).toMatchObject({ status: 403, body: { code: 'tenant_required' } });
      const made = await call(user, 'POST', '/tenant', { url: 'https://hooks.example.com/', events: ['*'] }, headers);
      expect(made).toMatchObject({ status: 403, body: { code: 'tenant_required' } });
    }
  });

  test('an API key needs webhooks:read to read and webhooks:write to change', async () => {
    const user = await person();
    const { body: mine } = await create(user);
    const keys = {
      none: await app.kit.key(user, { scopes: ['orders:read'] }),
      read: await app.kit.key(user, { scopes: ['webhooks:read'] }),
      write: await app.kit.key(user, { scopes: ['webhooks:write'] }),
    };
    const routes = [
      ['GET', '', 'read'],
      ['GET', `/${mine.id}`, 'read'],
      ['GET', `/${mine.id}/deliveries`, 'read'],
      ['GET', `/${mine.id}/deliveries/${UNKNOWN_ID}`, 'read'],
      ['POST', '', 'write'],
      ['PATCH', `/${mine.id}`, 'write'],
      ['PUT', `/${mine.id}`, 'write'],
      ['POST', `/${mine.id}/rotate-secret`, 'write'],
      ['POST', `/${mine.id}/ping`, 'write'],
      ['POST', `/${mine.id}/recover`, 'write'],
      ['POST', `/${mine.id}/deliveries/${UNKNOWN_ID}/retry`, 'write'],
      ['DELETE', `/${mine.id}`, 'write'],
    ] as const;
    const payloads: Record<string, object> = { PATCH: {}, PUT: {} };
    for (const [method, path, needed] of routes) {
      for (const [name, { raw }] of Object.entries(keys)) {
        const { status, body } = await app.kit.call(method, `/v2/hooks${path}`, { 'x-api-key': raw }, payloads[method]);
        const denied = status === 403 ? [body.code, body.required_scope] : null;
        expect([method, path, name, denied]).toEqual([
          method,
          path,
          name,
          name === needed ? null : ['insufficient_scope', `webhooks:${needed}`],
        ]);
      }
    }
  });
});
