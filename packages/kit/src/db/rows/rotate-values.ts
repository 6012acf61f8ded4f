import { isUniqueViolation } from '../engine/constraint-violation.ts';
import type { Db } from '../engine/db.ts';
import type { Model } from '../declare/model.ts';
import { quoteName } from '../declare/names.ts';
import { normalizedBytes, searchColumnName } from '../declare/encrypted-column.ts';
import type { DataKeys } from '../sealing/data-keys.ts';
import { EncryptedValueUnreadable, startOf } from '../sealing/encrypted-value.ts';
import { placeOf, searchPlaceOf } from '../sql/encrypted-place.ts';
import { type ModelColumn, type ModelStatements, statementsOf } from '../sql/model-statements.ts';
import { dataKeysOf } from './reveal.ts';

/** How many values each key encrypted: `null` for values that are not encrypted. */
export interface KeyUse {
  readonly column: string;
  readonly key: string | null;
  readonly values: number;
}

/** What a rotation has done so far. */
export interface RotationProgress {
  rotated: number;
  /** Rows that could not be rotated: the values of their key. They stay as they are. */
  readonly failed: { readonly key: readonly unknown[]; readonly reason: string }[];
}

type StoredRow = Readonly<Record<string, unknown>>;

/**
 * Encrypts the values of a table again with the first key of DATA_KEYS, and computes search values again with the first of DATA_SEARCH_KEYS, row by row, in the
 * order of the primary key. A value says itself whether it is due, so an interrupted rotation continues where it was. A row that a request changes at the same
 * time is left to the request: the statement expects the value that was read.
 */
export async function rotateValues(
  db: Db,
  model: Model,
  { batch, onBatch }: { readonly batch: number; readonly onBatch?: (progress: RotationProgress) => unknown },
): Promise<RotationProgress> {
  const statements = statementsOf(model);
  const progress: RotationProgress = { rotated: 0, failed: [] };
  if (statements.encrypted.length === 0) return progress;
  const keys = dataKeysOf(db);
  if (keys === undefined) throw new Error(`"${model.name}" has encrypted columns, and the database was opened without data keys.`);
  let after: readonly unknown[] | undefined;
  for (;;) {
    const rows = await dueRows(db, statements, keys, after, batch);
    for (const row of rows) await rotateRow(db, statements, keys, row, progress);
    await onBatch?.(progress);
    const last = rows.at(-1);
    if (last === undefined || rows.length < batch) return progress;
    after = keyOf(model, last);
  }
}

async function dueRows(
  db: Db,
  statements: ModelStatements,
  keys: DataKeys,
  after: readonly unknown[] | undefined,
  batch: number,
): Promise<StoredRow[]> {
  const parameters: unknown[] = [];
  const due = dueSql(statements, keys, parameters);
  const key = statements.key.map(({ name }) => quoteName(name)).join(', ');
  const placed = after?.map((value, index) => `$${parameters.push(statements.key[index]?.encode(value))}`).join(', ');
  const text = `select ${statements.list} from ${statements.table} where (${due})${placed === undefined ? '' : ` and (${key}) > (${placed})`} order by ${key} limit $${parameters.push(batch)}`;
  return db.query<StoredRow>(text, parameters);
}

function dueSql(statements: ModelStatements, keys: DataKeys, parameters: unknown[]): string {
  const due = statements.encrypted.flatMap(({ name, settings }) => [
    notStarting(quoteName(name), startOf(keys.ids[0] ?? ''), parameters),
    ...(settings.encrypted?.search === undefined
      ? []
      : [notStarting(quoteName(searchColumnName(name)), `${keys.searchIds[0]}.`, parameters)]),
  ]);
  return due.join(' or ');
}

/** How many rows a rotation would look at. */
export async function countDueRows(db: Db, model: Model): Promise<number> {
  const statements = statementsOf(model);
  const keys = dataKeysOf(db);
  if (statements.encrypted.length === 0 || keys === undefined) return 0;
  const parameters: unknown[] = [];
  const text = `select count(*) as n from ${statements.table} where ${dueSql(statements, keys, parameters)}`;
  const [found] = await db.query<{ n: number | bigint }>(text, parameters);
  return Number(found?.n ?? 0);
}

