import type { Dialect } from './dialect.ts';
import type { ColumnKind } from './table-definition.ts';

/**
 * Ordering that both databases agree on: NULLs last (SQLite has them first, PostgreSQL last when ascending), decimals by
 * value (SQLite keeps them as text; as doubles they are exact to 15 digits, the text breaks ties).
 */
export function orderSql(column: string, kind: ColumnKind, dialect: Dialect, direction: 'asc' | 'desc'): string {
  const term = `${column} ${direction} nulls last`;
  return kind === 'decimal' && dialect === 'sqlite' ? `cast(${column} as real) ${direction} nulls last, ${term}` : term;
}

/**
 * "Contains this text", without wildcards. Ignoring case folds A–Z only: that is what SQLite can, and what PostgreSQL does
 * under the "C" collation of our columns.
 */
export function containsSql(
  column: string,
  placeholder: string,
  dialect: Dialect,
  options: { readonly caseSensitive?: boolean } = {},
): string {
  if (options.caseSensitive === true)
    return dialect === 'sqlite' ? `instr(${column}, ${placeholder}) > 0` : `strpos(${column}, ${placeholder}) > 0`;
  return dialect === 'sqlite'
    ? `instr(lower(${column}), lower(${placeholder})) > 0`
    : `strpos(lower(${column} collate "C"), lower(${placeholder}::text collate "C")) > 0`;
}

export function startsWithSql(column: string, placeholder: string, dialect: Dialect): string {
  return dialect === 'sqlite' ? `substr(${column}, 1, length(${placeholder})) = ${placeholder}` : `starts_with(${column}, ${placeholder})`;
}
