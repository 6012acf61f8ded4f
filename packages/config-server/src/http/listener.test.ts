import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import process from 'node:process';
import { expect, test, vi } from 'vitest';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { eventually, FILES, NO_GRANTS_TOKEN, OTHER_TOKEN, SERVER_TOML, startServer, TOKEN } from '../../test/running-server.ts';

const DOCUMENT = { name: 'invoices', password: 'correct horse', pool: { maxSize: 5 } };

test('the document is served as it is, with its tag and generation', async () => {
  const running = await startServer();
  const reply = await running.ask('/billing/prod');
  expect(reply.status).toBe(200);
  expect(reply.json()).toEqual(DOCUMENT);
  expect(reply.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'config-generation': '1',
    vary: 'Accept-Encoding',
  });
  expect(reply.headers.etag).toMatch(/^"[\w-]+"$/);
});

test.each([2_000, 10_000, 20_000, 200_000])(
  'a document with characters of every size and %i more bytes is served byte by byte',
  async (more) => {
    const document = { text: `aä€😀\u2028${'x'.repeat(more)}` };
    const files = { ...FILES, 'billing.toml': `[billing]\ntext = ${JSON.stringify(document.text)}\n` };
    const running = await startServer({ files });
    const reply = await running.ask('/billing/prod');
    expect(reply.text).toBe(JSON.stringify(document));
    expect(reply.headers['content-length']).toBe(String(Buffer.byteLength(reply.text)));
    const packed = await running.ask('/billing/prod', { headers: { 'accept-encoding': 'gzip' } });
    expect(gunzipSync(packed.body).toString()).toBe(reply.text);
  },
);

test('profiles of one application are served side by side, each from its own files', async () => {
  const stage = '[[server.sections]]\napplication = "billing"\nprofile = "stage"\nfiles = ["billing.toml", "stage.toml"]\n';
  const running = await startServer({ toml: SERVER_TOML + stage, files: { ...FILES, 'stage.toml': '[billing]\nname = "stage"\n' } });
  expect((await running.ask('/billing/prod')).json()).toEqual(DOCUMENT);
  expect((await running.ask('/billing/stage')).json()).toEqual({ ...DOCUMENT, name: 'stage' });
});

