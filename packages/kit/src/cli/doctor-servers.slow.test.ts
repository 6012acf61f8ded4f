import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startPostgresServer, type PostgresServer } from '../../../../test/provision/postgres-server.ts';
import { TcpProxy } from '../../../../test/provision/tcp-proxy.ts';
import { KitProgram, sourceOf } from '../../test/cli/kit-program.ts';
import { openDatabase, type Database } from '../db/index.ts';

// What the person on call asks: docs/guide/backup-and-failover.md quotes these lines.

let folder = '';
let program: KitProgram;
let server: PostgresServer;
let standby: Awaited<ReturnType<PostgresServer['standby']>>;
let primary: Database;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-doctor-'));
  await writeFile(
    join(folder, 'kit.config.ts'),
    `import { appDatabase, createApp } from ${sourceOf('index.ts')};
export default createApp({ database: appDatabase({ poolMax: Number(process.env['POOL'] ?? 10) }), mount: {} });
`,
  );
  server = await startPostgresServer();
  program = new KitProgram(folder, { DATABASE_URL: server.url });
  expect((await program.run(['migrate'])).code).toBe(0);
  primary = await openDatabase(server.url);
  await primary.query(`alter role kit set statement_timeout = '15min'`);
  standby = await server.standby();
}, 600_000);
afterAll(async () => {
  await program?.close();
  await primary?.close();
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

const findings = async (url: string, environment: Readonly<Record<string, string>> = {}): Promise<string[]> => {
  const { stdout } = await program.run(['doctor', '--database'], { environment: { DATABASE_URL: url, ...environment } });
  return stdout.split('\n').filter((line) => / (?:database \w+|start-up): /.test(line));
};
const idsIn = (lines: readonly string[]): string[] => lines.flatMap((line) => /^warning .*: (W\d+)/.exec(line)?.[1] ?? []);
const withParameters = (url: string, parameters: string): string => `${url.split('?')[0] ?? ''}?${parameters}`;

test('a primary with a replica: what it is, and nothing to warn of', async () => {
  const lines = await findings(server.url);
  expect(lines.join('\n')).toMatch(
    /^ok +database default: PostgreSQL [\d.]+, takes changes, 1 replica(?:, \d+ ms behind)?, no pooler, a pool of 10 of 197 connections, keep-alive after 10 s, statements limited to 900 s$/m,
  );
  expect(idsIn(lines)).toEqual([]);
});

test('an address that leads to a replica', async () => {
  const lines = await findings(standby.url);
  expect(lines.join('\n')).toMatch(/^ok +database default: PostgreSQL [\d.]+, a replica, \d+ ms behind, /m);
  expect(idsIn(lines)).toEqual(['W035']);
  expect(lines.join('\n')).toContain('The server of database "default" is a replica and does not take changes.');
});

test('a replica that is behind, seen from itself and from its primary', async () => {
  const replica = await openDatabase(standby.url);
  await primary.query('create table late (n integer)');
  // A replica knows how far it is behind since the first transaction that it has replayed.
  const replayed = `select pg_last_xact_replay_timestamp() is not null as known, to_regclass('late') is not null as has_table`;
  await vi.waitUntil(
    async () => {
      const [found] = await replica.query<{ known: boolean; has_table: boolean }>(replayed);
      return found?.known === true && found.has_table;
    },
    { timeout: 300_000, interval: 100 },
  );
  await replica.query('select pg_wal_replay_pause()');
  try {
    await vi.waitUntil(
      async () => {
        await primary.query('insert into late values (1)');
        const [lag] = await primary.query<{ ms: number | null }>(
          'select cast(max(extract(epoch from replay_lag)) * 1000 as float8) as ms from pg_stat_replication',
        );
        // A figure of the primary can be of the time in which the replica started.
        const [own] = await replica.query<{ ms: number }>(
          'select cast(extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000 as float8) as ms',
        );
        return (lag?.ms ?? 0) > 11_000 && (own?.ms ?? 0) > 11_000;
      },
      { timeout: 300_000, interval: 500 },
    );
    const [ofReplica, ofPrimary] = [await findings(standby.url), await findings(server.url)];
    expect([idsIn(ofReplica), idsIn(ofPrimary)]).toEqual([['W035', 'W036'], ['W036']]);
    expect(ofReplica.join('\n')).toMatch(/The server of database "default" is \d+ s behind\./);
    expect(ofPrimary.join('\n')).toMatch(/A replica of database "default" is \d+ s behind\./);
  } finally {
    await replica.query('select pg_wal_replay_resume()');
    await replica.close();
  }
});

test('connections without keep-alive, and a pool that is too large for the server', async () => {
  const lines = await findings(withParameters(server.url, 'keepalives=0'), { POOL: '80' });
  expect(lines.join('\n')).toMatch(/a pool of 80 of 197 connections, no keep-alive, /);
  expect(idsIn(lines)).toEqual(['W037', 'W038']);
});

test('a server that refuses, and one that never answers: said in seconds', async () => {
  const proxy = await TcpProxy.start(1);
  try {
    proxy.lead('nowhere');
    const began = performance.now();
    for (const url of [server.url.replace(/:\d+\//, ':1/'), proxy.through(server.url)])
      expect((await findings(url)).join('\n')).toMatch(
        /^fault +(?:start-up|database default): E025 The database cannot be reached: .+DATABASE_URL/m,
      );
    // One attempt to connect each; the rest is the start of two programs.
    expect(performance.now() - began).toBeLessThan(60_000);
  } finally {
    await proxy.stop();
  }
});
