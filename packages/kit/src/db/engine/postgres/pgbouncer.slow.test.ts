import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createApp } from '../../../app/assemble/create-app.ts';
import { migrateApp } from '../../../app/index.ts';
import type { App } from '../../../app/declare/module.ts';
import { audit } from '../../../contrib/audit/index.ts';
import { sealEntries } from '../../../contrib/audit/chain/seal.ts';
import { webhooks } from '../../../contrib/webhooks/index.ts';
import { CrudController, resource } from '../../../crud/index.ts';
import { isAuthenticated } from '../../../permissions/index.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import type { Database } from '../db.ts';
import { code, createTable, migrate, migration, model, t, timestamps } from '../../index.ts';
import { engineOf } from '../handle.ts';
import { openDatabase } from '../../open/open-database.ts';
import { KitProgram, sourceOf } from '../../../../test/cli/kit-program.ts';
import { freePort } from '../../../../../../test/provision/free-port.ts';
import { PGBOUNCER, startPgBouncer } from '../../../../../../test/provision/pgbouncer.ts';

// `.ci/run` installs the package.
test('PgBouncer is installed where everything must be tested', () => {
  expect(PGBOUNCER !== undefined || process.env['KIT_REQUIRE_PGBOUNCER'] === undefined).toBe(true);
});

const columns = { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(80).unique(), ...timestamps() };
const parcels = model('parcels', columns);
class ParcelController extends CrudController(resource(parcels, { owner: 'owner_id', events: true }), { permission: isAuthenticated }) {}

const OWNER = '00000000-0000-7000-8000-000000000001';
const user = { id: OWNER, username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };

/** Fewer connections to the server than the application has: they change hands after every transaction. */
const SERVER_CONNECTIONS = 3;
const CLIENT_CONNECTIONS = 16;

