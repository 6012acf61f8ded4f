import type { Db } from '../../db/engine/db.ts';
import type { Cursors } from '../../db/sql/keyset/cursor.ts';
import { cutPage, neighborsOf } from '../../db/sql/keyset/keyset.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { Page } from '../../http/declare/page.ts';
import { countEntries, type EntryFilter, readPage, type StoredEntry } from './store.ts';

/** One page of entries, newest first. A cursor belongs to its filters, and carries the count of the first page. */
export async function listEntries(
  db: Db,
  cursors: Cursors,
  filter: EntryFilter,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | undefined },
): Promise<Page<StoredEntry>> {
  const binding = JSON.stringify(['audit', filter]);
  const from = cursor === undefined ? undefined : cursors.read(cursor, binding);
  if (cursor !== undefined && from === undefined)
    throw coreErrors.validation_error({
      errors: [
        {
          location: ['query', 'cursor'],
          code: 'invalid_cursor',
          message: 'The cursor does not belong to this list. Send the request again without it.',
        },
      ],
    });
  const count = from === undefined ? await countEntries(db, filter) : from.count;
  const found = await readPage(db, filter, { limit: limit + 1, from });
  const { rows, hasMore } = cutPage(found, limit, from?.backwards ?? false);
  const positionOf = (entry: StoredEntry | undefined) => (entry === undefined ? undefined : [String(entry.seq)]);
  const neighbors = neighborsOf({ from, first: positionOf(rows[0]), last: positionOf(rows.at(-1)), hasMore });
  return { items: rows, count, ...cursors.writeAround(neighbors, count, binding) };
}
