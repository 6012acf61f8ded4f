// The table that files are made of and read into, the same for every contender.
import { model, t } from 'kit/db';

export const OWNER = '00000000-0000-7000-8000-000000000001';

export const rows = model(
  'rows',
  {
    id: t.uuidv7().pk(),
    owner_id: t.uuid().readOnly(),
    sku: t.text(40),
    title: t.text(200),
    quantity: t.int({ min: 0 }),
    total: t.decimal(12, 2),
    note: t.text(500).nullable(),
    created_at: t.timestamp().dbDefault('now').readOnly(),
  },
  { indexes: [{ columns: ['owner_id', '-id'] }] },
);

export const COLUMNS = Object.keys(rows.columns);

/** One INSERT that makes so many rows of the owner. */
export function fillSql(dialect: 'postgres' | 'sqlite', count: number): string {
  const [id, total, at] =
    dialect === 'postgres'
      ? [
          `('01890000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid`,
          `(i % 900)::numeric + 0.5`,
          `timestamptz '2026-01-01' + i * interval '1 second'`,
        ]
      : [
          `printf('01890000-0000-7000-8000-%012d', i)`,
          `printf('%d.50', i % 900)`,
          `strftime('%Y-%m-%dT%H:%M:%fZ', 1767225600 + i, 'unixepoch')`,
        ];
  const [before, from] =
    dialect === 'postgres'
      ? ['', `generate_series(1, ${count}) as n(i)`]
      : [`with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count}) `, 'n'];
  return `insert into rows (${COLUMNS.join(', ')}) ${before}select ${id}, '${OWNER}', 'sku-' || i, 'A thing, "quoted" now and then', i % 90, ${total}, case when i % 3 = 0 then null else 'a note' end, ${at} from ${from}`;
}
