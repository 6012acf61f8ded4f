import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../../../test/admin/admin-app.ts';
import { countQueries } from '../../../db/engine/query-observer.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { jobs } from '../index.ts';

/** More than a list looks at where no index has its rows in order. */
const MANY = 60_000;

describeDatabases('filters of the list of jobs', (database) => {
  let site: AdminApp;
  let staff: Browser;
  beforeAll(async () => {
    site = await new AdminApp(database.db, [jobs()], {}).ready();
    staff = await site.browser();
  });
  afterAll(() => site.close());

  const fill = async (status: string, isReady: boolean, from: number, count: number) => {
    const { db } = database;
    const id =
      db.dialect === 'postgres'
        ? `cast(lpad(to_hex(i), 8, '0') || '-0000-7000-8000-000000000000' as uuid)`
        : `printf('%08x-0000-7000-8000-000000000000', i)`;
    await db.query(
      `with recursive n(i) as (select ${from} union all select i + 1 from n where i < ${from + count - 1})
       insert into jobs (id, name, version, queue, status, is_ready, input, attempts_max, run_at, owner_id, created_at)
       select ${id}, 'work', 1, 'default', $1, $2, '{}', 1, $3, '', $3 from n`,
      [status, isReady, new Date()],
    );
    if (db.dialect === 'postgres') await db.query('analyze jobs');
  };
  /** The plan of the page that the filter reads. */
  const planOf = async (filter: string): Promise<string> => {
    const { db } = database;
    const { result, queries } = await countQueries(() => site.get(staff, `resources/jobs?limit=2&filter.${filter}`));
    expect([result.status, result.body.items.length]).toEqual([200, 2]);
    const page = queries.find(({ sql }) => /from "jobs".* order by/s.test(sql));
    if (db.dialect === 'postgres')
      return JSON.stringify(await db.query(`explain (generic_plan, costs off) ${page?.sql}`, [], { replanned: true }));
    const places = page?.sql.match(/\$\d+/g)?.map(() => null);
    return JSON.stringify(await db.query(`explain query plan ${page?.sql}`, places));
  };

  test('a few jobs that are ready or wait, among many that have ended, are found by their indexes', async () => {
    await fill('succeeded', false, 1000, 20_000);
    await fill('queued', true, 1, 3);
    await fill('queued', false, 4, 3);
    for (const filter of ['due=ready', 'due=waiting', 'status=queued'])
      expect([filter, await planOf(filter)]).toEqual([filter, expect.stringMatching(/jobs_ready_in_turn|jobs_waiting/)]);
  });

  test('of many that are ready, the newest are read in order, and no statement sorts them all', async () => {
    await fill('queued', true, 100_000, MANY);
    for (const filter of ['due=ready', 'status=queued']) {
      const plan = await planOf(filter);
      expect([filter, plan]).toEqual([filter, expect.not.stringMatching(/TEMP B-TREE|Sort/)]);
      expect([filter, plan]).toEqual([filter, expect.stringMatching(/autoindex_jobs_1|jobs_pkey/)]);
    }
  });
});
