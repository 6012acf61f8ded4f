import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import type { Database } from '../engine/db.ts';
import { tableStatements } from '../sql/ddl.ts';
import { model } from '../declare/model.ts';
import { countQueries } from '../engine/query-observer.ts';
import { insertMany, list, type ListOptions } from './repository.ts';

const events = model(
  'events',
  { id: t.int().pk(), owner_id: t.int(), made_at: t.timestamp(), due_at: t.timestamp().nullable(), title: t.text(20) },
  {
    indexes: [
      { columns: ['owner_id', '-made_at', '-id'] },
      { columns: ['owner_id', '-due_at', '-id'] },
      { columns: ['owner_id', 'title', 'id'] },
    ],
  },
);
const OWNERS = 10;
const ROWS = 3_000;

/** The plan of the statement that `list` sends. */
async function planOf(db: Database, options: ListOptions<typeof events>): Promise<string> {
  const { queries } = await countQueries(() => list(db, events, options));
  const text = queries[0]?.sql ?? '';
  const values = text.includes('?') || text.includes('$1') ? [3, 20] : [];
  const lines =
    db.dialect === 'sqlite'
      ? (await db.query<{ detail: string }>(`explain query plan ${text.replace('?', '$1').replace('?', '$2')}`, values)).map(
          ({ detail }) => detail,
        )
      : (await db.query<Record<string, string>>(`explain ${text}`, values)).map((row) => row['QUERY PLAN'] ?? '');
  return lines.join('\n');
}

describeDatabases(
  'an ordered list',
  (database) => {
    test.each([
      ['newest first', ['-made_at', '-id'], 'events_owner_id_made_at_id_index'],
      ['oldest first', ['made_at', 'id'], 'events_owner_id_made_at_id_index'],
      ['by a column with NULLs, descending', ['-due_at', '-id'], 'events_owner_id_due_at_id_index'],
      ['by text', ['title', 'id'], 'events_owner_id_title_id_index'],
    ] as const)('reads its index, without sorting: %s', async (_name, orderBy, index) => {
      const plan = await planOf(database.db, { where: { owner_id: 3 }, orderBy, limit: 20 });
      expect(plan).toContain(index);
      expect(plan).not.toMatch(/sort|temp b-tree/i);
    });

    test('has NULLs last in both directions, decimals and text by value', async () => {
      const idsOf = async (orderBy: '-due_at' | 'due_at'): Promise<(Date | null)[]> =>
        (await list(database.db, events, { where: { owner_id: 3 }, orderBy: [orderBy, 'id'] })).map((row) => row.due_at);
      for (const order of ['due_at', '-due_at'] as const) {
        const found = await idsOf(order);
        const first = found.indexOf(null);
        expect(first).toBeGreaterThan(0);
        expect(found.slice(first).every((each) => each === null)).toBe(true);
      }
    });
  },
  {
    prepare: async (db) => {
      for (const statement of tableStatements(events.table, db.dialect)) await db.query(statement);
      const start = Date.parse('2026-01-01T00:00:00Z');
      await insertMany(
        db,
        events,
        Array.from({ length: ROWS }, (_, id) => ({
          id,
          owner_id: id % OWNERS,
          made_at: new Date(start + id * 1000),
          due_at: id % 3 === 0 ? null : new Date(start - id * 1000),
          title: `t${(id * 7919) % ROWS}`,
        })),
      );
      await db.query('analyze');
    },
  },
);
