import type { SearchPlace } from '../sealing/data-keys.ts';
import type { ValuePlace } from '../sealing/encrypted-value.ts';
import type { ModelColumn } from './model-statements.ts';
import type { Model } from '../declare/model.ts';

/** What is known of the row that a statement writes: its columns by name, in any form. */
export type KnownRow = Readonly<Record<string, unknown>>;

/** Where the value of an encrypted column of this row belongs. */
export function placeOf(model: Model, { name, settings }: ModelColumn, row: KnownRow): ValuePlace {
  return { table: model.id, column: settings.encrypted?.id ?? name, key: model.primaryKey.map((each) => textOf(model.name, row, each)) };
}

export function searchPlaceOf(model: Model, { name, settings }: ModelColumn, row: KnownRow): SearchPlace {
  const { id = name, tenant } = settings.encrypted ?? {};
  const isNone = tenant === undefined || row[tenant] === null;
  return { table: model.id, column: id, tenant: isNone ? null : textOf(model.name, row, tenant) };
}

function textOf(table: string, row: KnownRow, name: string): string {
  // Of a key or a tenant column: none of them is an object.
  const value = row[name] as string | number | bigint | null | undefined;
  if (value === undefined || value === null)
    throw new Error(`An encrypted value of "${table}" needs "${name}" of its row, which is not known here.`);
  return String(value);
}
