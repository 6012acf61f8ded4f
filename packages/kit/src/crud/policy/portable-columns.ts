import type { ColumnSettings } from '../../db/declare/column.ts';
import type { Db } from '../../db/engine/db.ts';
import { quoteName } from '../../db/declare/names.ts';
import { orderSql } from '../../db/sql/portable-sql.ts';
import type { OrderTerm } from '../options/ordering.ts';
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
