import { constraintViolation } from '../../db/constraint-violation.ts';
import type { Db } from '../../db/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { FieldError, KitError } from '../../errors/kit-error.ts';
import type { CrudRequest, WriteScope } from '../policy/crud-request.ts';
import { crudErrors } from '../declare/errors.ts';
import { atItem, itemError } from './item-error.ts';
import type { PendingChange } from './record-changes.ts';
import type { RowKey } from './row-statements.ts';
import type { Item } from '../read/select-unit.ts';
import type { RecordedWrite, Writer, WriteOptions } from './write.ts';
import { checkReferences, referencesOf, refuseUnwritable } from './write-checks.ts';

/** One row of a bulk write, and where in the request it was. */
export interface BulkItem {
  readonly values: Item;
  readonly sent: readonly string[];
  readonly at: FieldError['location'];
  /** Where the values were, when several rows share them; at the row unless given. */
  readonly valuesAt?: FieldError['location'];
}

export interface KeyedItem extends BulkItem {
  readonly key: RowKey;
  /** The version the client read; another one is a 412. */
  readonly version?: number;
}

/** What a row of a partial bulk write came to. */
export type BulkResult =
  | { readonly index: number; readonly status: number; readonly data?: Item }
  | {
      readonly index: number;
      readonly status: number;
      readonly code: string;
      readonly detail: string;
      readonly errors?: readonly FieldError[];
    };

type Options = Pick<WriteOptions, 'via' | 'fixed' | 'authorize' | 'etagOf' | 'changes'>;
type Present<V> = (tx: Db, rows: readonly Item[]) => Promise<V>;

/** Writes many rows in one transaction, through the steps of one: fewer statements, the same rules. */
export class BulkWriter {
  readonly #writer: Writer;

  constructor(writer: Writer) {
    this.#writer = writer;
  }

  /** {@link create} for callers that need only the number: rows are not read back where no code reads them. */
  async createAndCount(db: Db, request: CrudRequest, items: readonly BulkItem[], given: Options): Promise<number> {
    const writer = this.#writer;
    const { policy } = writer;
    if (policy.options.fields !== undefined || policy.references.size > 0 || !writer.makesUnseen(request, given))
      return this.create(db, request, items, given, async (_tx, rows) => rows.length);
    await policy.scope(request);
    const forced = writer.forced(request, given);
    const all = items.map(({ values }) => ({ ...values, ...forced }));
    try {
      return await db.transaction((tx) => writer.rows.insertUnread(tx, all));
    } catch (error) {
      throw await this.#culprit(db, items, error, this.#insertOf(items, all));
    }
  }

  /** One INSERT per 100 rows where no hook runs. Any fault fails all. */
  async create<V>(db: Db, request: CrudRequest, items: readonly BulkItem[], given: Options, present: Present<V>): Promise<V> {
    const writer = this.#writer;
    const { policy } = writer;
    const options: WriteOptions = { ...given, sent: [] };
    if (policy.options.hooks?.create !== undefined)
      return writer.run(db, options, async (tx, changes) => {
        const rows: Item[] = [];
        for (const { at, values, sent } of items)
          rows.push(await atItem(at, () => writer.create(tx, request, values, { ...options, sent, changes })));
        return present(tx, rows);
      });
    const scope = await policy.scope(request);
    const forced = writer.forced(request, options);
    const all = items.map(({ values }) => ({ ...values, ...forced }));
    if (policy.options.fields !== undefined)
      for (const [index, { at, sent }] of items.entries())
        await atItem(at, () => refuseUnwritable(policy, request, sent, all[index] as Item));
    const checks = await referencesOf(
      policy,
      request,
      items.map(({ values }) => values),
      items.map(({ at }) => at),
    );
    try {
      return await writer.run(db, options, async (tx, changes) => {
        await checkReferences(tx, checks);
        const rows = await writer.rows.insertMany(tx, all);
        for (const row of rows) await writer.tellAccess(tx, request, 'create', null, row);
        await writer.stillVisible(tx, request, scope, rows);
        const context = writer.context(tx, request);
        for (const row of rows) {
          await options.authorize?.(row);
          await writer.changed(changes, context, request, { operation: 'create', via: options.via, before: null, after: row });
        }
        return present(tx, rows);
      });
    } catch (error) {
      throw await this.#culprit(db, items, error, this.#insertOf(items, all));
    }
  }

