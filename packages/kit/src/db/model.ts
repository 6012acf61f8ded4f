import { Column, t } from './column.ts';
import { declarationFaults } from './declaration-faults.ts';
import { inputSchema, outputSchema, patchSchema } from './model-schema.ts';
import type { Columns, InsertOf, RowOf, UpdateOf } from './rows.ts';
import type { StandardSchema } from './standard-schema.ts';
import type { TableDefinition } from './table-definition.ts';
import { type ModelOptions, primaryKeyOf, tableDefinition } from './table-from-columns.ts';

/** One declaration: the table, the types of its rows, and the schemas of what clients send and get. */
export interface Model<C extends Columns = Columns> {
  readonly name: string;
  readonly columns: C;
  readonly primaryKey: readonly string[];
  /** The table as migrations compare it. References are resolved on first use. */
  readonly table: TableDefinition;
  /** What a client sends to create a row. Columns with a default may be absent or null. */
  readonly input: StandardSchema<Record<string, unknown>, InsertOf<C>>;
  /** What a client gets: a row in JSON form, without sensitive columns. */
  readonly output: StandardSchema<RowOf<C>, Record<string, unknown>>;
  /** What a client sends to change a row: any writable column, none required. */
  readonly patch: StandardSchema<Record<string, unknown>, UpdateOf<C>>;
}

/** Declares a table. Every fault of the declaration is reported at once, at start-up. */
export function model<const C extends Columns>(name: string, columns: C, options: ModelOptions = {}): Model<C> {
  const primaryKey = primaryKeyOf(columns, options);
  const faults = declarationFaults(name, columns, primaryKey, options);
  if (faults.length > 0) throw new Error(`Model "${name}": ${faults.join('; ')}.`);
  let table: TableDefinition | undefined;
  return Object.freeze({
    name,
    columns,
    primaryKey: Object.freeze([...primaryKey]),
    get table() {
      return (table ??= tableDefinition(name, columns, { ...options, primaryKey }));
    },
    input: inputSchema<InsertOf<C>>(columns),
    output: outputSchema<RowOf<C>>(columns),
    patch: patchSchema<UpdateOf<C>>(columns),
  });
}

/** `created_at` and `updated_at`, kept by the toolkit. */
export function timestamps(): { readonly created_at: Column<Date, true>; readonly updated_at: Column<Date, true> } {
  const now = t.timestamp().dbDefault('now').readOnly();
  const made = new Column<Date, true>({ ...now.settings, default: (clock) => clock.now() });
  return { created_at: made, updated_at: new Column<Date, true>({ ...made.settings, touch: (clock) => clock.now() }) };
}

/** `deleted_at`, and `deletion_id`: the rows that one deletion took with it share it, so that they can be restored together. */
export function softDelete(): { readonly deleted_at: Column<Date | null, true>; readonly deletion_id: Column<string | null, true> } {
  return { deleted_at: t.timestamp().nullable().readOnly(), deletion_id: t.uuid().nullable().readOnly() };
}
