import { afterAll, beforeAll, expect, test } from 'vitest';
import { scaled } from '../../../../../test/provision/scale.ts';
import { Follower, type LiveApp, resetRights, rights, send, startLive, ticketModule, ticketResource } from '../../../test/crud/live.ts';
import { people } from '../../../test/crud/shop.ts';
import { coreTables } from '../../app/data/migration-modules.ts';
import type { Database } from '../../db/engine/db.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { touched } from '../index.ts';

/** Of each database: half a minute together, or an hour. `LIVE_SECONDS` says another time. */
const DURATION_MS = Number(process.env['LIVE_SECONDS'] ?? scaled(15_000, 30 * 60_000) / 1000) * 1000;
/** Operations between two moments at which everything is compared. */
const ROUND = 15;
const SEED = Number(process.env['LIVE_SEED'] ?? Date.now() % 1_000_000);

const PEOPLE = ['ann', 'bob', 'cid', 'sue'] as const;
const QUERIES = ['', '?status=open', '?title__contains=a', '?level__gte=2', '?status__in=open,held&level__lt=4', '?search=b'];

interface Row {
  readonly id: string;
  readonly org: string;
  readonly owner_id: string;
  readonly title: string;
  readonly status: string;
  readonly level: number;
  readonly version: number;
}

/** The committed rows and the rights after one operation. */
interface State {
  readonly rows: readonly Row[];
  readonly levels: ReadonlyMap<string, number>;
}

/** What a person's list is in a state, decided here once more. */
function listIn({ rows }: State, { levels }: State, { person, query }: Follower): string {
  const parameters = new URLSearchParams(query);
  const is = (name: string, test: (value: string) => boolean) => parameters.get(name) === null || test(parameters.get(name) as string);
  return viewOf(
    rows.filter(
      (row) =>
        row.org === people[person].tenant &&
        (person === 'sue' || row.owner_id === people[person].id) &&
        row.level <= (levels.get(person) ?? 5) &&
        is('status', (value) => row.status === value) &&
        is('title__contains', (value) => row.title.includes(value)) &&
        is('search', (value) => row.title.includes(value)) &&
        is('level__gte', (value) => row.level >= Number(value)) &&
        is('level__lt', (value) => row.level < Number(value)) &&
        is('status__in', (value) => value.split(',').includes(row.status)),
    ),
  );
}

function viewOf(rows: Iterable<Pick<Row, 'id' | 'version'>>): string {
  return [...rows]
    .map(({ id, version }) => `${id} ${version}`)
    .toSorted()
    .join('\n');
}

/** A generator of numbers, the same for the same seed. */
function random(seed: number): (below: number) => number {
  let state = seed + 0x9e3779b9;
  return (below) => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5;
    const mixed = Math.imul(state ^ (state >>> 13), 0x297a2d39);
    return ((mixed ^ (mixed >>> 16)) >>> 0) % below;
  };
}

