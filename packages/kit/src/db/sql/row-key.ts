import { toJson } from '../declare/column-json.ts';
import type { Model } from '../declare/model.ts';
import { type ModelColumn, type ModelStatements, statementsOf } from './model-statements.ts';

/** A column that no two rows share and every row has: the key, or one beside a key of several columns. */
export function uniqueColumn({ primaryKey, table }: Model, { key, columns }: ModelStatements): ModelColumn | undefined {
  if (primaryKey.length === 1) return key[0];
  const isUnique = (name: string) =>
    table.indexes.some(
      ({ columns: [first, ...more], unique, where }) => unique && where === undefined && first === name && more.length === 0,
    );
  return columns.find(({ name, nullable }) => !nullable && isUnique(name));
}

/** The column that tells rows apart, in addresses and in the change log. */
export function rowKey(model: Model): ModelColumn {
  const statements = statementsOf(model);
  return uniqueColumn(model, statements) ?? (statements.key[0] as ModelColumn);
}

/** The key of a row as the change log has it. */
export function rowKeyText({ definition: { kind } }: ModelColumn, value: unknown): string {
  return JSON.stringify(toJson({ kind }, value));
}
