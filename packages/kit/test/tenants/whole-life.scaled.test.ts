import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../src/app/index.ts';
import { migrateApp } from '../../src/app/data/migration-modules.ts';
import { accountsOf, createUser } from '../../src/contrib/accounts/index.ts';
import { createApiKey } from '../../src/contrib/apikeys/index.ts';
import { createServiceUser } from '../../src/contrib/apikeys/service/manage-service-users.ts';
import { sealEntries } from '../../src/contrib/audit/chain/seal.ts';
import { verifyChain } from '../../src/contrib/audit/chain/verify-chain.ts';
import { passOnChanges } from '../../src/contrib/better-auth/user-changes.ts';
import { grant } from '../../src/contrib/grants/index.ts';
import { startJob } from '../../src/contrib/jobs/index.ts';
import { createTenant, inviteMember } from '../../src/contrib/tenants/index.ts';
import { deleteTenant } from '../../src/contrib/tenants/manage/tenants.ts';
import { purgeTenants } from '../../src/contrib/tenants/manage/purge.ts';
import { publish } from '../../src/contrib/webhooks/index.ts';
import { processUploads } from '../../src/contrib/uploads/index.ts';
import { exportSubject } from '../../src/crud/subjects/export-subject.ts';
import type { Database, Db } from '../../src/db/index.ts';
import { describeDatabases } from '../../src/testing/index.ts';
import { scaled } from '../../../../test/provision/scale.ts';
import { unzip } from '../personal/unzip.ts';
import { runUntilKilled } from '../run-until-killed.ts';
import { notes, WAYS, wholeApp, type WayOfLogin, work } from './whole-app.ts';

// The contract of the life of a tenant: two tenants with generated data in every module; one is exported and erased by processes that are killed.

const PROGRAM = join(import.meta.dirname, 'erase-whole-until-killed.ts');

/** Every row of every table that contains a text, as JSON. */
async function rowsWith(db: Db, text: string): Promise<readonly string[]> {
  const tables = await db.query<{ name: string }>(
    db.dialect === 'sqlite'
      ? "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
      : 'select table_name as name from information_schema.tables where table_schema = current_schema()',
  );
  const found: string[] = [];
  for (const { name } of tables)
    for (const row of await db.query(`select * from "${name}"`)) {
      const shown = JSON.stringify(row, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
      // Written behind the requests.
      if (shown.includes(text)) found.push(`${name} ${shown.replace(/"last_used_at":(?:"[^"]*"|null)/, '')}`);
    }
  return found.toSorted();
}

function filesWith(folder: string, text: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile() && readFileSync(path).includes(text));
}

interface Tenant {
  readonly id: string;
  readonly owner: string;
}

/** Where tenants come from, and how one of them ends. Its grace is over at once. */
interface Way {
  readonly create: (db: Database, mark: string) => Promise<Tenant>;
  readonly end: (db: Database, tenant: Tenant) => Promise<void>;
}

