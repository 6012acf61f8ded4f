// What does verifying one hot API key cost on PostgreSQL, 20 at a time: next to better-auth's api-key plugin on the same server, and next to
// the least that is correct on bare pg (one prepared, indexed read joined with the owner, one digest, one comparison)? How much cheaper is
// text that is no key, how much faster the cache, and how soon does another process see a revoked key? better-auth runs with its defaults
// but for the rate limit, whose 10 requests a day would end the contest: it is on, and out of reach.
import { hash, timingSafeEqual } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { apiKeyMigrations, createApiKey, revokeApiKey, useApiKeys, verifyApiKey } from 'kit/contrib/apikeys';
import { countQueries, migrate, openDatabase, type Database } from 'kit/db';
import type { UserDirectory } from 'kit';
import pg from 'pg';
import { createPostgresDatabase } from 'kit/testing';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf, type Contender } from './harness/contest.ts';
import { cpuPerOperation, ratePerSecond } from './harness/loop.ts';
import { installPeers, peerUrl } from './harness/peers.ts';
import type { Ratio } from './harness/ratio.ts';

const AT_ONCE = 20;
const PEERS = {
  'better-auth': '1.7.5',
  '@better-auth/core': '1.7.5',
  '@better-auth/api-key': '1.7.5',
  '@better-auth/utils': '0.4.2',
  'better-call': '1.4.0',
  pg: '8.23.1',
};

const users: UserDirectory = {
  table: {
    name: 'people',
    id: 'id',
    username: 'login',
    email: 'email',
    isActive: 'active',
    isStaff: 'staff',
    isSuperuser: 'staff',
    idType: 'text',
  },
  findById: async () => null,
  findByLogin: async () => null,
};

async function prepare(db: Database): Promise<void> {
  await migrate(db, [{ name: 'apikeys', migrations: apiKeyMigrations }]);
  await db.query('create table people (id text primary key, login text, email text, active boolean not null, staff boolean not null)');
  await db.query("insert into people values ('7', 'ada', null, true, false)");
}

function contender(name: string, operation: () => Promise<unknown>, atOnce = AT_ONCE): Contender {
  return { name, measure: (seconds) => ratePerSecond(operation, seconds, atOnce) };
}

/** One of ours on a database and with connections of its own, as a process would have. */
async function kitOn(url: string, cache: { maxAgeMs: number } | null) {
  const db = await openDatabase(url, { poolMax: AT_ONCE });
  const keys = await useApiKeys(db, { users, cache, maxKeysPerOwner: 1_000_000, failedAttempts: null });
  return { db, close: async () => (await keys.stop(), await db.close()) };
}

function mustWork(db: Database, raw: string): () => Promise<void> {
  return async () => {
    if ((await verifyApiKey(db, raw)) === null) throw new Error('the key does not work');
  };
}

function bare(pool: pg.Pool, raw: string): () => Promise<void> {
  const [, prefix = '', rest = ''] = raw.split('_');
  const text = `select k.*, u.login, u.active, u.staff from api_keys k join people u on u.id = k.owner_id where k.prefix = $1`;
  return async () => {
    const { rows } = await pool.query<Record<string, unknown>>({ name: 'verify', text, values: [prefix] });
    const [row] = rows;
    const digest = Buffer.from(hash('sha256', rest.slice(0, 43)));
    const expiresAt = row?.['expires_at'] as Date | null | undefined;
    const isOpen = row?.['revoked_at'] === null && row['active'] === true && (expiresAt === null || (expiresAt ?? 0) > new Date());
    if (!isOpen || !timingSafeEqual(digest, Buffer.from(String(row['digest'])))) throw new Error('the key does not work');
  };
}

interface BetterAuth {
  readonly options: unknown;
  readonly api: {
    signUpEmail(call: { body: object }): Promise<{ user: { id: string } }>;
    createApiKey(call: { body: object }): Promise<{ key: string }>;
    verifyApiKey(call: { body: { key: string } }): Promise<{ valid: boolean; error: unknown }>;
  };
}

/** better-auth with its api-key plugin, one key, and a counter of the statements it sends. */
async function betterAuth(url: string, print: (line: string) => void) {
  const folder = installPeers(PEERS, print);
  const load = async <T>(name: string) => (await import(peerUrl(folder, name))) as T;
  const { Pool } = createRequire(join(folder, 'package.json'))('pg') as typeof pg;
  // Its end() does not wait for the connections to be gone: the server that stops next is no error of theirs.
  const pool = new Pool({ connectionString: url, max: AT_ONCE }).on('error', () => undefined);
  const statements: string[] = [];
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((...args: unknown[]) => {
      statements.push(typeof args[0] === 'string' ? args[0] : String((args[0] as { text?: string }).text));
      return query(...args);
    }) as typeof client.query;
  });
  const { betterAuth: create } = await load<{ betterAuth: (options: object) => BetterAuth }>('better-auth');
  const { apiKey } = await load<{ apiKey: (options: object) => object }>('@better-auth/api-key');
  const { getMigrations } = await load<{ getMigrations: (options: unknown) => Promise<{ runMigrations(): Promise<void> }> }>(
    'better-auth/db/migration',
  );
  const rateLimit = { enabled: true, timeWindow: 86_400_000, maxRequests: 1_000_000_000 };
  const auth = create({
    database: pool,
    secret: 'x'.repeat(32),
    baseURL: 'http://127.0.0.1',
    emailAndPassword: { enabled: true },
    telemetry: { enabled: false },
    plugins: [apiKey({ rateLimit })],
  });
  await (await getMigrations(auth.options)).runMigrations();
  const body = { email: 'ada@example.com', password: 'correct horse battery', name: 'ada' };
  const { user } = await auth.api.signUpEmail({ body });
  const { key } = await auth.api.createApiKey({ body: { name: 'hot', userId: user.id } });
  const verify = async () => {
    const { valid, error } = await auth.api.verifyApiKey({ body: { key } });
    if (!valid) throw new Error(`better-auth refuses its key: ${JSON.stringify(error)}`);
  };
  return { verify, statements, close: () => pool.end() };
}

