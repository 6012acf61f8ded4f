import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type PostgresServer, startPostgresServer } from '../../../../../test/provision/postgres-server.ts';
import { TcpProxy } from '../../../../../test/provision/tcp-proxy.ts';
import { Follower, type LiveApp, send, startLive, ticketModule } from '../../../test/crud/live.ts';
import { coreTables } from '../../app/data/migration-modules.ts';
import { type Database, openDatabase } from '../../db/index.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { createPostgresDatabase } from '../../testing/index.ts';

const PATIENCE = { timeout: 60_000, interval: 50 };

let server: PostgresServer;
let proxy: TcpProxy;
let db: Database;
let live: LiveApp;
let standby: Database;
let standbyPort: number;
const follower = new Follower('ann');

beforeAll(async () => {
  server = await startPostgresServer();
  const place = await createPostgresDatabase(server.url);
  const replica = await server.standby();
  standbyPort = Number(new URL(replica.url).port);
  standby = await openDatabase(Object.assign(new URL(replica.url), { pathname: new URL(place.url).pathname }).href);
  proxy = await TcpProxy.start(Number(new URL(server.url).port));
  db = await openDatabase(proxy.through(place.url));
  await migrate(db, [coreTables, ticketModule]);
  live = await startLive(db);
});
afterAll(async () => {
  await follower.disconnect();
  await live?.app.close();
  await standby?.close();
  await proxy?.stop();
  await server?.stop();
});

const write = async (title: string): Promise<void> => {
  await vi.waitFor(async () => expect((await send(live.url, 'ann', 'POST', { title })).status).toBe(201), PATIENCE);
};
const titles = () => new Set([...follower.rows.values()].map(({ title }) => title as string));

test('a standby that takes over without the last changes: what was lost leaves the lists, and what is written then is in them', async () => {
  await write('kept');
  await vi.waitFor(async () => expect(await standby.query(`select id from tickets where title = 'kept'`)).toHaveLength(1), PATIENCE);
  await follower.connect(live.url);
  await standby.query(`alter system set primary_conninfo = ''`);
  await standby.query('select pg_reload_conf()');
  await vi.waitFor(async () => expect(await standby.query('select pid from pg_stat_wal_receiver')).toEqual([]), PATIENCE);
  for (let count = 0; count < 30; count += 1) await write(`lost ${count}`);
  await vi.waitFor(() => expect(follower.rows.size).toBe(31), PATIENCE);
  await standby.query('select pg_promote()');
  proxy.lead(standbyPort);
  proxy.reset();
  // The numbers of its transactions are those of the ones that were lost.
  await write('written then');
  await vi.waitFor(() => expect(titles()).toEqual(new Set(['kept', 'written then'])), PATIENCE);
  await write('and later');
  await follower.settled(live.url, PATIENCE.timeout);
});