const ways: Readonly<Record<WayOfLogin, Way>> = {
  accounts: {
    async create(db, mark) {
      const owner = await createUser(db, { username: `owner-${crypto.randomUUID()}` }, accountsOf(db).management(null));
      const { id } = await createTenant(db, { name: `${mark} studio`, slug: `slug-${mark}`, owner: owner.id });
      await inviteMember(db, { tenant: id, email: `${mark}@example.com`, roles: ['member'] });
      return { id, owner: owner.id };
    },
    async end(db, { id }) {
      await deleteTenant(db, id, { by: 'a test' });
      expect(await purgeTenants(db)).toBe(0);
      await db.query('update tenants set deletes_at = $1 where id = $2', [new Date(Date.now() - 1000), id]);
    },
  },
  'better-auth': {
    async create(db) {
      const now = db.dialect === 'sqlite' ? new Date().toISOString() : new Date();
      const [owner, id] = [crypto.randomUUID(), crypto.randomUUID()];
      await db.query(
        'insert into "user" ("id", "name", "email", "emailVerified", "createdAt", "updatedAt") values ($1, $2, $3, $4, $5, $5)',
        [owner, 'owner', `${owner}@example.com`, true, now],
      );
      await db.query('insert into "organization" ("id", "name", "slug", "createdAt") values ($1, $2, $3, $4)', [
        id,
        // What better-auth deletes itself stays in the free space of a file until it is overwritten.
        'studio',
        `studio-${id}`,
        now,
      ]);
      await db.query('insert into "member" ("id", "organizationId", "userId", "role", "createdAt") values ($1, $2, $3, $4, $5)', [
        crypto.randomUUID(),
        id,
        owner,
        'owner',
        now,
      ]);
      return { id, owner };
    },
    async end(db, { id }) {
      await db.query('delete from "member" where "organizationId" = $1', [id]);
      await db.query('delete from "organization" where "id" = $1', [id]);
      await passOnChanges(db);
      expect(await db.query("select state from kit_erasures where subject_id = $1 and state = 'waiting'", [id])).toHaveLength(1);
      await db.query('update kit_erasures set due_at = $1 where subject_id = $2', [new Date(Date.now() - 1000), id]);
    },
  },
};

/** Rows of the tenant in every module, each with the mark. Returns how many records there are of each kind. */
async function fill(app: App, { id: tenant, owner }: Tenant, mark: string, size: number): Promise<void> {
  const { db } = app;
  const scopes = ['webhooks:read', 'webhooks:write', 'uploads:read', 'uploads:write'];
  const { raw } = await createApiKey(db, { user: owner, name: `${mark} key`, scopes, tenant });
  const call = async (status: number, method: 'POST' | 'PATCH' | 'PUT' | 'GET', url: string, payload?: object | string, headers = {}) => {
    const response = await app.inject({
      method,
      url,
      headers: { 'x-api-key': raw, 'user-agent': `agent ${mark}`, ...headers },
      ...(payload === undefined ? {} : { payload }),
    });
    expect([url, response.statusCode, response.statusCode === status ? '' : response.body]).toEqual([url, status, '']);
    return response.body === '' ? ({} as Record<string, unknown>) : (response.json() as Record<string, unknown>);
  };
  for (let index = 0; index < size; index += 1) {
    const note = await call(201, 'POST', '/v1/notes', { title: `${mark} note ${index}` }, { 'idempotency-key': `${mark}-${index}` });
    await call(200, 'PATCH', `/v1/notes/${String(note['id'])}`, { title: `${mark} changed ${index}` });
    await db.query('insert into note_lines (id, note_id, line) values ($1, $2, $3)', [crypto.randomUUID(), note['id'], `${mark} line`]);
    await grant(db, { subject: `user:${owner}`, action: 'view', object: { type: notes, id: String(note['id']) } });
    await db.transaction((tx) => startJob(tx, work, { text: `${mark} job` }, { owner, tenantKey: tenant, uniqueKey: `${mark}-${index}` }));
  }
  await call(201, 'POST', '/v1/hooks', { url: `http://127.0.0.1:9/${mark}`, events: ['*'], description: mark });
  await db.transaction((tx) => publish(tx, 'paper.made', { text: `${mark} event` }, { tenantKey: tenant }));
  const content = `file of ${mark}`;
  const upload = await call(201, 'POST', '/v1/uploads', { filename: `${mark}.txt`, content_type: 'text/plain', size: content.length });
  const sent = await app.inject({
    method: 'PUT',
    url: new URL(String(upload['url']), 'http://127.0.0.1').href.replace(/^https?:\/\/[^/]+/, ''),
    headers: upload['headers'] as Record<string, string>,
    payload: content,
  });
  expect(sent.statusCode).toBeLessThan(300);
  await call(200, 'POST', `/v1/uploads/${String(upload['id'])}/complete`, {});
  await db.transaction((tx) =>
    createServiceUser(tx, { tenant, name: `${mark} robot`, role: 'member' }, { by: 'a test', requestId: null, createdBy: owner }),
  );
  await call(200, 'GET', '/v1/notes');
}

