import express from 'express';
import fastify from 'fastify';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ask, FILES, SERVER_TOML, writeFiles } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { ConfigServer, createListener, loadServerConfig, type AuditEntry } from '../index.ts';

async function openServer(audit: AuditEntry[] = []): Promise<ConfigServer> {
  const folder = await temporaryFolder();
  await writeFiles(folder, { ...FILES, 'server.toml': SERVER_TOML });
  const config = loadServerConfig(join(folder, 'server.toml'), {});
  const server = await ConfigServer.open(config, { audit: (entry) => audit.push(entry), log: () => undefined });
  onTestFinished(() => server.stop());
  return server;
}

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  return (server.address() as AddressInfo).port;
}

/** The answers every mounting must give. */
async function expectMounted(port: number, prefix: string): Promise<void> {
  const document = await ask(port, `${prefix}/billing/prod`);
  expect([document.status, document.json().name]).toEqual([200, 'invoices']);
  expect((await ask(port, `${prefix}/billing/prod/paths`)).json().paths).toEqual(['name', 'password', 'pool.maxSize']);
  expect((await ask(port, `${prefix}/billing/prod`, { token: null })).status).toBe(401);
  expect((await ask(port, `${prefix}/orders/prod`)).status).toBe(404);
  expect((await ask(port, `${prefix}/billing/prod`, { method: 'POST' })).status).toBe(405);
  expect((await ask(port, `${prefix}/billing/../billing/prod`)).status).toBe(404);
  expect((await ask(port, `http://other.example${prefix}/billing/prod`)).status).toBe(200);
  const head = await ask(port, `${prefix}/healthz`, { method: 'HEAD' });
  expect([head.status, head.text]).toEqual([200, '']);
}

test('in bare node:http, at the root', async () => {
  await expectMounted(await portOf(createServer(createListener(await openServer()))), '');
});

test('in bare node:http, under a prefix, beside other routes', async () => {
  const listener = createListener(await openServer(), { prefix: '/internal/config' });
  const port = await portOf(
    createServer((request, response) => {
      if (request.url?.startsWith('/internal/config/')) listener(request, response);
      else response.end('the application');
    }),
  );
  await expectMounted(port, '/internal/config');
  expect((await ask(port, '/other')).text).toBe('the application');
});

test('a prefix matches whole segments only', async () => {
  const port = await portOf(createServer(createListener(await openServer(), { prefix: '/config/' })));
  await expectMounted(port, '/config');
  expect((await ask(port, '/configbilling/prod')).status).toBe(404);
  expect((await ask(port, '/billing/prod')).status).toBe(404);
});

test('in Express, which strips the mount path itself', async () => {
  const app = express();
  app.use('/config', createListener(await openServer()));
  app.get('/other', (_request, response) => void response.send('the application'));
  const port = await portOf(createServer(app));
  await expectMounted(port, '/config');
  expect((await ask(port, '/other')).text).toBe('the application');
});

test('in Fastify, through a plugin of five lines', async () => {
  const listener = createListener(await openServer(), { prefix: '/config' });
  const app = fastify();
  await app.register((scope, _options, done) => {
    scope.all('/config/*', (request, reply) => {
      reply.hijack();
      listener(request.raw, reply.raw);
    });
    done();
  });
  app.get('/other', () => 'the application');
  await app.listen({ port: 0, host: '127.0.0.1' });
  onTestFinished(() => app.close());
  const { port } = app.server.address() as AddressInfo;
  await expectMounted(port, '/config');
  expect((await ask(port, '/other')).text).toBe('the application');
});

test('an embedded listener writes the same audit', async () => {
  const audit: AuditEntry[] = [];
  const port = await portOf(createServer(createListener(await openServer(audit))));
  await ask(port, '/billing/prod');
  expect(audit).toMatchObject([
    { caller: 'billing-service', application: 'billing', profile: 'prod', endpoint: 'document', outcome: 'served', generation: 1 },
  ]);
});
