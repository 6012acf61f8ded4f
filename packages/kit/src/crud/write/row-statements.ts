import { type ConstraintViolation, constraintViolation, describeViolation } from '../../db/engine/constraint-violation.ts';
import { brokenReferences, declaredColumns } from '../../db/engine/name-violation.ts';
import type { Db, ExecuteResult } from '../../db/engine/db.ts';
import type { QueryOptions } from '../../db/engine/engine.ts';
import { quoteName } from '../../db/declare/names.ts';
import { announceTableWrite } from '../../db/rows/table-writes.ts';
import { bindUpdated, followsEncrypted, withReplacing } from '../../db/rows/bind-encrypted.ts';
import { insertManyText, insertText } from '../../db/rows/insert-text.ts';
import { insertion } from '../../db/rows/repository.ts';
import type { Scope, WriteScope } from '../policy/crud-request.ts';
import { allowedRow, decisionSql } from '../policy/allowed-row.ts';
import { absentValue } from '../input/absent-value.ts';
import { detachFromEachOther } from './detach-from-each-other.ts';
import { inList } from '../policy/in-list.ts';
import type { Policy, StoredColumn } from '../policy/policy.ts';
import type { Precondition } from './precondition.ts';
import type { Item } from '../declare/item.ts';

/** Which row: a unique column and its value. */
export interface RowKey {
  readonly column: StoredColumn;
  readonly value: unknown;
}

/** A column and the values it must have: the states a transition starts from. */
export interface OnlyFrom {
  readonly column: string;
  readonly values: readonly unknown[];
}

/** Rows per INSERT: both databases take far more parameters than this needs. */
const INSERT_ROWS = 100;
/** PostgreSQL takes 65,535 values in one statement. */
const INSERT_VALUES_POSTGRES = 30_000;
const INSERT_ROWS_POSTGRES = 500;

/** How a written row comes back: as code has it, or in its JSON form. */
export type RowForm = Pick<QueryOptions, 'as'>;
export const AS_CODE: RowForm = Object.freeze({});

/** What narrows a statement besides the key and the rows the caller sees. */
export interface RowConditions {
  /** Columns that the address sets: the parent. */
  readonly fixed?: Item | undefined;
  /** The row as it is: an encrypted value that stays the same keeps its ciphertext. */
  readonly before?: Item | null;
  readonly ifMatch?: Precondition | undefined;
  readonly onlyFrom?: OnlyFrom;
  /** False: the rows are read without a lock. */
  readonly lock?: boolean;
}

/** An INSERT of several rows, and the columns it has. */
interface Insertion {
  readonly text: string;
  readonly parameters: unknown[];
  /** The rows that it inserts. */
  readonly chunk: readonly Item[];
}

/** A statement that writes one row. */
export type RowWrite = { readonly text: string } & (
  | { readonly verb: 'insert' }
  /** `changed`: the columns that get a value, of the first parameters. */
  | { readonly verb: 'update'; readonly assignments: string; readonly where: string; readonly changed: readonly StoredColumn[] }
  | { readonly verb: 'delete'; readonly where: string }
);

/** Runs a statement that writes one row together with one that writes its line of the change log. */
export interface LoggedStatements {
  run<R>(db: Db, write: RowWrite, parameters: readonly unknown[], options?: QueryOptions): Promise<ExecuteResult<R>>;
}

/** The statements that read and change rows of one table, whole rows in and out. The caller owns the transaction and the decisions. */
export class RowStatements {
  readonly #policy: Policy;
  /** Set where statements that write one row log it, too. */
  readonly #logged: LoggedStatements | undefined;

  constructor(policy: Policy, logged?: LoggedStatements) {
    this.#policy = policy;
    this.#logged = logged;
  }