describe.each(WAYS)('with %s', (way) => {
  describeDatabases('a tenant with data in every module', (database) => {
    const folder = mkdtempSync(join(tmpdir(), 'kit-whole-'));
    let app: App;
    beforeAll(async () => {
      app = wholeApp(database.db, { way, folder });
      await migrateApp(app);
      await app.ready();
    });
    afterAll(async () => {
      await app.close();
      rmSync(folder, { recursive: true, force: true });
    });

    test('is exported whole, and erased by processes that are killed: nothing is left of it, and the other is as it was', async () => {
      const { db } = app;
      const { create, end } = ways[way];
      const [north, south] = [await create(db, 'northmark'), await create(db, 'southmark')];
      await fill(app, north, 'northmark', 3);
      await fill(app, south, 'southmark', 2);
      await processUploads(db);
      await sealEntries(db, { wait: true });
      const tables = (rows: readonly string[]) => [...new Set(rows.map((row) => row.slice(0, row.indexOf(' '))))];
      const before = await rowsWith(db, 'northmark');
      // The test reaches what it is about.
      expect(tables(before)).toEqual(
        expect.arrayContaining([
          'api_keys',
          'audit_entries',
          'jobs',
          'kit_changes',
          'note_lines',
          'notes',
          'uploads',
          'webhook_endpoints',
          'webhook_events',
        ]),
      );
      const others = await rowsWith(db, 'southmark');

      const chunks: Uint8Array[] = [];
      for await (const chunk of exportSubject(app, { kind: 'tenant', id: north.id })) chunks.push(chunk);
      const archive = unzip(Buffer.concat(chunks));
      const text = [...archive].map(([name, content]) => `${name}\n${content}`).join('\n');
      for (const shown of [
        'northmark note',
        'northmark line',
        'northmark job',
        'northmark event',
        'file of northmark',
        'northmark robot',
        'northmark key',
      ])
        expect(text.includes(shown.replace('note', 'changed')) || text.includes(shown) ? '' : shown).toBe('');
      expect(text).not.toContain('southmark');
      const digests = await db.query<{ digest: string }>('select digest from api_keys');
      for (const { digest } of digests) expect(text).not.toContain(digest);

      await end(db, north);
      for (const lines of [1, 4].slice(-scaled(1, 2))) await runUntilKilled(PROGRAM, [database.url, way, folder], lines);
      expect(await db.query("select state from kit_erasures where subject_id = $1 and state = 'running'", [north.id])).toHaveLength(1);
      await runUntilKilled(PROGRAM, [database.url, way, folder], Infinity);
      await processUploads(db);
      expect(await rowsWith(db, 'northmark')).toEqual([]);
      expect(filesWith(folder, 'northmark')).toEqual([]);
      expect(filesWith(folder, 'southmark').length).toBeGreaterThan(0);
      // What rows had before they were changed is in the free space of a file until it is overwritten, and in nothing else.
      if (db.dialect === 'sqlite') for (const statement of ['vacuum', 'pragma wal_checkpoint(truncate)']) await db.query(statement);
      const bytes = db.dialect === 'sqlite' ? readFileSync(database.url.replace(/^sqlite:(\/\/)?/, '')) : Buffer.alloc(0);
      expect(bytes.includes('northmark')).toBe(false);
      await sealEntries(db, { wait: true });
      expect(await verifyChain(db)).toMatchObject({ ok: true });
      const left = await rowsWith(db, 'southmark');
      expect(others.filter((row) => !left.includes(row) && !/^(request_|kit_secrets)/.test(row))).toEqual([]);
      expect(tables(await rowsWith(db, north.id)).filter((name) => !['audit_entries', 'kit_erasures'].includes(name))).toEqual([]);
    }, 600_000);
  });
});
