import { context, trace } from '@opentelemetry/api';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { OtelTracing } from '../../src/contrib/tracing/otel-tracing.ts';
import { deliverDue } from '../../src/contrib/webhooks/delivery/deliver.ts';
import { publish, publishMany } from '../../src/contrib/webhooks/publishing/publish.ts';
import { findEvent } from '../../src/contrib/webhooks/endpoints/store.ts';
import { inSpan, installTracing } from '../../src/observe/tracing.ts';
import { describeOutbox, type Outbox } from '../webhooks/outbox.ts';
import { recordSpans } from './spans.ts';

function define(outbox: Outbox): { readonly spans: ReturnType<typeof recordSpans>['spans']; readonly withTracing: (on: boolean) => void } {
  let recorded = recordSpans();
  let remove: (() => void) | undefined;
  const withTracing = (on: boolean): void => {
    remove?.();
    remove = on ? installTracing(new OtelTracing(trace.getTracer('test'))) : undefined;
  };
  beforeAll(() => expect(outbox.db).toBeDefined());
  beforeEach(() => {
    recorded = recordSpans();
    withTracing(true);
  });
  afterAll(() => {
    withTracing(false);
    trace.disable();
    context.disable();
  });
  return { spans: () => recorded.spans(), withTracing };
}

const inRequest = <R>(work: () => Promise<R>) => inSpan('request', { parent: null }, work);

describeOutbox('webhooks in a trace', (outbox) => {
  const { spans, withTracing } = define(outbox);

  test('every event remembers the trace it was published in; outside one it remembers none', async () => {
    const owner = outbox.owner();
    const traced = await inRequest(() => outbox.publish('order.paid', { owner }));
    const many = await inRequest(() =>
      outbox.db.transaction((tx) =>
        publishMany(
          tx,
          [1, 2].map((n) => ({ type: 'order.paid', data: { n }, owner })),
        ),
      ),
    );
    const publications = spans().filter(({ name }) => name.startsWith('publish'));
    expect(publications.map(({ name }) => name)).toEqual(['publish order.paid', 'publish']);
    const stored = await Promise.all([traced, ...many.map(({ id }) => id)].map((id) => findEvent(outbox.db, id)));
    const [one, batch] = publications.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`);
    expect(stored.map((event) => event?.traceparent)).toEqual([one, batch, batch]);
    expect((await findEvent(outbox.db, await outbox.publish('order.paid', { owner })))?.traceparent).toBeNull();
    withTracing(false);
    expect((await findEvent(outbox.db, await outbox.publish('order.paid', { owner })))?.traceparent).toBeNull();
  });

  test('a publication that is rolled back is a span and no event', async () => {
    const owner = outbox.owner();
    await inRequest(async () =>
      outbox.db
        .transaction(async (tx) => {
          await publish(tx, 'order.paid', { n: 1 }, { owner });
          throw new Error('no');
        })
        .catch(() => undefined),
    );
    expect(spans().map(({ name }) => name)).toContain('publish order.paid');
  });

  test('a delivery hours later belongs to the trace of its request, and receivers are not told', async () => {
    const owner = outbox.owner();
    await outbox.endpoint({ owner });
    await inRequest(() => outbox.publish('order.paid', { owner }));
    const publication = spans().find(({ name }) => name === 'publish order.paid');
    outbox.clock.advance(5 * 3_600_000);
    await deliverDue(outbox.db);
    const attempt = spans().find(({ name }) => name === 'deliver order.paid');
    const call = spans().find(({ name }) => name === 'POST');
    expect(attempt).toMatchObject({ traceId: publication?.traceId, parentId: publication?.spanId, links: [] });
    expect(call).toMatchObject({ traceId: publication?.traceId, parentId: attempt?.spanId });
    expect(call?.attributes).toMatchObject({ 'server.address': '127.0.0.1', 'http.response.status_code': 200 });
    expect(JSON.stringify(call?.attributes)).not.toContain(owner);
    expect(outbox.receiver.of(`/${owner}`)[0]?.headers).not.toHaveProperty('traceparent');
  });

  test('an endpoint that asks for the trace gets it, and no other', async () => {
    const [asking, other] = [outbox.owner(), outbox.owner()];
    await outbox.endpoint({ owner: asking, sendTraceparent: true });
    await outbox.endpoint({ owner: other });
    for (const owner of [asking, other]) await inRequest(() => outbox.publish('order.paid', { owner }));
    await deliverDue(outbox.db);
    const sent = outbox.receiver.of(`/${asking}`)[0]?.headers['traceparent'];
    expect(spans().map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`)).toContain(sent);
    expect(outbox.receiver.of(`/${other}`)[0]?.headers).not.toHaveProperty('traceparent');
  });

  test('a retry is linked to the publication, and its failure is named', async () => {
    const owner = outbox.owner();
    await outbox.endpoint({ owner });
    outbox.receiver.answer(`/${owner}`, 503);
    await inRequest(() => outbox.publish('order.paid', { owner }));
    const publication = spans().find(({ name }) => name === 'publish order.paid');
    await deliverDue(outbox.db);
    outbox.clock.advance(3_600_000);
    await deliverDue(outbox.db);
    const attempts = spans().filter(({ name }) => name === 'deliver order.paid');
    expect(attempts.map(({ traceId, links }) => [traceId, links])).toEqual([
      [publication?.traceId, []],
      [publication?.traceId, [publication?.spanId]],
    ]);
    expect(attempts.map(({ attributes }) => [attributes['kit.webhooks.attempt'], attributes['error.type']])).toEqual([
      [1, 'rejected'],
      [2, 'rejected'],
    ]);
  });
});

describeOutbox(
  'webhooks that tell receivers the trace',
  (outbox) => {
    const { spans, withTracing } = define(outbox);
    const received = async (owner: string) => {
      await deliverDue(outbox.db);
      return outbox.receiver.of(`/${owner}`).at(-1)?.headers['traceparent'];
    };

    test('the span of the call is sent; by a worker without tracing, the stored one; outside a trace, none', async () => {
      const owner = outbox.owner();
      await outbox.endpoint({ owner });
      await inRequest(() => outbox.publish('order.paid', { owner }));
      const sent = await received(owner);
      const call = spans().find(({ name }) => name === 'POST');
      expect(sent).toBe(`00-${call?.traceId}-${call?.spanId}-01`);
      const id = await inRequest(() => outbox.publish('order.paid', { owner }));
      withTracing(false);
      expect(await received(owner)).toBe((await findEvent(outbox.db, id))?.traceparent);
      await outbox.publish('order.paid', { owner });
      expect(await received(owner)).toBeUndefined();
    });
  },
  { sendTraceparent: true },
);
