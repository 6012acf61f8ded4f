import { resolveReference } from '../../db/column.ts';
import { type ConstraintViolation, constraintViolation, describeViolation } from '../../db/constraint-violation.ts';
import { brokenReferences } from '../../db/name-violation.ts';
import type { Db } from '../../db/db.ts';
import type { QueryOptions } from '../../db/engine.ts';
import { canExpectRows, expectedInsertText, expectInsertion } from '../../db/expected-insertion.ts';
import { insertAtOnce, queryAtOnce } from '../../db/handle.ts';
import type { ModelColumn, ModelStatements } from '../../db/model-statements.ts';
import { quoteName } from '../../db/names.ts';
import { announceTableWrite } from '../../db/table-writes.ts';
import { insertion } from '../../db/repository.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { Scope, WriteScope } from '../policy/crud-request.ts';
import { absentValue } from './absent-value.ts';
import { limits } from '../declare/limits.ts';
import { andThen, type Maybe } from '../../db/maybe.ts';
import type { Policy } from '../policy/policy.ts';
import type { Precondition } from './precondition.ts';
import { type Item, keyType } from '../read/select-unit.ts';
import { StatementTexts } from '../read/statement-texts.ts';

/** Which row: a unique column and its value. */
export interface RowKey {
  readonly column: ModelColumn;
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
const AS_CODE: RowForm = Object.freeze({});

/** What narrows a statement besides the key and the rows the caller sees. */
export interface RowConditions {
  /** Columns that the address sets: the parent. */
  readonly fixed?: Item | undefined;
  readonly ifMatch?: Precondition | undefined;
  readonly onlyFrom?: OnlyFrom;
}

/** What the text of an update is made of. */
interface UpdateStatement {
  readonly db: Db;
  readonly scope: Scope;
  readonly key: RowKey;
  readonly changed: readonly ModelColumn[];
  readonly conditions: RowConditions;
  /** The placeholder of the key. */
  readonly first: number;
}

/** An INSERT whose row is known before it is made. */
export interface ExpectedInsert {
  readonly row: Item;
  /** Sends it, as a part of a transaction, which fails with `UnexpectedRow` where the row is another one. */
  readonly send: (tx: Db) => Maybe<unknown>;
}

/** An INSERT of several rows, and the columns it has. */
interface Insertion {
  readonly text: string;
  readonly parameters: unknown[];
  /** The rows that it inserts. */
  readonly chunk: readonly Item[];
}

/** The statements that read and change rows of one table, whole rows in and out. The caller owns the transaction and the decisions. */
export class RowStatements {
  readonly #policy: Policy;
  readonly #texts: StatementTexts;

  constructor(policy: Policy) {
    this.#policy = policy;
    this.#texts = textsOf(policy);
  }

  /**
   * The row by its key; locked against other writers if asked. One statement decides whether there is a row for the caller, and whether it
   * may do this to it.
   */
  async select(db: Db, scope: WriteScope, key: RowKey, conditions: RowConditions, lock: boolean): Promise<Item | undefined> {
    const { statements, softDelete } = this.#policy;
    const parameters: unknown[] = [];
    const decision = decisionSql(db, scope, parameters);
    const where = this.#whereKey(db, scope, key, conditions, parameters.length + 1);
    this.#pushKey(db, scope, key, conditions, parameters);
    // Several deleted rows may share a value that is unique among the others: the newest deletion is meant.
    const order = softDelete === undefined ? '' : ` order by t0.${quoteName(softDelete.deletedAt)} desc limit 1`;
    const [row] = await db.query<Item>(
      `select ${statements.list}${decision} from ${statements.table} t0 where ${where}${order}${locking(db, lock)}`,
      parameters,
    );
    return row === undefined ? undefined : allowedRow(scope, row);
  }

