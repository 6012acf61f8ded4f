import { chmod } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { followGenerations, RemoteSource } from '../src/client/index.ts';
import { parseKeyPath } from '../src/client/document.ts';
import { joinKeyPath } from '../src/document/key-path.ts';
import { createListener } from '../src/index.ts';
import { createCertificate } from './certificates.ts';
import { FILES, OTHER_TOKEN, SERVER_TOML, startServer, TOKEN, writeFiles } from './running-server.ts';
import { temporaryFolder } from './temporary-folder.ts';

const section = { application: 'billing', profile: 'prod', token: TOKEN };

test('the document, its tag and its generation travel from the server to the source, large ones compressed', async () => {
  const filler = 'x'.repeat(20_000);
  const running = await startServer({ files: { ...FILES, 'billing.toml': `[billing]\nfiller = "${filler}"\n` } });
  const source = new RemoteSource({ url: `http://127.0.0.1:${running.port}`, ...section, maxBytes: 30_000 });
  expect(await source.refresh()).toEqual({ changed: true });
  expect(source.get('filler')).toBe(filler);
  expect(source.generation).toBe(1);
  expect(await source.refresh()).toEqual({ changed: false });
  expect(running.audit.map(({ outcome }) => outcome)).toEqual(['served', 'not-modified']);
});

test('what the server does not grant, or does not have, is an auth error', async () => {
  const running = await startServer();
  const url = `http://127.0.0.1:${running.port}`;
  for (const [options, code] of [
    [{ ...section, token: OTHER_TOKEN }, 'not-found'],
    [{ ...section, profile: 'nowhere' }, 'not-found'],
    [{ ...section, token: `${TOKEN}x` }, 'unauthenticated'],
  ] as const) {
    expect((await new RemoteSource({ url, ...options }).refresh()).error).toMatchObject({ kind: 'auth', code });
    await expect(followGenerations({ url, ...options }).next()).rejects.toMatchObject({ kind: 'auth', code });
  }
});

test('a follower gets every install and stops when its token is removed', async () => {
  const running = await startServer();
  const url = `http://127.0.0.1:${running.port}`;
  const source = new RemoteSource({ url, ...section });
  const events = followGenerations({ url, ...section, retryMaxMs: 50 });
  expect((await events.next()).value).toEqual({ application: 'billing', profile: 'prod', generation: 1 });
  await running.write('billing.toml', '[billing]\nname = "second"\n');
  expect((await events.next()).value).toMatchObject({ generation: 2 });
  await source.refresh();
  expect(source.current).toEqual({ name: 'second' });
  await running.write('server.toml', SERVER_TOML.replace(TOKEN, `${TOKEN}-rotated`));
  await expect(events.next()).rejects.toMatchObject({ kind: 'auth', code: 'unauthenticated' });
  expect((await source.refresh()).error).toMatchObject({ kind: 'auth' });
  expect(source.current).toEqual({ name: 'second' });
});

test('a stream refused at the ceiling is tried again after what the server asked for', async () => {
  const running = await startServer({ toml: SERVER_TOML.replace('[server]', '[server]\nmax_stream_connections = 1') });
  const url = `http://127.0.0.1:${running.port}`;
  const first = followGenerations({ url, ...section });
  await first.next();
  const refused = Promise.withResolvers<{ retryAfterMs: number; waitMs: number }>();
  const stop = new AbortController();
  const second = followGenerations({
    url,
    ...section,
    signal: stop.signal,
    onRetry: (error, waitMs) => refused.resolve({ retryAfterMs: error.retryAfterMs ?? 0, waitMs }),
  });
  const ended = second.next();
  const { retryAfterMs, waitMs } = await refused.promise;
  expect(retryAfterMs).toBe(5_000);
  expect(waitMs).toBeGreaterThan(5_000);
  stop.abort();
  expect(await ended).toMatchObject({ done: true });
  await first.return();
});

test('a listener mounted under a prefix is reached through the url', async () => {
  const running = await startServer();
  const application = createServer(createListener(running.server, { prefix: '/internal/config' }));
  await new Promise<void>((resolve) => application.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void application.close());
  const url = `http://127.0.0.1:${(application.address() as AddressInfo).port}/internal/config`;
  expect(await new RemoteSource({ url, ...section }).refresh()).toEqual({ changed: true });
});

test('with client_ca the client needs its certificate and still its token', async () => {
  const folder = await temporaryFolder();
  const authority = createCertificate({ name: 'authority', authority: true });
  const leaf = createCertificate({ name: 'server', issuer: authority, hosts: ['127.0.0.1'] });
  const client = createCertificate({ name: 'client', issuer: authority });
  const toml = `${SERVER_TOML}\n[server.tls]\ncertificate = "server.pem"\nkey = "server.key"\nclient_ca = "ca.pem"\n`;
  await writeFiles(folder, { 'server.pem': leaf.cert, 'server.key': leaf.key, 'ca.pem': authority.cert });
  await chmod(join(folder, 'server.key'), 0o600);
  const running = await startServer({ folder, toml });
  const url = `https://127.0.0.1:${running.port}`;
  const tls = { ca: authority.cert, cert: client.cert, key: client.key };
  const source = new RemoteSource({ url, ...section, tls });
  expect(await source.refresh()).toEqual({ changed: true });
  const events = followGenerations({ url, ...section, tls });
  expect((await events.next()).value).toMatchObject({ generation: 1 });
  await events.return();
  expect((await new RemoteSource({ url, ...section, tls: { ca: authority.cert } }).refresh()).error).toMatchObject({ kind: 'remote' });
  expect((await new RemoteSource({ url, ...section, token: `${TOKEN}x`, tls }).refresh()).error).toMatchObject({ kind: 'auth' });
});

test('a key path the server prints is read back by the client, whatever the keys hold', () => {
  const keys = fc.array(fc.oneof(fc.string({ maxLength: 4 }), fc.constantFrom('.', '\\', '\\.', 'a.b', '..', '\\\\')), {
    minLength: 1,
    maxLength: 4,
  });
  fc.assert(
    fc.property(keys, (path) => {
      expect(parseKeyPath(joinKeyPath(path))).toEqual(path);
    }),
  );
});
