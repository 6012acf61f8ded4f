import type { Database, Db } from '../engine/db.ts';
import type { Handle, HandleContext } from '../engine/handle.ts';
import type { PlainOf } from '../declare/encrypted-column.ts';
import { plaintextValue } from '../declare/encrypted-column.ts';
import type { Model } from '../declare/model.ts';
import type { Row } from '../declare/rows.ts';
import type { DataKeys } from '../sealing/data-keys.ts';
import { type KnownRow, placeOf } from '../sql/encrypted-place.ts';
import { type ModelColumn, type ModelStatements, statementsOf } from '../sql/model-statements.ts';
import { requireArguments } from '../../options/read-options.ts';
import { aModel, anObject, filledText, queryable } from '../../options/value-rule.ts';

/**
 * The plaintext of an encrypted column of a row, or null. Whoever calls it decides who gets the value: pass it on to nobody whom the resource
 * does not show it.
 *
 * @example
 * ```ts
 * const patients = model('patients', { id: t.uuidv7().pk(), insurance_number: t.text(20).encrypted() });
 * const patient = await find(db, patients, id);
 * const number = patient && reveal(db, patients, patient, 'insurance_number');
 * ```
 */
export function reveal<M extends Model, N extends Extract<keyof M['columns'], string>>(
  db: Db,
  model: M,
  row: Pick<Row<M>, N> & Partial<Row<M>>,
  name: N,
): PlainOf<Row<M>[N]> {
  requireArguments('reveal()', { db, model, row, name }, { db: queryable, model: aModel, row: anObject, name: filledText });
  const statements = statementsOf(model);
  const column = statements.column(name);
  if (column.settings.encrypted === undefined) throw new Error(`reveal(): "${name}" of "${model.name}" is not encrypted.`);
  return revealed(dataKeysOf(db), statements, column, row, row[name]) as PlainOf<Row<M>[N]>;
}

/** The plaintext of a stored value of this row. */
export function revealed(
  keys: DataKeys | undefined,
  statements: ModelStatements,
  column: ModelColumn,
  row: KnownRow,
  value: unknown,
): unknown {
  if (value === null || value === undefined) return null;
  const place = placeOf(statements.model, column, row);
  if (keys === undefined)
    throw new Error(`"${place.column}" of "${place.table}" is encrypted, and the database was opened without data keys. Set DATA_KEYS.`);
  return plaintextValue(column.settings.kind, keys.decrypt(place, value));
}

/** The keys that the database of this handle was opened with. */
export function dataKeysOf(db: Db): DataKeys | undefined {
  return (db as unknown as Handle).context.dataKeys;
}

/** Gives an open database the keys of encrypted columns, unless it was opened with its own. */
export function useDataKeys(database: Database, dataKeys: DataKeys): void {
  const { context } = database as unknown as Handle;
  Object.assign<HandleContext, Partial<HandleContext>>(context, { dataKeys: context.dataKeys ?? dataKeys });
}
