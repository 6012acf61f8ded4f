import { randomInt } from 'node:crypto';
import { fromJson, toJson } from '../../db/declare/column-json.ts';
import type { Model } from '../../db/declare/model.ts';
import type { Db, ExecuteResult } from '../../db/engine/db.ts';
import type { QueryOptions } from '../../db/engine/engine.ts';
import { noteOf, postgresChanges, rowOf, sqliteChanges, type TriggeredTable } from '../../db/migrations/core/change-sql.ts';
import { quoteName } from '../../db/declare/names.ts';
import { canonicalDecimal } from '../../db/values/decimal.ts';
import { runTogether, sendStatement } from '../../db/engine/handle.ts';
import { changes } from '../../db/migrations/core/models.ts';
import { rowKey } from '../../db/sql/row-key.ts';
import { statementsOf } from '../../db/sql/model-statements.ts';
import { rowKeyText } from '../../db/sql/row-key.ts';
import { wakeAfterCommit } from '../../work/wake-workers.ts';
import { BoundedMap } from '../../db/values/bounded-map.ts';
import type { Item } from '../declare/item.ts';
import type { Policy, StoredColumn } from '../policy/policy.ts';
import { isSame } from './change.ts';
import type { Verb } from './intent.ts';
import type { LoggedStatements, RowWrite } from './row-statements.ts';

/** Readers of the change log listen to it. */
export const CHANGES_CHANNEL = 'kit_changes';

/** No row has it. */
export const NO_KEY = 'null';

interface Written {
  readonly before: Item | null;
  readonly after: Item | null;
  readonly isWritten: boolean;
}

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
  return { key, kind: 'changed', prior: priorOf(policy, before, after) };
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

function priorOf({ statements }: Policy, row: Item, after: Item | null): Item {
  const values = statements.columns.flatMap((column) => {
    const { name, definition } = column;
    if (isLoggedColumn(column)) return [[name, toJson({ kind: definition.kind }, row[name])]];
    return after === null ? [] : [[noteOf(name), String(!isSame(column, row[name], after[name]))]];
  });
  return Object.fromEntries(values) as Item;
}

/** Prior values as code has them. Those that a trigger logged are texts. */
export function priorRow({ statements }: Policy, prior: Item, areTexts: boolean): Item {
  const logged = statements.columns.filter((column) => isLoggedColumn(column) && Object.hasOwn(prior, column.name));
  const notes = Object.entries(prior).filter(([name]) => name.startsWith(noteOf('')));
  const valueOf = ({ name, definition }: StoredColumn) =>
    areTexts ? ofText(definition, prior[name] as string | null) : fromJson({ kind: definition.kind }, prior[name]);
  return Object.fromEntries([...logged.map((column) => [column.name, valueOf(column)] as const), ...notes]);
}

/** Whether a column of a row is another than in its prior values. Undefined: the log does not say it. */
export function isOther(column: StoredColumn, prior: Item, row: Item): boolean | undefined {
  if (Object.hasOwn(prior, column.name)) return !isSame(column, prior[column.name], row[column.name]);
  const note = prior[noteOf(column.name)];
  return note === undefined ? undefined : note === 'true';
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

/** One row, without taking JSON apart: half of the time. */
const INSERT_ONE = {
  postgres:
    `insert into kit_changes (position, xid, token, resource, key, kind, prior, at) ` +
    `values (nextval('kit_change_order'), pg_current_xact_id()::text::bigint, $1, $2, $3, $4, $5::jsonb, $6)`,
  sqlite:
    `insert into kit_changes (position, xid, token, resource, key, kind, prior, at) ` +
    `values (coalesce((select max(position) from kit_changes), 0) + 1, 0, $1, $2, $3, $4, $5, $6)`,
} as const;

const TOKENS = 2 ** 31 - 1;

async function insertChanges(tx: Db, { tableName }: Policy, logged: readonly LoggedChange[]): Promise<void> {
  if (logged.length === 0) return;
  const [token, now] = [randomInt(TOKENS), at.encode(tx.clock.now())];
  const [only, ...others] = logged as readonly [LoggedChange];
  if (others.length > 0) await sendStatement(tx, INSERT[tx.dialect], [JSON.stringify(logged), token, tableName, now]);
  else {
    const { key, kind, prior } = only;
    await sendStatement(tx, INSERT_ONE[tx.dialect], [token, tableName, key, kind, prior === null ? null : JSON.stringify(prior), now]);
  }
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
    noted: statements.columns.filter((column) => !isLoggedColumn(column)).map(({ name }) => name),
  };
}

