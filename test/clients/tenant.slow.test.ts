import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Controller, hasRole, isAuthenticated, route } from 'kit';
import { accounts, accountsOf, createUser } from 'kit/contrib/accounts';
import { apiKeys, createApiKey } from 'kit/contrib/apikeys';
import { createTenant, tenants } from 'kit/contrib/tenants';
import { generateClient, openApiDocument } from 'kit/openapi';
import { testApp, type TestApp } from 'kit/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { runScript } from './run-script.ts';

const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, sys; assert sys.version_info >= (3, 11)']).status === 0,
);

const Seen = z.strictObject({ tenant: z.string().nullable() });

class RoomController extends Controller {
  show = route.get('/', { permission: hasRole('owner'), response: Seen }, async ({ caller }) => ({ tenant: (await caller()).tenant }));
  open = route.get('/open', { permission: isAuthenticated, response: z.strictObject({}) }, () => ({}));
}

const folder = mkdtempSync(join(tmpdir(), 'kit-tenant-clients-'));
const found = { key: '', north: '', south: '' };
let app: TestApp;
let url: string;

beforeAll(async () => {
  app = await testApp({
    modules: [accounts(), apiKeys(), tenants({ find: { header: 'X-Studio' } })],
    mount: { '/v1': { '/rooms': RoomController } },
  });
  const { db } = app.app;
  const ada = await createUser(db, { username: 'ada' }, accountsOf(db).management(null));
  found.key = (await createApiKey(db, { user: ada, name: 'script', scopes: [], tenant: '*' })).raw;
  for (const slug of ['north', 'south'] as const) found[slug] = (await createTenant(db, { name: slug, owner: ada.id })).id;
  url = await app.listen();
  for (const [language, file] of [
    ['typescript', 'api.ts'],
    ['python', 'api.py'],
  ] as const)
    writeFileSync(join(folder, file), generateClient(app.app.routes, { language, title: 'Rooms', version: '1' }));
});
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

test('the document has the header of the tenant at every operation that needs one, and at no other', () => {
  const document = openApiDocument(app.app.routes, { title: 'Rooms', version: '1' });
  const names = (path: string) => {
    const { parameters = [], get } = document.paths[path] as { parameters?: { name: string }[]; get: { parameters?: { name: string }[] } };
    const shared = (document.components['parameters'] ?? {}) as Record<string, { name: string }>;
    return [...parameters, ...(get.parameters ?? [])].map((each) =>
      '$ref' in each ? shared[String(each.$ref).split('/').at(-1) ?? '']?.name : each.name,
    );
  };
  expect([names('/v1/rooms'), names('/v1/rooms/open')]).toEqual([['X-Studio'], []]);
});

test('the TypeScript client names the tenant once, and a call can name another one', async () => {
  // oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler
  const { createClient }: any = await import(join(folder, 'api.ts'));
  const client = createClient({ baseUrl: url, apiKey: found.key, tenant: 'north' });
  expect(await client.room.show()).toEqual({ tenant: found.north });
  expect(await client.room.show({ headers: { 'x-studio': found.south } })).toEqual({ tenant: found.south });
  const later = createClient({ baseUrl: url, apiKey: found.key, tenant: () => 'south' });
  expect(await later.room.show()).toEqual({ tenant: found.south });
  await expect(createClient({ baseUrl: url, apiKey: found.key }).room.show()).rejects.toMatchObject({ code: 'tenant_required' });
});

test('the Python client names the tenant once', async () => {
  if (PYTHON === undefined) throw new Error('This test needs Python 3.11 or newer with httpx.');
  const script = `from api import Client
print(Client("${url}", api_key="${found.key}", tenant="north").room.show().tenant)
print(Client("${url}", api_key="${found.key}", tenant="north", headers={"X-Studio": "south"}).room.show().tenant)
`;
  const { code, stdout, stderr } = await runScript(PYTHON, ['-c', script], folder, { PYTHONPATH: folder });
  expect([code, stderr, stdout.trim().split('\n')]).toEqual([0, '', [found.north, found.south]]);
});
