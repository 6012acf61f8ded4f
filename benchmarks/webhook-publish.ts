// What does publishing add to a business transaction on PostgreSQL? A transaction that inserts a row, compared with the same one that also publishes to
// 0, 10 and 100 matching endpoints, that writes the outbox a careful team writes by hand (event row, delivery rows by one insert-select, primary
// and foreign keys, one partial index of due rows), and that adds as many jobs with graphile_worker.add_jobs. With 1 and with 32 connections.
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { createEndpoint } from '../packages/kit/src/contrib/webhooks/endpoints/create-endpoint.ts';
import { webhookMigrations } from '../packages/kit/src/contrib/webhooks/migrations/all.ts';
import { webhookModels } from '../packages/kit/src/contrib/webhooks/models.ts';
import { publish } from '../packages/kit/src/contrib/webhooks/publishing/publish.ts';
import { unbindWebhooks, useWebhooks } from '../packages/kit/src/contrib/webhooks/webhooks.ts';
import { countQueries, migrate, openDatabase, uuidv7, type Database, type Db } from '../packages/kit/src/db/index.ts';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { contest, ratioOf, type Contender } from './harness/contest.ts';
import { ratePerSecond } from './harness/loop.ts';
import { installPeers, peerUrl } from './harness/peers.ts';

const ENDPOINTS = [0, 10, 100];
/**
 * The disk is now fast and now slow, for seconds: many short rounds, each compared within itself, leave that out. With one connection every
 * transaction waits for it, and rounds differ more: with 50 of them two runs read 0.95 and 0.88 for the same code.
 */
const TURN_SECONDS = 0.4;
const roundsFor = (connections: number): number => (connections === 1 ? 120 : 50);
const TURNS_UNTIL_SHORTENED = 9;
const CONNECTIONS = [1, 32];
const GRAPHILE = { 'graphile-worker': '0.18.0' };
const data = { n: 1 };

const HAND_WRITTEN = [
  'create table hand_endpoints (id uuid primary key, owner text not null, is_active boolean not null default true)',
  'create index hand_endpoints_owner on hand_endpoints (owner)',
  'create table hand_events (id uuid primary key, type text not null, data jsonb not null, created_at timestamptz not null)',
  `create table hand_deliveries (id uuid primary key default gen_random_uuid(), event_id uuid not null references hand_events on delete cascade,
    endpoint_id uuid not null references hand_endpoints on delete cascade, status text not null default 'pending',
    attempts integer not null default 0, due_at timestamptz)`,
  `create index hand_deliveries_due on hand_deliveries (due_at) where status = 'pending'`,
];

async function handWritten(tx: Db, owner: string): Promise<void> {
  const id = uuidv7();
  await tx.query('insert into hand_events (id, type, data, created_at) values ($1, $2, $3, now())', [
    id,
    'order.paid',
    JSON.stringify(data),
  ]);
  await tx.query(
    'insert into hand_deliveries (event_id, endpoint_id, due_at) select $1, id, now() from hand_endpoints where owner = $2 and is_active',
    [id, owner],
  );
}

async function addJobs(tx: Db, count: number): Promise<void> {
  if (count === 0) return;
  const specs = JSON.stringify(Array.from({ length: count }, () => ({ identifier: 'send', payload: { type: 'order.paid', data } })));
  await tx.query(
    `select count(*) from graphile_worker.add_jobs(array(
       select json_populate_record(null::graphile_worker.job_spec, value) from json_array_elements(cast($1 as json))))`,
    [specs],
  );
}

