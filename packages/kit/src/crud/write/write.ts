import { resolveReference } from '../../db/column.ts';
import type { Db } from '../../db/db.ts';
import { againUnlessExpected } from '../../db/expected-insertion.ts';
import { transactionAtOnce } from '../../db/handle.ts';
import type { ModelColumn } from '../../db/model-statements.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { cascadeDeletion, cascadeRestore, type CascadeOptions, refuseBelowDeleted } from './cascade.ts';
import { changedColumns } from './change.ts';
import { callerOf, type CrudRequest, type Scope, type WriteScope } from '../policy/crud-request.ts';
import { crudErrors } from '../declare/errors.ts';
import { andThen, type Maybe } from '../../db/maybe.ts';
import type { Policy } from '../policy/policy.ts';
import { possibleTransitions, transitionRulesOf } from './possible-transitions.ts';
import type { Precondition } from './precondition.ts';
import { isRecorded, type PendingChange, recordChanges, type Recorders } from './record-changes.ts';
import type { Change, Via, WriteContext } from '../declare/resource.ts';
import type { AccessWrite } from '../declare/row-access.ts';
import { type ExpectedInsert, type OnlyFrom, type RowForm, type RowKey, RowStatements } from './row-statements.ts';
import { runHook } from './run-hook.ts';
import type { Item } from '../read/select-unit.ts';
import { deletionOf, newDeletion, noDeletion, type SoftDelete } from '../policy/soft-delete.ts';
import type { TransitionRule } from '../declare/transition-rule.ts';
import { checkReferences, isWritableByRequest, type ReferenceCheck, referencesOf, refuseUnwritable } from './write-checks.ts';

/** How a write is made: what a request adds to its values. */
export interface WriteOptions {
  readonly via: Via;
  /** Names of the members the client sent: what its right to write is decided by. */
  readonly sent: readonly string[];
  /** Columns that the address sets: the parent. */
  readonly fixed?: Item | undefined;
  readonly ifMatch?: Precondition | undefined;
  /** The transaction was opened for this write alone, and fails with it: it needs no savepoint. */
  readonly ownsTransaction?: boolean | undefined;
  /** Whether the owner of the transaction does it again where it fails with `UnexpectedRow`. */
  readonly expectsRows?: boolean | undefined;
  /** Settles a permission that needs the row; throws the denial. */
  readonly authorize?: ((row: Item) => Promise<unknown>) | undefined;
  /** Makes what the caller gets of the written row; inside the transaction where that takes statements of its own (`isDeep`). */
  readonly present?: {
    readonly isDeep: boolean;
    /** The form that `build` takes a row in when no other code reads it. */
    readonly form?: RowForm;
    readonly build: (db: Db, row: Item) => undefined | Promise<void>;
  };
  /** More values of an update, which depend on the row as it was: columns that PUT resets where a rule about the row lets the caller write them. */
  readonly valuesOfRow?: ((before: Item) => Promise<Item>) | undefined;
  /** Names the transitions that the caller may make now, for 409; those of the resource unless given. */
  readonly transitionsOf?: (row: Item) => Promise<readonly string[]>;
  /** Makes the tag of the row as it is now, for 412. */
  readonly etagOf?: ((row: Item) => string) | undefined;
  /** Writes what is written with the row, in its transaction: its children. A row with children is touched even when it does not change. */
  readonly children?: ((tx: Db, row: Item, isNew: boolean, changes: PendingChange[]) => Promise<void>) | undefined;
  /** Collects what changed, for a caller that records several writes at once. Without it each write records its own. */
  readonly changes?: PendingChange[];
}

const NOTHING_FIXED: Item = Object.freeze({});
const NO_CHECKS: readonly ReferenceCheck[] = Object.freeze([]);

/** One write: where, for which request, within which rows, and how. */
interface Write {
  readonly db: Db;
  readonly request: CrudRequest;
  readonly scope: Scope;
  readonly options: WriteOptions;
}

/** A write in a transaction, whose changes are recorded at its end. */
export interface RecordedWrite extends Write {
  readonly scope: WriteScope;
  readonly changes: PendingChange[];
}

