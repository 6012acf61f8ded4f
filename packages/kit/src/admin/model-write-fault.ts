import { constraintViolation, type Db, type Model } from '../db/index.ts';
import { columnDefinition } from '../db/column.ts';
import { quoteName } from '../db/names.ts';
import { coreErrors, type KitError } from '../errors/index.ts';
import { adminErrors } from './errors.ts';

const SENTENCES = {
  unique: ['unique', 'Another record has this value already.'],
  foreign_key: ['unknown_reference', 'There is no such record.'],
  not_null: ['required', 'Required.'],
  check: ['invalid', 'The database does not allow this value.'],
} as const;

/** What a refusal of the database means to whoever filled in the form; null when it is none. `fields` null: a row was to be removed. */
export async function writeFault(
  db: Db,
  model: Model,
  fields: Readonly<Record<string, unknown>> | null,
  error: unknown,
): Promise<KitError | null> {
  const violation = constraintViolation(error);
  if (violation === undefined) return null;
  if (fields === null) return adminErrors.record_in_use({ cause: error });
  const [code, message] = SENTENCES[violation.kind];
  // SQLite does not say which reference is broken.
  const columns = violation.columns ?? (violation.kind === 'foreign_key' ? await brokenReferences(db, model, fields) : []);
  const known = columns.filter((name) => name in model.columns);
  if (known.length === 0) return coreErrors.conflict({ detail: message, cause: error });
  return coreErrors.validation_error({ errors: known.map((name) => ({ location: ['body', name], code, message })), cause: error });
}

async function brokenReferences(db: Db, model: Model, fields: Readonly<Record<string, unknown>>): Promise<readonly string[]> {
  const broken: string[] = [];
  for (const [name, value] of Object.entries(fields)) {
    const column = model.columns[name];
    const reference = column === undefined ? undefined : columnDefinition(column.settings).references;
    if (reference === undefined || value === null) continue;
    const found = await db.query(`select 1 as one from ${quoteName(reference.table)} where ${quoteName(reference.column)} = $1`, [value]);
    if (found.length === 0) broken.push(name);
  }
  return broken;
}
