import type { Model } from './model.ts';
import { type ColumnDefinition, columnOf, suggestion } from './table-definition.ts';

/** Faults that only show with all models together: two of one name, a reference to a table or key that is not there. */
export function modelFaults(models: readonly Model[]): string[] {
  const faults: string[] = [];
  const byName = new Map<string, Model>();
  for (const each of models) {
    if (byName.has(each.name) && byName.get(each.name) !== each) faults.push(`Two models are called "${each.name}".`);
    byName.set(each.name, each);
  }
  for (const each of models) {
    try {
      for (const [key, column] of Object.entries(each.table.columns)) {
        if (column.references !== undefined) faults.push(...referenceFaults(each.name, key, column, byName));
      }
    } catch (error) {
      faults.push((error as Error).message);
    }
  }
  return faults;
}

function referenceFaults(table: string, key: string, column: ColumnDefinition, models: ReadonlyMap<string, Model>): string[] {
  const { references } = column;
  if (references === undefined) return [];
  const target = models.get(references.table);
  const place = `Model "${table}", column "${key}"`;
  if (target === undefined)
    return [`${place}: references an unknown table "${references.table}"${suggestion(references.table, [...models.keys()])}.`];
  if (!Object.hasOwn(target.table.columns, references.column))
    return [`${place}: references "${references.table}.${references.column}", which does not exist.`];
  const isKey = target.primaryKey.length === 1 && target.primaryKey[0] === references.column;
  const isUnique = target.table.indexes.some(
    (index) => index.unique && index.where === undefined && index.columns.join() === references.column,
  );
  if (!isKey && !isUnique)
    return [`${place}: references "${references.table}.${references.column}", which is neither the primary key nor unique.`];
  if (columnOf(target.table, references.column).kind !== column.kind)
    return [`${place}: is a ${column.kind}, but "${references.table}.${references.column}" is not.`];
  if (references.onDelete === 'set null' && !column.nullable) return [`${place}: on delete "set null" needs .nullable().`];
  return [];
}
