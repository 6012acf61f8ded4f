import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { describeHookApp } from '../../../../test/webhooks/hook-app.ts';
import { openApiDocument } from '../../../openapi/document.ts';
import { webhooks } from '../module.ts';
import { eventType, openApiWebhooks } from './event-type.ts';
import { publish, publishMany } from './publish.ts';

const schema = z.object({ order_id: z.string(), total: z.number().positive() });
const orderPaid = eventType('order.paid', schema, {
  description: 'A customer has paid an order.',
  example: { order_id: 'o-1', total: 12.5 },
});

const orderPaid2 = eventType('order.paid.v2', z.object({ order: z.object({ id: z.string() }) }));
const orderPaid10 = eventType('order.paid.v10', z.object({ order: z.string() }));
const orderVoid = eventType('order.void', schema, {
  description: 'Never sent.',
  deprecated: 'Use order.cancelled. Sent until 1 May 2027.',
});

describeHookApp('declared event types', { eventTypes: [orderPaid10, orderPaid, orderVoid, orderPaid2] }, (app) => {
  const publishing = (type: Parameters<typeof publish>[1], data: object) =>
    app.db.transaction((tx) => publish(tx, type, data, { owner: 'ada' }));

  test('publish takes the data typed, and stores what the schema returns', async () => {
    expectTypeOf(orderPaid.example).toEqualTypeOf<{ order_id: string; total: number } | null>();
    const { id } = await app.db.transaction((tx) =>
      // @ts-expect-error The type of `extra` is not declared; the schema drops it.
      publish(tx, orderPaid, { order_id: 'o-2', total: 3, extra: true }, { owner: 'ada' }),
    );
    const [row] = await app.db.query<{ type: string; data: string }>('select type, data from webhook_events where id = $1', [id]);
    expect(row).toEqual({ type: 'order.paid', data: '{"order_id":"o-2","total":3}' });
  });

  test('data that does not match is refused before anything is written, by the declared type and by its name', async () => {
    const before = await app.db.query('select id from webhook_events');
    const wrong = { order_id: 'o-3', total: -1 };
    for (const refused of [
      () => publishing(orderPaid, wrong),
      () => publishing('order.paid', wrong),
      () => app.db.transaction((tx) => publishMany(tx, [{ type: 'order.paid', data: wrong, owner: 'ada' }])),
    ])
      await expect(refused()).rejects.toMatchObject({ code: 'data_invalid', message: expect.stringContaining('data.total') });
    expect(await app.db.query('select id from webhook_events')).toEqual(before);
    expect(await publishing('order.unheard', { anything: 1 })).toMatchObject({ created: true });
  });

  test('GET /event-types lists them with schema and example', async () => {
    const user = await app.person();
    const { status, body } = await app.call(user, 'GET', '/hooks/event-types');
    expect([status, body.count, body.next]).toEqual([200, 4, null]);
    expect(body.items[1]).toMatchObject({
      name: 'order.paid',
      description: 'A customer has paid an order.',
      version: 1,
      deprecated: null,
      schema: { type: 'object', properties: { order_id: { type: 'string' } } },
      example: { order_id: 'o-1', total: 12.5 },
    });
  });

  test('versions of a type are types of their own that name each other, and a deprecated one says what to use', async () => {
    const { body } = await app.call(await app.person(), 'GET', '/hooks/event-types');
    const all = ['order.paid', 'order.paid.v2', 'order.paid.v10'];
    expect(body.items).toMatchObject([
      { name: 'order.paid.v10', version: 10, versions: all },
      { name: 'order.paid', version: 1, versions: all },
      { name: 'order.void', version: 1, versions: ['order.void'], deprecated: 'Use order.cancelled. Sent until 1 May 2027.' },
      { name: 'order.paid.v2', version: 2, versions: all },
    ]);
  });

  test('a controller with availableEvents lists those of its events alone', async () => {
    const { body } = await app.call(await app.person(), 'GET', '/catalog/event-types');
    expect(body.items).toMatchObject([{ name: 'order.paid', versions: ['order.paid'] }]);
  });

  test('an endpoint gets the version that it subscribed to, and a pattern gets both', async () => {
    const user = await app.person();
    const endpointOf = async (events: readonly string[]) => (await app.create(user, { events })).body.id as string;
    const [old, both] = [await endpointOf(['order.paid']), await endpointOf(['order.*'])];
    await app.db.transaction(async (tx) => {
      await publish(tx, orderPaid, { order_id: 'o-2', total: 3 }, { owner: user.id });
      await publish(tx, orderPaid2, { order: { id: 'o-2' } }, { owner: user.id });
    });
    const typesOf = async (id: string) =>
      (
        await app.db.query<{ event_type: string }>('select event_type from webhook_deliveries where endpoint_id = $1 order by id', [id])
      ).map((row) => row.event_type);
    expect([await typesOf(old), await typesOf(both)]).toEqual([['order.paid'], ['order.paid', 'order.paid.v2']]);
  });
});

test('the OpenAPI document has them as webhooks', () => {
  const document = openApiDocument([], { title: 'shop', version: '1', webhooks: openApiWebhooks([orderPaid, orderVoid]) });
  const { webhooks: described } = document as unknown as {
    webhooks: Record<string, { post: { deprecated?: boolean; description: string; requestBody: { content: Record<string, object> } } }>;
  };
  const content = described['order.paid']?.post.requestBody.content['application/json'];
  expect(described['order.paid']?.post.deprecated).toBeUndefined();
  expect(described['order.void']?.post).toMatchObject({
    deprecated: true,
    description: 'Never sent. Deprecated: Use order.cancelled. Sent until 1 May 2027.',
  });
  expect(content).toMatchObject({
    schema: { properties: { type: { const: 'order.paid' }, data: { type: 'object', required: ['order_id', 'total'] } } },
    example: { type: 'order.paid', data: { order_id: 'o-1', total: 12.5 } },
  });
});

test('a declaration that is wrong is refused where it is written', () => {
  expect(() => eventType('order..paid', schema)).toThrow('the name of an event');
  expect(() => eventType('order.paid', {} as never)).toThrow('is a schema');
  expect(() => eventType('order.paid', schema, { example: { order_id: 'x', total: 0 } })).toThrow('the example does not match');
  expect(() => eventType('order.paid', schema, { deprecated: true as never })).toThrow('is a sentence');
  expect(() => eventType('order.paid', schema, { exmaple: {} } as never)).toThrow('"exmaple"');
  expect(() => webhooks({ eventTypes: [orderPaid, orderPaid] })).toThrow('"order.paid" twice');
  expect(() => webhooks({ eventTypes: ['order.paid' as never] })).toThrow('eventType(name, schema)');
});
