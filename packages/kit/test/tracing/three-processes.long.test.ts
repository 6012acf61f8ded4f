import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test, vi } from 'vitest';
import { describeDatabases } from '../../src/testing/databases.ts';
import type { SeenSpan } from './spans.ts';

const children: ChildProcess[] = [];
afterEach(async () => {
  await Promise.all(
    children.splice(0).map(async (child) => {
      const gone = once(child, 'exit');
      child.disconnect();
      await gone;
    }),
  );
});

async function start(name: string, ...args: string[]): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const script = fileURLToPath(new URL(`./${name}-process.ts`, import.meta.url));
  const child = fork(script, args, { execArgv: ['--conditions=source'], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const [{ ready }] = (await once(child, 'message')) as [{ ready: { port: number } }];
  children.push(child);
  return { child, port: ready.port };
}

async function spansOf(child: ChildProcess): Promise<SeenSpan[]> {
  const answer = once(child, 'message');
  child.send('spans');
  return ((await answer) as [{ spans: SeenSpan[] }])[0].spans;
}

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';

describeDatabases('tracing', (database) => {
  test('one trace from the HTTP request to the webhook receiver, across three processes', async () => {
    const receiver = await start('receiver');
    const api = await start('api', database.url, `http://127.0.0.1:${receiver.port}/hooks`);
    const worker = await start('worker', database.url);

    const answer = await fetch(`http://127.0.0.1:${api.port}/v1/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent: `00-${TRACE}-${CALLER}-01` },
      body: '{"total":7}',
    });
    expect(answer.status).toBe(200);
    const { id } = (await answer.json()) as { id: string };
    await vi.waitFor(async () => expect((await spansOf(receiver.child)).filter(({ name }) => name === 'POST /hooks')).toHaveLength(2), {
      timeout: 45_000,
      interval: 100,
    });
    await vi.waitFor(async () => expect((await spansOf(worker.child)).filter(({ name }) => name.startsWith('deliver'))).toHaveLength(2), {
      timeout: 45_000,
      interval: 100,
    });
    const [apiSpans, workerSpans, receiverSpans] = [await spansOf(api.child), await spansOf(worker.child), await spansOf(receiver.child)];

    const request = apiSpans.find(({ name }) => name === 'POST /v1/orders');
    const handler = apiSpans.find(({ name }) => name === 'handler OrderController.place');
    const publication = apiSpans.find(({ name }) => name === 'publish order.placed');
    expect(request).toMatchObject({ traceId: TRACE, parentId: CALLER });
    expect(handler).toMatchObject({ traceId: TRACE, parentId: request?.spanId });
    expect(publication).toMatchObject({ traceId: TRACE, parentId: handler?.spanId, attributes: { 'messaging.message.id': id } });

    const attempts = workerSpans.filter(({ name }) => name === 'deliver order.placed');
    const calls = workerSpans.filter(({ name }) => name === 'POST');
    expect(attempts.map(({ traceId, parentId }) => [traceId, parentId])).toEqual([
      [TRACE, publication?.spanId],
      [TRACE, publication?.spanId],
    ]);
    // A retry is linked to what it repeats.
    expect(attempts.map(({ links }) => links)).toEqual([[], [publication?.spanId]]);
    expect(attempts.map(({ attributes }) => attributes['kit.webhooks.attempt'])).toEqual([1, 2]);
    expect(calls.map(({ parentId, attributes }) => [parentId, attributes['http.response.status_code']])).toEqual([
      [attempts[0]?.spanId, 503],
      [attempts[1]?.spanId, 204],
    ]);

    const received = receiverSpans.filter(({ name }) => name === 'POST /hooks');
    expect(received.map(({ traceId, parentId }) => [traceId, parentId])).toEqual(calls.map(({ spanId }) => [TRACE, spanId]));
  });
});