  /** Rows by the values of a column, in the order of their keys: two writers that lock the same rows lock them in the same order. */
  async selectMany(
    db: Db,
    scope: WriteScope | undefined,
    column: ModelColumn,
    values: readonly unknown[],
    { fixed, also, limit }: RowConditions & { readonly also?: string; readonly limit?: number } = {},
  ): Promise<Item[]> {
    const { statements, key } = this.#policy;
    const parameters: unknown[] = [];
    const decision = scope === undefined ? '' : decisionSql(db, scope, parameters);
    const terms = [inList(db, `t0.${quoteName(column.name)}`, column, values, parameters), ...this.#fixed(fixed, parameters)];
    if (also !== undefined) terms.push(also);
    if (scope !== undefined && scope.compiled.constant !== true) terms.push(scope.compiled.append(db.dialect, 't0', parameters));
    const most = limit === undefined ? '' : ` limit $${parameters.push(limit)}`;
    const text = `select ${statements.list}${decision} from ${statements.table} t0 where ${terms.join(' and ')} order by t0.${quoteName(key.name)}${most}${locking(db, true)}`;
    const rows = await db.query<Item>(text, parameters, { replanned: true });
    return scope === undefined ? rows : rows.map((row) => allowedRow(scope, row));
  }

  /**
   * `form`: the row comes back as code has it, or in its JSON form. `sent`: the values that are the caller's own, where others, such as the key of
   * a parent, must not be blamed for a broken rule.
   */
  insert(db: Db, values: Item, form: RowForm = AS_CODE, sent: Item = values): Maybe<Item> {
    const { statements } = this.#policy;
    const inserted = insertion(db, statements, values);
    const row = this.#explained(db, [sent], () =>
      insertAtOnce<Item>(db, statements, inserted, (kind) => this.#insertText(kind, inserted.names), form),
    );
    return andThen(row, (made) => andThen(this.#written(db), () => made));
  }

  /** What {@link insert} would make, where the database need not be waited for to know the row. */
  expect(db: Db, values: Item, form: RowForm = AS_CODE): ExpectedInsert | undefined {
    if (!canExpectRows(db)) return undefined;
    const { statements } = this.#policy;
    const inserted = insertion(db, statements, values);
    const expected = expectInsertion(db, statements, inserted, form.as);
    if (expected === undefined) return undefined;
    let step = this.#texts.start.to('insert').to('expected');
    for (const name of inserted.names) step = step.to(name);
    const text = step.statement ?? this.#texts.keep(step, expectedInsertText(db, statements, inserted.names));
    const explained = (error: unknown): void => this.#explainUnique(error);
    return { row: expected.row, send: (tx) => andThen(expected.send(tx, text, explained), () => this.#written(tx)) };
  }

  #insertText(row: 'returned' | 'known', names: readonly string[]): string {
    const { statements } = this.#policy;
    let step = this.#texts.start.to('insert').to(row);
    if (row === 'known') return step.statement ?? this.#texts.keep(step, insertText(statements, [...statements.byName.keys()], ''));
    for (const name of names) step = step.to(name);
    return step.statement ?? this.#texts.keep(step, insertText(statements, names, ` returning ${statements.list}`));
  }

  /**
   * One INSERT per 100 rows, on PostgreSQL 500. A column that only some rows give gets its default in the others, so that all have the same columns. Rows come
   * back in the order given.
   */
  async insertMany(db: Db, rows: readonly Item[]): Promise<Item[]> {
    const inserted: Item[] = [];
    for (const { text, parameters, chunk } of this.#insertions(db, rows, true))
      inserted.push(...(await this.#explained(db, chunk, () => db.query<Item>(text, parameters))));
    await this.#written(db);
    return inserted;
  }

  /** {@link insertMany} where no code reads the rows: how many were made. */
  async insertUnread(db: Db, rows: readonly Item[]): Promise<number> {
    let count = 0;
    for (const { text, parameters, chunk } of this.#insertions(db, rows, false))
      count += (await this.#explained(db, chunk, () => db.execute(text, parameters))).count;
    await this.#written(db);
    return count;
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
      let step = this.#texts.start.to(isRead ? 'insert rows' : 'insert unread rows').to(chunk.length);
      for (const { name } of columns) step = step.to(name);
      const text = step.statement ?? this.#texts.keep(step, insertManyText(statements, columns, chunk.length, isRead));
      yield { text, parameters, chunk };
    }
  }

  /** Undefined when no row of this key, scope and version is there. */
  update(db: Db, scope: Scope, key: RowKey, values: Item, conditions: RowConditions, form: RowForm = AS_CODE): Maybe<Item | undefined> {
    const parameters: unknown[] = [];
    const changed = this.#changed(db, values, parameters);
    const first = parameters.length + 1;
    this.#pushKey(db, scope, key, conditions, parameters);
    const statement: UpdateStatement = { db, scope, key, changed, conditions, first };
    const text =
      conditions.onlyFrom === undefined && (conditions.ifMatch === undefined || conditions.ifMatch.any)
        ? this.#knownUpdate(statement)
        : this.#updateText(statement, this.#narrower(conditions, parameters));
    const updated = this.#explained(db, [values], () => queryAtOnce<Item>(db, text, parameters, form));
    return andThen(updated, ([row]) => (row === undefined ? undefined : andThen(this.#written(db), () => row)));
  }

  /** The text of an update that only its columns, key and scope decide about. */
  #knownUpdate(statement: UpdateStatement): string {
    const { db, scope, key, changed, conditions } = statement;
    let step = this.#texts.start.to('update').to(db.dialect).to(scope.compiled.shape).to(key.column.name);
    for (const name in conditions.fixed) step = step.to(name);
    step = step.to(undefined);
    for (const { name } of changed) step = step.to(name);
    return step.statement ?? this.#texts.keep(step, this.#updateText(statement, ''));
  }

  #updateText({ db, scope, key, changed, conditions, first }: UpdateStatement, narrower: string): string {
    const { statements } = this.#policy;
    const where = this.#whereKey(db, scope, key, conditions, first);
    return `update ${statements.table} as t0 set ${this.#assignments(changed)} where ${where}${narrower} returning ${statements.list}`;
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
  async updateMany(db: Db, column: ModelColumn, keys: readonly unknown[], values: Item, also?: string): Promise<Item[]> {
    const { statements } = this.#policy;
    const parameters: unknown[] = [];
    const assignments = this.#assignments(this.#changed(db, values, parameters));
    const where = [inList(db, `t0.${quoteName(column.name)}`, column, keys, parameters), ...(also === undefined ? [] : [also])];
    const text = `update ${statements.table} as t0 set ${assignments} where ${where.join(' and ')} returning ${statements.list}`;
    const { rows } = await this.#explained(db, [values], () => db.execute<Item>(text, parameters, { replanned: true }));
    await this.#written(db);
    return rows;
  }

  async delete(db: Db, scope: Scope, key: RowKey, conditions: RowConditions): Promise<boolean> {
    const parameters: unknown[] = [];
    this.#pushKey(db, scope, key, conditions, parameters);
    const where = this.#whereKey(db, scope, key, conditions, 1) + this.#versionCondition(conditions.ifMatch, parameters);
    const { count } = await db.execute(`delete from ${this.#policy.statements.table} as t0 where ${where}`, parameters);
    if (count > 0) await this.#written(db);
    return count > 0;
  }

  async deleteMany(db: Db, keys: readonly unknown[]): Promise<number> {
    const { statements, key } = this.#policy;
    const parameters: unknown[] = [];
    const where = inList(db, `t0.${quoteName(key.name)}`, key, keys, parameters);
    const { count } = await db.execute(`delete from ${statements.table} as t0 where ${where}`, parameters, { replanned: true });
    await this.#written(db);
    return count;
  }

  /** What the database says of a broken rule is narrowed to what the client sent: not the owner and tenant that an index begins with. */
  #explained<R>(db: Db, rows: readonly Item[], run: () => Maybe<R>): Maybe<R> {
    try {
      const result = run();
      return result instanceof Promise ? result.catch((error: unknown) => this.#explain(db, rows, error)) : result;
    } catch (error) {
      return this.#explain(db, rows, error);
    }
  }

  /** {@link #explain} for what PostgreSQL says: it names the columns itself, and nothing has to be looked up. */
  #explainUnique(error: unknown): void {
    const violation = constraintViolation(error);
    if (violation?.kind !== 'unique') return;
    const columns = (violation.columns ?? []).filter((name) => this.#isSent(name));
    if (columns.length > 0) describeViolation(error as object, { ...violation, columns });
  }

  #isSent(name: string): boolean {
    const { statements, options, owner } = this.#policy;
    return name !== options.tenant && name !== owner?.column && statements.byName.get(name)?.settings.readOnly !== true;
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
    if (kind === 'unique') return (columns ?? []).filter(isSent);
    if (kind !== 'foreign_key' || columns !== undefined) return [];
    // SQLite does not say which reference it was: where only one was written, it was that one, else they are looked up.
    const names = new Set(rows.flatMap((row) => Object.keys(row)));
    const references = [...names].filter((name) => statements.byName.get(name)?.settings.reference !== undefined && isSent(name));
    return references.length < 2 ? references : ((await brokenReferences(db, model, rows, references)) ?? []);
  }

  /** For who keeps responses made of these rows. */
  #written(db: Db): Promise<unknown> | undefined {
    return announceTableWrite(db, this.#policy.model.name);
  }

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
  #changed(db: Db, values: Item, parameters: unknown[]): ModelColumn[] {
    const { statements } = this.#policy;
    for (const name of Object.keys(values)) statements.column(name);
    const changed: ModelColumn[] = [];
    for (const column of statements.columns) {
      const { name, settings, encode } = column;
      if (settings.increment === true || (values[name] === undefined && settings.touch === undefined)) continue;
      changed.push(column);
      parameters.push(encode(values[name] === undefined ? settings.touch?.(db.clock) : values[name]));
    }
    return changed;
  }

  /** `"item" = $1, "version" = "version" + 1`. Versions move with every update. */
  #assignments(changed: readonly ModelColumn[]): string {
    const counted = this.#policy.statements.columns.filter(({ settings }) => settings.increment === true);
    return [
      ...changed.map(({ name }, index) => `${quoteName(name)} = $${index + 1}`),
      ...counted.map(({ name }) => `${quoteName(name)} = ${quoteName(name)} + 1`),
    ].join(', ');
  }

  /** `t0.id = $1 and …`: the key, what the address fixes, and the rows the caller sees; placeholders count from `first`. */
  #whereKey({ dialect }: Db, { compiled }: Scope, { column }: RowKey, { fixed = {} }: RowConditions, first: number): string {
    let next = first;
    const terms = [column.name, ...Object.keys(fixed)].map((name) => `t0.${quoteName(name)} = $${next++}`);
    if (compiled.constant !== true) terms.push(compiled.text(dialect, 't0', next));
    return terms.join(' and ');
  }

  /** The parameters of {@link #whereKey}. */
  #pushKey({ dialect }: Db, { compiled }: Scope, { column, value }: RowKey, { fixed = {} }: RowConditions, parameters: unknown[]): void {
    parameters.push(column.encode(value));
    for (const name of Object.keys(fixed)) parameters.push(this.#policy.statements.column(name).encode(fixed[name]));
    if (compiled.constant !== true) compiled.pushValues(dialect, parameters);
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
  columns: readonly ModelColumn[],
  { names, parameters: values }: ReturnType<typeof insertion>,
  { clock }: Db,
): void {
  let next = 0;
  for (const { name, settings, encode } of columns)
    parameters.push(names[next] === name ? values[next++] : encode(absentValue(settings, clock.now())));
}

function insertManyText({ table, list }: ModelStatements, columns: readonly ModelColumn[], rows: number, isRead: boolean): string {
  const tuple = (row: number) => `(${columns.map((_, index) => `$${row * columns.length + index + 1}`).join(', ')})`;
  const names = columns.map(({ name }) => quoteName(name)).join(', ');
  const tuples = Array.from({ length: rows }, (_, row) => tuple(row)).join(', ');
  return `insert into ${table} (${names}) values ${tuples}${isRead ? ` returning ${list}` : ''}`;
}

const texts = new WeakMap<Policy, StatementTexts>();

function textsOf(policy: Policy): StatementTexts {
  let known = texts.get(policy);
  if (known === undefined) texts.set(policy, (known = new StatementTexts(limits.plans)));
  return known;
}

function insertText({ table }: ModelStatements, names: readonly string[], returning: string): string {
  const columns =
    names.length === 0
      ? ' default values'
      : ` (${names.map(quoteName).join(', ')}) values (${names.map((_, index) => `$${index + 1}`).join(', ')})`;
  return `insert into ${table}${columns}${returning}`;
}

/** The writer of SQLite is alone anyway. FOR NO KEY UPDATE lets rows that refer to this one be written meanwhile. */
function locking({ dialect }: Db, lock: boolean): string {
  return lock && dialect === 'postgres' ? ' for no key update of t0' : '';
}

/** One placeholder for however many values: the statement's text does not depend on their number. */
export function inList({ dialect }: Db, sql: string, column: ModelColumn, values: readonly unknown[], parameters: unknown[]): string {
  const encoded = values.map((value) => column.encode(value));
  if (dialect === 'postgres')
    return `${sql} = any($${parameters.push(encoded)}::${keyType(column, resolveReference(column.settings).kind)}[])`;
  const json = JSON.stringify(encoded.map((each) => (typeof each === 'bigint' ? each.toString() : each)));
  return `${sql} in (select value from json_each($${parameters.push(json)}))`;
}

/** The column of a statement that says whether the action is allowed. */
const ALLOWED = '~allowed';

function decisionSql({ dialect }: Db, { allowed }: WriteScope, parameters: unknown[]): string {
  if (allowed === undefined || allowed.compiled.constant === true) return '';
  return `, case when ${allowed.compiled.append(dialect, 't0', parameters)} then 1 else 0 end as ${quoteName(ALLOWED)}`;
}

/** The row without the decision; 403 where the caller sees the row and may not do this to it. */
function allowedRow({ allowed }: WriteScope, row: Item): Item {
  if (allowed === undefined || !(ALLOWED in row)) return row;
  const { [ALLOWED]: isAllowed, ...rest } = row;
  if (Number(isAllowed) !== 1)
    throw coreErrors.permission_denied({
      detail: `You may see this, but not do "${allowed.action}" to it.`,
      extensions: { action: allowed.action },
    });
  return rest;
}
