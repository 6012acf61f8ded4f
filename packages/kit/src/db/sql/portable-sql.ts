import { comparableSql } from '../declare/comparable.ts';
import type { Dialect } from '../dialect.ts';
import type { ColumnDefinition } from '../declare/table-definition.ts';
import { requireArguments } from '../../options/read-options.ts';
import { anObject, filledText } from '../../options/value-rule.ts';

/**
 * One column of an ORDER BY that both databases agree on: NULLs last in both directions, decimals by value. NOT NULL columns get no
 * `nulls last`: PostgreSQL would not read an index on `(created_at desc)` for `created_at desc nulls last`.
 */
export function orderSql(column: string, definition: ColumnDefinition, dialect: Dialect, direction: 'asc' | 'desc'): string {
  requireArguments('orderSql()', { column, definition }, { column: filledText, definition: anObject });
  const nulls = definition.nullable ? ' nulls last' : '';
  return comparableSql(column, definition, dialect)
    .map((term) => `${term} ${direction}${nulls}`)
    .join(', ');
}

/**
 * A text condition without wildcards that ignores the case of A–Z and of nothing else: that is what SQLite can do, and what PostgreSQL does
 * under the "C" collation. `folded` is SQL whose A–Z are in lower case already.
 */
export function textSql(operator: 'contains' | 'starts' | 'ends', column: string, folded: string, dialect: Dialect): string {
  const text = dialect === 'sqlite' ? `lower(${column})` : `lower(${column} collate "C")`;
  const value = dialect === 'sqlite' ? folded : `${folded}::text`;
  switch (operator) {
    case 'contains':
      return dialect === 'sqlite' ? `instr(${text}, ${value}) > 0` : `strpos(${text}, ${value}) > 0`;
    case 'starts':
      return dialect === 'sqlite' ? `substr(${text}, 1, length(${value})) = ${value}` : `starts_with(${text}, ${value})`;
    default:
      // Not substr(…, -length): of an empty value that is the whole text on SQLite.
      return dialect === 'sqlite'
        ? `substr(${text}, length(${text}) - length(${value}) + 1) = ${value}`
        : `right(${text}, length(${value})) = ${value}`;
  }
}

/** "Contains this text", without wildcards; A–Z match a–z unless `caseSensitive`. */
export function containsSql(
  column: string,
  placeholder: string,
  dialect: Dialect,
  options: { readonly caseSensitive?: boolean } = {},
): string {
  if (options.caseSensitive === true)
    return dialect === 'sqlite' ? `instr(${column}, ${placeholder}) > 0` : `strpos(${column}, ${placeholder}) > 0`;
  return textSql('contains', column, dialect === 'sqlite' ? `lower(${placeholder})` : `lower(${placeholder}::text collate "C")`, dialect);
}

export function startsWithSql(column: string, placeholder: string, dialect: Dialect): string {
  return dialect === 'sqlite' ? `substr(${column}, 1, length(${placeholder})) = ${placeholder}` : `starts_with(${column}, ${placeholder})`;
}
