import { normalizedBytes } from '../declare/encrypted-column.ts';
import { EncryptedParameter } from '../sealing/keyed-parameter.ts';
import { type KnownRow, placeOf, searchPlaceOf } from '../sql/encrypted-place.ts';
import type { ModelColumn, ModelStatements } from '../sql/model-statements.ts';

/**
 * Binds the encrypted values among the parameters to their row. `names` are the columns of the parameters; search values follow those that they
 * are computed from. `before`: the row as it is, whose values stay where the plaintext is the same.
 */
export function bindEncrypted(
  statements: ModelStatements,
  names: readonly string[],
  parameters: unknown[],
  row: KnownRow,
  before?: KnownRow,
): void {
  for (const [index, name] of names.entries()) {
    const { settings } = statements.column(name);
    const column = statements.column(settings.searchOf ?? name);
    const parameter = parameters[index];
    if (!(parameter instanceof EncryptedParameter)) continue;
    if (settings.searchOf === undefined) parameter.bind(placeOf(statements.model, column, row), before?.[name] as string | undefined);
    else parameters[index] = searchValueOf(statements, column, row, parameter);
  }
}

function searchValueOf(statements: ModelStatements, column: ModelColumn, row: KnownRow, value: EncryptedParameter): unknown {
  const { encrypted = {}, kind } = column.settings;
  return value.search(searchPlaceOf(statements.model, column, row), (bytes) => normalizedBytes(encrypted, kind, bytes));
}

/** Values of columns that encrypted ones replace are written to both. */
export function withReplacing<V extends object>({ replacing }: ModelStatements, values: V): V {
  if (replacing.length === 0) return values;
  const given = values as Readonly<Record<string, unknown>>;
  const copied = replacing.filter(({ name, plain }) => given[plain] !== undefined && given[name] === undefined);
  return copied.length === 0 ? values : { ...values, ...Object.fromEntries(copied.map(({ name, plain }) => [name, given[plain]])) };
}

/** Values of a row that no write may set or move: what encrypted values are bound to, and what is computed from them. */
export function refuseBoundColumns(statements: ModelStatements, written: readonly string[], isNew: boolean): void {
  if (statements.encrypted.length === 0) return;
  for (const name of written) {
    const { searchOf } = statements.column(name).settings;
    if (searchOf !== undefined) throw new Error(`Column "${name}" of ${statements.table} is computed from "${searchOf}": leave it out.`);
    if (isNew) continue;
    if (statements.model.primaryKey.includes(name))
      throw new Error(`The key of ${statements.table} cannot change: its encrypted values are bound to it. Insert a new row instead.`);
    const left = statements.encrypted.find((each) => each.settings.encrypted?.tenant === name && !written.includes(each.name));
    if (left !== undefined)
      throw new Error(`"${name}" of ${statements.table} cannot change without "${left.name}", whose search values belong to it.`);
  }
}

/** Whether a write of these columns needs the tenant of the row. */
export function needsTenant(statements: ModelStatements, written: readonly string[]): boolean {
  return statements.encrypted.some(({ name, settings }) => settings.encrypted?.tenant !== undefined && written.includes(name));
}

/** Binds the encrypted values of an update to the row as it is. */
export function bindUpdated(
  statements: ModelStatements,
  changed: readonly ModelColumn[],
  parameters: unknown[],
  before: KnownRow | null | undefined,
): void {
  if (statements.encrypted.length === 0) return;
  const written = changed.filter(({ settings }) => settings.searchOf === undefined).map(({ name }) => name);
  refuseBoundColumns(statements, written, false);
  const names = changed.map(({ name }) => name);
  bindEncrypted(statements, names, parameters, before ?? {}, before ?? undefined);
}

/** True for a column of search values, which are written with the value that they are computed from. */
export function followsEncrypted(column: ModelColumn, changed: ModelColumn[], parameters: unknown[]): boolean {
  if (column.settings.searchOf === undefined) return false;
  const index = changed.findIndex(({ name }) => name === column.settings.searchOf);
  if (index !== -1) {
    changed.push(column);
    parameters.push(parameters[index]);
  }
  return true;
}