test('every response forbids caching and type sniffing, whatever its status', async () => {
  const running = await startServer({ toml: SERVER_TOML.replace('[server]', '[server]\nmax_stream_connections = 1') });
  const etag = (await running.ask('/billing/prod')).headers.etag!;
  const stream = running.ask('/billing/prod/stream');
  await eventually(() => running.server.streams.open === 1, 'an open stream');
  const replies = [
    await running.ask('/billing/prod'),
    ...(await Promise.all(['paths', 'explain/name', 'check', 'status'].map((rest) => running.ask(`/billing/prod/${rest}`)))),
    await running.ask('/metrics'),
    await running.ask('/healthz'),
    await running.ask('/readyz'),
    await running.ask('/billing/prod', { headers: { 'if-none-match': etag } }),
    await running.ask('/billing/prod', { token: null }),
    await running.ask('/orders/prod'),
    await running.ask('/billing/prod', { method: 'POST' }),
    await running.ask('/billing/prod', { headers: { 'x-flood': 'y'.repeat(17_000) } }),
    await running.ask(`/${'a'.repeat(9_000)}`),
    await running.ask('/billing/prod/stream'),
    await running.ask('/billing/prod', { method: 'HEAD' }),
  ];
  expect(replies.map((reply) => reply.status)).toEqual([200, 200, 200, 200, 200, 200, 200, 200, 304, 401, 404, 405, 431, 414, 503, 200]);
  for (const reply of replies) {
    const security = reply.rawHeaders.flatMap((name, index, all) =>
      /^(x-content-type-options|cache-control)$/i.test(name) && index % 2 === 0 ? [`${name}: ${all[index + 1]}`] : [],
    );
    expect([reply.status, security]).toEqual([reply.status, ['X-Content-Type-Options: nosniff', 'Cache-Control: no-store']]);
  }
  await running.server.stop();
  expect((await stream).headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
});

test('a document has the same tag in every process, and another document another one', async () => {
  const tagOf = async (text: string): Promise<string> => {
    const child = execFileSync(process.execPath, ['--conditions=source', '--input-type=module', '-e', TAG_PROGRAM, text]);
    return child.toString();
  };
  const tag = await tagOf('[billing]\na = 1\n');
  const running = await startServer({ files: { ...FILES, 'billing.toml': '[billing]\na = 1\n' } });
  expect((await running.ask('/billing/prod')).headers.etag).toBe(tag);
  expect(await tagOf('[billing]\na = 2\n')).not.toBe(tag);
});

/** Prints the tag of a document in a process of its own. */
const TAG_PROGRAM = `
  const { EncodedDocument } = await import(${JSON.stringify(new URL('../document/encode.ts', import.meta.url).href)});
  const { parseFile, toDocumentTable } = await import(${JSON.stringify(new URL('../document/formats.ts', import.meta.url).href)});
  const raw = parseFile('a.toml', Buffer.from(process.argv[1]), '').billing;
  process.stdout.write(new EncodedDocument(toDocumentTable(raw, '')).etag('identity'));
`;

test('status, paths, explanations and metrics come from memory: the files need not exist', async () => {
  const running = await startServer({ toml: SERVER_TOML.replace('watch_debounce_ms = 20', 'watch_debounce_ms = 0') });
  const paths = ['/billing/prod', '/billing/prod/paths', '/billing/prod/explain/pool.maxSize', '/billing/prod/status', '/metrics'];
  const before = await Promise.all(paths.map(async (path) => (await running.ask(path)).text));
  await rm(running.folder, { recursive: true });
  expect(await Promise.all(paths.map(async (path) => (await running.ask(path)).text))).toEqual(before);
  expect((await running.ask('/billing/prod/check')).json()).toMatchObject({ ok: false, failure: { kind: 'missing' } });
});

test('names of 64 characters and key paths of 512 bytes are the longest that are looked up', async () => {
  const name = 'a'.repeat(64);
  const toml = SERVER_TOML.replaceAll('"billing"', `"${name}"`);
  const running = await startServer({ toml, files: { ...FILES, 'billing.toml': `["${name}"]\nx = 1\n` } });
  expect((await running.ask(`/${name}/prod`)).json()).toEqual({ x: 1 });
  expect((await running.ask(`/${name}/prod/explain/${'k'.repeat(512)}`)).status).toBe(200);
  expect((await running.ask(`/${name}/prod/explain/${'%C3%A4'.repeat(256)}`)).status).toBe(200);
  expect((await running.ask(`/${name}/prod/explain/${'%C3%A4'.repeat(257)}`)).status).toBe(404);
});

test('a percent-encoded name is decoded before it is looked up', async () => {
  const running = await startServer();
  expect((await running.ask('/b%69lling/pr%6Fd')).json()).toEqual(DOCUMENT);
});

test('a query string does not change what is served', async () => {
  const running = await startServer();
  expect((await running.ask('/billing/prod?label=x')).json()).toEqual(DOCUMENT);
});

test('a known tag is answered with 304 and no body, a weak or listed one too', async () => {
  const running = await startServer();
  const etag = (await running.ask('/billing/prod')).headers.etag!;
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const reply = await running.ask('/billing/prod', { headers: { 'if-none-match': known } });
    expect([reply.status, reply.text]).toEqual([304, '']);
    expect(reply.headers).toMatchObject({ etag, 'config-generation': '1', vary: 'Accept-Encoding', 'cache-control': 'no-store' });
  }
  expect((await running.ask('/billing/prod', { headers: { 'if-none-match': '"other"' } })).status).toBe(200);
  expect(running.audit.filter((entry) => entry.outcome === 'not-modified')).toHaveLength(4);
});

