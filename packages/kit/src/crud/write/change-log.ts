import { randomInt } from 'node:crypto';
import { fromJson, toJson } from '../../db/declare/column-json.ts';
import type { Model } from '../../db/declare/model.ts';
import type { Db } from '../../db/engine/db.ts';
import type { TriggeredTable } from '../../db/migrations/core/change-triggers.ts';
import { canonicalDecimal } from '../../db/values/decimal.ts';
import { sendStatement } from '../../db/engine/handle.ts';
import { changes } from '../../db/migrations/core/models.ts';
import { rowKey } from '../../db/sql/row-key.ts';
import { statementsOf } from '../../db/sql/model-statements.ts';
import { rowKeyText } from '../../db/sql/row-key.ts';
import { wakeAfterCommit } from '../../work/wake-workers.ts';
import type { Item } from '../declare/item.ts';
import type { Policy, StoredColumn } from '../policy/policy.ts';
import { isSame } from './change.ts';
import type { Verb } from './intent.ts';
import type { WrittenRow } from './row-writer.ts';

/** Readers of the change log listen to it. */
export const CHANGES_CHANNEL = 'kit_changes';

/** No row has it. */
export const NO_KEY = 'null';

type Written = Pick<WrittenRow, 'before' | 'after' | 'isWritten'>;

/** One row of the log, as the statement takes it. */
interface LoggedChange {
  readonly key: string;
  readonly kind: 'created' | 'changed' | 'touched';
  readonly prior: Item | null;
}

/**
 * Writes what live lists need to the change log, in the transaction of the change: which rows changed, and how they were before. Does nothing for a
 * resource without live lists.
 */
export async function logWritten(tx: Db, policy: Policy, verb: Verb, rows: readonly Written[]): Promise<void> {
  if (!policy.isLogged) return;
  if (policy.isTriggered) return wakeReaders(tx);
  await insertChanges(
    tx,
    policy,
    rows.flatMap((row) => changeOf(policy, verb, row) ?? []),
  );
}

/** Rows that a program wrote without the resource: how they were before is not known. */
export function logTouched(tx: Db, policy: Policy, keys: readonly unknown[]): Promise<void> {
  return insertChanges(
    tx,
    policy,
    keys.map((key) => ({ key: keyText(policy, key), kind: 'touched', prior: null })),
  );
}

/** Rows were erased, and nothing says which they were: their keys may be a person's, too. */
export function logErased(tx: Db, policy: Policy): Promise<void> {
  return insertChanges(tx, policy, [{ key: NO_KEY, kind: 'touched', prior: null }]);
}

function changeOf(policy: Policy, verb: Verb, { before, after, isWritten }: Written): LoggedChange | undefined {
  const row = after ?? before;
  if (row === null) return undefined;
  const key = keyText(policy, row[policy.key.name]);
  // A create hook may return a row that exists, and may have changed it.
  if (verb === 'create') return { key, kind: isWritten ? 'created' : 'touched', prior: null };
  if (before === null) return { key, kind: 'touched', prior: null };
  if (verb !== 'destroy' && after !== null && hasSameValues(policy, before, after)) return undefined;
  return { key, kind: 'changed', prior: priorOf(policy, before) };
}

function hasSameValues({ statements }: Policy, before: Item, after: Item): boolean {
  return statements.columns.every((column) => isSame(column, before[column.name], after[column.name]));
}

/** The key of a row as the log has it. */
export function keyText({ key }: Policy, value: unknown): string {
  return rowKeyText(key, value);
}

/** The key of a row as code has it. Null: rows that are not named, see {@link logErased}. */
export function keyOfText({ key }: Policy, text: string): unknown {
  return fromJson({ kind: key.definition.kind }, JSON.parse(text));
}

/** Columns whose prior values are logged. Conditions on others cannot decide whether a row was in a live list. */
export function isLoggedColumn({ settings, definition: { kind } }: StoredColumn): boolean {
  return !settings.sensitive && kind !== 'bytes' && kind !== 'json' && kind !== 'array';
}

function priorOf({ statements }: Policy, row: Item): Item {
  const logged = statements.columns.filter(isLoggedColumn);
  return Object.fromEntries(logged.map(({ name, definition: { kind } }) => [name, toJson({ kind }, row[name])]));
}

/** Prior values as code has them. Those that a trigger logged are texts. */
export function priorRow({ statements }: Policy, prior: Item, areTexts: boolean): Item {
  const logged = statements.columns.filter((column) => isLoggedColumn(column) && Object.hasOwn(prior, column.name));
  const valueOf = ({ name, definition }: StoredColumn) =>
    areTexts ? ofText(definition, prior[name] as string | null) : fromJson({ kind: definition.kind }, prior[name]);
  return Object.fromEntries(logged.map((column) => [column.name, valueOf(column)]));
}

function ofText({ kind, scale = 0 }: StoredColumn['definition'], text: string | null): unknown {
  if (text === null) return null;
  if (kind === 'int' || kind === 'float') return Number(text);
  if (kind === 'bool') return text === 'true' || text === '1';
  if (kind === 'decimal') return canonicalDecimal(text, scale);
  return fromJson({ kind }, text);
}

const at = statementsOf(changes).column('at');

/**
 * PostgreSQL numbers changes by a sequence: the row is locked until the transaction ends, so that of two changes of one row the later has the greater
 * number. `pg_current_xact_id()` is the transaction's own id also in a savepoint.
 */
const INSERT = {
  postgres:
    `insert into kit_changes (position, xid, token, resource, key, kind, prior, at) ` +
    `select nextval('kit_change_order'), pg_current_xact_id()::text::bigint, $2, $3, each.value->>'key', each.value->>'kind', ` +
    `nullif(each.value->'prior', 'null'::jsonb), $4 from jsonb_array_elements($1::jsonb) each(value)`,
  sqlite:
    `insert into kit_changes (position, xid, token, resource, key, kind, prior, at) ` +
    `select coalesce((select max(position) from kit_changes), 0) + each.key + 1, 0, $2, $3, json_extract(each.value, '$.key'), ` +
    `json_extract(each.value, '$.kind'), json_extract(each.value, '$.prior'), $4 from json_each($1) each`,
} as const;

const TOKENS = 2 ** 31 - 1;

async function insertChanges(tx: Db, { tableName }: Policy, logged: readonly LoggedChange[]): Promise<void> {
  if (logged.length === 0) return;
  const values = [JSON.stringify(logged), randomInt(TOKENS), tableName, at.encode(tx.clock.now())];
  await sendStatement(tx, INSERT[tx.dialect], values);
  wakeReaders(tx);
}

/** Of changes that triggers have logged. */
export function wakeReaders(tx: Db): void {
  wakeAfterCommit(tx, CHANGES_CHANNEL);
}

/** What triggers need to know of a table. */
export function triggeredTable(model: Model): TriggeredTable {
  const statements = statementsOf(model);
  const of = ({ name, definition: { kind } }: StoredColumn) => ({ name, kind });
  return {
    table: model.name,
    key: of(rowKey(model)),
    compared: statements.columns.map(({ name }) => name),
    logged: statements.columns.filter(isLoggedColumn).map(of),
  };
}
