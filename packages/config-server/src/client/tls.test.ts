import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { createCertificate } from '../../test/certificates.ts';
import { sendDocument } from '../../test/loopback-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { followGenerations, RemoteSource, type TlsOptions } from './index.ts';

const section = { application: 'billing', profile: 'production', token: 'canary-token-0123456789-0123456789-01' };
const authority = createCertificate({ name: 'test authority', authority: true });
const foreign = createCertificate({ name: 'foreign authority', authority: true });
const server = createCertificate({ name: 'server', issuer: authority, hosts: ['127.0.0.1'] });
const client = createCertificate({ name: 'client', issuer: authority });

let answered = 0;

async function serveTls(options: ServerOptions = {}): Promise<string> {
  const listener = createServer({ cert: server.cert, key: server.key, ...options }, (request, response) => {
    answered += 1;
    if (request.url?.endsWith('/stream') !== true) return sendDocument(response, { a: 1 });
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('event: generation\ndata: {"application":"billing","profile":"production","generation":3}\n\n');
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    listener.close();
    listener.closeAllConnections();
  });
  return `https://127.0.0.1:${(listener.address() as AddressInfo).port}`;
}

const mutual = { requestCert: true, rejectUnauthorized: true, ca: authority.cert };
const refresh = (url: string, tls?: TlsOptions) => new RemoteSource({ url, ...section, ...(tls === undefined ? {} : { tls }) }).refresh();

test('a certificate of the given authority is accepted, text or buffer', async () => {
  const url = await serveTls();
  expect(await refresh(url, { ca: authority.cert })).toEqual({ changed: true });
  expect(await refresh(url, { ca: Buffer.from(authority.cert) })).toEqual({ changed: true });
});

test.each([
  ['of an unknown authority', {}, { ca: foreign.cert }],
  ['that the system does not know', {}, undefined],
  ['for another host', createCertificate({ name: 'other', issuer: authority, hosts: ['example.test'] }), { ca: authority.cert }],
  [
    'that expired',
    createCertificate({ name: 'old', issuer: authority, hosts: ['127.0.0.1'], notAfter: new Date(0) }),
    { ca: authority.cert },
  ],
])('a server certificate %s is refused and the token is not sent', async (_, given, tls) => {
  const before = answered;
  const { error } = await refresh(await serveTls(given), tls);
  expect(error).toMatchObject({ kind: 'remote', code: 'tls' });
  expect(answered).toBe(before);
});

test('NODE_TLS_REJECT_UNAUTHORIZED does not turn verification off', async () => {
  const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  onTestFinished(() => {
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
  });
  expect((await refresh(await serveTls(), { ca: foreign.cert })).error).toMatchObject({ code: 'tls' });
});

test('a client certificate opens a server that demands one; without it, or with a foreign one, the error is remote', async () => {
  const url = await serveTls(mutual);
  expect(await refresh(url, { ca: authority.cert, cert: client.cert, key: client.key })).toEqual({ changed: true });
  expect((await refresh(url, { ca: authority.cert })).error).toMatchObject({ kind: 'remote' });
  const stranger = createCertificate({ name: 'stranger', issuer: foreign });
  expect((await refresh(url, { ca: authority.cert, cert: stranger.cert, key: stranger.key })).error).toMatchObject({ kind: 'remote' });
});

test('files are read for every connection, so a renewed certificate needs no restart', async () => {
  const folder = await temporaryFolder();
  const [caFile, certFile, keyFile] = ['ca.pem', 'client.pem', 'client.key'].map((name) => join(folder, name)) as [string, string, string];
  const source = new RemoteSource({ url: await serveTls(mutual), ...section, tls: { caFile, certFile, keyFile } });
  expect((await source.refresh()).error).toMatchObject({ kind: 'remote', code: 'tls', message: expect.stringContaining(caFile) });
  await writeFile(caFile, authority.cert);
  await writeFile(certFile, client.cert);
  await writeFile(keyFile, 'canary-key');
  const { error } = await source.refresh();
  expect(error).toMatchObject({ kind: 'remote', code: 'tls' });
  for (const named of [`tls.certFile ${certFile}`, `tls.keyFile ${keyFile}`]) expect(error!.message).toContain(named);
  expect(inspect(error)).not.toContain('canary');
  await writeFile(caFile, 'canary-authority');
  expect((await source.refresh()).error!.message).toContain(`tls.caFile ${caFile} cannot be used`);
  await writeFile(caFile, authority.cert);
  await writeFile(keyFile, client.key);
  expect(await source.refresh()).toEqual({ changed: true });
});

test('a pipe in the place of a certificate file is an error at once, not a wait beyond the deadline', async () => {
  const caFile = join(await temporaryFolder(), 'ca.pem');
  execFileSync('mkfifo', [caFile]);
  const source = new RemoteSource({ url: 'https://127.0.0.1:1', ...section, tls: { caFile } });
  expect(await source.refresh()).toMatchObject({ changed: false, error: { kind: 'remote', code: 'tls' } });
});

test('a certificate and a key that do not match are refused at once, without key bytes', () => {
  const other = createCertificate({ name: 'other', issuer: authority });
  const make = (): RemoteSource => new RemoteSource({ url: 'https://127.0.0.1:1', ...section, tls: { cert: client.cert, key: other.key } });
  expect(make).toThrow(/certificate and key match/);
});

test('the stream is followed over the same TLS settings', async () => {
  const events = followGenerations({
    url: await serveTls(mutual),
    ...section,
    tls: { ca: authority.cert, cert: client.cert, key: client.key },
  });
  expect((await events.next()).value).toMatchObject({ generation: 3 });
  await events.return();
});