test('a document of 1 KiB is compressed when the caller asks, with its own tag, which matches for every encoding', async () => {
  const running = await startServer({
    files: { 'billing.toml': `[billing]\ntext = "${'x'.repeat(1100)}"\n`, 'orders.yaml': 'orders: {}' },
  });
  const plain = await running.ask('/billing/prod');
  const gzip = await running.ask('/billing/prod', { headers: { 'accept-encoding': 'gzip' } });
  const brotli = await running.ask('/billing/prod', { headers: { 'accept-encoding': 'gzip, br' } });
  expect([plain, gzip, brotli].map((reply) => reply.headers['content-encoding'])).toEqual([undefined, 'gzip', 'br']);
  expect(gunzipSync(gzip.body)).toEqual(plain.body);
  expect(brotliDecompressSync(brotli.body)).toEqual(plain.body);
  const tags = [plain, gzip, brotli].map((reply) => reply.headers.etag!);
  expect(new Set(tags).size).toBe(3);
  for (const tag of tags) expect((await running.ask('/billing/prod', { headers: { 'if-none-match': tag } })).status).toBe(304);
  const refused = await running.ask('/billing/prod', { headers: { 'accept-encoding': 'gzip;q=0, br;q=0' } });
  expect(refused.headers['content-encoding']).toBeUndefined();
});

test('an Accept-Encoding header costs no more than its length, whatever it holds', async () => {
  const running = await startServer({
    files: { 'billing.toml': `[billing]\ntext = "${'x'.repeat(1100)}"\n`, 'orders.yaml': 'orders: {}' },
  });
  const headers = { 'accept-encoding': `identity${' '.repeat(14_000)}x, gzip ; q=0.5 , br;q=0` };
  const times: number[] = [];
  for (let round = 0; round < 10; round++) {
    const started = performance.now();
    const reply = await running.ask('/billing/prod', { headers });
    times.push(performance.now() - started);
    expect(reply.headers['content-encoding']).toBe('gzip');
  }
  // The best of ten, so that a busy machine is not taken for a slow expression, which takes half a second every time.
  expect(Math.min(...times)).toBeLessThan(150);
});

test('a document is compressed from 1,024 bytes on', async () => {
  const ofBytes = (bytes: number): string => `[billing]\na = "${'x'.repeat(bytes - '{"a":""}'.length)}"\n`;
  for (const [bytes, encoding] of [[1023, undefined] as const, [1024, 'gzip'] as const]) {
    const running = await startServer({ files: { ...FILES, 'billing.toml': ofBytes(bytes) } });
    expect((await running.ask('/billing/prod')).body).toHaveLength(bytes);
    expect((await running.ask('/billing/prod', { headers: { 'accept-encoding': 'gzip' } })).headers['content-encoding']).toBe(encoding);
  }
});

test('a document under 1 KiB is never compressed', async () => {
  const running = await startServer();
  const reply = await running.ask('/billing/prod', { headers: { 'accept-encoding': 'gzip, br' } });
  expect(reply.headers['content-encoding']).toBeUndefined();
});

test('paths lists leaves in document order and no values', async () => {
  const running = await startServer({
    files: { 'billing.toml': '[billing]\nz = 1\n"a.b" = [1, 2]\n[billing.empty]\n[billing.pool]\nmax = 5\n', 'orders.yaml': 'orders: {}' },
  });
  const reply = await running.ask('/billing/prod/paths');
  expect(reply.json()).toEqual({
    application: 'billing',
    profile: 'prod',
    generation: 1,
    paths: ['z', String.raw`a\.b`, 'empty', 'pool.max'],
  });
});

