import type { ColumnSettings } from '../../declare/column.ts';
import type { ColumnKind } from '../../declare/table-definition.ts';

const EQUAL = ['eq', 'ne', 'in', 'nin'] as const;
const ORDER = ['gt', 'gte', 'lt', 'lte'] as const;
const TEXT = ['contains', 'starts', 'ends'] as const;
const NULL = ['isnull'] as const;
const SEARCH = ['eq', 'in', 'isnull'] as const;

export type WhereOperator = (typeof EQUAL | typeof ORDER | typeof TEXT | typeof NULL)[number];

const ordered: readonly WhereOperator[] = [...EQUAL, ...ORDER, ...NULL];
const equal: readonly WhereOperator[] = [...EQUAL, ...NULL];

/** JSON has no equality that both databases share, arrays no form. */
const operators: Readonly<Record<ColumnKind, readonly WhereOperator[]>> = {
  text: [...EQUAL, ...ORDER, ...TEXT, ...NULL],
  uuid: ordered,
  enum: ordered,
  int: ordered,
  bigint: ordered,
  decimal: ordered,
  float: ordered,
  timestamp: ordered,
  date: ordered,
  bool: equal,
  bytes: equal,
  json: NULL,
  array: NULL,
};

/** The operators that a condition on a column may use. An encrypted column has those of its search values. */
export function operatorsOf({ kind, encrypted }: Pick<ColumnSettings, 'kind' | 'encrypted'>): readonly WhereOperator[] {
  if (encrypted === undefined) return operators[kind];
  return encrypted.search === undefined ? NULL : SEARCH;
}