function notStarting(sql: string, start: string, parameters: unknown[]): string {
  return `(${sql} is not null and substr(${sql}, 1, ${start.length}) <> $${parameters.push(start)})`;
}

async function rotateRow(db: Db, statements: ModelStatements, keys: DataKeys, row: StoredRow, progress: RotationProgress): Promise<void> {
  const { model } = statements;
  try {
    const changes = statements.encrypted.flatMap((column) => changesOf(model, keys, column, row));
    if (changes.length > 0 && (await write(db, statements, row, changes))) progress.rotated += 1;
  } catch (error) {
    const reason = isUniqueViolation(error) ? 'another row has the same value' : (error as Error).message;
    if (!isUniqueViolation(error) && !(error instanceof EncryptedValueUnreadable)) throw error;
    progress.failed.push({ key: keyOf(model, row), reason });
  }
}

interface Rewrite {
  readonly column: string;
  readonly value: string;
}

function changesOf(model: Model, keys: DataKeys, column: ModelColumn, row: StoredRow): Rewrite[] {
  const { name, settings } = column;
  const value = row[name];
  if (value === null || settings.encrypted === undefined) return [];
  const place = placeOf(model, column, row);
  const changes: Rewrite[] = [];
  const plaintext = keys.decrypt(place, value);
  if (!keys.isCurrent(value as string)) changes.push({ column: name, value: keys.encrypt(place, plaintext) });
  if (settings.encrypted.search === undefined) return changes;
  const normalized = normalizedBytes(settings.encrypted, settings.kind, plaintext);
  const [search] = keys.searchValues(searchPlaceOf(model, column, row), normalized);
  if (row[searchColumnName(name)] !== search) changes.push({ column: searchColumnName(name), value: search });
  return changes;
}

async function write(db: Db, statements: ModelStatements, row: StoredRow, changes: readonly Rewrite[]): Promise<boolean> {
  const parameters: unknown[] = [];
  const assignments = changes.map(({ column, value }) => `${quoteName(column)} = $${parameters.push(value)}`);
  const key = statements.key.map(({ name, encode }) => `${quoteName(name)} = $${parameters.push(encode(row[name]))}`);
  const read = changes.map(({ column }) => {
    const base = statements.column(column).settings.searchOf ?? column;
    return `${quoteName(base)} = $${parameters.push(row[base])}`;
  });
  const text = `update ${statements.table} set ${assignments.join(', ')} where ${[...key, ...read].join(' and ')}`;
  return (await db.execute(text, parameters)).count > 0;
}

function keyOf({ primaryKey }: Model, row: StoredRow): unknown[] {
  return primaryKey.map((name) => row[name]);
}

/** How many values of the encrypted columns of a table each key has encrypted. */
export async function keyUses(db: Db, model: Model, keys: DataKeys): Promise<KeyUse[]> {
  const statements = statementsOf(model);
  const uses: KeyUse[] = [];
  for (const { name } of statements.encrypted) {
    const column = quoteName(name);
    const counts = keys.ids.map(
      (id) => `coalesce(sum(case when substr(${column}, 1, ${startOf(id).length}) = '${startOf(id)}' then 1 else 0 end), 0)`,
    );
    const columns = ['count(*)', ...counts].map((sql, index) => `${sql} as n${index}`).join(', ');
    const [row = {}] = await db.query<Record<string, number | bigint | string>>(
      `select ${columns} from ${statements.table} where ${column} is not null`,
    );
    const known = keys.ids.map((id, index) => ({ column: name, key: id, values: Number(row[`n${index + 1}`]) }));
    const others = Number(row['n0']) - known.reduce((sum, { values }) => sum + values, 0);
    uses.push(...known, ...(others === 0 ? [] : [{ column: name, key: null, values: others }]));
  }
  return uses;
}