test('an explanation names layers and origins and masks every value', async () => {
  const toml = SERVER_TOML.replace('files = ["billing.toml"]', 'files = ["billing.toml", "more.json"]');
  const running = await startServer({
    toml,
    files: {
      'billing.toml': '[billing]\nname = "a"\n[billing.pool]\nmaxSize = 5\n',
      'more.json': '{"billing":{"name":"b"}}',
      'orders.yaml': 'orders: {}',
    },
    environment: { BILLING__POOL__MAXSIZE: '9' },
  });
  expect((await running.ask('/billing/prod/explain/pool.maxSize')).json()).toEqual({
    application: 'billing',
    profile: 'prod',
    path: 'pool.maxSize',
    winner: 'environment',
    rows: [
      { layer: 'file', origin: 'file billing.toml', value: '***' },
      { layer: 'environment', origin: 'env BILLING__POOL__MAXSIZE', value: '***' },
    ],
  });
  expect((await running.ask('/billing/prod/explain/name')).json()).toMatchObject({
    winner: 'file',
    rows: [
      { layer: 'file', origin: 'file more.json', value: '***', shadows: ['file billing.toml'] },
      { layer: 'environment', origin: null, value: null },
    ],
  });
  const unknown = await running.ask('/billing/prod/explain/no.such.key');
  expect(unknown.status).toBe(200);
  expect(unknown.json()).toMatchObject({
    winner: null,
    rows: [
      { layer: 'file', origin: null, value: null },
      { layer: 'environment', origin: null, value: null },
    ],
  });
});

test('check reads the sources again and reports what the next load would do', async () => {
  const running = await startServer({ toml: SERVER_TOML.replace('watch_debounce_ms = 20', 'watch_debounce_ms = 0') });
  expect((await running.ask('/orders/prod/check', { token: OTHER_TOKEN })).json()).toEqual({
    application: 'orders',
    profile: 'prod',
    ok: true,
    resolved: [{ path: 'region', origin: 'file orders.yaml' }],
    unknown: [],
    failure: null,
  });
  await running.write('orders.yaml', 'orders:\n  region: "secret-value\n');
  const reply = await running.ask('/orders/prod/check', { token: OTHER_TOKEN });
  expect(reply.status).toBe(200);
  expect(reply.json()).toMatchObject({ ok: false, resolved: [], unknown: [], failure: { kind: 'parse', origin: 'file orders.yaml' } });
  expect(reply.json().failure.message).toMatch(/not valid YAML \(line \d+, column \d+\)/);
  expect(reply.text).not.toContain('secret-value');
  expect((await running.ask('/orders/prod', { token: OTHER_TOKEN })).json()).toEqual({ region: 'eu' });
});

test('check installs nothing: what it found is served only when a reload finds it too', async () => {
  const running = await startServer({ toml: SERVER_TOML.replace('watch_debounce_ms = 20', 'watch_debounce_ms = 60000') });
  const before = [(await running.ask('/billing/prod')).text, (await running.ask('/billing/prod/paths')).text, await running.status()];
  await running.write('billing.toml', '[billing]\nnext = 1\n');
  expect((await running.ask('/billing/prod/check')).json().resolved).toEqual([{ path: 'next', origin: 'file billing.toml' }]);
  await running.write('billing.toml', '[billing');
  expect((await running.ask('/billing/prod/check')).json().ok).toBe(false);
  expect([(await running.ask('/billing/prod')).text, (await running.ask('/billing/prod/paths')).text, await running.status()]).toEqual(
    before,
  );
  expect((await running.ask('/readyz', { token: null })).status).toBe(200);
});

test('at most eight re-reads run at once in the process, the rest wait', async () => {
  const running = await startServer();
  let started = 0;
  const release = Promise.withResolvers<void>();
  const rereads = Array.from({ length: 10 }, () =>
    running.server.dryRun(async () => {
      started++;
      await release.promise;
    }),
  );
  expect(started).toBe(8);
  const waiting = vi.spyOn(running.server, 'dryRun');
  const check = running.ask('/billing/prod/check');
  await eventually(() => waiting.mock.calls.length === 1, 'the check to wait in the same line');
  release.resolve();
  await Promise.all(rereads);
  expect(started).toBe(10);
  expect((await check).status).toBe(200);
});