  #insertOf(items: readonly BulkItem[], all: readonly Item[]): (tx: Db, index: number) => Promise<unknown> {
    return async (tx, index) => this.#writer.rows.insert(tx, all[index] as Item, undefined, items[index]?.values);
  }

  /** The database does not say which row of a statement broke a rule: they are tried one by one, and undone. */
  async #culprit(
    db: Db,
    items: readonly BulkItem[],
    error: unknown,
    attempt: (tx: Db, index: number) => Promise<unknown>,
  ): Promise<unknown> {
    if (constraintViolation(error) === undefined) return error;
    return db
      .transaction(async (tx) => {
        for (const [index, { at }] of items.entries()) await atItem(at, () => attempt(tx, index));
        throw error;
      })
      .catch((found: unknown) => found);
  }

  /** Rows are locked in the order of their keys, so that two overlapping writes wait for one another instead of failing. */
  async update<V>(
    db: Db,
    request: CrudRequest,
    items: readonly KeyedItem[],
    isSame: boolean,
    given: Options,
    present: Present<V>,
  ): Promise<V> {
    const writer = this.#writer;
    const { policy } = writer;
    const options: WriteOptions = { ...given, sent: [] };
    const scope = await policy.writeScope(request);
    const checks = await referencesOf(
      policy,
      request,
      isSame ? [items[0]?.values ?? {}] : items.map(({ values }) => values),
      items.map(({ at, valuesAt = at }) => valuesAt),
    );
    return writer.run(db, options, async (tx, changes) => {
      const before = await this.#locked(tx, scope, items, options);
      for (const [index, { at, sent }] of items.entries())
        await atItem(at, () => refuseUnwritable(policy, request, sent, before[index] as Item));
      await checkReferences(tx, checks);
      const isOneStatement = isSame && policy.options.hooks?.update === undefined && Object.keys(items[0]?.values ?? {}).length > 0;
      const after = isOneStatement
        ? await this.#updateAll({ db: tx, request, scope, options, changes }, items[0] as KeyedItem, before)
        : await this.#updateEach({ db: tx, request, scope, options, changes }, items, before);
      return present(tx, after);
    });
  }

  async #updateAll(write: RecordedWrite, { values, at, valuesAt = at }: KeyedItem, before: readonly Item[]): Promise<Item[]> {
    const { db: tx, request, scope, options, changes } = write;
    const writer = this.#writer;
    const { key } = writer.policy;
    const keyOf = (row: Item) => String(row[key.name]);
    const all = writer.updateValues(request, values, options);
    const keys = before.map((row) => row[key.name]);
    const updated = await atItem(valuesAt, () => writer.rows.updateMany(tx, key, keys, all));
    const byKey = new Map(updated.map((row) => [keyOf(row), row]));
    const after = before.map((row) => byKey.get(keyOf(row)) as Item);
    const context = writer.context(tx, request);
    for (const [index, row] of after.entries()) await writer.tellAccess(tx, request, 'update', before[index] as Item, row);
    await writer.stillVisible(tx, request, scope, after);
    for (const [index, row] of after.entries())
      await writer.changed(changes, context, request, { operation: 'update', via: options.via, before: before[index] as Item, after: row });
    return after;
  }

  async #updateEach(write: RecordedWrite, items: readonly KeyedItem[], before: readonly Item[]): Promise<Item[]> {
    const after: Item[] = [];
    for (const [index, { at, values, valuesAt }] of items.entries()) {
      const row = before[index] as Item;
      const hasValues = Object.keys(values).length > 0;
      after.push(hasValues ? await atItem(at, () => this.#writer.change(write, this.#keyOf(row), row, values), valuesAt) : row);
    }
    return after;
  }

  async destroy(db: Db, request: CrudRequest, items: readonly KeyedItem[], given: Options): Promise<void> {
    const writer = this.#writer;
    const { policy } = writer;
    const options: WriteOptions = { ...given, sent: [] };
    const scope = await policy.writeScope(request);
    let failure: unknown;
    const removing = writer.run(db, options, async (tx, changes) => {
      const before = await this.#locked(tx, scope, items, options);
      if (policy.softDelete !== undefined || policy.options.hooks?.destroy !== undefined) {
        for (const [index, { at }] of items.entries()) {
          const row = before[index] as Item;
          await atItem(at, () => writer.remove({ db: tx, request, scope, options, changes }, this.#keyOf(row), row));
        }
        return;
      }
      const keys = before.map((row) => row[policy.key.name]);
      await writer.rows.deleteMany(tx, keys).catch((error: unknown) => {
        throw (failure = error);
      });
      const context = writer.context(tx, request);
      for (const row of before) {
        await writer.tellAccess(tx, request, 'destroy', row, null);
        await writer.changed(changes, context, request, { operation: 'destroy', via: options.via, before: row, after: null });
      }
    });
    await removing.catch(async (error: unknown) => {
      if (error !== failure) throw error;
      throw await this.#culprit(db, items, error, (tx, index) => writer.rows.delete(tx, scope, (items[index] as KeyedItem).key, {}));
    });
  }

  /** Each item in a savepoint of its own; what is wrong with one stays with it. A fault of the server fails all. */
  async partial<T extends Pick<BulkItem, 'at' | 'valuesAt'>>(
    db: Db,
    items: readonly T[],
    work: (tx: Db, item: T, changes: PendingChange[]) => Promise<{ readonly status: number; readonly data?: Item }>,
    lock?: (tx: Db) => Promise<unknown>,
  ): Promise<BulkResult[]> {
    return db.transaction(async (tx) => {
      await lock?.(tx);
      const recorded: PendingChange[] = [];
      const results: BulkResult[] = [];
      for (const [index, item] of items.entries()) {
        const changes: PendingChange[] = [];
        try {
          const done = await tx.transaction((savepoint) => work(savepoint, item, changes));
          recorded.push(...changes);
          results.push({ index, ...done });
        } catch (error) {
          const fault = itemError(error, item.at, item.valuesAt);
          if (fault === undefined || fault.status >= 500) throw error;
          results.push(failed(index, fault));
        }
      }
      await this.#writer.record(tx, recorded);
      return results;
    });
  }

  /** Locks rows in the order of their keys, and nothing else: those that are not there are missed later. */
  async lock(tx: Db, request: CrudRequest, items: readonly KeyedItem[], { fixed }: Pick<Options, 'fixed'>): Promise<void> {
    const [first] = items;
    if (first === undefined) return;
    const { where, compiled } = await this.#writer.policy.scope(request);
    const values = items.map(({ key }) => key.value);
    await this.#writer.rows.selectMany(tx, { where, compiled }, first.key.column, values, fixed === undefined ? {} : { fixed });
  }

  /** The rows in the order of the request. One that the caller does not see fails all, as 404. */
  async #locked(tx: Db, scope: WriteScope, items: readonly KeyedItem[], options: WriteOptions): Promise<Item[]> {
    const { column } = (items[0] as KeyedItem).key;
    const stored = (value: unknown) => String(column.encode(value));
    const { fixed } = options;
    const found = await this.#writer.rows.selectMany(
      tx,
      scope,
      column,
      items.map(({ key }) => key.value),
      fixed === undefined ? {} : { fixed },
    );
    const byKey = new Map(found.map((row) => [stored(row[column.name]), row]));
    const missing = items.filter(({ key }) => !byKey.has(stored(key.value)));
    if (missing.length > 0)
      throw coreErrors.not_found({
        errors: missing.map(({ at }) => ({ location: at, code: 'not_found', message: 'There is no such row.' })),
      });
    const rows = items.map(({ key }) => byKey.get(stored(key.value)) as Item);
    for (const row of rows) await options.authorize?.(row);
    this.#refuseStale(items, rows);
    return rows;
  }

  #refuseStale(items: readonly KeyedItem[], rows: readonly Item[]): void {
    const name = this.#writer.policy.options.version as string | undefined;
    if (name === undefined) return;
    const errors = items.flatMap(({ at, version }, index) =>
      version === undefined || version === rows[index]?.[name]
        ? []
        : [{ location: [...at, name], code: 'precondition_failed', message: `The row has version ${String(rows[index]?.[name])} now.` }],
    );
    if (errors.length > 0) throw crudErrors.precondition_failed({ errors });
  }

  #keyOf(row: Item): RowKey {
    const { key } = this.#writer.policy;
    return { column: key, value: row[key.name] };
  }
}

function failed(index: number, { status, code, detail, errors }: KitError): BulkResult {
  return { index, status, code, detail, ...(errors === undefined ? {} : { errors }) };
}