/**
 * The one way rows change. Every mutation goes through the same steps, in one transaction: scope, lock, precondition, input, hook, statement,
 * still in scope, change record, audit, events.
 */
export class Writer {
  readonly policy: Policy;
  readonly rows: RowStatements;
  readonly #recorders: Recorders;
  readonly #stamps: { readonly created: readonly string[]; readonly updated: readonly string[] };
  readonly #neverChanged: readonly string[];
  readonly #createIsPlain: boolean;

  constructor(policy: Policy, recorders: Recorders) {
    this.policy = policy;
    this.rows = new RowStatements(policy);
    this.#recorders = recorders;
    this.#stamps = {
      created: [...stamped(policy, 'created_by'), ...stamped(policy, 'updated_by')],
      updated: stamped(policy, 'updated_by'),
    };
    const { hooks, rows, access, fields, onChange, events } = policy.options;
    const code = [hooks?.create, rows, access, fields, onChange];
    this.#createIsPlain = code.every((each) => each === undefined) && typeof events !== 'function';
    this.#neverChanged = [
      ...new Set([policy.key.name, ...policy.model.primaryKey, policy.options.tenant as string | undefined, policy.owner?.column]),
    ].filter((name) => name !== undefined);
  }

  /** The writer of another resource, with the same recorders. */
  of(policy: Policy): Writer {
    return policy === this.policy ? this : new Writer(policy, this.#recorders);
  }

  /** Whether no code reads a row that was made: no hook, rule, listener or access. */
  makesUnseen(request: CrudRequest, { authorize }: Pick<WriteOptions, 'authorize'>): boolean {
    return this.isPlain(this.policy.options.hooks?.create, request) && authorize === undefined;
  }

  /** Whether a write is one statement: no code reads the row before, after or beside it. */
  isPlain(hook: unknown, request: CrudRequest): boolean {
    return hook === undefined && !this.#mayLeaveScope(request) && !this.isWatched;
  }

  /** Tenant and owner never change; what else decides about a row may be changed by a write. */
  #mayLeaveScope(request: CrudRequest): boolean {
    const { rows, access } = this.policy.options;
    return rows !== undefined || access !== undefined || this.policy.adminRule(request) !== undefined;
  }

  /** Whether code reads the change. */
  get isWatched(): boolean {
    return this.policy.options.onChange !== undefined || isRecorded(this.policy, this.#recorders);
  }

  /** Whether a create of an ordinary request calls no code of the application. */
  createRunsNoCode(input: Item): boolean {
    return this.#createRunsNoCode && !this.#hasReference(input);
  }

  /** Recorders without a form at once are not the toolkit's own: they are code of the application. */
  get #createRunsNoCode(): boolean {
    const { audit, events } = this.#recorders;
    const { options } = this.policy;
    const isAuditOurs = options.audit === false || audit === null || audit.recordAtOnce !== undefined;
    const areEventsOurs = options.events === undefined || options.events === false || events === null || events.publishAtOnce !== undefined;
    return this.#createIsPlain && isAuditOurs && areEventsOurs;
  }

  #hasReference(values: Item): boolean {
    for (const name of this.policy.references.keys()) if (values[name] !== null && values[name] !== undefined) return true;
    return false;
  }

  /** Makes a row and returns it whole. */
  async create(db: Db, request: CrudRequest, input: Item, options: WriteOptions): Promise<Item> {
    return this.createAtOnce(db, request, input, options);
  }

  /** {@link create}, without a promise where one statement is enough and the database answers at once. */
  createAtOnce(db: Db, request: CrudRequest, input: Item, options: WriteOptions): Maybe<Item> {
    const { fields, hooks } = this.policy.options;
    const isUnseen =
      fields === undefined &&
      hooks?.create === undefined &&
      !this.#hasReference(input) &&
      !this.#mayLeaveScope(request) &&
      options.present?.isDeep !== true &&
      options.children === undefined &&
      options.authorize === undefined;
    const forced = this.forced(request, options);
    // Which rows the caller sees decides nothing here: a row with its own tenant and owner is one of them.
    if (isUnseen && !this.isWatched) return this.#createUnrecorded(db, input, { ...input, ...forced }, options);
    if (isUnseen && this.#createRunsNoCode && options.changes === undefined)
      return this.#createRecorded(db, request, input, { ...input, ...forced }, options);
    return andThen(this.policy.scope(request), (scope) => this.#createChecked({ db, request, scope, options }, input, forced));
  }

  /** A row that only the audit trail and events read, once it is made. */
  #createRecorded(db: Db, request: CrudRequest, sent: Item, values: Item, options: WriteOptions): Maybe<Item> {
    const record = (tx: Db, after: Item): Maybe<Item> => {
      const { user, principal, requestId } = request;
      const made = { operation: 'create', via: options.via, before: null, after, changed: (this.#allColumns ??= this.#everyColumn) };
      // Without services, which would be made to be given to code.
      const change = { tx, user, principal, requestId, ...made } as unknown as Change;
      return andThen(presented(tx, after, options), () => andThen(this.record(tx, [{ policy: this.policy, change }]), () => after));
    };
    const write = (tx: Db): Maybe<Item> => andThen(this.rows.insert(tx, values, undefined, sent), (after) => record(tx, after));
    const expectedIn = (tx: Db, { row, send }: ExpectedInsert): Maybe<Item> => andThen(send(tx), () => record(tx, row));
    if (db.isTransaction) {
      if (options.ownsTransaction !== true) return transactionAtOnce(db, write);
      const expected = this.#expected(db, values, options);
      return expected === undefined ? write(db) : expectedIn(db, expected);
    }
    const expected = this.rows.expect(db, values);
    if (expected === undefined) return transactionAtOnce(db, write);
    return againUnlessExpected(
      async () => transactionAtOnce(db, (tx) => expectedIn(tx, expected)),
      async () => transactionAtOnce(db, write),
    );
  }

  /** A row that nobody reads once it is made. Outside a transaction its statement is the transaction, and waiting for it costs nothing. */
  #createUnrecorded(db: Db, sent: Item, values: Item, options: WriteOptions): Maybe<Item> {
    const form = options.present?.form;
    const expected = this.#expected(db, values, options, form);
    if (expected !== undefined) return andThen(expected.send(db), () => presented(db, expected.row, options));
    return andThen(this.rows.insert(db, values, form, sent), (row) => presented(db, row, options));
  }

  /** In a transaction whose owner does it again where a row is not as expected. */
  #expected(tx: Db, values: Item, { ownsTransaction, expectsRows }: WriteOptions, form?: RowForm): ExpectedInsert | undefined {
    return tx.isTransaction && ownsTransaction === true && expectsRows === true ? this.rows.expect(tx, values, form) : undefined;
  }

  /** For what calls no code that might change it. */
  #allColumns: readonly string[] | undefined;

  get #everyColumn(): string[] {
    return [...this.policy.statements.byName.keys()];
  }

  async #createChecked({ db, request, scope, options }: Write, input: Item, forced: Item): Promise<Item> {
    const { hooks } = this.policy.options;
    const values: Item = { ...input, ...forced };
    await refuseUnwritable(this.policy, request, options.sent, values);
    const checks = this.#hasReference(input) ? await referencesOf(this.policy, request, [input]) : NO_CHECKS;
    if (
      this.isPlain(hooks?.create, request) &&
      checks.length === 0 &&
      options.present?.isDeep !== true &&
      options.children === undefined &&
      options.authorize === undefined
    )
      return presented(db, await this.rows.insert(db, values, options.present?.form, input), options);
    return this.run(db, options, async (tx, changes) => {
      await checkReferences(tx, checks);
      const context = this.context(tx, request);
      const hook = hooks?.create;
      const insertRow = async (given: Item) => this.rows.insert(tx, { ...given, ...forced }, undefined, given);
      const { written, returned } =
        hook === undefined
          ? { written: await insertRow(input), returned: undefined }
          : await runHook(`create hook of "${this.policy.name}"`, insertRow, (next) => hook({ ...context, input }, next as never));
      const after = written ?? (await this.#existing(tx, scope, returned, options));
      if (written !== undefined) {
        await this.tellAccess(tx, request, 'create', null, after);
        await this.stillVisible(tx, request, scope, after);
      }
      await options.authorize?.(after);
      if (written !== undefined)
        await this.changed(changes, context, request, { operation: 'create', via: options.via, before: null, after });
      if (written !== undefined) await options.children?.(tx, after, true, changes);
      await options.present?.build(tx, after);
      return after;
    });
  }

  /** Changes a row among those the caller sees and returns it whole. `changes` may be empty: then nothing is written. */
  async update(db: Db, request: CrudRequest, key: RowKey, values: Item, options: WriteOptions): Promise<Item> {
    return this.updateAtOnce(db, request, key, values, options);
  }

  /** {@link update}, without a promise where one statement is enough and the database answers at once. */
  updateAtOnce(db: Db, request: CrudRequest, key: RowKey, values: Item, options: WriteOptions): Maybe<Item> {
    const isPlain =
      this.policy.options.fields === undefined &&
      !this.#hasReference(values) &&
      hasMembers(values) &&
      this.isPlain(this.policy.options.hooks?.update, request) &&
      options.authorize === undefined &&
      options.present?.isDeep !== true &&
      options.children === undefined &&
      options.valuesOfRow === undefined;
    return andThen(this.policy.writeScope(request), (scope) =>
      isPlain
        ? this.#updatePlain({ db, request, scope, options }, key, values)
        : this.#updateChecked({ db, request, scope, options }, key, values),
    );
  }

  /** One statement: no code reads the row before it. */
  #updatePlain(write: Write & { readonly scope: WriteScope }, key: RowKey, values: Item): Maybe<Item> {
    const { db, scope, options } = write;
    return andThen(this.updateRow(write, key, values, { form: options.present?.form }), (updated) =>
      updated === undefined ? this.#missing(db, scope, key, options) : presented(db, updated, options),
    );
  }

  async #updateChecked(write: Write & { readonly scope: WriteScope }, key: RowKey, values: Item): Promise<Item> {
    const { db, request, scope, options } = write;
    const { hooks } = this.policy.options;
    const isWritable = await isWritableByRequest(this.policy, request, options.sent);
    const checks = this.#hasReference(values) ? await referencesOf(this.policy, request, [values]) : NO_CHECKS;
    const isPlain =
      this.isPlain(hooks?.update, request) &&
      checks.length === 0 &&
      options.authorize === undefined &&
      options.present?.isDeep !== true &&
      options.children === undefined &&
      options.valuesOfRow === undefined;
    if (isWritable && hasMembers(values) && isPlain) return this.#updatePlain(write, key, values);
    return this.run(db, options, async (tx, changes) => {
      const before = await this.#locked(tx, scope, key, options);
      await options.authorize?.(before);
      this.refuseStale(before, options);
      await refuseUnwritable(this.policy, request, options.sent, before);
      await checkReferences(tx, checks);
      const all = options.valuesOfRow === undefined ? values : { ...values, ...(await options.valuesOfRow(before)) };
      const hasValues = hasMembers(all);
      if (!hasValues && options.children === undefined) {
        await options.present?.build(tx, before);
        return before;
      }
      const after = hasValues
        ? await this.change({ db: tx, request, scope, options, changes }, key, before, all)
        : await this.#touch(tx, request, scope, key, before, options);
      await options.children?.(tx, after, false, changes);
      await options.present?.build(tx, after);
      return after;
    });
  }

  /** Moves timestamps, stamps and version of a row whose children change, where it has any. */
  async #touch(tx: Db, request: CrudRequest, scope: WriteScope, key: RowKey, before: Item, options: WriteOptions): Promise<Item> {
    const isTouched = this.policy.statements.columns.some(
      ({ settings }) => settings.increment === true || settings.touch !== undefined || settings.stamp === 'updated_by',
    );
    return isTouched
      ? ((await this.updateRow({ db: tx, request, scope, options: { ...options, ifMatch: undefined } }, key, {})) ?? notFound())
      : before;
  }

  /** The hook around the statement, for a row that is locked and checked. */
  async change({ changes, ...write }: RecordedWrite, key: RowKey, before: Item, input: Item): Promise<Item> {
    const { db: tx, request, scope, options } = write;
    const context = this.context(tx, request);
    const hook = this.policy.options.hooks?.update;
    const updateRow = async (values: Item) =>
      (await this.updateRow({ ...write, options: { ...options, ifMatch: undefined } }, key, values)) ?? notFound();
    const written =
      hook === undefined
        ? await updateRow(input)
        : (await runHook(`update hook of "${this.policy.name}"`, updateRow, (next) => hook({ ...context, before, input }, next as never)))
            .written;
    if (written === undefined) return this.#locked(tx, scope, key, options);
    await this.tellAccess(tx, request, 'update', before, written);
    await this.stillVisible(tx, request, scope, written);
    await this.changed(changes, context, request, { operation: 'update', via: options.via, before, after: written });
    return written;
  }

  async destroy(db: Db, request: CrudRequest, key: RowKey, options: WriteOptions): Promise<void> {
    const { hooks } = this.policy.options;
    const scope = await this.policy.writeScope(request);
    if (this.isPlain(hooks?.destroy, request) && options.authorize === undefined && !this.#cascades) {
      if (await this.#remove(db, request, scope, key, options)) return;
      return this.#missing(db, scope, key, options);
    }
    await this.run(db, options, async (tx, changes) => {
      const before = await this.#locked(tx, scope, key, options);
      await options.authorize?.(before);
      this.refuseStale(before, options);
      await this.remove({ db: tx, request, scope, options, changes }, key, before);
    });
  }

  /** The hook around the deletion of a row that is locked and checked, with what goes along. */
  async remove({ db: tx, request, scope, options, changes }: RecordedWrite, key: RowKey, before: Item): Promise<void> {
    const context = this.context(tx, request);
    const hook = this.policy.options.hooks?.destroy;
    const deleteRow = () => this.#remove(tx, request, scope, key, { ...options, ifMatch: undefined });
    const deletion =
      hook === undefined
        ? await deleteRow()
        : (await runHook(`destroy hook of "${this.policy.name}"`, deleteRow, (next) => hook({ ...context, before }, next as never)))
            .written;
    if (deletion === undefined || deletion === false) return;
    await this.tellAccess(tx, request, 'destroy', before, deletion === true ? null : deletion);
    await this.changed(changes, context, request, { operation: 'destroy', via: options.via, before, after: null });
    if (this.#cascades)
      await cascadeDeletion(
        tx,
        this.policy,
        before,
        deletionOf(this.policy.softDelete as SoftDelete, deletion as Item),
        this.#cascade(request, changes, context, 'destroy'),
      );
  }

  /** Brings back a deleted row and exactly those that went with it. */
  async restore(db: Db, request: CrudRequest, key: RowKey, options: WriteOptions): Promise<Item> {
    const soft = this.policy.softDelete ?? notFound();
    const [deleted, live] = [await this.policy.writeScope(request, 'deleted'), await this.policy.scope(request)];
    return this.run(db, options, async (tx, changes) => {
      const before = (await this.rows.select(tx, deleted, key, options, true)) ?? notFound();
      await options.authorize?.(before);
      this.refuseStale(before, options);
      await refuseBelowDeleted(tx, this.policy, before);
      const own = { column: this.policy.key, value: before[this.policy.key.name] };
      const values = { ...noDeletion(soft), ...this.updateStamps(request) };
      const after = (await this.rows.update(tx, deleted, own, values, {})) ?? notFound();
      await this.tellAccess(tx, request, 'restore', before, after);
      await this.stillVisible(tx, request, live, after);
      const context = this.context(tx, request);
      await this.changed(changes, context, request, { operation: 'restore', via: options.via, before, after });
      const deletionId = before[soft.deletionId] as string | null;
      if (deletionId !== null)
        await cascadeRestore(tx, this.policy, before, deletionId, this.#cascade(request, changes, context, 'restore'));
      await options.present?.build(tx, after);
      return after;
    });
  }

  /** Moves the state of a row, if it is in one of the states the transition starts from. */
  async transition(db: Db, request: CrudRequest, key: RowKey, name: string, input: unknown, options: WriteOptions): Promise<Item> {
    try {
      return await this.#move(db, request, key, name, input, options);
    } catch (error) {
      if (!(error instanceof NotPossible)) throw error;
      const { row, message: detail } = error;
      const allowed =
        options.transitionsOf === undefined
          ? (await possibleTransitions(this.policy, request, row, db)).map((each) => each.name)
          : await options.transitionsOf(row);
      const { to } = transitionRulesOf(this.policy)[name] as TransitionRule;
      throw crudErrors.invalid_transition({ detail, extensions: { from: row[this.policy.options.state as string], to, allowed } });
    }
  }

  async #move(db: Db, request: CrudRequest, key: RowKey, name: string, input: unknown, options: WriteOptions): Promise<Item> {
    const { hooks } = this.policy.options;
    const state = this.policy.options.state as string;
    const { from, to, guard, input: schema } = transitionRulesOf(this.policy)[name] as TransitionRule;
    const scope = await this.policy.writeScope(request);
    const refuse = (row: Item, detail?: string) =>
      new NotPossible(row, detail ?? `"${name}" is not possible from "${String(row[state])}".`);
    // No code reads the row: one statement moves it, and the states are in its condition.
    const isPlain = guard === undefined && schema === undefined && this.isPlain(hooks?.transition, request);
    if (isPlain && options.authorize === undefined && options.present?.isDeep !== true) {
      const moved = await this.updateRow(
        { db, request, scope, options },
        key,
        { [state]: to },
        { onlyFrom: { column: state, values: from } },
      );
      if (moved !== undefined) {
        await options.present?.build(db, moved);
        return moved;
      }
      const row = (await this.rows.select(db, scope, key, options, false)) ?? notFound();
      this.refuseStale(row, options);
      throw refuse(row);
    }
    return this.run(db, options, async (tx, changes) => {
      const before = await this.#locked(tx, scope, key, options);
      await options.authorize?.(before);
      this.refuseStale(before, options);
      if (!from.includes(before[state])) throw refuse(before);
      const allowed = guard?.(before, callerOf(request)) ?? true;
      if (allowed !== true) throw refuse(before, typeof allowed === 'string' ? allowed : undefined);
      const context = this.context(tx, request);
      const hook = hooks?.transition;
      const moveRow = async (values: Item = {}) =>
        (await this.updateRow({ db: tx, request, scope, options: { ...options, ifMatch: undefined } }, key, { ...values, [state]: to })) ??
        notFound();
      const written =
        hook === undefined
          ? await moveRow()
          : (
              await runHook(`transition hook of "${this.policy.name}"`, moveRow, (next) =>
                hook({ ...context, name, before, input }, next as never),
              )
            ).written;
      const after = written ?? (await this.#locked(tx, scope, key, options));
      if (written !== undefined) {
        await this.tellAccess(tx, request, 'update', before, after);
        await this.stillVisible(tx, request, scope, after);
        await this.changed(changes, context, request, { operation: `transition:${name}`, via: options.via, before, after });
      }
      await options.present?.build(tx, after);
      return after;
    });
  }

  /** Runs a write in one transaction and records what changed in it at its end, unless the caller does. */
  async run<R>(
    db: Db,
    options: Pick<WriteOptions, 'changes' | 'ownsTransaction'>,
    work: (tx: Db, changes: PendingChange[]) => Promise<R>,
  ): Promise<R> {
    const write = async (tx: Db): Promise<R> => {
      const changes = options.changes ?? [];
      const result = await work(tx, changes);
      if (options.changes === undefined) await this.record(tx, changes);
      return result;
    };
    return options.ownsTransaction === true && db.isTransaction ? write(db) : db.transaction(write);
  }

  record(tx: Db, changes: readonly PendingChange[]): Maybe<unknown> {
    return recordChanges(tx, this.#recorders, changes);
  }

  /** The row by its key, among those the caller sees, locked against other writers. */
  async #locked(tx: Db, scope: WriteScope, key: RowKey, options: WriteOptions): Promise<Item> {
    return (await this.rows.select(tx, scope, key, options, true)) ?? notFound();
  }

  /** Grants follow the row: made for its creator, moved, removed with it. */
  async tellAccess(
    tx: Db,
    request: CrudRequest,
    operation: AccessWrite['operation'],
    before: Item | null,
    after: Item | null,
  ): Promise<void> {
    const { access } = this.policy.options;
    if (access?.written === undefined) return;
    const { requestId } = request;
    await access.written({ ...this.policy.accessContext(request, tx), operation, before, after, requestId });
  }

  /** The row a create hook returned instead of making one, as it is in the database and if the caller sees it. */
  async #existing(tx: Db, scope: Scope, returned: unknown, options: WriteOptions): Promise<Item> {
    const { key, name } = this.policy;
    const value = (returned as Item | null | undefined)?.[key.name];
    if (value === undefined) throw new Error(`The create hook of "${name}" must call next() or return an existing row.`);
    return this.#locked(tx, scope, { column: key, value }, options);
  }

  updateRow(
    { db, request, scope, options }: Write,
    key: RowKey,
    values: Item,
    { onlyFrom, form }: { readonly onlyFrom?: OnlyFrom; readonly form?: RowForm | undefined } = {},
  ): Maybe<Item | undefined> {
    const all = this.updateValues(request, values, options);
    return this.rows.update(db, scope, key, all, onlyFrom === undefined ? options : { ...options, onlyFrom }, form);
  }

  updateStamps({ user }: CrudRequest): Item {
    return Object.fromEntries(this.#stamps.updated.map((name) => [name, user?.id ?? null]));
  }

  /** What an update writes, with its stamps. Key, tenant, owner and parent never change, whatever a hook says. */
  updateValues({ user }: CrudRequest, values: Item, { fixed }: Pick<WriteOptions, 'fixed'>): Item {
    const all: Item = { ...values };
    for (const name of this.#neverChanged) all[name] = undefined;
    for (const name in fixed) all[name] = undefined;
    for (const name of this.#stamps.updated) all[name] = user?.id ?? null;
    return all;
  }

  /** The row where it is only marked, true where it was removed, false where there was none. */
  async #remove(db: Db, request: CrudRequest, scope: Scope, key: RowKey, options: WriteOptions): Promise<Item | boolean> {
    const { softDelete } = this.policy;
    if (softDelete === undefined) return this.rows.delete(db, scope, key, options);
    const deletion = newDeletion(softDelete, request);
    return (await this.rows.update(db, scope, key, { ...deletion, ...this.updateStamps(request) }, options)) ?? false;
  }

  get #cascades(): boolean {
    return (this.policy.softDelete?.cascade.length ?? 0) > 0;
  }

  #cascade(request: CrudRequest, changes: PendingChange[], context: WriteContext, operation: 'destroy' | 'restore'): CascadeOptions {
    return {
      stamps: (policy) => this.of(policy).updateStamps(request),
      isWatched: (policy) => this.of(policy).isWatched || policy.options.access?.written !== undefined,
      changed: async (policy, before, after) => {
        const writer = this.of(policy);
        await writer.tellAccess(context.tx, request, operation, before, after);
        await writer.changed(changes, context, request, {
          operation,
          via: 'cascade',
          before,
          after: operation === 'destroy' ? null : after,
        });
      },
    };
  }

  /** No row was hit: it is not there for this caller, or it has another version. */
  async #missing(db: Db, scope: WriteScope, key: RowKey, options: WriteOptions): Promise<never> {
    if (options.ifMatch === undefined) throw coreErrors.not_found();
    const row = await this.rows.select(db, scope, key, options, false);
    throw row === undefined ? coreErrors.not_found() : this.#stale(row, options);
  }

  refuseStale(row: Item, options: WriteOptions): void {
    const { ifMatch } = options;
    if (ifMatch === undefined || ifMatch.any) return;
    const { version } = this.policy.options;
    if (version === undefined || !ifMatch.versions.includes(String(row[version as string]))) throw this.#stale(row, options);
  }

  #stale(row: Item, { etagOf }: WriteOptions): Error {
    if (this.policy.options.version === undefined)
      return crudErrors.precondition_failed({
        detail: 'These rows have no version that `If-Match` could name. Leave it out, or send `*`.',
      });
    const etag = etagOf?.(row);
    return crudErrors.precondition_failed(etag === undefined ? {} : { extensions: { etag }, headers: { etag } });
  }

  /** 404, and everything is undone, when a rule about rows does not admit a row as it was written. */
  async stillVisible(tx: Db, request: CrudRequest, scope: Scope, written: Item | readonly Item[]): Promise<void> {
    if (!this.#mayLeaveScope(request)) return;
    if (!(await this.rows.areVisible(tx, scope, [written].flat()))) notFound();
  }

  /** What the policy and the address set on create: tenant, owner, parent, user stamps. */
  forced(request: CrudRequest, { fixed = NOTHING_FIXED }: Pick<WriteOptions, 'fixed'>): Item {
    const { policy } = this;
    const { user, tenant } = request;
    const forced: Item = { ...fixed };
    const tenantColumn = policy.options.tenant as string | undefined;
    const admin = policy.adminRule(request);
    if (tenantColumn !== undefined && admin?.tenant !== 'all') {
      if (tenant === null) throw coreErrors.tenant_required();
      forced[tenantColumn] = identity(policy.statements.column(tenantColumn), tenant);
    }
    // In the admin site the owner of a new row comes from the form.
    if (policy.owner !== undefined && admin === undefined) {
      // Anonymous callers may see rows that say so; a row they make would have no owner.
      if (user === null) throw coreErrors.not_authenticated();
      forced[policy.owner.column] = identity(policy.statements.column(policy.owner.column), user.id);
    }
    for (const name of this.#stamps.created) forced[name] = user?.id ?? null;
    return forced;
  }

  context(tx: Db, { user, principal, tenant, services, requestId, clock }: CrudRequest): WriteContext {
    return { tx, user, principal, tenant, services, requestId, now: clock.now() };
  }

  /** Tells `onChange` about a changed row, and keeps it for the audit trail and events of the transaction. */
  async changed(changes: PendingChange[], context: WriteContext, request: CrudRequest, written: WrittenChange): Promise<void> {
    if (!this.isWatched) return;
    const { policy } = this;
    const { before, after } = written;
    const changed = before === null || after === null ? this.#everyColumn : changedColumns(policy, before, after);
    if (changed.length === 0) return;
    const change = { ...context, ...written, changed, caller: callerOf(request) } as unknown as Change;
    await policy.options.onChange?.(change as never);
    changes.push({ policy, change });
  }
}

/** What a write did to a row. */
type WrittenChange = Pick<Change, 'operation' | 'via'> & { readonly before: Item | null; readonly after: Item | null };

/** A transition that the row cannot make. It is undone before the other transitions are looked at. */
class NotPossible extends Error {
  readonly row: Item;

  constructor(row: Item, detail: string) {
    super(detail);
    this.row = row;
  }
}

/** The row, once what the caller gets of it is made. */
function presented(db: Db, row: Item, { present }: WriteOptions): Maybe<Item> {
  const building = present?.build(db, row);
  return building === undefined ? row : building.then(() => row);
}

function hasMembers(values: Item): boolean {
  for (const name in values) if (Object.hasOwn(values, name)) return true;
  return false;
}

function stamped({ statements }: Policy, role: string): string[] {
  return statements.columns.filter(({ settings }) => settings.stamp === role).map(({ name }) => name);
}

export function notFound(): never {
  throw coreErrors.not_found();
}

function identity(column: ModelColumn, text: string): unknown {
  const { kind } = resolveReference(column.settings);
  return kind === 'int' ? Number(text) : kind === 'bigint' ? BigInt(text) : text;
}
