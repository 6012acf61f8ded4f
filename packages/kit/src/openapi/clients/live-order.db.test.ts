import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LiveApp, send, startLive, ticketModule } from '../../../test/crud/live.ts';
import { coreTables } from '../../app/data/migration-modules.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { generateClient } from './generate-client.ts';

// Code points above U+FFFF are after U+FFFD for a database, and before it for JavaScript.
const TITLES = ['a', 'B', 'ä', '\u{1F600}', '\uFFFD', 'aa', 'Z'];
const PRICES = ['-3.50', '9.00', '10.00', null, '0.05', '-10.00', '123456789.01'];
const COUNTS = ['9', '10', '-1', '9007199254740993', '9007199254740992', '0', '100'];
const TIMES = [
  null,
  '2026-01-02T00:00:00.000Z',
  '2026-01-01T23:59:59.999Z',
  null,
  '1999-01-01T00:00:00.000Z',
  '2026-01-02T00:00:00.001Z',
  null,
];

describeDatabases('the lists that generated clients keep', (database) => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-live-order-'));
  let live: LiveApp;
  beforeAll(async () => {
    await migrate(database.db, [coreTables, ticketModule]);
    live = await startLive(database.db);
  });
  afterAll(async () => {
    await live.app.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test.for([false, true])('are in the order of the database after rows came and changed (dates: %s)', async (dates) => {
    const path = join(folder, `api-${dates}.ts`);
    writeFileSync(path, generateClient(live.app.routes, { language: 'typescript', title: 'Tickets', version: '1', dates }));
    const { createClient } = await import(path);
    const { ticket } = createClient({ baseUrl: new URL(live.url).origin, headers: { 'x-user': 'ann' } });
    await database.db.query('delete from tickets');
    const orders = [
      undefined,
      ...['title', 'price', 'count', 'due_at', 'level'].flatMap((name) => [[name], [`-${name}`]]),
      ['level', '-price'],
    ];
    const lists = orders.map(
      (ordering) => ticket.liveList({ ordering }) as AsyncGenerator<readonly { readonly id: string; readonly title: string }[]>,
    );
    for (const list of lists) expect((await list.next()).value).toEqual([]);
    const ids: string[] = [];
    for (const [index, title] of TITLES.entries()) {
      const body = { title, price: PRICES[index], count: COUNTS[index], due_at: TIMES[index], level: index % 3 };
      ids.push(((await send(live.url, 'ann', 'POST', body)).body as { id: string }).id);
    }
    const last = await send(`${live.url}/${ids[0]}`, 'ann', 'PATCH', { price: '9.50', title: 'Za' });
    expect(last.status).toBe(200);
    for (const [place, list] of lists.entries()) {
      const { items } = await ticket.list({ ordering: orders[place], limit: 100 });
      for await (const rows of list) {
        if (!rows.some(({ title }) => title === 'Za')) continue;
        const expected = { order: orders[place], ids: items.map(({ id }: { id: string }) => id) as string[] };
        expect({ order: orders[place], ids: rows.map(({ id }) => id) }).toEqual(expected);
        expect(rows).toHaveLength(TITLES.length);
        break;
      }
    }
  });
});
