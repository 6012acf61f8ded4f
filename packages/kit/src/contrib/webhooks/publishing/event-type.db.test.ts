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

describeHookApp('declared event types', { eventTypes: [orderPaid] }, (app) => {
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
    expect([status, body.count, body.next]).toEqual([200, 1, null]);
    expect(body.items).toMatchObject([
      {
        name: 'order.paid',
        description: 'A customer has paid an order.',
        schema: { type: 'object', properties: { order_id: { type: 'string' } } },
        example: { order_id: 'o-1', total: 12.5 },
      },
    ]);
  });
});

test('the OpenAPI document has them as webhooks', () => {
  const document = openApiDocument([], { title: 'shop', version: '1', webhooks: openApiWebhooks([orderPaid]) });
  const content = (document as unknown as { webhooks: Record<string, { post: { requestBody: { content: Record<string, object> } } }> })
    .webhooks['order.paid']?.post.requestBody.content['application/json'];
  expect(content).toMatchObject({
    schema: { properties: { type: { const: 'order.paid' }, data: { type: 'object', required: ['order_id', 'total'] } } },
    example: { type: 'order.paid', data: { order_id: 'o-1', total: 12.5 } },
  });
});

test('a declaration that is wrong is refused where it is written', () => {
  expect(() => eventType('order..paid', schema)).toThrow('the name of an event');
  expect(() => eventType('order.paid', {} as never)).toThrow('is a schema');
  expect(() => eventType('order.paid', schema, { example: { order_id: 'x', total: 0 } })).toThrow('the example does not match');
  expect(() => eventType('order.paid', schema, { exmaple: {} } as never)).toThrow('"exmaple"');
  expect(() => webhooks({ eventTypes: [orderPaid, orderPaid] })).toThrow('"order.paid" twice');
  expect(() => webhooks({ eventTypes: ['order.paid' as never] })).toThrow('eventType(name, schema)');
});
