import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { sendDocument, serveHttp } from '../../test/loopback-server.ts';
import { DocumentMismatch, RemoteSource, type RemoteSourceError, type StandardSchema } from './index.ts';

const token = 'canary-token-0123456789-0123456789-01';
const section = { application: 'billing', profile: 'production', token };

test('refresh fetches with the bearer token and swaps the document whole', async () => {
  const server = await serveHttp((_, response) =>
    sendDocument(response, { pool: { maxSize: 5 } }, { etag: '"a"', 'config-generation': '3' }),
  );
  const source = new RemoteSource({ url: server.url, ...section });
  expect(source.current).toBeUndefined();
  expect(source.generation).toBeUndefined();
  expect(await source.refresh()).toEqual({ changed: true });
  expect(source.current).toEqual({ pool: { maxSize: 5 } });
  expect(source.generation).toBe(3);
  expect(source.origin).toBe('server');
  expect(server.requests[0]).toMatchObject({ method: 'GET', url: '/billing/production' });
  expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${token}`);
});

test('the second refresh is conditional, and a 304 changes nothing but the generation', async () => {
  const server = await serveHttp((request, response) => {
    if (request.headers['if-none-match'] === '"a"') response.writeHead(304, { 'config-generation': '9' }).end();
    else sendDocument(response, { a: 1 }, { etag: '"a"', 'config-generation': '8' });
  });
  const source = new RemoteSource({ url: server.url, ...section });
  await source.refresh();
  const before = source.current;
  expect(await source.refresh()).toEqual({ changed: false });
  expect(source.current).toBe(before);
  expect(source.generation).toBe(9);
  expect(server.requests.map((request) => request.headers['if-none-match'])).toEqual([undefined, '"a"']);
});

test('an equal body without an entity tag is no change, and readers keep the same object', async () => {
  const server = await serveHttp((_, response) => sendDocument(response, { a: 1 }));
  const source = new RemoteSource({ url: server.url, ...section });
  expect(await source.refresh()).toEqual({ changed: true });
  const before = source.current;
  expect(await source.refresh()).toEqual({ changed: false });
  expect(source.current).toBe(before);
});

test('a lower generation of a restarted server is accepted', async () => {
  let generation = 7;
  const server = await serveHttp((_, response) => sendDocument(response, { generation }, { 'config-generation': String(generation) }));
  const source = new RemoteSource({ url: server.url, ...section });
  await source.refresh();
  generation = 1;
  expect(await source.refresh()).toEqual({ changed: true });
  expect(source.generation).toBe(1);
});

test('a prefix in the url is kept, with or without a trailing slash', async () => {
  const server = await serveHttp((_, response) => sendDocument(response, {}));
  await new RemoteSource({ url: `${server.url}/internal/config/`, ...section }).refresh();
  await new RemoteSource({ url: new URL(`${server.url}/internal/config`), ...section }).refresh();
  expect(server.requests.map((request) => request.url)).toEqual(Array(2).fill('/internal/config/billing/production'));
});

test('calls made together share one request; calls made while it is under way share the next', async () => {
  const answers: (() => void)[] = [];
  let version = 0;
  const server = await serveHttp((_, response) => {
    const seen = version;
    answers.push(() => sendDocument(response, { version: seen }));
  });
  const source = new RemoteSource({ url: server.url, ...section });
  const first = Array.from({ length: 10 }, () => source.refresh());
  await expect.poll(() => answers.length).toBe(1);
  version = 1;
  const late = Array.from({ length: 10 }, () => source.refresh());
  answers[0]?.();
  await Promise.all(first);
  expect(source.current).toEqual({ version: 0 });
  await expect.poll(() => answers.length).toBe(2);
  answers[1]?.();
  await Promise.all(late);
  expect(source.current).toEqual({ version: 1 });
  expect(server.requests).toHaveLength(2);
});

test('get walks own keys by dotted path, escaped dots and array segments', async () => {
  const document = { pool: { 'max.size': 5, hosts: ['a', 'b'] }, 'back\\slash': 1, empty: null };
  const server = await serveHttp((_, response) => sendDocument(response, document));
  const source = new RemoteSource({ url: server.url, ...section });
  await source.refresh();
  expect(source.get('pool.max\\.size')).toBe(5);
  expect(source.get(['pool', 'max.size'])).toBe(5);
  expect(source.get('pool.hosts.1')).toBe('b');
  expect(source.get('back\\\\slash')).toBe(1);
  expect(source.get('empty')).toBeNull();
  for (const absent of ['pool.size', 'pool.hosts.length', 'constructor', '__proto__', 'pool.hosts.map', 'empty.x', '', 'pool.']) {
    expect(source.get(absent)).toBeUndefined();
  }
  expect(() => source.get([])).toThrow(/key path/);
});

test('keys named after Object.prototype are data and change no prototype', async () => {
  const server = await serveHttp((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"__proto__":{"polluted":true},"constructor":{"name":"x"}}');
  });
  const source = new RemoteSource({ url: server.url, ...section });
  await source.refresh();
  expect(source.get('__proto__.polluted')).toBe(true);
  expect(source.get('constructor.name')).toBe('x');
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

test('the document is frozen all the way down', async () => {
  const server = await serveHttp((_, response) => sendDocument(response, { a: { b: [{ c: 1 }] } }));
  const source = new RemoteSource({ url: server.url, ...section });
  await source.refresh();
  const current = source.current as { a: { b: { c: number }[] } };
  expect(() => (current.a.b[0]!.c = 2)).toThrow(TypeError);
  expect(() => current.a.b.push({ c: 3 })).toThrow(TypeError);
});

test('asking for values before a document is loaded is misuse, not undefined', () => {
  const source = new RemoteSource({ url: 'http://127.0.0.1:1', ...section });
  expect(() => source.get('a')).toThrow(expect.objectContaining({ kind: 'misuse', code: 'not-loaded' }));
  expect(() => source.parse(schemaOf(() => ({ value: 1 })))).toThrow(expect.objectContaining({ code: 'not-loaded' }));
});

const schemaOf = <Output>(validate: StandardSchema<Output>['~standard']['validate']): StandardSchema<Output> => ({
  '~standard': { version: 1, vendor: 'test', validate },
});

test('parse returns the output of the schema; a mismatch names paths and never values', async () => {
  const server = await serveHttp((_, response) => sendDocument(response, { pool: { size: 'canary-value' } }));
  const source = new RemoteSource({ url: server.url, ...section });
  await source.refresh();
  const typed: { size: number } = source.parse(schemaOf(() => ({ value: { size: 4 } })));
  expect(typed).toEqual({ size: 4 });
  const issues = [{ message: 'expected number, got "canary-value"', path: ['pool', { key: 'size' }] }, { message: 'canary-value' }];
  const failing = schemaOf<never>(() => ({ issues }));
  const error = catchError(() => source.parse(failing)) as DocumentMismatch;
  expect(error).toBeInstanceOf(DocumentMismatch);
  expect(error.message).toContain('pool.size, (the whole document)');
  expect(error.issues()).toBe(issues);
  expect(printed(error)).not.toContain('canary-value');
  expect(() => source.parse(schemaOf<never>(() => Promise.reject(new Error('no'))))).toThrow(/synchronously/);
});

test('printing a source shows the section and generation, never a value or the token', async () => {
  const server = await serveHttp((_, response) => sendDocument(response, { secret: 'canary-value' }, { 'config-generation': '4' }));
  const source = new RemoteSource({ url: server.url, ...section });
  await source.refresh();
  const text = printed(source) + printed({ nested: [source] }) + String(Object.entries(source));
  expect(text).toContain('billing/production');
  expect(text).toContain('generation 4');
  expect(text).not.toContain('canary');
  expect(JSON.parse(JSON.stringify(source))).toEqual({ url: server.url, application: 'billing', profile: 'production', generation: 4 });
});

function printed(value: unknown): string {
  const options = { depth: Infinity, showHidden: true };
  const stack = value instanceof Error ? value.stack : '';
  return [
    inspect(value, { ...options, getters: true }),
    inspect(value, { ...options, customInspect: false }),
    JSON.stringify(value),
    String(value),
    stack,
  ].join('\n');
}

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

test.each([
  ['http://user:canary-pass@127.0.0.1:1', 'credentials'],
  ['https://canary-user@127.0.0.1', 'credentials'],
  ['//user:canary-pass@', 'absolute'],
  ['ftp://user:canary-pass@host', 'absolute'],
  ['http://user:canary-pass@host:99999999', 'absolute'],
  ['http://127.0.0.1:1/?token=canary', 'query'],
  ['', 'absolute'],
])('the url %s is refused without being echoed', (url, sentence) => {
  const error = catchError(() => new RemoteSource({ url, ...section })) as RemoteSourceError;
  expect(error).toMatchObject({ kind: 'misuse', code: 'option' });
  expect(error.message).toContain(sentence);
  expect(printed(error)).not.toContain('canary');
});

test('every fault of the options is named in one error', () => {
  const options = {
    url: 'nowhere',
    application: '../etc',
    profile: '',
    token: 'two words',
    timeout: 0,
    maxBytes: 1.5,
    cacheFile: '',
    cachefile: 'x',
  };
  const error = catchError(() => new RemoteSource(options)) as RemoteSourceError;
  for (const name of ['url', 'application', 'profile', 'token', 'timeout', 'maxBytes', 'cacheFile', '"cachefile"']) {
    expect(error.message).toContain(name);
  }
  expect(error.message).not.toContain('two words');
  expect(() => new RemoteSource(undefined as never)).toThrow(/options must be an object/);
});

test('tls options are checked at once: text and file of one thing, half a pair, a path as text, tls for a plain url', () => {
  const url = 'https://127.0.0.1:1';
  const pem = '-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n';
  const fault = (tls: object, at = url): string => (catchError(() => new RemoteSource({ url: at, ...section, tls })) as Error).message;
  expect(fault({ ca: pem, caFile: 'ca.pem' })).toContain('both given');
  expect(fault({ certFile: 'client.pem' })).toContain('together');
  expect(fault({ ca: '/etc/ca.pem' })).toContain('tls.caFile');
  expect(fault({ ca: pem })).toContain('cannot be used');
  expect(fault({ crl: pem })).toContain('unknown option tls.crl');
  expect(fault({ caFile: 'ca.pem' }, 'http://127.0.0.1:1')).toContain('https:');
});