  /** Rows by unique values, locked against other writers in the order of their keys, unless `lock` is false. 403 for one that the caller sees and may not do this to. */
  async selectLocked(
    db: Db,
    scope: WriteScope,
    column: StoredColumn,
    values: readonly unknown[],
    conditions: RowConditions,
  ): Promise<Item[]> {
    if (values.length > 1) return this.selectMany(db, scope, column, values, conditions);
    const row = await this.select(db, scope, { column, value: values[0] }, conditions, conditions.lock ?? true);
    return row === undefined ? [] : [row];
  }

  /**
   * The row by its key; locked against other writers if asked. One statement decides whether there is a row for the caller, and whether it
   * may do this to it.
   */
  async select(
    db: Db,
    scope: WriteScope,
    key: RowKey,
    { fixed }: RowConditions,
    lock = false,
    form: RowForm = AS_CODE,
  ): Promise<Item | undefined> {
    const { statements, softDelete } = this.#policy;
    const parameters: unknown[] = [];
    const decision = decisionSql(db, scope, parameters);
    const where = this.#whereKey(db, scope, key, fixed, parameters);
    // Several deleted rows may share a value that is unique among the others: the newest deletion is meant.
    const order = softDelete === undefined ? '' : ` order by t0.${quoteName(softDelete.deletedAt)} desc limit 1`;
    const [row] = await db.query<Item>(
      `select ${statements.list}${decision} from ${statements.table} t0 where ${where}${order}${locking(db, lock)}`,
      parameters,
      form,
    );
    return row === undefined ? undefined : allowedRow(scope, row);
  }

