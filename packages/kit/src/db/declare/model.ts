import { type Guarded, guardedColumns } from './column.ts';
import { componentName } from './component-name.ts';
import { declarationFaults } from './declaration-faults.ts';
import { withSearchColumns } from './search-columns.ts';
import { inputSchema, outputSchema, patchSchema } from './model-schema.ts';
import type { Columns, InputOf, PatchOf, RowOf } from './rows.ts';
import type { Schema } from '../values/standard-schema.ts';
import type { TableDefinition } from './table-definition.ts';
import { modelRules, type ModelOptions, primaryKeyOf, type RetentionOptions, tableDefinition } from './table-from-columns.ts';
import { readOptions, requireArguments } from '../../options/read-options.ts';
import { anObject, filledText } from '../../options/value-rule.ts';

/** One declaration: the table, the types of its rows, and the schemas of what clients send and get. */
export interface Model<C extends Columns = Columns> {
  readonly name: string;
  /** The id of the table inside encrypted values. */
  readonly id: string;
  readonly columns: C;
  readonly primaryKey: readonly string[];
  /** How long rows are kept. Undefined: forever. */
  readonly retention?: RetentionOptions | undefined;
  /** The table as migrations compare it. References are resolved on first use. */
  readonly table: TableDefinition;
  /** What a client sends to create a row. Columns with a default may be absent or null. */
  readonly input: Schema<Record<string, unknown>, InputOf<C>>;
  /** What a client gets: a row in JSON form, without sensitive columns. */
  readonly output: Schema<RowOf<C>, Record<string, unknown>>;
  /** What a client sends to change a row: any writable column, none required. */
  readonly patch: Schema<Record<string, unknown>, PatchOf<C>>;
}

/**
 * Declares a table: its columns, the types of its rows, and the schemas of requests and responses. All problems of a declaration are reported
 * together.
 *
 * ```ts
 * const notes = model('notes', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(200) }, { indexes: [{ columns: ['owner_id', '-id'] }] });
 * ```
 */
export function model<const C extends Columns, const G extends boolean = false>(
  name: string,
  given: C,
  options: ModelOptions<NoInfer<Extract<keyof C, string>>> & {
    /** No column is accepted from clients unless a resource opens it with `writableBy`. Default: false. */
    readonly guarded?: G;
  } = {},
): Model<G extends true ? Guarded<C> : C> {
  readOptions(`model("${name}")`, options, modelRules);
  requireArguments('model()', { name, columns: given }, { name: filledText, columns: anObject });
  const primaryKey = primaryKeyOf(given, options);
  const faults = declarationFaults(name, given, primaryKey, options);
  if (faults.length > 0) throw new Error(`Model "${name}": ${faults.join('; ')}.`);
  const columns = withSearchColumns(options.guarded === true ? guardedColumns(given) : given);
  let table: TableDefinition | undefined;
  const component = componentName(name);
  const made: Model<C> = {
    name,
    id: options.id ?? name,
    columns,
    primaryKey: Object.freeze([...primaryKey]),
    ...(options.retention === undefined ? {} : { retention: Object.freeze({ ...options.retention }) }),
    get table() {
      return (table ??= tableDefinition(name, columns, { ...options, primaryKey }));
    },
    input: inputSchema<InputOf<C>>(columns, `${component}Input`),
    output: outputSchema<RowOf<C>>(columns, component),
    patch: patchSchema<PatchOf<C>>(columns, `${component}Patch`),
  };
  return Object.freeze(made) as unknown as Model<G extends true ? Guarded<C> : C>;
}
