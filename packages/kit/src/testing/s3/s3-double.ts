import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock, type Clock } from '../../db/clock.ts';
import { nodeHttp } from '../../http/exchange/node-http.ts';
import { objectOf, type OptionRules, readOptions } from '../../options/read-options.ts';
import { clock as aClock, filledText, required } from '../../options/value-rule.ts';
import { Bucket, errorReply, refuseBody, type Arrived, type Reply } from './s3-bucket.ts';
import { S3Objects } from './s3-objects.ts';
import { parameters, refuseSignature, type KnownKey } from './s3-signature.ts';

/** What the double shall do wrong to requests that match. Removed once it was used, unless `times` says otherwise. */
export interface S3Fault {
  readonly when: (request: { readonly method: string; readonly key: string; readonly query: ReadonlyMap<string, string> }) => boolean;
  /** `error`: 500 before anything is done. `lost`: done, but answered with 500. `reset`: the connection ends. `cut`: it ends in the middle of the response. `etag`: another etag is answered. A number waits so many milliseconds. */
  readonly fault: 'error' | 'lost' | 'reset' | 'cut' | 'etag' | number;
  readonly times?: number;
}

export interface S3DoubleOptions {
  /** The name of its bucket. Default: `kit-test`. */
  readonly bucket?: string;
  /** The region of signatures. Default: `us-east-1`. */
  readonly region?: string;
  /** The access key that requests are signed with. */
  readonly key?: KnownKey;
  /** The time. Default: the system clock. */
  readonly clock?: Clock;
}

/** A strict S3 in memory on 127.0.0.1: it verifies what real stores verify, and refuses what they refuse. */
export interface S3Double extends AsyncDisposable {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly key: KnownKey;
  readonly stored: S3Objects;
  /** Method, key and query of every request that arrived. */
  readonly requests: { readonly method: string; readonly key: string; readonly query: string }[];
  fail(fault: S3Fault): void;
  close(): Promise<void>;
}

const rules: OptionRules<S3DoubleOptions> = {
  bucket: filledText,
  region: filledText,
  key: objectOf<KnownKey>({ accessKeyId: required(filledText), secretAccessKey: required(filledText), sessionToken: filledText }),
  clock: aClock,
};

/** A server that answers like S3, for tests of uploads: presigned requests, parts, and faults on demand. */
export async function s3Double(options: S3DoubleOptions = {}): Promise<S3Double> {
  const { bucket = 'kit-test', region = 'us-east-1', clock = systemClock } = readOptions('s3Double()', options, rules);
  const key: KnownKey = options.key ?? { accessKeyId: 'TESTKEY', secretAccessKey: 'test-secret-of-the-double' };
  const store = new S3Objects();
  const requests: S3Double['requests'][number][] = [];
  const faults: { fault: S3Fault; left: number }[] = [];
  const bucketOf = new Bucket(store, bucket, clock);

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const target = request.url ?? '/';
    const path = decodeURIComponent(target.split('?')[0] ?? '/');
    const headers = request.headers as Readonly<Record<string, string | undefined>>;
    const query = new Map(parameters(target));
    const method = request.method ?? 'GET';
    const inBucket = path === `/${bucket}` || path.startsWith(`/${bucket}/`);
    const name = inBucket ? path.slice(bucket.length + 2) : '';
    requests.push({ method, key: name, query: target.split('?')[1] ?? '' });
    const chosen = faults.find(({ fault }) => fault.when({ method, key: name, query }));
    if (chosen !== undefined && (chosen.left -= 1) === 0) faults.splice(faults.indexOf(chosen), 1);
    const fault = chosen?.fault.fault;
    if (fault === 'reset') return void request.socket.destroy();
    const body = await read(request);
    if (typeof fault === 'number') await new Promise((resolve) => setTimeout(resolve, fault));
    if (fault === 'error')
      return send(
        response,
        method,
        errorReply({ status: 500, code: 'InternalError', message: 'We encountered an internal error. Please try again.' }),
      );
    // The question a browser asks before it sends to another origin.
    if (method === 'OPTIONS')
      return send(response, method, {
        status: 204,
        headers: { 'access-control-allow-methods': 'GET, PUT, POST', 'access-control-allow-headers': '*' },
      });
    const isForm = method === 'POST' && (headers['content-type'] ?? '').startsWith('multipart/form-data');
    const arrived: Arrived = { method, key: name, query, headers, body };
    const refused = !inBucket
      ? { status: 404, code: 'NoSuchBucket', message: 'The specified bucket does not exist' }
      : isForm
        ? null
        : (refuseSignature({ method, target, headers }, key, region, clock.now()) ?? refuseBody(arrived));
    const reply = refused !== null ? errorReply(refused) : isForm ? bucketOf.form(arrived, key) : bucketOf.answer(arrived);
    if (fault === 'lost')
      return send(response, method, errorReply({ status: 500, code: 'InternalError', message: 'Done, but you do not know it.' }));
    if (fault === 'cut') return cutOff(response, method, reply);
    return send(response, method, fault === 'etag' ? { ...reply, headers: { ...reply.headers, etag: '"0"' } } : reply);
  };
  const server = nodeHttp.createServer((request, response) => {
    handle(request, response).catch((failure: unknown) => {
      response.destroy(failure as Error);
    });
  });
  const endpoint = await listen(server);
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return {
    endpoint,
    bucket,
    region,
    key,
    stored: store,
    requests,
    fail: (fault) => void faults.push({ fault, left: fault.times ?? 1 }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function send(response: ServerResponse, method: string, { status, headers = {}, body = '' }: Reply): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    // A browser sends to another origin here, as it does with a real bucket that allows it.
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'etag',
    ...(typeof body === 'string' && body !== '' ? { 'content-type': 'application/xml' } : {}),
    ...headers,
    ...(status === 204 || status === 304 ? {} : { 'content-length': String(bytes.length) }),
  });
  response.end(method === 'HEAD' ? undefined : bytes);
}

/** The headers, and less of the body than they say; nothing where there is no body. */
function cutOff(response: ServerResponse, method: string, { status, headers = {}, body = '' }: Reply): void {
  const bytes = Buffer.from(body);
  if (method === 'HEAD' || bytes.length === 0) return void response.destroy();
  response.writeHead(status, { ...headers, 'content-length': String(bytes.length + 1) });
  response.write(bytes, () => response.destroy());
}

async function read(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
