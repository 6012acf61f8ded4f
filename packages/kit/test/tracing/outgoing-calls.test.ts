import { createServer, type AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { context, trace } from '@opentelemetry/api';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { clamav, s3Store } from '../../src/contrib/uploads/index.ts';
import { OtelTracing } from '../../src/contrib/tracing/otel-tracing.ts';
import { inSpan, installTracing } from '../../src/observe/tracing.ts';
import { fakeClock } from '../../src/testing/index.ts';
import { s3Double, type S3Double } from '../../src/testing/s3/s3-double.ts';
import { recordSpans } from './spans.ts';

const { spans, reset } = recordSpans();
const remove = installTracing(new OtelTracing(trace.getTracer('test')));
const inRequest = <R>(work: () => Promise<R>): Promise<R> => inSpan('request', { parent: null }, work);
const clock = fakeClock(new Date());
let double: S3Double;
beforeAll(async () => void (double = await s3Double({ clock })));
beforeEach(reset);
afterAll(async () => {
  remove();
  trace.disable();
  context.disable();
  await double.close();
});

const storeAt = (endpoint: string) => {
  const { region, bucket, key: credentials } = double;
  const store = s3Store({ endpoint, region, bucket, credentials, forcePathStyle: true });
  store.attach({ clock } as never);
  return store;
};

test('a call to the upload store is a span of the running trace that names the host and no key', async () => {
  const store = storeAt(double.endpoint);
  await store.head('ann/private.pdf');
  expect(spans()).toEqual([]);
  await inRequest(() => store.head('ann/private.pdf'));
  const [call, request] = spans();
  expect(call).toMatchObject({ name: 'HEAD', traceId: request?.traceId, parentId: request?.spanId });
  expect(call?.attributes).toEqual({
    'http.request.method': 'HEAD',
    'http.response.status_code': 404,
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(double.endpoint).port),
  });
});

test('a call that fails names the code of its error', async () => {
  const gone = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => gone.once('listening', resolve));
  const { port } = gone.address() as AddressInfo;
  await new Promise((resolve) => gone.close(resolve));
  const store = storeAt(`http://127.0.0.1:${port}`);
  await expect(inRequest(() => store.head('ann/private.pdf'))).rejects.toMatchObject({ code: 'store_unavailable' });
  const file = { read: async () => Readable.from([Buffer.from('text')]) } as never;
  await expect(inRequest(() => Promise.resolve(clamav({ address: { host: '127.0.0.1', port } })(file)))).rejects.toThrow('ECONNREFUSED');
  const [call, scan] = spans().filter(({ name }) => name !== 'request');
  expect(call?.attributes).toMatchObject({ 'error.type': 'store_unavailable', 'server.port': port });
  expect(scan).toMatchObject({ name: 'clamav scan', attributes: { 'server.address': '127.0.0.1', 'server.port': port } });
  expect(JSON.stringify(spans())).not.toContain('private.pdf');
});
