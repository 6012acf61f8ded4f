import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { deactivateUser } from '../contrib/accounts/index.ts';
import { createEndpoint, publish, signingSecret, webhooks } from '../contrib/webhooks/index.ts';
import { openHeaders } from '../contrib/webhooks/endpoints/custom-headers.ts';
import { findEndpoint, type WebhookDelivery } from '../contrib/webhooks/endpoints/store.ts';
import { webhooksOf } from '../contrib/webhooks/webhooks.ts';
import { uuidv7 } from '../db/values/uuidv7.ts';
import { describeDatabases, type TestDatabase } from '../testing/databases.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { auditLog } from '../../test/audit-log.ts';

const KEY = 'cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4=';
let hosts = 0;

const clock = fakeClock();

const define = (database: TestDatabase): void => {
  let site: AdminApp;
  let staff: Browser;

  beforeAll(async () => {
    site = await new AdminApp(database.db, [webhooks({ secretKeys: [KEY] })], { clock }).ready();
    staff = await site.browser();
  });
  afterAll(() => site.close());

  const newEndpoint = async (given: { owner?: string; url?: string; events?: string[]; tenantKey?: string } = {}) => {
    hosts += 1;
    const owner = given.owner ?? (await site.newUser()).id;
    const input = { url: `https://host${hosts}.example.com/hook?token=hidden`, events: ['order.*'], ...given, owner };
    return (await database.db.transaction((tx) => createEndpoint(tx, input))).endpoint;
  };
  const newDelivery = async (type = 'order.paid', endpoint?: { id: string; owner_id: string }) => {
    const target = endpoint ?? (await newEndpoint({ events: ['*'] }));
    const event = await database.db.transaction((tx) => publish(tx, type, { total: 12 }, { owner: target.owner_id }));
    const [delivery] = await database.db.query<WebhookDelivery>(
      'select * from webhook_deliveries where event_id = $1 and endpoint_id = $2',
      [event.id, target.id],
    );
    if (delivery === undefined) throw new Error('the event has no delivery');
    return delivery;
  };
  const finish = async (delivery: WebhookDelivery, status: 'succeeded' | 'failed', excerpt = 'ok') => {
    const failed = status === 'failed';
    await database.db.query(
      `update webhook_deliveries set status = $2, attempts = 1, next_attempt_at = null, failure_reason = $3, last_error = $4, last_status_code = $5 where id = $1`,
      [delivery.id, status, failed ? 'http_status' : null, failed ? 'The receiver returned 500.' : null, failed ? 500 : 200],
    );
    await database.db.query(
      `insert into webhook_attempts (delivery_id, id, started_at, duration_ms, status_code, failure_reason, error, response_excerpt, worker)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [
        delivery.id,
        uuidv7(site.clock),
        site.clock.now(),
        failed ? 900 : 30,
        failed ? 500 : 200,
        failed ? 'http_status' : null,
        failed ? 'The receiver returned 500.' : null,
        excerpt,
        'worker-1',
      ],
    );
  };
  const list = async (resource: string, query = ''): Promise<{ id: string; title: string; values: Record<string, unknown> }[]> =>
    (await site.get(staff, `resources/${resource}?${query}`)).body.items;
  const ids = async (resource: string, query: string) => (await list(resource, query)).map((item) => item.id);
  const read = async (resource: string, id: string) => (await site.get(staff, `resources/${resource}/${id}`)).body;
  const history = (record: { sections: { title: string; entries: { title: string; link: { resource: string } }[] }[] }) =>
    record.sections.at(-1)?.entries.flatMap(({ title, link }) => (link.resource === 'audit-log' ? [title] : []));

  describe('endpoints', () => {
    test('of a deactivated owner say that nothing is sent', async () => {
      const owner = await site.newUser();
      const { id } = await newEndpoint({ owner: owner.id });
      await deactivateUser(database.db, owner.id);
      const state = { value: 'owner inactive', tone: 'warning', hint: 'Nothing is sent until its owner is activated.' };
      expect((await list('endpoints', `filter.owner=${owner.id}`)).map(({ values }) => values['state'])).toEqual([state]);
      expect((await read('endpoints', id)).state).toEqual(state);
    });

    test('are found by URL, description and owner, and filtered by state, owner and tenant', async () => {
      const owner = await site.newUser({ username: 'hookowner' });
      const one = await newEndpoint({ owner: owner.id, url: 'https://findme.example.com/a' });
      const two = await newEndpoint({ owner: owner.id, url: 'https://findme.example.com/b', tenantKey: 'acme' });
      expect(await ids('endpoints', 'search=FINDME')).toEqual([two.id, one.id]);
      expect(await ids('endpoints', 'search=hookown')).toEqual([two.id, one.id]);
      expect(await ids('endpoints', 'filter.owner=hookowner&filter.tenant=acme')).toEqual([two.id]);
      expect((await list('endpoints', 'search=findme'))[0]?.values).toMatchObject({
        owner: { resource: 'users', id: owner.id, text: 'hookowner' },
        tenant_key: 'acme',
        events: ['order.*'],
        state: { value: 'active', tone: 'good' },
      });
      await site.act(staff, 'endpoints', 'disable', [one.id]);
      await database.db.query('update webhook_endpoints set failing_since = $2, consecutive_failures = 3 where id = $1', [
        two.id,
        site.clock.now(),
      ]);
      expect(await ids('endpoints', 'search=findme&filter.state=disabled')).toEqual([one.id]);
      expect(await ids('endpoints', 'search=findme&filter.state=failing')).toEqual([two.id]);
      expect(await ids('endpoints', 'search=findme&filter.state=active')).toEqual([]);
    });

    test('creating one shows its signing secret once and never again', async () => {
      const owner = await site.newUser();
      const answer = await site.send(staff, 'POST', 'resources/endpoints', {
        owner: owner.username,
        url: 'https://new.example.com/hook',
        events: ['order.paid'],
        description: 'Shipping',
      });
      expect(answer.status).toBe(201);
      expect(answer.headers['cache-control']).toBe('no-store');
      const { id, secret } = answer.body;
      expect(secret.value).toMatch(/^whsec_/);
      const stored = await findEndpoint(database.db, id);
      expect(stored?.owner_id).toBe(owner.id);
      expect(signingSecret(database.db, stored as never)).toBe(secret.value);
      const record = await site.get(staff, `resources/endpoints/${id}`);
      expect(record.text).not.toContain(secret.value.slice(6));
      expect(record.text).not.toContain('fernet:');
      expect(history(record.body)).toEqual(['Webhook endpoint created']);
    });

    test.each([
      ['url', { url: 'http://plain.example.com/' }, /policy says: .*https/],
      ['url', { url: 'https://127.0.0.1/' }, /policy says: .*address/],
      ['url', { url: '' }, /Required/],
      ['events', { events: ['not a pattern!'] }, /./],
      ['events', { events: [] }, /Required/],
      ['owner', { owner: 'nobody-at-all' }, /no such user/],
      ['description', { description: 'x'.repeat(201) }, /200/],
      ['secret', { secret: 'whsec_mine' }, /no such field/],
    ])('a faulty %s is a 422 at the field', async (field, given, message) => {
      const owner = await site.newUser();
      const body = { owner: owner.id, url: 'https://fine.example.com/', events: ['*'], ...given };
      const answer = await site.send(staff, 'POST', 'resources/endpoints', body);
      expect(answer.status).toBe(422);
      expect(answer.body.errors[0].location.slice(0, 2)).toEqual(['body', field]);
      expect(answer.body.errors[0].message).toMatch(message);
      expect(await ids('endpoints', `filter.owner=${owner.id}`)).toEqual([]);
    });

    test('every fault of a form is a 422 at its field, whether its kind or a rule refuses it', async () => {
      const rules = { url: 'https://localhost/', events: ['not a pattern!'], schedule: ['-1'], headers: ['Host: x'], rate_limit: 'fast' };
      const named = ['events', 'headers', 'rate_limit', 'schedule', 'url'];
      const endpoint = await newEndpoint();
      const patch = (fields: object) => site.send(staff, 'PATCH', `resources/endpoints/${endpoint.id}`, fields);
      const post = (fields: object) => site.send(staff, 'POST', 'resources/endpoints', { owner: 'nobody-at-all', ...fields });
      const places = ({ body }: Awaited<ReturnType<typeof post>>) =>
        body.errors.map((error: { location: string[] }) => error.location[1]).toSorted();
      expect(places(await post(rules))).toEqual([...named, 'owner'].toSorted());
      expect(places(await post({ ...rules, description: 5 }))).toEqual([...named, 'description', 'owner'].toSorted());
      expect(places(await patch(rules))).toEqual(named);
      expect(places(await patch({ ...rules, description: 5 }))).toEqual([...named, 'description'].toSorted());
    });

    test('kind of signature, schedule, custom headers and rate limit are set, shown and changed; header values are never shown', async () => {
      const owner = await site.newUser();
      const { status, body } = await site.send(staff, 'POST', 'resources/endpoints', {
        owner: owner.username,
        url: 'https://settings.example.com/hook',
        events: ['*'],
        signature: 'v1a',
        schedule: ['5', '60'],
        headers: ['X-Api-Key: first-value', 'X-Team: shipping'],
        rate_limit: '10/s',
        send_traceparent: true,
      });
      expect([status, body.secret.label, body.secret.value]).toEqual([201, 'Public key', expect.stringMatching(/^whpk_/)]);
      const facts = async () => (await read('endpoints', body.id)).sections[0].values;
      expect(await facts()).toMatchObject({
        signature: 'v1a',
        public_key: body.secret.value,
        schedule: '5 s, 60 s',
        header_names: ['x-api-key', 'x-team'],
        rate_limit: '10/s',
        send_traceparent: true,
      });
      const { form } = await read('endpoints', body.id);
      expect(form.values).toMatchObject({
        headers: ['x-api-key: •••', 'x-team: •••'],
        schedule: ['5', '60'],
        rate_limit: '10/s',
        send_traceparent: true,
      });
      const storedHeaders = async () =>
        openHeaders(webhooksOf(database.db).secrets, (await findEndpoint(database.db, body.id))?.headers ?? null);
      // A line as shown keeps its value, a changed line replaces it, a removed line removes the header.
      await site.send(staff, 'PATCH', `resources/endpoints/${body.id}`, {
        headers: ['x-api-key: •••', 'X-New: second-value'],
        schedule: [],
        rate_limit: '',
        send_traceparent: false,
      });
      expect(await storedHeaders()).toEqual({ 'x-api-key': 'first-value', 'x-new': 'second-value' });
      expect(await facts()).toMatchObject({
        schedule: 'default',
        header_names: ['x-api-key', 'x-new'],
        rate_limit: null,
        send_traceparent: false,
      });
      const rotated = await site.act(staff, 'endpoints', 'rotate-secret', [body.id]);
      expect(rotated.body.secret).toMatchObject({ label: 'Public key', value: expect.stringMatching(/^whpk_/) });
      expect(rotated.body.secret.value).not.toBe(body.secret.value);
      expect(site.answers.join()).not.toMatch(/first-value|second-value|whsk_/);
    });

    test.each([
      ['schedule', { schedule: ['soon'] }],
      ['headers', { headers: ['Host: example.com'] }],
      ['headers', { headers: ['no colon'] }],
      ['rate_limit', { rate_limit: 'fast' }],
      ['signature', { signature: 'v2' }],
    ])('a faulty %s is refused when an endpoint is created or changed', async (field, given) => {
      const owner = await site.newUser();
      const body = { owner: owner.id, url: 'https://fine.example.com/', events: ['*'], ...given };
      const created = await site.send(staff, 'POST', 'resources/endpoints', body);
      expect([created.status, created.body.errors?.[0]?.location?.[1]]).toEqual([422, field]);
      const endpoint = await newEndpoint();
      expect((await site.send(staff, 'PATCH', `resources/endpoints/${endpoint.id}`, given)).status).toBe(422);
    });

    test('are edited, and a refused URL changes nothing', async () => {
      const endpoint = await newEndpoint();
      const refused = await site.send(staff, 'PATCH', `resources/endpoints/${endpoint.id}`, {
        url: 'https://localhost/',
        description: 'new',
      });
      expect(refused).toMatchObject({ status: 422, body: { errors: [{ location: ['body', 'url'] }] } });
      expect((await findEndpoint(database.db, endpoint.id))?.description).toBe('');
      await site.send(staff, 'PATCH', `resources/endpoints/${endpoint.id}`, {
        events: ['invoice.*'],
        description: 'new',
      });
      const record = await read('endpoints', endpoint.id);
      expect(record).toMatchObject({ form: { values: { events: ['invoice.*'], description: 'new' } } });
      expect(history(record)).toEqual(['Webhook endpoint updated']);
    });

    test('are deleted with their deliveries, which is recorded', async () => {
      const endpoint = await newEndpoint({ events: ['*'] });
      const delivery = await newDelivery('order.paid', endpoint);
      expect((await site.send(staff, 'DELETE', `resources/endpoints/${endpoint.id}`)).body.message).toContain('deleted');
      expect((await site.get(staff, `resources/endpoints/${endpoint.id}`)).status).toBe(404);
      expect((await site.get(staff, `resources/deliveries/${delivery.id}`)).status).toBe(404);
      expect((await site.send(staff, 'DELETE', `resources/endpoints/${endpoint.id}`)).status).toBe(404);
      const entries = await auditLog(database.db, { target_id: endpoint.id });
      expect(entries.map(({ action }) => action)).toEqual(['webhook_endpoint.deleted']);
    });

    test('"Rotate the signing secret" shows the new one once', async () => {
      const endpoint = await newEndpoint();
      const answer = await site.act(staff, 'endpoints', 'rotate-secret', [endpoint.id]);
      expect(answer.body.secret.value).toMatch(/^whsec_/);
      expect(answer.body.message).toContain('also signs until');
      const record = await site.get(staff, `resources/endpoints/${endpoint.id}`);
      expect(record.text).not.toContain(answer.body.secret.value.slice(6));
      expect(history(record.body)).toEqual(['Webhook endpoint secret rotated']);
      expect((await site.act(staff, 'endpoints', 'rotate-secret', [endpoint.id, (await newEndpoint()).id])).status).toBe(422);
    });

    test('"Enable and clear failures" enables, clears and records', async () => {
      const endpoint = await newEndpoint();
      await site.act(staff, 'endpoints', 'disable', [endpoint.id]);
      await database.db.query('update webhook_endpoints set failing_since = $2, consecutive_failures = 9 where id = $1', [
        endpoint.id,
        site.clock.now(),
      ]);
      const shape = (await site.get(staff, 'session')).body.site.resources.find((each: { name: string }) => each.name === 'endpoints');
      expect(shape.actions.map((action: { label: string }) => action.label)).toEqual(
        expect.arrayContaining(['Enable and clear failures', 'Rotate the signing secret', 'Send a ping']),
      );
      await site.act(staff, 'endpoints', 'enable', [endpoint.id]);
      expect(await findEndpoint(database.db, endpoint.id)).toMatchObject({
        is_active: true,
        failing_since: null,
        consecutive_failures: 0,
        disabled_reason: null,
      });
      expect(history(await read('endpoints', endpoint.id))).toEqual(['Webhook endpoint updated', 'Webhook endpoint updated']);
    });

    test('a ping is queued for the endpoint, and refused for a disabled one with the reason', async () => {
      const [active, disabled] = [await newEndpoint(), await newEndpoint()];
      await site.act(staff, 'endpoints', 'disable', [disabled.id]);
      const answer = await site.act(staff, 'endpoints', 'ping', [active.id, disabled.id]);
      expect(answer.body).toMatchObject({
        message: '1 endpoint pinged; 1 failed.',
        failures: [{ id: disabled.id, message: expect.stringContaining('disabled') }],
      });
      expect((await list('deliveries', `filter.endpoint=${active.id}`)).map((item) => item.title)).toEqual([
        expect.stringContaining('webhook.ping to host'),
      ]);
    });

    test('"Send missed events" queues failures since a time', async () => {
      const delivery = await newDelivery();
      await finish(delivery, 'failed');
      const since = new Date(site.clock.now().getTime() - 3_600_000).toISOString();
      expect((await site.act(staff, 'endpoints', 'recover', [delivery.endpoint_id])).body.errors[0].location).toEqual([
        'body',
        'fields',
        'since',
      ]);
      expect((await site.act(staff, 'endpoints', 'recover', [delivery.endpoint_id], { since })).body.message).toBe('1 delivery queued.');
      expect(history(await read('endpoints', delivery.endpoint_id))).toEqual(['Webhook endpoint recovered']);
    });

    test('disabling says before and after how many waiting deliveries fail, and only the action disables', async () => {
      const endpoint = await newEndpoint({ events: ['*'] });
      for (let count = 0; count < 3; count += 1) await newDelivery('order.paid', endpoint);
      const path = 'resources/endpoints/actions/disable/preview';
      expect((await site.send(staff, 'POST', path, { ids: [endpoint.id] })).body).toEqual({
        tone: 'warning',
        message: '1 record will be disabled.',
        note: '3 deliveries will fail. They can be sent again after enabling.',
        able: 1,
        failures: [],
      });
      const record = await read('endpoints', endpoint.id);
      expect(record.form.fields.map((field: { name: string }) => field.name)).not.toContain('is_active');
      expect((await site.send(staff, 'PATCH', `resources/endpoints/${endpoint.id}`, { is_active: false })).status).toBe(422);
      expect(record.state.value).toBe('active');
      expect((await site.act(staff, 'endpoints', 'disable', [endpoint.id])).body.message).toBe(
        '1 endpoint disabled. 3 waiting deliveries failed.',
      );
      expect((await site.send(staff, 'POST', path, { ids: [endpoint.id] })).body.note).toBe('No delivery waits.');
    });

    test('"Send missed events" begins where the failures begin, shows the count, and leads to what waits', async () => {
      const endpoint = await newEndpoint({ events: ['*'] });
      const failed = [await newDelivery('order.paid', endpoint), await newDelivery('order.paid', endpoint)];
      for (const delivery of failed) await finish(delivery, 'failed');
      const waiting = await newDelivery('order.paid', endpoint);
      const later = new Date(site.clock.now().getTime() + 3_600_000);
      await database.db.query('update webhook_deliveries set attempts = 2, next_attempt_at = $2 where id = $1', [waiting.id, later]);
      const failingSince = new Date(site.clock.now().getTime() - 60_000);
      await database.db.query('update webhook_endpoints set failing_since = $2, consecutive_failures = 2 where id = $1', [
        endpoint.id,
        failingSince,
      ]);
      const record = await read('endpoints', endpoint.id);
      expect(record.defaults.recover).toEqual({ since: failingSince.toISOString() });
      expect(record.actions).toContain('retry-waiting');
      const path = 'resources/endpoints/actions/recover/preview';
      const preview = (since: Date) =>
        site.send(staff, 'POST', path, { ids: [endpoint.id], fields: { since: since.toISOString() } }).then(({ body }) => body.message);
      expect(await preview(failingSince)).toBe(
        '2 deliveries will be queued. Not part of it: 1 delivery that waits for the next attempt. "Retry all waiting now" is for that.',
      );
      expect(await preview(later)).toContain('0 deliveries will be queued.');
      const answer = await site.act(staff, 'endpoints', 'retry-waiting', [endpoint.id]);
      expect(answer.body.message).toBe('1 delivery tried now.');
      const [now] = await database.db.query<WebhookDelivery>('select * from webhook_deliveries where id = $1', [waiting.id]);
      expect(now).toMatchObject({ attempts: 2, next_attempt_at: site.clock.now() });
      expect(history(await read('endpoints', endpoint.id))).toEqual(['Webhook endpoint waiting retried']);
    });

    test('the list says how much of the newest was delivered, and when the last was', async () => {
      const endpoint = await newEndpoint({ events: ['*'], url: 'https://rated.example.com/' });
      for (const status of ['succeeded', 'succeeded', 'succeeded', 'failed'] as const)
        await finish(await newDelivery('order.paid', endpoint), status);
      const at = site.clock.now();
      await database.db.query(`update webhook_deliveries set delivered_at = $2 where endpoint_id = $1 and status = 'succeeded'`, [
        endpoint.id,
        at,
      ]);
      const rated = async () => (await list('endpoints', 'search=rated.example'))[0]?.values;
      expect(await rated()).toMatchObject({ success_rate: { value: '75 %', tone: 'bad' }, last_delivered_at: at.toISOString() });
      // What is retried was not delivered; what was not tried yet says nothing.
      const retried = await newDelivery('order.paid', endpoint);
      await newDelivery('order.paid', endpoint);
      await database.db.query('update webhook_deliveries set attempts = 2 where id = $1', [retried.id]);
      expect(await rated()).toMatchObject({ success_rate: { value: '60 %', hint: expect.stringContaining('3 of the 5 that were tried') } });
    });

    test('the next attempt of an endpoint is not that of a delivery which waits for an earlier one', async () => {
      const endpoint = await newEndpoint({ events: ['*'] });
      for (const key of ['order-8', 'order-8'])
        await database.db.transaction((tx) => publish(tx, 'order.paid', {}, { owner: endpoint.owner_id, orderingKey: key }));
      const later = new Date(site.clock.now().getTime() + 3_600_000);
      const [first] = await database.db.query<{ id: string }>(
        'select id from webhook_deliveries where endpoint_id = $1 order by id limit 1',
        [endpoint.id],
      );
      await database.db.query('update webhook_deliveries set attempts = 1, next_attempt_at = $2 where id = $1', [first?.id, later]);
      site.clock.advance(60_000);
      const [facts] = (await read('endpoints', endpoint.id)).sections;
      expect(facts.values).toMatchObject({ waiting: 2, next_attempt_at: later.toISOString() });
    });

    test('the record shows health by hour, recent deliveries and the last errors', async () => {
      const endpoint = await newEndpoint({ events: ['*'] });
      for (const status of ['succeeded', 'failed', 'succeeded'] as const) await finish(await newDelivery('order.paid', endpoint), status);
      const [facts, health, errors, recent] = (await read('endpoints', endpoint.id)).sections;
      expect(facts.values.id).toBe(endpoint.id);
      expect(health.chart.buckets).toHaveLength(24);
      expect(health.chart.series.map((series: { values: number[] }) => series.values.at(-1))).toEqual([2, 1]);
      expect(recent.rows).toHaveLength(3);
      expect(recent.more).toEqual({ resource: 'deliveries', filters: { endpoint: endpoint.id } });
      expect(errors.rows).toHaveLength(1);
    });
  });

  describe('deliveries', () => {
    test('are filtered by status, type, endpoint, event, failure and time, newest first', async () => {
      const endpoint = await newEndpoint({ events: ['*'] });
      const [pending, good, bad] = [
        await newDelivery('order.paid', endpoint),
        await newDelivery('order.sent', endpoint),
        await newDelivery('order.lost', endpoint),
      ];
      await finish(good, 'succeeded');
      await finish(bad, 'failed');
      const of = (query: string) => ids('deliveries', `filter.endpoint=${endpoint.id}&${query}`);
      expect(new Set(await of(''))).toEqual(new Set([pending.id, good.id, bad.id]));
      expect(await of('filter.status=pending')).toEqual([pending.id]);
      expect(await of('filter.status=succeeded')).toEqual([good.id]);
      expect(await of('filter.status=failed')).toEqual([bad.id]);
      expect(await of('filter.reason=http_status')).toEqual([bad.id]);
      expect(await of('filter.reason=timeout')).toEqual([]);
      expect(await of('filter.event_type=order.sent')).toEqual([good.id]);
      expect(await of(`filter.event=${good.event_id}`)).toEqual([good.id]);
      expect(await of(`search=msg_${good.event_id}`)).toEqual([good.id]);
      expect(await of(`search=${good.id}`)).toEqual([good.id]);
      expect(await of('search=nonsense')).toEqual([]);
      expect(await of('filter.since=2025-01-01T00:00:00Z&filter.until=2025-02-01T00:00:00Z')).toEqual([]);
      expect(await of('filter.since=2025-01-01T00:00:00Z')).toHaveLength(3);
      expect(await site.get(staff, 'resources/deliveries?filter.endpoint=nonsense')).toMatchObject({ status: 422 });
    });

    test('one that waits behind another of its ordering key is held: it says for what, and what can be done', async () => {
      const endpoint = await newEndpoint({ events: ['*'] });
      const ordered = async () => {
        const event = await database.db.transaction((tx) =>
          publish(tx, 'order.paid', {}, { owner: endpoint.owner_id, orderingKey: 'order-7' }),
        );
        const [delivery] = await database.db.query<WebhookDelivery>('select * from webhook_deliveries where event_id = $1', [event.id]);
        if (delivery === undefined) throw new Error('the event has no delivery');
        return delivery;
      };
      const [first, second, third] = [await ordered(), await ordered(), await ordered()];
      const later = new Date(site.clock.now().getTime() + 3_600_000);
      await database.db.query('update webhook_deliveries set attempts = 3, next_attempt_at = $2, last_error = $3 where id = $1', [
        first.id,
        later,
        'The receiver returned 500.',
      ]);
      const record = await read('deliveries', third.id);
      expect(record).toMatchObject({
        state: { value: 'held', tone: 'warning' },
        notice: { text: expect.stringContaining('order-7'), link: { resource: 'deliveries', id: first.id, text: 'order.paid (earlier)' } },
        values: { next_attempt_at: null },
        actions: ['retry-earlier'],
      });
      const of = (state: string) => ids('deliveries', `filter.endpoint=${endpoint.id}&filter.status=${state}`);
      expect(await of('held')).toEqual([third.id, second.id]);
      expect(await of('retrying')).toEqual([first.id]);
      expect(await of('pending')).toEqual([]);
      expect(await of('waiting')).toEqual([third.id, second.id, first.id]);
      const preview = { ids: [second.id] };
      expect((await site.send(staff, 'POST', 'resources/deliveries/actions/retry/preview', preview)).body).toMatchObject({
        tone: 'bad',
        able: 0,
        failures: [{ id: second.id, message: expect.stringContaining('waits for an earlier one') }],
        note: expect.stringContaining('Send that one instead.'),
      });
      const refused = await site.act(staff, 'deliveries', 'retry', [second.id]);
      expect(refused.body).toMatchObject({
        message: '0 deliveries queued again; 1 failed.',
        failures: [{ id: second.id, message: expect.stringContaining('waits for an earlier one') }],
      });
      const sent = await site.act(staff, 'deliveries', 'retry-earlier', [second.id, third.id]);
      expect(sent.body).toEqual({ message: '1 earlier delivery queued again.' });
      const [now] = await database.db.query<WebhookDelivery>('select * from webhook_deliveries where id = $1', [first.id]);
      expect(now).toMatchObject({ attempts: 0, next_attempt_at: site.clock.now() });
      await finish(first, 'succeeded');
      expect(await read('deliveries', second.id)).toMatchObject({ state: { value: 'pending' }, actions: ['retry'] });
    });

    test('the page counts every attempt, and its timeline has those that were made and those that are planned', async () => {
      const delivery = await newDelivery();
      await finish(delivery, 'failed');
      await finish(delivery, 'failed');
      const next = new Date(site.clock.now().getTime() + 300_000);
      await database.db.query(`update webhook_deliveries set status = 'pending', attempts = 1, next_attempt_at = $2 where id = $1`, [
        delivery.id,
        next,
      ]);
      const record = await read('deliveries', delivery.id);
      expect(record.values).toMatchObject({
        attempts: 2,
        status: { value: 'retrying', hint: '1 attempt failed: The receiver returned 500.' },
      });
      const [, timeline, , , , , curl] = record.sections;
      expect(timeline.entries.slice(0, 4)).toMatchObject([
        { title: 'Event published' },
        { title: 'Attempt 1 failed with 500', tone: 'bad' },
        { title: 'Attempt 2 failed with 500' },
        { title: 'Attempt 3', planned: true, at: next.toISOString() },
      ]);
      // Seven retries by default: one attempt is used, so seven are left.
      expect(timeline.entries.filter((entry: { planned?: boolean }) => entry.planned === true)).toHaveLength(8);
      expect(curl.text).toContain(`curl -X POST 'https://host`);
      expect(curl.text).toContain(`--data-raw '{"type":"order.paid"`);
    });

    test('the record shows request, body and attempts with the response excerpt, and no secret, signature or claim', async () => {
      const delivery = await newDelivery();
      await finish(delivery, 'failed', '<script>alert(1)</script>');
      await database.db.query('update webhook_deliveries set claim_token = $2, claimed_until = $3 where id = $1', [
        delivery.id,
        'claim-token-of-a-worker',
        site.clock.now(),
      ]);
      const answer = await site.get(staff, `resources/deliveries/${delivery.id}`);
      const [, , response, request, body, attempts] = answer.body.sections;
      expect(response).toMatchObject({ title: 'Response to the last attempt', text: expect.stringContaining('<script>alert(1)</script>') });
      expect(request.text).toContain(`webhook-id: msg_${delivery.event_id}`);
      expect(request.text).toMatch(/^POST https:\/\/host\d+\.example\.com\/hook\?token=hidden$/m);
      expect(body.value).toMatchObject({ type: 'order.paid', data: { total: 12 } });
      expect(attempts.rows[0]).toMatchObject({ values: { status_code: 500, duration: 900, worker: 'worker-1' } });
      expect(attempts.rows[0].details.at(-1).text).toBe('<script>alert(1)</script>');
      for (const hidden of ['claim-token-of-a-worker', 'v1,', 'whsec_', 'fernet:']) expect(answer.text).not.toContain(hidden);
    });

    test('"Send again" queues a selection, also what has succeeded, records each, and reports what it could not', async () => {
      const [good, bad, held, off] = [await newDelivery(), await newDelivery(), await newDelivery(), await newDelivery()];
      await finish(good, 'succeeded');
      await finish(bad, 'failed');
      await database.db.query('update webhook_deliveries set claim_token = $2, claimed_until = $3 where id = $1', [
        held.id,
        'x',
        new Date(site.clock.now().getTime() + 60_000),
      ]);
      await site.act(staff, 'endpoints', 'disable', [off.endpoint_id]);
      const answer = await site.act(staff, 'deliveries', 'retry', [good.id, bad.id, held.id, off.id, 'nonsense']);
      expect(answer.body.message).toBe('2 deliveries queued again; 3 failed.');
      expect(answer.body.failures.map((failure: { id: string }) => failure.id)).toEqual([held.id, off.id, 'nonsense']);
      for (const { id } of [good, bad]) {
        const record = await read('deliveries', id);
        expect(record.state.value).toBe('pending');
        expect(history(record)).toEqual(['Webhook delivery sent again']);
      }
    });
  });

  test('types that were published are suggested beside the declared ones: in filters, in the form of a new endpoint and of an old one', async () => {
    const { endpoint_id } = await newDelivery('parcel.lost');
    const { resources } = (await site.get(staff, 'session')).body.site;
    const list = (name: string) => resources.find((each: { name: string }) => each.name === name);
    const named = (each: readonly { name: string; suggestions?: string[] }[], name: string) =>
      each.find((one) => one.name === name)?.suggestions;
    expect(named(list('events').filters, 'type')).toContain('parcel.lost');
    expect(named(list('deliveries').filters, 'event_type')).toContain('parcel.lost');
    expect(named(list('endpoints').creation.fields, 'events')).toEqual(expect.arrayContaining(['parcel.lost', 'parcel.*', '*']));
    const { form } = (await site.get(staff, `resources/endpoints/${endpoint_id}`)).body;
    expect(named(form.fields, 'events')).toEqual(expect.arrayContaining(['parcel.lost', 'parcel.*', '*']));
    expect(new Set(named(list('events').filters, 'type')).size).toBe(named(list('events').filters, 'type')?.length);
  });

  test('the chart of an endpoint shows the range that is asked for, and refuses an invalid one', async () => {
    const delivery = await newDelivery();
    await finish(delivery, 'failed');
    const failures = async (range: string): Promise<number[]> => {
      const { body } = await site.get(staff, `resources/endpoints/${delivery.endpoint_id}?range=${encodeURIComponent(range)}`);
      expect(body.range).toBe(range);
      const { chart } = body.sections.find(({ kind }: { kind: string }) => kind === 'chart');
      return chart.series.find(({ name }: { name: string }) => name === 'Failed').values;
    };
    const now = site.clock.now().getTime();
    const around = (from: number, to: number) => `${new Date(now + from).toISOString()}/${new Date(now + to).toISOString()}`;
    const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
    expect((await site.get(staff, `resources/endpoints/${delivery.endpoint_id}`)).body.range).toBe('24h');
    expect(sum(await failures('1h'))).toBe(1);
    expect(sum(await failures(around(-60_000, 60_000)))).toBe(1);
    expect(sum(await failures(around(-7_200_000, -3_600_000)))).toBe(0);
    const refused = await site.get(staff, `resources/endpoints/${delivery.endpoint_id}?range=yesterday`);
    expect(refused).toMatchObject({ status: 422, body: { errors: [{ location: ['query', 'range'] }] } });
  });

  describe('events', () => {
    const legacy = async () => {
      const delivery = await newDelivery('order.old');
      await database.db.query(`update webhook_events set audience = null, owner_id = '' where id = $1`, [delivery.event_id]);
      await database.db.query('update webhook_deliveries set next_attempt_at = null where id = $1', [delivery.id]);
      return delivery;
    };

    test('are found by id, webhook-id and type, and filtered by audience, owner and tenant', async () => {
      const delivery = await newDelivery('invoice.sent');
      const old = await legacy();
      for (const search of [delivery.event_id, `msg_${delivery.event_id}`])
        expect(await ids('events', `search=${search}`)).toEqual([delivery.event_id]);
      expect(await ids('events', 'search=invoice.s')).toContain(delivery.event_id);
      expect(await ids('events', 'filter.type=invoice.sent')).toContain(delivery.event_id);
      const endpoint = await findEndpoint(database.db, delivery.endpoint_id);
      expect(await ids('events', `filter.audience=owner&filter.owner=${endpoint?.owner_id}`)).toEqual([delivery.event_id]);
      expect(await ids('events', 'filter.audience=none')).toContain(old.event_id);
      expect(await ids('events', 'filter.tenant=nowhere')).toEqual([]);
    });

    test('the record shows the payload and the deliveries', async () => {
      const delivery = await newDelivery('invoice.sent');
      const record = await read('events', delivery.event_id);
      expect(record.values.delivered).toMatchObject({ value: '0 of 1', tone: 'info', hint: '1 waiting.' });
      expect(record.sections[1]).toMatchObject({ kind: 'json', value: { total: 12 } });
      expect(record.sections[2].rows.map((row: { id: string }) => row.id)).toEqual([delivery.id]);
      expect(record.actions).toEqual([]);
    });

    test('an audience is assigned to an event without one, once, and what waits becomes due', async () => {
      const delivery = await legacy();
      const owner = await site.newUser();
      expect((await read('events', delivery.event_id)).actions).toEqual(['assign-audience']);
      const answer = await site.act(staff, 'events', 'assign-audience', [delivery.event_id], { audience: 'owner', owner: owner.username });
      expect(answer.status).toBe(200);
      const [event] = await database.db.query('select audience, owner_id from webhook_events where id = $1', [delivery.event_id]);
      expect(event).toEqual({ audience: 'owner', owner_id: owner.id });
      expect(history(await read('events', delivery.event_id))).toEqual(['Webhook event audience assigned']);
      expect(await site.act(staff, 'events', 'assign-audience', [delivery.event_id], { audience: 'broadcast' })).toMatchObject({
        status: 409,
        body: { code: 'audience_assigned' },
      });
    });

    test.each([
      ['owner', { audience: 'owner' }, 'required'],
      ['owner', { audience: 'owner', owner: 'nobody-here' }, 'unknown_user'],
      ['tenant_key', { audience: 'tenant' }, 'required'],
      ['tenant_key', { audience: 'broadcast', tenant_key: 'acme' }, 'not_allowed'],
      ['audience', { audience: 'everyone' }, 'invalid_value'],
      ['audience', {}, 'required'],
    ])('a faulty %s in %j is a 422 at the field, and nothing is assigned', async (field, fields, code) => {
      const delivery = await legacy();
      const answer = await site.act(staff, 'events', 'assign-audience', [delivery.event_id], fields);
      expect(answer).toMatchObject({ status: 422, body: { errors: [{ location: ['body', 'fields', field], code }] } });
      expect((await read('events', delivery.event_id)).state.value).toBe('none');
    });

    test('events cannot be marked in bulk', async () => {
      const [one, two] = [await legacy(), await legacy()];
      const answer = await site.act(staff, 'events', 'assign-audience', [one.event_id, two.event_id], { audience: 'broadcast' });
      expect(answer).toMatchObject({ status: 422, body: { code: 'one_record_only' } });
    });
  });

  test('the overview counts events, deliveries, success, latency, what waits and who fails', async () => {
    site.clock.advance(40 * 24 * 3_600_000);
    staff = await site.browser();
    const endpoint = await newEndpoint({ events: ['*'] });
    for (const status of ['succeeded', 'succeeded', 'succeeded', 'failed'] as const)
      await finish(await newDelivery('order.paid', endpoint), status);
    site.clock.advance(60_000);
    for (const [range, length] of [
      ['1h', 12],
      ['24h', 24],
      ['7d', 28],
      ['30d', 30],
    ] as const) {
      const { body } = await site.get(staff, `overview?range=${range}`);
      const part = body.parts.find((each: { title: string }) => each.title === 'Webhooks');
      const tiles = Object.fromEntries(part.tiles.map((tile: { label: string; value: unknown }) => [tile.label, tile.value]));
      expect(tiles).toMatchObject({ Events: 4, Deliveries: 4, 'Success rate': 75, 'Failed permanently': 1, 'Latency p95': 900 });
      expect(tiles['Oldest waiting']).toBeGreaterThan(39 * 24 * 3_600_000);
      expect(tiles['Disabled endpoints']).toBeGreaterThan(0);
      const { hint } = part.tiles.find((tile: { label: string }) => tile.label === 'Latency p95');
      expect(hint).toBe('Median 30 ms, p99 900 ms.');
      expect(part.charts.map((chart: { buckets: string[] }) => chart.buckets.length)).toEqual([length, length, length, length]);
      expect(part.tables[0].rows.length).toBeGreaterThan(0);
    }
  });

  test('an outage is seen: the success rate is of attempts, what fails comes first, and each tile leads to the list it counts', async () => {
    site.clock.advance(40 * 24 * 3_600_000);
    staff = await site.browser();
    const endpoint = await newEndpoint({ events: ['*'] });
    for (let count = 0; count < 6; count += 1) {
      const delivery = await newDelivery('order.paid', endpoint);
      await finish(delivery, 'failed');
      await database.db.query(`update webhook_deliveries set status = 'pending', next_attempt_at = $2 where id = $1`, [
        delivery.id,
        new Date(site.clock.now().getTime() + 3_600_000),
      ]);
    }
    site.clock.advance(60_000);
    const { body } = await site.get(staff, 'overview?range=24h');
    // After the health of the site, the part that fails.
    expect(body.parts.map(({ title }: { title: string }) => title).slice(0, 2)).toEqual(['Health', 'Webhooks']);
    const { tiles, tables } = body.parts[1];
    const alerts = body.parts[0].tables[0].rows.map(({ title }: { title: string }) => title);
    expect(alerts).toEqual(expect.arrayContaining(['Webhooks: Success rate', 'Webhooks: Retrying']));
    const tile = (label: string) => tiles.find((each: { label: string }) => each.label === label);
    expect(tile('Success rate')).toMatchObject({ value: 0, tone: 'bad', hint: '0 of 6 attempts.' });
    expect(tile('Retrying').tone).toBe('warning');
    expect(tile('Oldest waiting').tone).toBe('bad');
    const tones = tiles.map((each: { tone: string }) => each.tone);
    expect(tones.slice(0, tones.lastIndexOf('bad') + 1).every((tone: string) => tone === 'bad')).toBe(true);
    expect(tables[0].urgent).toBe(true);
    for (const { label, value, link } of tiles) {
      if (link === undefined || ['Oldest waiting', 'Success rate', 'Latency p95'].includes(label)) continue;
      const query = new URLSearchParams(
        Object.entries(link.filters as Record<string, string>).map(([name, text]): [string, string] => [`filter.${name}`, text]),
      );
      expect([label, (await site.get(staff, `resources/${link.resource}?${query.toString()}`)).body.count]).toEqual([label, value]);
    }
  });

  test('no secret was in any answer but the two that show one', async () => {
    const rows = await database.db.query<{ secret: string }>('select secret from webhook_endpoints');
    const everything = site.answers.join('\n');
    for (const { secret } of rows) expect(everything).not.toContain(secret);
    const shown = site.answers.filter((answer) => answer.includes('whsec_'));
    expect(shown.every((answer) => answer.includes('"secret":{"label":"Signing secret"'))).toBe(true);
    expect(everything).not.toContain('fernet:');
  });
};

describeDatabases('webhooks in the admin site', define, { database: { clock } });