async function statementsOf(
  context: BenchmarkContext,
  db: Database,
  raw: string,
  peer: Awaited<ReturnType<typeof betterAuth>>,
): Promise<Ratio[]> {
  const { queries } = await countQueries(() => verifyApiKey(db, raw));
  const isWrite = (sql: string) => /^\s*(insert|update|delete)/i.test(sql);
  await peer.verify();
  peer.statements.length = 0;
  await peer.verify();
  const theirs = `${peer.statements.length} statements, ${peer.statements.filter(isWrite).length} of them writes`;
  context.print(`kit: ${queries.length} statement, ${queries.filter(({ sql }) => isWrite(sql)).length} writes; better-auth: ${theirs}`);
  return [
    { name: 'apikey-verify-statements', value: queries.length, goal: 1, atMost: true },
    { name: 'apikey-verify-writes', value: queries.filter(({ sql }) => isWrite(sql)).length, goal: 0, atMost: true },
  ];
}

/** The longest time, of some rounds, from a revoke that has returned here until a cached key is refused over there. */
async function revocationLagMs(url: string, rounds: number): Promise<number> {
  const [here, there] = [await kitOn(url, null), await kitOn(url, { maxAgeMs: 300_000 })];
  let worst = 0;
  for (let round = 0; round < rounds; round += 1) {
    const { apiKey, raw } = await createApiKey(here.db, { user: '7', name: 'short-lived', scopes: [] });
    await verifyApiKey(there.db, raw);
    await verifyApiKey(there.db, raw);
    await revokeApiKey(here.db, apiKey);
    const revokedAt = performance.now();
    let lastSeenAt = revokedAt;
    // Each look is dated when it starts: the answer to a bad key is held back, which is no lag.
    for (let startedAt = revokedAt; (await verifyApiKey(there.db, raw)) !== null; startedAt = performance.now()) {
      lastSeenAt = startedAt;
      await new Promise((resolve) => setImmediate(resolve));
    }
    worst = Math.max(worst, lastSeenAt - revokedAt);
  }
  await Promise.all([here.close(), there.close()]);
  return worst;
}

export default defineBenchmark({
  name: 'apikey-verify',
  question: 'What does verifying an API key cost, next to better-auth and to the bare indexed lookup?',
  async run(context) {
    const server = await startPostgresServer();
    const [ours, others] = [await createPostgresDatabase(server.url), await createPostgresDatabase(server.url)];
    const peer = await betterAuth(others.url, (line) => context.print(line));
    const plain = await kitOn(ours.url, null);
    await prepare(plain.db);
    const memory = await kitOn(ours.url, { maxAgeMs: 300_000 });
    const pool = new pg.Pool({ connectionString: ours.url, max: AT_ONCE }).on('error', () => undefined);
    try {
      const { raw } = await createApiKey(plain.db, { user: '7', name: 'hot', scopes: ['orders:read'] });
      const garbage = `${raw.slice(0, -1)}${raw.endsWith('0') ? '1' : '0'}`;
      const counts = await statementsOf(context, plain.db, raw, peer);
      const result = await contest(context, [
        contender('kit', mustWork(plain.db, raw)),
        contender('better-auth', peer.verify),
        contender('bare pg', bare(pool, raw)),
        contender('kit, cached', mustWork(memory.db, raw)),
        contender('kit, not a key', () => verifyApiKey(plain.db, garbage)),
      ]);
      // The rate also measures the neighbours of a shared machine; this does not.
      for (const [name, verify] of [['kit', mustWork(plain.db, raw)] as const, ['better-auth', peer.verify] as const]) {
        context.print(
          `${name}: ${(await cpuPerOperation(verify, context.quick ? 300 : 2000)).toFixed(0)} µs of this process's CPU per verify`,
        );
      }
      const lagMs = await revocationLagMs(ours.url, context.quick ? 5 : 50);
      context.print(`revocation seen through other connections after at most ${lagMs.toFixed(1)} ms`);
      return [
        { name: 'apikey-verify-vs-better-auth', value: ratioOf(result, 'kit', 'better-auth'), goal: 10 },
        { name: 'apikey-verify-vs-bare-lookup', value: ratioOf(result, 'kit', 'bare pg'), goal: 0.6 },
        ...counts,
        { name: 'apikey-garbage-vs-verify', value: ratioOf(result, 'kit, not a key', 'kit'), goal: 100 },
        { name: 'apikey-cached-vs-uncached', value: ratioOf(result, 'kit, cached', 'kit'), goal: 20 },
        { name: 'apikey-revocation-lag-ms', value: lagMs, goal: 100, atMost: true },
      ];
    } finally {
      await Promise.all([plain.close(), memory.close(), peer.close(), pool.end()]);
      await server.stop();
    }
  },
});
