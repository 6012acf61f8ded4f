import type { Where } from '../db/sql/where/where.ts';
import { uuidv7LowerBound } from '../db/values/uuidv7.ts';
import type { ScreenFilter } from './screen-words.ts';

type Words = Pick<Extract<ScreenFilter, { readonly where: unknown }>, 'name' | 'label'>;

/**
 * The filter by the time that the key of a row has (UUIDv7): `since` a time, or `until` it. A list is read in this order: the newest rows until a time are
 * found where no other filter is set.
 */
export function keyTimeFilter(words: Words): ScreenFilter {
  return {
    ...words,
    kind: 'time',
    ends: ['since', 'until'],
    isIndexed: (_time, where) => 'gte' in (where as { readonly id: object }).id || 'alone',
    where(time, _context, end) {
      const bound = uuidv7LowerBound(new Date(time));
      return { id: end === 'from' ? { gte: bound } : { lt: bound } } as Where;
    },
  };
}