test('a bind by name is resolved to an address', async () => {
  const running = await startServer({ toml: SERVER_TOML.replace('127.0.0.1:0', 'localhost:0') });
  expect(['127.0.0.1', '::1']).toContain(running.server.address!.address);
});

test('status of a fresh section', async () => {
  const running = await startServer();
  expect(await running.status()).toEqual({
    application: 'billing',
    profile: 'prod',
    generation: 1,
    healthy: true,
    consecutive_failures: 0,
    stale_for_seconds: 0,
    installed_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) as string,
    last_reason: 'initial',
    last_failure: null,
  });
});

test('metrics: six families, one series for each readable section, none for a caller with no grants', async () => {
  const running = await startServer();
  const reply = await running.ask('/metrics');
  expect(reply.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  const series = reply.text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  expect(series.map((line) => line.split('{')[0])).toEqual([
    'config_generation',
    'config_installs_total',
    'config_reload_failures_total',
    'config_consecutive_failures',
    'config_last_install_timestamp_seconds',
    'config_healthy',
  ]);
  for (const line of series) expect(line).toMatch(/^config_\w+\{application="billing",profile="prod"\} [\d.]+$/);
  const empty = await running.ask('/metrics', { token: NO_GRANTS_TOKEN });
  expect(empty.status).toBe(200);
  expect(empty.text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))).toEqual([]);
  expect(empty.text).toBe(reply.text.replaceAll(/^config_.*\n/gm, ''));
  expect(empty.text.match(/^# TYPE config_\w+ (gauge|counter)$/gm)).toHaveLength(6);
  expect((await running.ask('/metrics', { token: null })).status).toBe(401);
});

test('probes need no credential and name no section', async () => {
  const running = await startServer();
  const health = await running.ask('/healthz', { token: null });
  const ready = await running.ask('/readyz', { token: null });
  expect([health.status, health.json()]).toEqual([200, { status: 'ok' }]);
  expect([ready.status, ready.json()]).toEqual([200, { ready: true }]);
});

test('HEAD answers as GET does, without the body', async () => {
  const running = await startServer();
  for (const path of [
    '/billing/prod',
    '/billing/prod/paths',
    '/billing/prod/explain/name',
    '/billing/prod/check',
    '/billing/prod/status',
    '/metrics',
    '/healthz',
    '/readyz',
  ]) {
    const get = await running.ask(path);
    const head = await running.ask(path, { method: 'HEAD' });
    expect([path, head.status, head.text, head.headers['content-length']]).toEqual([path, 200, '', get.headers['content-length']]);
  }
  const stream = await running.ask('/billing/prod/stream', { method: 'HEAD' });
  expect([stream.status, stream.text, stream.headers['content-type']]).toEqual([200, '', 'text/event-stream']);
  expect(running.server.streams.open).toBe(0);
});

test('a body on a GET is ignored', async () => {
  const running = await startServer();
  const reply = await running.ask('/billing/prod', { body: 'x'.repeat(200_000), headers: { 'content-length': '200000' } });
  expect(reply.json()).toEqual(DOCUMENT);
});

test('an Expect header is answered by the route, not by the HTTP library', async () => {
  const running = await startServer();
  const reply = await running.ask('/billing/prod', { headers: { expect: 'something' } });
  expect([reply.status, reply.headers['cache-control']]).toEqual([200, 'no-store']);
  expect(running.audit).toHaveLength(1);
});

test('the scheme of the credential may be written in any case', async () => {
  const running = await startServer();
  const reply = await running.ask('/billing/prod', { token: null, headers: { authorization: `bEARER ${TOKEN}` } });
  expect(reply.status).toBe(200);
});
