import type { AdminOrder } from '../../app/admin/model-columns.ts';
import { quoteName } from '../../db/declare/names.ts';
import type { ColumnDefinition } from '../../db/declare/table-definition.ts';
import type { Dialect } from '../../db/dialect.ts';
import { Keyset } from '../../db/sql/keyset/keyset.ts';

const ORDER_KINDS = { text: 'text', number: 'float', time: 'timestamp' } as const;

/** What a list of the admin site goes by in the end. */
export interface StaffKey {
  readonly key: string;
  readonly kind: ColumnDefinition['kind'];
  /** The conditions leave a bounded part of the table, which no other index than that of the key has: rows are sorted, not read in order. */
  readonly isBounded: boolean;
}

/** The order of a list: by the column that staff chose, then by its key; without one, newest first. */
export function staffKeyset(
  { key, kind, isBounded }: StaffKey,
  order: AdminOrder | undefined,
  sort: { readonly column: string; readonly descending: boolean } | null,
  dialect: Dialect,
): Keyset {
  const descending = order === undefined ? sort?.descending !== false : (sort?.descending ?? false);
  const byKey = { name: key, sql: `t0.${quoteName(key)}`, definition: { kind, nullable: false }, descending };
  if (order === undefined) return new Keyset([byKey]);
  const definition = order.definition ?? { kind: ORDER_KINDS[order.kind], nullable: order.nullable === true };
  const sql = order.indexed === true && !isBounded ? order.sql : withoutIndex(order.sql, definition.kind, dialect);
  return new Keyset([{ name: sort?.column ?? key, sql, definition, descending }, byKey]);
}

/**
 * The same value, as no index has it. An index that begins with the column has not all rows in the list's order; walking it to find the newest
 * rows among all was the plan for a million users by e-mail on both databases.
 */
function withoutIndex(sql: string, kind: ColumnDefinition['kind'], dialect: Dialect): string {
  if (dialect === 'sqlite') return `+${sql}`;
  if (kind === 'text' || kind === 'enum') return `(${sql} || '')`;
  if (kind === 'timestamp') return `(${sql} + interval '0')`;
  return kind === 'bool' ? sql : `(${sql} + 0)`;
}
