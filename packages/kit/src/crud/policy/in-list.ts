import { resolveReference } from '../../db/declare/column.ts';
import type { Db } from '../../db/engine/db.ts';
import type { StoredColumn } from './policy.ts';
import { keyType } from './portable-columns.ts';

/** One placeholder for however many values: the statement's text does not depend on their number. */
export function inList({ dialect }: Db, sql: string, column: StoredColumn, values: readonly unknown[], parameters: unknown[]): string {
  const encoded = values.map((value) => column.encode(value));
  if (dialect === 'postgres') return `${sql} = any($${parameters.push(encoded)}::${keyType(resolveReference(column.settings))}[])`;
  const json = JSON.stringify(encoded.map((each) => (typeof each === 'bigint' ? each.toString() : each)));
  return `${sql} in (select value from json_each($${parameters.push(json)}))`;
}