describeDatabases('live lists under random writes, rights and connections', (database) => {
  let db: Database;
  const apps: LiveApp[] = [];
  const followers: Follower[] = [];

  beforeAll(async () => {
    db = database.db;
    await migrate(db, [coreTables, ticketModule]);
    apps.push(await startLive(db), await startLive(await database.open()), await startLive(await database.open()));
    resetRights();
  });
  afterAll(async () => {
    for (const follower of followers) await follower.disconnect();
    for (const { app } of apps) await app.close();
  });

  const select = 'select id, org, owner_id, title, status, level, version from tickets where deleted_at is null order by id';

  test(
    `after each batch a client has its list of some moment, in order, and at last that of now (seed ${SEED})`,
    { timeout: DURATION_MS + 120_000 },
    async () => {
      const next = random(SEED);
      const pick = <X>(from: readonly X[]): X => from[next(from.length)] as X;
      const anyApp = () => pick(apps).url;
      let states: State[] = [];
      const note = async () => void states.push({ rows: await db.query<Row>(select), levels: new Map(rights.level) });
      /** What each follower had after each batch since the last comparison. */
      const views = new Map<Follower, string[]>();
      for (const person of PEOPLE)
        for (const query of QUERIES) {
          const follower = new Follower(person, query);
          views.set(follower, []);
          follower.onBatch = () => views.get(follower)?.push(viewOf(follower.rows.values()));
          followers.push(follower);
        }
      await note();
      for (const follower of followers) await follower.connect(anyApp());
      let held: { readonly commit: () => void; readonly done: Promise<void> } | undefined;
      const release = async (): Promise<void> => {
        held?.commit();
        await held?.done;
        held = undefined;
        await note();
      };
      const rowOf = async (): Promise<Row | undefined> => pick((await db.query<Row>(select)).slice(0, 12));
      const titles = ['a', 'b', 'ab', 'c'];
      const statuses = ['open', 'held', 'closed'];

      let [operations, restarts] = [0, 0];
      const possible: readonly (() => Promise<unknown>)[] = [
        () => send(anyApp(), pick(PEOPLE), 'POST', { title: pick(titles), level: next(6), status: pick(statuses) }),
        () => send(anyApp(), pick(PEOPLE), 'POST', { title: pick(titles), level: next(3) }),
        () => send(`${anyApp()}/bulk`, pick(PEOPLE), 'POST', { items: [1, 2, 3].map(() => ({ title: pick(titles), level: next(6) })) }),
        ...[1, 2, 3, 4].map(() => async () => {
          const row = await rowOf();
          if (row === undefined) return;
          const values = pick([{ title: pick(titles) }, { status: pick(statuses) }, { level: next(6) }, { title: 'ab', status: 'open' }]);
          await send(`${anyApp()}/${row.id}`, pick(PEOPLE), 'PATCH', values);
        }),
        async () => send(`${anyApp()}/${(await rowOf())?.id ?? ''}`, pick(PEOPLE), 'DELETE'),
        async () => {
          const [gone] = await db.query<{ id: string }>('select id from tickets where deleted_at is not null order by id limit 1');
          if (gone !== undefined) await send(`${anyApp()}/${gone.id}/restore`, pick(PEOPLE), 'POST');
        },
        async () => {
          const row = await rowOf();
          if (row === undefined || held !== undefined) return;
          const status = pick(statuses);
          await db.transaction(async (tx) => {
            await tx.query('update tickets set status = $1, version = version + 1 where id = $2', [status, row.id]);
            await touched(tx, ticketResource, [row.id]);
          });
        },
        async () => {
          rights.level.set(pick(PEOPLE), next(6));
        },
        async () => {
          const follower = pick(followers);
          await follower.disconnect();
          if (next(3) === 0) rights.level.set(follower.person, next(6));
        },
        async () => {
          for (const follower of followers) if (follower.isClosed) await follower.connect(anyApp());
        },
        // A process that stops, or is killed: its connections break without a word.
        async () => {
          if (next(3) !== 0) return;
          const place = 1 + next(apps.length - 1);
          const { app, url } = apps[place] as LiveApp;
          if (next(2) === 0) app.fastify.server.closeAllConnections();
          await app.close();
          await app.db.close();
          for (const follower of followers) if (follower.url === url) await follower.disconnect();
          apps[place] = await startLive(await database.open());
          restarts += 1;
        },
        // A transaction that stays open while others go on.
        async () => {
          if (db.dialect === 'sqlite') return;
          if (held !== undefined) return release();
          const [begun, committing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
          const id = crypto.randomUUID();
          const done = db.transaction(async (tx) => {
            await tx.query(
              `insert into tickets (id, org, owner_id, title, level, margin, created_at, updated_at, version) values ($1, 'north', $2, 'late b', 1, 0, now(), now(), 1)`,
              [id, people.ann.id],
            );
            await touched(tx, ticketResource, [id]);
            begun.resolve();
            await committing.promise;
          });
          await begun.promise;
          held = { commit: committing.resolve, done };
        },
      ];

      const until = Date.now() + DURATION_MS;
      for (let count = 1; Date.now() < until || count % ROUND !== 1; count += 1) {
        await pick(possible)();
        operations += 1;
        await note();
        if (count % ROUND !== 0) continue;
        await release();
        for (const follower of followers) if (follower.isClosed) await follower.connect(anyApp());
        for (const follower of followers) await follower.settled(apps[0]?.url as string);
        for (const [follower, seen] of views) {
          let from = 0;
          for (const view of seen) {
            // Rights may be newer than the rows by the operations that went on while they were looked up.
            const found = states.findIndex(
              (state, place) => place >= from && states.slice(place, place + 4).some((later) => listIn(state, later, follower) === view),
            );
            expect(found, `${follower.person}${follower.query}: after a batch, the rows were those of no moment:\n${view}`).not.toBe(-1);
            from = found;
          }
          views.set(follower, []);
        }
        states = states.slice(-1);
      }
      const batches = followers.reduce((sum, each) => sum + each.batches, 0);
      const resets = followers.reduce((sum, { log }) => sum + log.filter(({ event }) => event === 'reset').length, 0);
      console.info(
        `live lists (${db.dialect}): ${JSON.stringify({ seed: SEED, seconds: DURATION_MS / 1000, operations, batches, resets, restarts })}`,
      );
      expect(batches).toBeGreaterThan(followers.length);
    },
  );
});
