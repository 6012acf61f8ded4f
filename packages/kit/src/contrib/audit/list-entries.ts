import type { Db } from '../../db/db.ts';
import type { Cursors } from '../../db/keyset/cursor.ts';
import { keysetPage } from '../../db/keyset/keyset.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { Page } from '../../http/page.ts';
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
      errors: [{ location: ['query', 'cursor'], code: 'invalid_cursor', message: 'This is no cursor of this list; begin without one.' }],
    });
  const backwards = from?.backwards ?? false;
  const count = from === undefined ? await countEntries(db, filter) : from.count;
  const position = from === undefined ? undefined : String(from.position[0]);
  const found = await readPage(db, filter, { limit: limit + 1, position, backwards });
  const { rows, next, previous } = keysetPage(found, limit, { backwards, hasPosition: from !== undefined });
  const write = (entry: StoredEntry | undefined, towardsStart: boolean): string | null =>
    entry === undefined ? null : cursors.write({ position: [String(entry.seq)], backwards: towardsStart, count }, binding);
  return { items: rows, count, next: write(next, false), previous: write(previous, true) };
}