  /** Rows by the values of a column, in the order of their keys: two writers that lock the same rows lock them in the same order. */
  async selectMany(
    db: Db,
    scope: WriteScope | undefined,
    column: StoredColumn,
    values: readonly unknown[],
    { fixed, lock = true, also, limit }: RowConditions & { readonly also?: string; readonly limit?: number } = {},
  ): Promise<Item[]> {
    const { statements, key } = this.#policy;
    const parameters: unknown[] = [];
    const decision = scope === undefined ? '' : decisionSql(db, scope, parameters);
    const terms = [inList(db, `t0.${quoteName(column.name)}`, column, values, parameters), ...this.#fixed(fixed, parameters)];
    if (also !== undefined) terms.push(also);
    if (scope !== undefined && scope.compiled.constant !== true) terms.push(scope.compiled.append(db.dialect, 't0', parameters));
    const most = limit === undefined ? '' : ` limit $${parameters.push(limit)}`;
    const text = `select ${statements.list}${decision} from ${statements.table} t0 where ${terms.join(' and ')} order by t0.${quoteName(key.name)}${most}${locking(db, lock)}`;
    const rows = await db.query<Item>(text, parameters, { replanned: true });
    return scope === undefined ? rows : rows.map((row) => allowedRow(scope, row));
  }

  /**
   * `form`: the row comes back as code has it, or in its JSON form. `sent`: the values that are the caller's own, where others, such as the key of
   * a parent, must not be blamed for a broken rule.
   */
  async insert(db: Db, values: Item, form: RowForm = AS_CODE, sent: Item = values): Promise<Item> {
    const { statements } = this.#policy;
    const { names, parameters } = insertion(db, statements, values);
    const text = insertText(statements, names, ` returning ${statements.list}`);
    const { rows } = await this.#explained(db, [sent], () => this.#run<Item>(db, { verb: 'insert', text }, parameters, form));
    await this.#written(db);
    return rows[0] as Item;
  }

  /**
   * One INSERT per 100 rows, on PostgreSQL 500. A column that only some rows give gets its default in the others, so that all have the same columns. Rows come
   * back in the order given; as they were given where nobody reads them.
   */
  async insertMany(db: Db, rows: readonly Item[], isRead = true): Promise<readonly Item[]> {
    const inserted: Item[] = [];
    for (const { text, parameters, chunk } of this.#insertions(db, rows, isRead))
      inserted.push(...(await this.#explained(db, chunk, () => db.query<Item>(text, parameters))));
    await this.#written(db);
    return isRead ? inserted : rows;
  }

  *#insertions(db: Db, rows: readonly Item[], isRead: boolean): Iterable<Insertion> {
    const { statements } = this.#policy;
    const size =
      db.dialect === 'postgres'
        ? Math.min(INSERT_ROWS_POSTGRES, Math.floor(INSERT_VALUES_POSTGRES / statements.columns.length))
        : INSERT_ROWS;
    for (let start = 0; start < rows.length; start += size) {
      const chunk = rows.slice(start, start + size);
      const prepared = chunk.map((row) => insertion(db, statements, row));
      const given = new Set<string>();
      for (const { names } of prepared) for (const name of names) given.add(name);
      const columns = statements.columns.filter(({ name }) => given.has(name));
      const parameters: unknown[] = [];
      for (const row of prepared) appendRow(parameters, columns, row, db);
      const text = insertManyText(statements, columns, chunk.length, isRead);
      yield { text, parameters, chunk };
    }
  }

  /** Undefined when no row of this key, scope and version is there. */
  async update(
    db: Db,
    scope: Scope,
    key: RowKey,
    values: Item,
    conditions: RowConditions,
    form: RowForm = AS_CODE,
  ): Promise<Item | undefined> {
    const { statements } = this.#policy;
    const parameters: unknown[] = [];
    const changed = this.#changed(db, withReplacing(statements, values), parameters);
    bindUpdated(statements, changed, parameters, conditions.before);
    const assignments = this.#assignments(changed);
    const where = this.#whereKey(db, scope, key, conditions.fixed, parameters) + this.#narrower(conditions, parameters);
    const text = `update ${statements.table} as t0 set ${assignments} where ${where} returning ${statements.list}`;
    const write = { verb: 'update', text, assignments, where, changed } as const;
    const { rows } = await this.#explained(db, [values], () => this.#run<Item>(db, write, parameters, form));
    if (rows.length > 0) await this.#written(db);
    return rows[0];
  }

  /** What else the row must be: of a version, in a state. */
  #narrower({ ifMatch, onlyFrom }: RowConditions, parameters: unknown[]): string {
    const version = this.#versionCondition(ifMatch, parameters);
    if (onlyFrom === undefined) return version;
    const { column, values } = onlyFrom;
    const { encode } = this.#policy.statements.column(column);
    return `${version} and t0.${quoteName(column)} in (${values.map((value) => `$${parameters.push(encode(value))}`).join(', ')})`;
  }

  /** Gives every one of these rows the same values. `also` is a condition of SQL's own, without placeholders. */
  async updateMany(db: Db, column: StoredColumn, keys: readonly unknown[], values: Item, also?: string): Promise<Item[]> {
    const { statements } = this.#policy;
    const parameters: unknown[] = [];
    const assignments = this.#assignments(this.#changed(db, withReplacing(statements, values), parameters));
    const where = [inList(db, `t0.${quoteName(column.name)}`, column, keys, parameters), ...(also === undefined ? [] : [also])];
    const text = `update ${statements.table} as t0 set ${assignments} where ${where.join(' and ')} returning ${statements.list}`;
    const { rows } = await this.#explained(db, [values], () => db.execute<Item>(text, parameters, { replanned: true }));
    await this.#written(db);
    return rows;
  }

  async delete(db: Db, scope: Scope, key: RowKey, conditions: RowConditions): Promise<boolean> {
    const parameters: unknown[] = [];
    const where = this.#whereKey(db, scope, key, conditions.fixed, parameters) + this.#versionCondition(conditions.ifMatch, parameters);
    const text = `delete from ${this.#policy.statements.table} as t0 where ${where}`;
    const { count } = await this.#run(db, { verb: 'delete', text, where }, parameters, { writes: true });
    if (count > 0) await this.#written(db);
    return count > 0;
  }

  async deleteMany(db: Db, column: StoredColumn, values: readonly unknown[]): Promise<number> {
    const { statements } = this.#policy;
    await detachFromEachOther(db, this.#policy, column, values);
    const parameters: unknown[] = [];
    const where = inList(db, `t0.${quoteName(column.name)}`, column, values, parameters);
    const { count } = await db.execute(`delete from ${statements.table} as t0 where ${where}`, parameters, { replanned: true });
    await this.#written(db);
    return count;
  }

  /** What the database says of a broken rule is narrowed to what the client sent: not the owner and tenant that an index begins with. */
  async #explained<R>(db: Db, rows: readonly Item[], run: () => Promise<R>): Promise<R> {
    try {
      return await run();
    } catch (error) {
      return this.#explain(db, rows, error);
    }
  }

  #isSent(name: string): boolean {
    const { statements, tenant, owner } = this.#policy;
    const column = statements.byName.get(name);
    const isSendable = column?.settings.readOnly !== true || this.#policy.accepts(column);
    return name !== tenant?.column && name !== owner?.column && isSendable;
  }

  async #explain(db: Db, rows: readonly Item[], error: unknown): Promise<never> {
    const violation = constraintViolation(error);
    const columns = violation === undefined ? [] : await this.#blamed(db, rows, violation);
    if (violation !== undefined && columns.length > 0) describeViolation(error as object, { ...violation, columns });
    throw error;
  }

