import type { ColumnSettings } from '../../db/column.ts';
import type { Db } from '../../db/db.ts';
import { quoteName } from '../../db/names.ts';
import { orderSql } from '../../db/portable-sql.ts';
import type { OrderTerm } from '../declare/ordering.ts';
import type { Policy } from './policy.ts';

/** PostgreSQL's name of a key's type, for arrays of keys. */
export function keyType({ kind }: Pick<ColumnSettings, 'kind'>): string {
  return kind === 'uuid' ? 'uuid' : kind === 'int' ? 'integer' : kind === 'bigint' ? 'bigint' : 'text';
}

export function orderBySql({ statements }: Policy, terms: readonly OrderTerm[], dialect: Db['dialect'], alias: string): string {
  return terms
    .map(({ column, descending }) => {
      const { name, definition } = statements.column(column);
      return orderSql(`${alias}.${quoteName(name)}`, definition, dialect, descending ? 'desc' : 'asc');
    })
    .join(', ');
}
