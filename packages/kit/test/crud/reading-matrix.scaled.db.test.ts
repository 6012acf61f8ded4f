import { inject, expect, test } from 'vitest';
import { scaled } from '../../../../test/provision/scale.ts';
import { admin } from '../../src/admin/index.ts';
import type { Authenticator } from '../../src/auth/request/authenticator.ts';
import type { User } from '../../src/auth/people/principal.ts';
import { accounts, addGroupMember, createGroup, createUser } from '../../src/contrib/accounts/index.ts';
import { accountsOf } from '../../src/contrib/accounts/users/accounts.ts';
import { grant, objectGrants } from '../../src/contrib/grants/index.ts';
import { insertMany } from '../../src/db/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { testApp } from '../../src/testing/test-app.ts';
import { createPostgresDatabase, createSqliteDatabase } from '../../src/testing/test-database.ts';
import { type Combination, declare, type Declared, factors } from './reading/combination.ts';
import { coveringArray } from './reading/covering-array.ts';
import { Comparison, type Started } from './reading/comparison.ts';
import { type Asked, PLAIN } from './reading/oracle.ts';
import { NAMES, tenantOf, type World, worldOf } from './reading/world.ts';

// Every option that changes reading meets every other one, in real apps with real rows. What a caller gets is compared with an oracle in plain
// JavaScript over the raw rows: which rows, in which order, which properties with which values, the count, and every page forward and back.

const SEED = 20_261_117;
/** Each array has every pair of levels; another seed combines them differently. */
const ARRAYS = scaled(1, 25);
/** Of one array, `npm test` takes a part on each database, and each another part; test:long takes all of it on both. */
const PARTS = scaled(12, 1);

async function start(database: string, declared: readonly Declared[]): Promise<Started> {
  const users = new Map<string, User>();
  const byName: Authenticator = {
    name: 'name',
    securityScheme: { type: 'http', scheme: 'name' },
    authenticate({ headers: { 'x-user': name } }) {
      const user = typeof name === 'string' ? users.get(name) : undefined;
      return user === undefined ? null : { user, scheme: 'name', scopes: null };
    },
  };
  const app = await testApp({
    database,
    authenticators: [byName],
    tenant: ({ user }) => (user === null ? 'north' : tenantOf(user.username)),
    modules: [
      accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }),
      admin(),
      objectGrants({
        objects: declared.flatMap(({ actions }) => actions),
        isInTenant: (_db, { username }, key) => tenantOf(username) === key,
      }),
      ...declared.map(({ module }) => module),
    ],
    mount: { '/v1': Object.assign({}, ...declared.map(({ mount }) => mount)) as never },
  });
  const { db } = app.app;
  for (const username of NAMES) {
    const { id, email } = await createUser(db, { username, is_staff: username === 'sue' }, accountsOf(db).management(null));
    users.set(username, { id, username, email, is_active: true, is_staff: username === 'sue', is_superuser: false });
  }
  const team = await createGroup(db, { name: 'team', tenantKey: null });
  await addGroupMember(db, team.id, (users.get('bob') as User).id);
  const worlds: World[] = [];
  for (const { combination, tables, at } of declared) {
    const world = worldOf(combination, users);
    worlds.push(world);
    await insertMany(db, tables.areas, world.areas as never);
    await insertMany(db, tables.rows, world.rows as never);
    await insertMany(db, tables.parts, world.parts as never);
    for (const [table, granted] of [
      ['rows', world.granted],
      ['areas', world.grantedAreas],
    ] as const)
      for (const [id, subjects] of granted)
        for (const subject of subjects) {
          const to = subject === 'ann' ? `user:${users.get('ann')!.id}` : subject === 'team' ? `group:${team.id}` : subject;
          await grant(db, { object: { type: `${table}_${at}`, id }, subject: to, set: 'viewer' });
        }
  }
  return { app, users, worlds };
}

/** The request of a combination. */
const requestIn = ({ ordering, filter, search, deleted, fields, expand }: Combination): Asked => ({
  ordering,
  filter,
  search,
  deleted,
  fields,
  expand,
});

/** Without parameters, and with the parts that choose and order rows alone: one part may hide what another does. */
function partsOf({ ordering, filter, search, deleted }: Combination): Asked[] {
  return [
    PLAIN,
    ...(ordering === 'none' ? [] : [{ ...PLAIN, ordering }]),
    ...(filter === 'none' ? [] : [{ ...PLAIN, filter }]),
    ...(search === 'none' ? [] : [{ ...PLAIN, search }]),
    ...(deleted === 'no' ? [] : [{ ...PLAIN, deleted }]),
  ];
}

const arrays = new Map<number, Combination[]>();
/** Both databases get the same combinations. */
function combinations(seed: number): readonly Combination[] {
  const known = arrays.get(seed) ?? coveringArray(factors, seed);
  arrays.set(seed, known);
  return known;
}

describeDatabases('options that change reading, each with every other', (database) => {
  test.each(Array.from({ length: ARRAYS }, (_, index) => SEED + index))('give what the raw rows say (seed %i)', async (seed) => {
    const part = database.dialect === 'sqlite' ? 0 : 1;
    const declared = combinations(seed)
      .filter((_, index) => index % PARTS === part % PARTS)
      .map((combination, index) => declare(String(index), combination));
    const server = (inject as (key: string) => unknown)('postgresUrl');
    const place = database.dialect === 'sqlite' ? await createSqliteDatabase() : await createPostgresDatabase(server as string);
    const started = await start(place.url, declared);
    const failures: string[] = [];
    let checks = 0;
    const check = async (what: () => Promise<unknown>) => {
      try {
        checks += 1;
        await what();
      } catch (error) {
        failures.push((error as Error).message);
      }
    };
    try {
      for (const [index, each] of declared.entries()) {
        const world = started.worlds[index] as World;
        const asked = requestIn(each.combination);
        for (const name of [...NAMES, null]) {
          // Elsewhere bob is what ann is: a user who is not staff.
          if (name === 'bob' && world.granted.size === 0) continue;
          const caller = { name, user: name === null ? null : (started.users.get(name) as User) };
          const [usual, ...others] = each.combination.parent === 'yes' ? world.areas : [null];
          // Below a parent most rows are below the first area; the others are of another tenant, deleted, or have few rows.
          for (const parent of others) await check(() => new Comparison(started, each, world, caller, parent).list(asked, false));
          const comparison = new Comparison(started, each, world, caller, usual ?? null);
          for (const part of partsOf(each.combination)) await check(() => comparison.list(part, false));
          await check(() => comparison.list(asked, true));
          await check(() => comparison.rows(asked));
          await check(() => comparison.files(asked));
          await check(() => comparison.stats(asked));
          await check(() => comparison.meta());
          await check(() => comparison.program());
          await check(() => comparison.admin());
          // What is hidden depends on the role alone.
          if (name === 'ann' || name === 'sue' || name === null) await check(() => comparison.hiddenNames());
        }
      }
    } finally {
      await started.app.close();
      await place.remove();
    }
    expect(failures.length === 0 ? '' : `${failures.length} of ${checks} differ, such as:\n${failures.slice(0, 5).join('\n')}`).toBe('');
  });
});
