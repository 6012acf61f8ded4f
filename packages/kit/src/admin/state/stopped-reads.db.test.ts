import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../../test/admin/admin-app.ts';
import type { AdminTile } from '../../app/admin/sections.ts';
import { continuesSql } from '../../db/engine/sqlite/continues-sql.ts';
import { describeDatabases } from '../../testing/databases.ts';

const endless = {
  sqlite: `with recursive each(n) as (select 1 union all select n + 1 from each) select count(*) as n from each where ${continuesSql('n')}`,
  postgres: 'select pg_sleep(600) as n',
} as const;

describeDatabases('reads that were stopped', (database) => {
  let site: AdminApp;
  let staff: Browser;
  beforeAll(async () => {
    site = await new AdminApp(database.db).ready();
    staff = await site.browser();
  });
  afterAll(() => site.close());

  const read = (long: { readonly deadlineMs: number; readonly signal?: AbortSignal }) =>
    database.db.query(endless[database.dialect], [], { long: { ...long, owner: 'user ann' } }).catch(() => undefined);
  const health = async () => {
    // It is counted at most every five seconds.
    site.clock.advance(5_001);
    const { parts } = (await site.get(staff, 'overview?range=1h')).body;
    const [{ tiles, tables }] = parts as [{ tiles: AdminTile[]; tables: [{ rows: { title: string }[] }] }];
    const tile = tiles.find(({ label }) => label === 'Reads stopped');
    return { ...tile, alerts: tables[0].rows.map(({ title }) => title) };
  };

  test('are counted on the overview for a quarter of an hour, and are an alert when they are many', async () => {
    expect(await health()).toMatchObject({ value: 0, tone: 'good', alerts: [] });
    await read({ deadlineMs: 500 });
    await read({ deadlineMs: 5000, signal: AbortSignal.abort() });
    const one = await health();
    expect(one).toMatchObject({ value: 1, tone: 'good', alerts: [] });
    expect(one.hint).toMatch(/1 passed their deadline, 0 were rejected, 1 ended with their client\./);
    for (let n = 0; n < 89; n += 1) await read({ deadlineMs: 1 });
    expect(await health()).toMatchObject({ value: 90, tone: 'warning', alerts: ['Health: Reads stopped'] });
    site.clock.advance(15 * 60_000);
    expect(await health()).toMatchObject({ value: 0, tone: 'good', alerts: [] });
  });
});