/** Of one resource. */
const STATEMENTS_MAX = 200;

/** What a statement that writes one row logs: within it, or by a statement of its own, before or after it. */
type Logged = { readonly text: string } | { readonly log: string; readonly isFirst: boolean };

/**
 * A statement that writes one row, with its line of the change log by the SQL that triggers have: one round trip to PostgreSQL in place of a transaction, and
 * two statements of SQLite, which has none that writes two tables.
 */
export class LoggedStatement implements LoggedStatements {
  readonly #policy: Policy;
  readonly #table: TriggeredTable;
  /** By the statement: to make one takes longer than to find it. */
  readonly #logged = new BoundedMap<string, Logged>(STATEMENTS_MAX);

  constructor(policy: Policy) {
    this.#policy = policy;
    this.#table = triggeredTable(policy.model);
  }

  async run<R>(db: Db, write: RowWrite, parameters: readonly unknown[], options: QueryOptions = {}): Promise<ExecuteResult<R>> {
    const timed = [...parameters, at.encode(db.clock.now())];
    const time = `$${timed.length}`;
    const logged = this.#logged.getOrMake(write.text, () =>
      db.dialect === 'postgres' ? this.#onPostgres(write, time) : this.#onSqlite(write, time),
    );
    if ('text' in logged) return db.execute(logged.text, timed, options);
    const statements = [{ text: write.text, parameters, options }];
    statements.splice(logged.isFirst ? 0 : 1, 0, { text: logged.log, parameters: timed, options: {} });
    return (await runTogether<R>(db, statements))[logged.isFirst ? 1 : 0] as ExecuteResult<R>;
  }

  #onPostgres(write: RowWrite, time: string): Logged {
    const { statements, key } = this.#policy;
    const { table, list, columns } = statements;
    const changes = postgresChanges(this.#table, `${time}::timestamptz`);
    if (write.verb === 'insert') {
      const log = changes.created(rowOf('n'), ' from written n');
      return { text: `with written as (${write.text}), logged as (${log}) select ${list} from written` };
    }
    const { where } = write;
    if (write.verb === 'delete') {
      const log = changes.removed(rowOf('o'), 'from removed o');
      return {
        text: `with removed as (delete from ${table} as t0 where ${where} returning ${list}), logged as (${log}) select 1 as removed from removed`,
      };
    }
    // The row is locked before it is changed, as `select … for no key update` does in a transaction: what is logged is the version that the change replaces. It is
    // found by the conditions when it is locked, and changed by its key.
    const place = new Map(columns.map(({ name }, index) => [name, `o."~${index}"`]));
    const before = columns.map(({ name }, index) => `t0.${quoteName(name)} as "~${index}"`).join(', ');
    const o = (column: string) => place.get(column) as string;
    const n = rowOf('n');
    const log = changes.changed(o, n, `from before o join written n on ${n(key.name)} = ${o(key.name)}`);
    const update = `update ${table} as t0 set ${write.assignments} from before o where t0.${quoteName(key.name)} = ${o(key.name)} returning ${columns.map(({ name }) => `t0.${quoteName(name)}`).join(', ')}`;
    return {
      text:
        `with before as (select ${before} from ${table} as t0 where ${where} for no key update of t0), ` +
        `written as (${update}), logged as (${log}) select ${list} from written`,
    };
  }

  #onSqlite(write: RowWrite, time: string): Logged {
    const { table } = this.#policy.statements;
    const { created, changed } = sqliteChanges(this.#table, time);
    if (write.verb === 'insert')
      return { log: created(rowOf('n'), ` from ${table} n where n._rowid_ = last_insert_rowid()`), isFirst: false };
    const o = rowOf('t0');
    if (write.verb === 'delete') return { log: changed(o, undefined, ` from ${table} t0 where ${write.where}`), isFirst: true };
    const places = new Map(write.changed.map(({ name }, index) => [name, `$${index + 1}`]));
    const n = (column: string) => places.get(column) ?? o(column);
    return { log: changed(o, n, ` from ${table} t0 where ${write.where}${this.#differing(places)}`), isFirst: true };
  }

  /** A change that changes nothing is none; a version or a time of the last change moves with every update. */
  #differing(places: ReadonlyMap<string, string>): string {
    if (this.#policy.statements.columns.some(({ settings }) => settings.increment === true || settings.touch !== undefined)) return '';
    return ` and (${[...places].map(([name, place]) => `t0.${quoteName(name)} is not ${place}`).join(' or ')})`;
  }
}
