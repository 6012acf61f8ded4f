import type { AdminListQuery } from '../app/admin/declaration.ts';
import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import { propertiesOf } from './schema-words.ts';

type Item = Readonly<Record<string, unknown>>;

/** Pages of this list are counted by numbers. */
const isNumbered = ({ query }: CompiledRoute): boolean => 'page' in propertiesOf(query?.json);

export function sized(list: CompiledRoute, limit: number, cursor: string | null): Readonly<Record<string, string>> {
  // A list with all of its records.
  if (list.query === undefined) return {};
  if (isNumbered(list)) return { page_size: String(limit), page: cursor ?? '1' };
  return { limit: String(limit), ...(cursor === null ? {} : { cursor }) };
}

export function nextOf(
  list: CompiledRoute,
  { next, count, items }: Item,
  { limit, cursor }: Pick<AdminListQuery, 'limit' | 'cursor'>,
): string | null {
  if (!isNumbered(list)) return typeof next === 'string' ? (new URLSearchParams(next.replace(/^[^?]*\?/, '')).get('cursor') ?? next) : null;
  const page = Number(cursor ?? '1');
  const isLast = typeof count === 'number' ? page * limit >= count : (items as readonly unknown[]).length < limit;
  return isLast ? null : String(page + 1);
}