  async #blamed(db: Db, rows: readonly Item[], { kind, columns }: ConstraintViolation): Promise<readonly string[]> {
    const { statements, model } = this.#policy;
    const isSent = (name: string): boolean => this.#isSent(name);
    if (kind === 'unique') return declaredColumns(model, columns ?? []).filter(isSent);
    if (kind !== 'foreign_key' || columns !== undefined) return [];
    // SQLite does not say which reference it was: where only one was written, it was that one, else they are looked up.
    const names = new Set(rows.flatMap((row) => Object.keys(row)));
    const references = [...names].filter((name) => isConstrained(statements.byName.get(name)) && isSent(name));
    return references.length < 2 ? references : ((await brokenReferences(db, model, rows, references)) ?? []);
  }

  #run<R>(db: Db, write: RowWrite, parameters: readonly unknown[], options: QueryOptions): Promise<ExecuteResult<R>> {
    return this.#logged === undefined ? db.execute(write.text, parameters, options) : this.#logged.run(db, write, parameters, options);
  }

  /** For who keeps responses made of these rows. */
  readonly #written = async (db: Db): Promise<void> => void (await announceTableWrite(db, this.#policy.model.name));

  /** Whether all of these rows are among those the caller sees; in one statement where data alone cannot tell. */
  async areVisible(db: Db, scope: Scope, rows: readonly Item[]): Promise<boolean> {
    const { compiled } = scope;
    if (compiled.constant === true) return true;
    if (compiled.isEvaluable) return rows.every((row) => compiled.matches(row) === true);
    const { key } = this.#policy;
    const found = await this.visibleKeys(
      db,
      scope,
      rows.map((row) => row[key.name]),
    );
    return found.size === rows.length;
  }

  /** Which of these keys are among the rows the caller sees. On PostgreSQL a row that can be soft-deleted is held until the end. */
  async visibleKeys(tx: Db, scope: Scope, values: readonly unknown[]): Promise<Set<string>> {
    const { statements, key, softDelete } = this.#policy;
    const parameters: unknown[] = [];
    const column = `t0.${quoteName(key.name)}`;
    const terms = [
      values.length === 1 ? `${column} = $${parameters.push(key.encode(values[0]))}` : inList(tx, column, key, values, parameters),
    ];
    if (scope.compiled.constant !== true) terms.push(scope.compiled.append(tx.dialect, 't0', parameters));
    // Otherwise a row could be made below one that is being deleted at the same time, and would not go with it.
    const lock = softDelete !== undefined && tx.dialect === 'postgres' && tx.isTransaction ? ' for share of t0' : '';
    const rows = await tx.query<{ key: unknown }>(
      `select ${column} as key from ${statements.table} t0 where ${terms.join(' and ')}${lock}`,
      parameters,
    );
    return new Set(rows.map((row) => String(row.key)));
  }

  /** The columns that an update gives a value to, which is appended to `parameters`. Timestamps move with every update. */
  #changed(db: Db, values: Item, parameters: unknown[]): StoredColumn[] {
    const { statements } = this.#policy;
    for (const name of Object.keys(values)) statements.column(name);
    const changed: StoredColumn[] = [];
    for (const column of statements.columns) {
      const { name, settings, encode } = column;
      if (followsEncrypted(column, changed, parameters) || settings.increment === true) continue;
      if (values[name] === undefined && settings.touch === undefined) continue;
      changed.push(column);
      parameters.push(encode(values[name] === undefined ? settings.touch?.(db.clock) : values[name]));
    }
    return changed;
  }

  /** `"item" = $1, "version" = "version" + 1`. Versions move with every update. */
  #assignments(changed: readonly StoredColumn[]): string {
    const counted = this.#policy.statements.columns.filter(({ settings }) => settings.increment === true);
    return [
      ...changed.map(({ name }, index) => `${quoteName(name)} = $${index + 1}`),
      ...counted.map(({ name }) => `${quoteName(name)} = ${quoteName(name)} + 1`),
    ].join(', ');
  }

  /** `t0.id = $1 and …`: the key, what the address fixes, and the rows the caller sees. */
  #whereKey({ dialect }: Db, { compiled }: Scope, { column, value }: RowKey, fixed: Item | undefined, parameters: unknown[]): string {
    const terms = [`t0.${quoteName(column.name)} = $${parameters.push(column.encode(value))}`, ...this.#fixed(fixed, parameters)];
    if (compiled.constant !== true) terms.push(compiled.append(dialect, 't0', parameters));
    return terms.join(' and ');
  }

  #fixed(fixed: Item = {}, parameters: unknown[]): string[] {
    return Object.entries(fixed).map(
      ([name, each]) => `t0.${quoteName(name)} = $${parameters.push(this.#policy.statements.column(name).encode(each))}`,
    );
  }

  #versionCondition(ifMatch: Precondition | undefined, parameters: unknown[]): string {
    if (ifMatch === undefined || ifMatch.any) return '';
    const version = this.#policy.options.version as string | undefined;
    // Without a version no tag can be compared with the row.
    if (version === undefined) return ' and 1 = 0';
    const column = this.#policy.statements.column(version);
    const versions = ifMatch.versions.flatMap((text) => (/^[1-9]\d{0,9}$/.test(text) && Number(text) <= VERSION_MAX ? [Number(text)] : []));
    if (versions.length === 0) return ' and 1 = 0';
    return ` and t0.${quoteName(version)} in (${versions.map((each) => `$${parameters.push(column.encode(each))}`).join(', ')})`;
  }
}

/** What the column of `versioned()` can hold. */
const VERSION_MAX = 2 ** 31 - 1;

/** The names of a row are in the order of the columns. */
function appendRow(
  parameters: unknown[],
  columns: readonly StoredColumn[],
  { names, parameters: values }: ReturnType<typeof insertion>,
  { clock }: Db,
): void {
  let next = 0;
  for (const { name, settings, encode } of columns)
    parameters.push(names[next] === name ? values[next++] : encode(absentValue(settings, clock.now())));
}

/** The writer of SQLite is alone anyway. FOR NO KEY UPDATE lets rows that refer to this one be written meanwhile. */
function locking({ dialect }: Db, lock: boolean): string {
  return lock && dialect === 'postgres' ? ' for no key update of t0' : '';
}

function isConstrained(column: StoredColumn | undefined): boolean {
  const reference = column?.settings.reference;
  return reference !== undefined && reference.isConstrained !== false;
}
