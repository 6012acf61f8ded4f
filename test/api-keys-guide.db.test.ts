import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { apiKeyMigrations, createApiKey, revokeApiKey, useApiKeys } from 'kit/contrib/apikeys';
import { migrate, openDatabase, type Database } from 'kit/db';
import { describeDatabases } from 'kit/testing';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { codeBlocks, root } from './docs/pages.ts';

// The servers of the guide, run as they are printed there.
const blocks = codeBlocks('docs/guide/api-keys.md').filter((block) => block.language === 'ts');

interface GuideServer {
  readonly app: RequestListener & { fetch?: (request: Request) => Response | Promise<Response> };
  readonly keys: { stop(): Promise<void> };
}

const prepare = async (db: Database) => {
  await migrate(db, [{ name: 'apikeys', migrations: apiKeyMigrations }]);
  await db.query('create table people (id text primary key, login text, email text, active boolean not null, staff boolean not null)');
  await db.query("insert into people values ('7', 'ada', null, $1, $2)", [true, false]);
};

const table = {
  name: 'people',
  id: 'id',
  username: 'login',
  email: 'email',
  isActive: 'active',
  isStaff: 'staff',
  isSuperuser: 'staff',
  idType: 'text',
} as const;

describeDatabases(
  'the guide’s servers',
  (database) => {
    const folder = join(root, 'node_modules', '.cache', `api-keys-guide-${database.dialect}`);
    const cleanups: (() => unknown)[] = [];
    beforeAll(() => {
      mkdirSync(folder, { recursive: true });
      vi.stubEnv('DATABASE_URL', database.url);
    });
    afterAll(async () => {
      for (const cleanup of cleanups) await cleanup();
      vi.unstubAllEnvs();
      rmSync(folder, { recursive: true, force: true });
    });

    test.each([
      ['express', (raw: string) => ({ 'x-api-key': raw })],
      ['hono', (raw: string) => ({ authorization: `Bearer ${raw}` })],
    ])('%s lets a good key in, and refuses a bad, an unscoped and a revoked one', async (framework, header) => {
      const block = blocks.find(({ text }) => text.includes(`from '${framework}'`));
      const file = join(folder, `${framework}.ts`);
      writeFileSync(file, block?.text ?? '');
      const { app, keys } = (await import(file)) as GuideServer;
      cleanups.push(() => keys.stop());
      const listener = app.fetch === undefined ? app : getRequestListener(app.fetch);
      const server = createServer((request, response) => void listener(request, response));
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      cleanups.push(() => new Promise((resolve) => server.close(resolve)));
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`;
      const ask = async (raw?: string) => {
        const response = await fetch(url, { headers: raw === undefined ? {} : header(raw) });
        return [response.status, ((await response.json()) as { code?: string; orders_of?: string }).code ?? 'ok'];
      };
      const db = await openDatabase(database.url);
      const here = await useApiKeys(db, { users: { table, findById: async () => null, findByLogin: async () => null } });
      cleanups.push(async () => (await here.stop(), await db.close()));
      const [good, narrow] = [
        await createApiKey(db, { user: '7', name: 'good', scopes: ['orders:*'] }),
        await createApiKey(db, { user: '7', name: 'narrow', scopes: ['invoices:read'] }),
      ];
      expect(await ask(good.raw)).toEqual([200, 'ok']);
      expect(await ask(narrow.raw)).toEqual([403, 'insufficient_scope']);
      expect(await ask()).toEqual([401, 'invalid_api_key']);
      expect(await ask(`${good.raw.slice(0, -1)}_`)).toEqual([401, 'invalid_api_key']);
      await revokeApiKey(db, good.apiKey);
      expect(await ask(good.raw)).toEqual([401, 'invalid_api_key']);
      if (framework !== 'express') return; // the other names no address
      const answers = new Set<string>();
      for (let attempt = 0; attempt < 32; attempt += 1) answers.add((await ask(`kit_${attempt}`)).join(' '));
      const limited = await fetch(url, { headers: header('kit_again') });
      answers.add(limited.headers.get('retry-after') ?? 'no Retry-After');
      expect([...answers]).toEqual(['401 invalid_api_key', '429 throttled', expect.stringMatching(/^[12]$/)]);
    });
  },
  { prepare },
);