describeDatabases('behind PgBouncer in transaction mode', (database) => {
  describe.runIf(PGBOUNCER !== undefined && database.dialect === 'postgres')('an application', () => {
    let folder: string;
    let bouncer: ChildProcess;
    let db: Database;
    let app: App;

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'kit-bouncer-'));
      const port = await freePort();
      bouncer = await startPgBouncer({ folder, server: new URL(database.url), port, connections: SERVER_CONNECTIONS });
      const address = new URL(database.url);
      address.port = String(port);
      // Debian's version keeps no prepared statements across connections.
      db = await openDatabase(address.href, { poolMax: CLIENT_CONNECTIONS, prepare: false });
      app = createApp({
        database: db,
        modules: [
          { name: 'parcels', models: [parcels], migrations: [migration('0001_initial', [createTable('parcels', columns)])] },
          audit(),
          webhooks({ secretKeys: [`${Buffer.alloc(32, 7).toString('base64url')}=`] }),
        ],
        mount: { '/v1': { '/parcels': ParcelController } },
        authenticators: [
          {
            name: 'test',
            securityScheme: { type: 'http', scheme: 'none' },
            authenticate: () => ({ user, scheme: 'test', scopes: null }),
          },
        ],
        log: { level: 'silent' },
      });
      await migrateApp(app);
      await app.ready();
    });
    afterAll(async () => {
      await app?.close();
      await db?.close();
      bouncer?.kill();
      rmSync(folder, { recursive: true, force: true });
    });

    const create = (title: string, key?: string) =>
      app.fastify.inject({
        method: 'POST',
        url: '/v1/parcels',
        payload: { title },
        ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }),
      });

    test('creates that share connections are each done once, whole: row, audit entry, event and key', async () => {
      const titles = Array.from({ length: 120 }, (_, index) => `parcel ${index}`);
      const answers = await Promise.all(
        // Every second one with a key, and twice.
        titles.flatMap((title, index) =>
          index % 2 === 0 ? [create(title)] : [create(title, `key-${index}`), create(title, `key-${index}`)],
        ),
      );
      // A second request with the key of one that is being worked on is told so.
      const others = answers.filter(({ statusCode }) => statusCode !== 201).map((answer) => answer.json<{ code: string }>().code);
      expect(others.filter((code) => code !== 'request_in_progress')).toEqual([]);
      const fresh = answers.filter(({ statusCode, headers }) => statusCode === 201 && headers['idempotent-replayed'] === undefined);
      expect(fresh).toHaveLength(titles.length);
      const again = await Promise.all(titles.flatMap((title, index) => (index % 2 === 0 ? [] : [create(title, `key-${index}`)])));
      expect(new Set(again.map(({ headers }) => headers['idempotent-replayed']))).toEqual(new Set(['true']));
      expect((await create('parcel 0')).statusCode).toBe(409);
      await sealEntries(db, { wait: true });
      const count = async (table: string) => Number((await db.query<{ n: number }>(`select count(*) as n from ${table}`))[0]?.n);
      const counts = await Promise.all(['parcels', 'audit_entries', 'webhook_events', 'kit_idempotency'].map(count));
      expect(counts).toEqual([titles.length, titles.length, titles.length, titles.length / 2]);
    });

    test('a read that may be long has its deadline and its end, and leaves nothing for the next user of its connection', async () => {
      const nap = 'select pg_sleep(600) as slept';
      const napping = () =>
        database.db.query(`select 1 from pg_stat_activity where state = 'active' and query like '%slept%' and pid <> pg_backend_pid()`);
      const late = Array.from({ length: 6 }, () =>
        db.query(nap, [], { long: { deadlineMs: 100, reads: 'a nap' } }).catch((error: unknown) => error),
      );
      expect((await Promise.all(late)).map((error) => (error as { code?: string }).code)).toEqual(late.map(() => 'statement_timeout'));
      const gone = new AbortController();
      const cancelled = db
        .query(nap, [], { long: { deadlineMs: 600_000, reads: 'a nap', signal: gone.signal } })
        .catch((error: unknown) => error);
      await vi.waitFor(async () => expect(await napping()).toHaveLength(1), { timeout: 60_000 });
      gone.abort();
      expect(await cancelled).toBe(gone.signal.reason);
      await vi.waitFor(async () => expect(await napping()).toEqual([]), { timeout: 60_000 });
      const asked = Array.from({ length: 40 }, (_, n) => db.query(`select ${n} as n, current_setting('statement_timeout') as limit_ms`));
      expect((await Promise.all(asked)).flat()).toEqual(asked.map((_, n) => ({ n, limit_ms: '0' })));
    });

    test('kit doctor finds out that prepared statements are lost, and not without the pooler or without them', async () => {
      const [prepared, direct] = [await openDatabase(db.url), await openDatabase(database.url)];
      const lost = await Promise.all([prepared, direct, db].map(async (each) => engineOf(each).losesStatements?.()));
      await Promise.all([prepared.close(), direct.close()]);
      expect(lost).toEqual([true, false, false]);
      writeFileSync(
        join(folder, 'kit.config.ts'),
        `import { createApp } from ${sourceOf('index.ts')};\nexport default createApp({ mount: {} });\n`,
      );
      const program = new KitProgram(folder, { DATABASE_URL: db.url });
      const [warned, silent] = [await program.run(['doctor']), await program.run(['doctor'], { environment: { DATABASE_PREPARE: 'off' } })];
      await program.close();
      expect(warned.stdout).toMatch(/^warning database default: W029 .+ Set DATABASE_PREPARE=off\.$/m);
      expect(silent.stdout).toMatch(/^ok +database default: /m);
      expect(silent.stdout).not.toContain('W029');
    });

    test('kit doctor --database says that a pooler is between, in which mode, and that statements have no upper limit', async () => {
      const sessions = mkdtempSync(join(tmpdir(), 'kit-bouncer-'));
      const port = await freePort();
      const inSessions = await startPgBouncer({ folder: sessions, server: new URL(database.url), port, connections: 4, mode: 'session' });
      const address = new URL(database.url);
      address.port = String(port);
      const other = await openDatabase(address.href);
      const poolers = await Promise.all(
        [db, other, database.db].map(async (each) => (await engineOf(each).serverFacts?.())?.server.pooler),
      );
      await other.close();
      inSessions.kill();
      rmSync(sessions, { recursive: true, force: true });
      expect(poolers).toEqual(['transaction', 'session', 'none']);
      writeFileSync(
        join(folder, 'kit.config.ts'),
        `import { createApp } from ${sourceOf('index.ts')};\nexport default createApp({ mount: {} });\n`,
      );
      const program = new KitProgram(folder, { DATABASE_URL: db.url, DATABASE_PREPARE: 'off' });
      const asked = await program.run(['doctor', '--database']);
      const plain = await program.run(['doctor']);
      await program.close();
      expect(asked.stdout).toMatch(/^ok +database default: PostgreSQL [\d.]+.*, takes changes, .*a pooler in transaction mode/m);
      expect(asked.stdout).toMatch(/^warning database default: W034 .+alter role app set statement_timeout/m);
      expect(plain.stdout).not.toContain('W034');
    });

    test('an upper limit is rejected with what to do instead, and one of the role holds for each statement and not for a migration', async () => {
      await expect(openDatabase(db.url, { prepare: false, statementMsMax: 1_000 })).rejects.toThrow(/alter role app set statement_timeout/);
      const { username, pathname } = new URL(database.url);
      const place = `role "${username}" in database "${pathname.slice(1)}"`;
      await database.db.query(`alter ${place} set statement_timeout = '300ms'`);
      const sessions = mkdtempSync(join(tmpdir(), 'kit-bouncer-'));
      const port = await freePort();
      const fresh = await startPgBouncer({ folder: sessions, server: new URL(database.url), port, connections: 4 });
      const address = new URL(database.url);
      address.port = String(port);
      const limited = await openDatabase(address.href, { prepare: false });
      try {
        await expect(limited.query('select pg_sleep(600)')).rejects.toMatchObject({ code: 'statement_timeout' });
        // A longer deadline of a request does not lift it.
        const long = { deadlineMs: 600_000, reads: 'a nap' };
        await expect(limited.query('select pg_sleep(600)', [], { long })).rejects.toMatchObject({ code: 'statement_timeout' });
        const nap = code('nap', async (tx) => void (await tx.query('select pg_sleep(0.6)')));
        const { applied } = await migrate(limited, [{ name: 'naps', migrations: [migration('0001_nap', [nap])] }]);
        expect(applied).toEqual(['naps/0001_nap']);
        expect((await engineOf(limited).serverFacts?.())?.server.statementMsMax).toBe(300);
      } finally {
        await limited.close();
        fresh.kill();
        rmSync(sessions, { recursive: true, force: true });
        await database.db.query(`alter ${place} reset statement_timeout`);
      }
    });

    test('with prepared statements the error names the setting, and an app with DATABASE_PREPARE=off works', async () => {
      const prepared = await openDatabase(db.url, { poolMax: CLIENT_CONNECTIONS });
      const statements = Array.from({ length: 400 }, (_, index) => prepared.query(`select $1::int as n, ${index % 20} as m`, [index]));
      const failures = (await Promise.allSettled(statements)).flatMap((each) => (each.status === 'rejected' ? [each.reason as Error] : []));
      await prepared.close();
      expect(failures.length).toBeGreaterThan(0);
      expect(failures[0]).toMatchObject({
        code: 'prepared_statement_lost',
        message: expect.stringContaining('Set DATABASE_PREPARE=off') as unknown,
      });
      const off = createApp({ database: db.url, mount: {}, settings: { databasePrepare: 'off' }, log: { level: 'silent' } });
      await off.ready();
      const all = await Promise.all(Array.from({ length: 400 }, (_, index) => off.db.query(`select ${index % 20} as m`)));
      expect(all).toHaveLength(400);
      await off.close();
    });

    test('transactions of the application that fail leave nothing on a connection that others get next', async () => {
      const before = (await db.query('select id from parcels')).length;
      const outcomes = await Promise.allSettled(
        Array.from({ length: 60 }, (_, index) =>
          db.transaction(async (tx) => {
            await tx.query('insert into parcels (id, owner_id, title) values (gen_random_uuid(), $1, $2)', [OWNER, `tx ${index}`]);
            if (index % 2 === 0) throw new Error('no');
            await tx.query('select 1');
          }),
        ),
      );
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(30);
      expect((await db.query('select id from parcels')).length).toBe(before + 30);
    });
  });
});