async function prepare(database: Database, context: BenchmarkContext, url: string): Promise<void> {
  await migrate(database, [{ name: 'webhooks', models: [...webhookModels], migrations: webhookMigrations }]);
  await database.query('create table business_rows (id uuid primary key)');
  for (const statement of HAND_WRITTEN) await database.query(statement);
  for (const endpoints of ENDPOINTS) {
    await database.transaction(async (tx) => {
      for (let n = 0; n < endpoints; n++) {
        await createEndpoint(tx, { owner: `owner-${endpoints}`, url: 'https://example.com/', events: ['order.*'] });
        await tx.query('insert into hand_endpoints (id, owner) values ($1, $2)', [uuidv7(), `owner-${endpoints}`]);
      }
    });
  }
  const folder = installPeers(GRAPHILE, (line) => context.print(line));
  const { makeWorkerUtils } = (await import(peerUrl(folder, 'graphile-worker'))) as {
    makeWorkerUtils: (options: object) => Promise<{ migrate(): Promise<void>; release(): Promise<void> }>;
  };
  const tools = await makeWorkerUtils({ connectionString: url });
  await tools.migrate();
  await tools.release();
}

async function compare(context: BenchmarkContext, database: Database, connections: number, endpoints: number) {
  const owner = `owner-${endpoints}`;
  let turns = 0;
  /** Everybody inserts into short tables, and nobody right after they were emptied more often than others: once every nine turns, of four. */
  const shorten = async (): Promise<void> => {
    turns += 1;
    if (turns % TURNS_UNTIL_SHORTENED !== 0) return;
    await database.query('truncate business_rows, hand_events, webhook_events, webhook_deliveries cascade');
    await database.query('truncate graphile_worker._private_jobs');
  };
  const change = (tx: Db): Promise<unknown> => tx.query('insert into business_rows (id) values ($1)', [uuidv7()]);
  const contender = (name: string, also: (tx: Db) => Promise<unknown>): Contender => ({
    name,
    async measure(seconds) {
      const rate = await ratePerSecond(
        () =>
          database.transaction(async (tx) => {
            await change(tx);
            await also(tx);
          }),
        seconds,
        connections,
      );
      await shorten();
      return rate;
    },
  });
  context.print(`${connections} connections, ${endpoints} endpoints`);
  const result = await contest(context.quick ? context : { ...context, rounds: roundsFor(connections), roundSeconds: TURN_SECONDS }, [
    contender('the change alone', async () => undefined),
    contender('publish', (tx) => publish(tx, 'order.paid', data, { owner })),
    contender('hand-written outbox', (tx) => handWritten(tx, owner)),
    contender('graphile_worker.add_jobs', (tx) => addJobs(tx, endpoints)),
  ]);
  const name = `webhook-publish-${connections}x${endpoints}`;
  return [
    { name: `${name}-of-hand-written`, value: ratioOf(result, 'publish', 'hand-written outbox'), goal: 0.75 },
    // Without endpoints it adds no job, and so does nothing.
    ...(endpoints === 0 ? [] : [{ name: `${name}-of-add-jobs`, value: ratioOf(result, 'publish', 'graphile_worker.add_jobs'), goal: 1 }]),
  ];
}

export default defineBenchmark({
  name: 'webhook-publish',
  question:
    'How many round trips does publish add to a transaction, and what does it cost beside an outbox written by hand and a job queue?',
  async run(context) {
    const postgres = await startPostgresServer({ durable: true });
    const database = await openDatabase(postgres.url, { poolMax: Math.max(...CONNECTIONS) });
    useWebhooks(database, { endpointsPerOwnerMax: 1000 });
    try {
      await prepare(database, context, postgres.url);
      const { count } = await countQueries(() =>
        database.transaction((tx) => publish(tx, 'order.paid', data, { owner: `owner-${ENDPOINTS.at(-1)}` })),
      );
      const results: { name: string; value: number; goal: number; atMost?: true }[] = [
        { name: 'webhook-publish-round-trips', value: count, goal: 1, atMost: true },
      ];
      for (const connections of CONNECTIONS)
        for (const endpoints of ENDPOINTS) results.push(...(await compare(context, database, connections, endpoints)));
      return results;
    } finally {
      unbindWebhooks(database);
      await database.close();
      await postgres.stop();
    }
  },
});
