import { detachFromEachOther } from './detach-from-each-other.ts';
import { constraintViolation } from '../../db/engine/constraint-violation.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Item } from '../declare/item.ts';
import type { WriteContext } from '../declare/resource.ts';
import { type ActionRule, actionRulesOf, type TransitionRule } from '../declare/action-rule.ts';
import { callerOf, type CrudRequest, type Scope, type WriteScope } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import { newDeletion, noDeletion, type SoftDelete } from '../policy/soft-delete.ts';
import type { Asked, Intent, RowIntent } from './intent.ts';
import { atItem } from '../input/item-error.ts';
import { transitionRulesOf } from './possible-transitions.ts';
import type { PendingChange } from './record-changes.ts';
import { giveOnce } from '../policy/give-once.ts';
import { LoggedStatement } from './change-log.ts';
import { type RowKey, RowStatements } from './row-statements.ts';
import type { RowValues } from './row-values.ts';
import { runHook } from './run-hook.ts';
import { notFound, notPossible, refuseStale, staleRow } from './steps.ts';
import type { WritePlan } from './write-plan.ts';

/** One row on its way through the steps. */
export interface WrittenRow {
  readonly intent: RowIntent;
  before: Item | null;
  /** Null for a row that was removed. */
  after: Item | null;
  /** False when a hook wrote nothing, or there was nothing to write. */
  isWritten: boolean;
}

/** A write in its transaction. */
export interface WriteState {
  readonly tx: Db;
  readonly request: CrudRequest;
  readonly intent: Intent;
  readonly asked: Asked;
  readonly scope: WriteScope;
  readonly rows: readonly WrittenRow[];
  readonly changes: PendingChange[];
}

/** The write step: hooks around statements, and as few statements as the rows allow. */
export class RowWriter {
  readonly #policy: Policy;
  readonly #statements: RowStatements;
  /** Of writes that are one statement. */
  readonly #single: RowStatements;
  readonly #plan: WritePlan;
  readonly #values: RowValues;

  constructor(policy: Policy, statements: RowStatements, plan: WritePlan, values: RowValues) {
    this.#policy = policy;
    this.#statements = statements;
    this.#single = plan.isLogged ? new RowStatements(policy, new LoggedStatement(policy)) : statements;
    this.#plan = plan;
    this.#values = values;
  }

  /** Nothing but the functions that the hooks call may write the rows: what they record and check would be missing. */
  get #writesByVerbs(): boolean {
    return this.#policy.options.writes === 'verbs';
  }

  #refuseNext(place: string): void {
    if (!this.#writesByVerbs) return;
    throw new Error(`The ${place} called next(), but the resource writes by verbs. Call the function that writes the row.`);
  }

  #rule(name: string): TransitionRule {
    return transitionRulesOf(this.#policy)[name] as TransitionRule;
  }

  // 7: with a hook row by row around its statement, else as few statements as the rows allow.

  async write(state: WriteState): Promise<void> {
    const { request, intent, asked, rows } = state;
    if (this.#plan.hookOf(intent.verb) !== undefined || (this.#writesByVerbs && intent.verb !== 'action')) {
      for (const row of rows) await atRow(row.intent, () => this.#writeHooked(state, row));
      return;
    }
    switch (intent.verb) {
      case 'create':
        return this.#insert(state);
      case 'destroy':
        return this.#delete(state);
      case 'restore':
        for (const row of rows)
          await this.#updateTo(state, row, { ...noDeletion(this.#policy.softDelete as SoftDelete), ...this.#values.stamps(request) });
        return undefined;
      case 'transition':
        for (const row of rows) await this.#update(state, row, this.#moved(intent));
        return undefined;
      case 'action':
        for (const row of rows) await atRow(row.intent, () => this.#act(state, row));
        return undefined;
      case 'update':
        return this.#updateRows(state, asked);
    }
  }

  /** Runs the code of an action. Code that does not call `next` may have changed the row by itself: it is read again. */
  async #act(state: WriteState, row: WrittenRow): Promise<void> {
    const { tx, request, intent, asked } = state;
    const { name, input } = intent.action as { readonly name: string; readonly input: unknown };
    const { run } = actionRulesOf(this.#policy.options)[name] as ActionRule;
    const place = `action "${name}" of "${this.#policy.name}"`;
    const write = async (changes: Item | undefined): Promise<Item | null> => {
      this.#refuseNext(place);
      if (changes === undefined) throw new TypeError(`The ${place} called next() without values. Write next({ … }).`);
      await this.#update(state, row, changes);
      return row.after;
    };
    const context = { ...writeContext(tx, request), row: row.before, input, once: giveOnce(this.#policy, name, asked.once) };
    const { returned } = await runHook(place, write, (next) => Promise.resolve(run(context, next as (changes: Item) => Promise<Item>)));
    asked.returned?.(returned);
    if (!row.isWritten) row.after = await this.#reread(state, row);
    row.isWritten = true;
  }

  /** Functions that write the row by themselves get the parent of the address, too. */
  #givenValues({ intent: { values } }: WrittenRow, { fixed }: Intent): Item {
    return this.#writesByVerbs && fixed !== undefined ? { ...values, ...fixed } : values;
  }

  #moved({ action }: Intent): Item {
    const { name } = action as { readonly name: string };
    return { [this.#policy.options.state as string]: this.#rule(name).to };
  }

  async #writeHooked(state: WriteState, row: WrittenRow): Promise<void> {
    const { tx, request, intent } = state;
    const { verb } = intent;
    const hooks = this.#policy.options.hooks as Readonly<Record<string, (context: object, next: unknown) => Promise<unknown>>> | undefined;
    const context = writeContext(tx, request);
    const input = verb === 'update' ? await this.#valuesOf(state, row) : this.#givenValues(row, intent);
    if (verb === 'update' && isEmpty(input) && !this.#writesByVerbs) return this.#touch(state, row);
    const place = `${verb} hook of "${this.#policy.name}"`;
    if (hooks?.[verb] === undefined) throw new Error(`resource(${this.#policy.model.name}) writes by verbs, and has no ${verb} hook.`);
    const write = async (values?: Item): Promise<Item | null> => {
      this.#refuseNext(place);
      if (values === undefined && (verb === 'create' || verb === 'update'))
        throw new TypeError(`The ${place} called next() without values. Write next(input).`);
      const given = values ?? {};
      if (verb === 'create') row.after = await this.#statements.insert(tx, this.#values.created(request, given, intent), undefined, given);
      else if (verb === 'destroy') await this.#deleteOne(state, row);
      else await this.#update(state, row, verb === 'transition' ? { ...given, ...this.#moved(intent) } : given);
      row.isWritten = true;
      return row.after;
    };
    const { before } = row;
    const once = giveOnce(this.#policy, verb === 'create' ? 'create' : (intent.action?.name ?? verb), state.asked.once);
    const given = {
      create: { input, once },
      update: { before, input },
      destroy: { before },
      transition: { name: intent.action?.name, before, input: intent.action?.input, once },
      restore: {},
      action: {},
    }[verb];
    const hook = hooks[verb];
    const { returned } = await runHook(place, write, (next) => hook({ ...context, ...given }, next));
    if (row.isWritten) return;
    // The row as it is: a hook that writes nothing may have changed it by itself.
    row.after = verb === 'create' ? await this.#existing(state, returned) : verb === 'destroy' ? null : await this.#reread(state, row);
  }

  /** The row a create hook returned instead of making one, as it is in the database and if the caller sees it. */
  async #existing({ tx, scope, intent }: WriteState, returned: unknown): Promise<Item> {
    const { key, name } = this.#policy;
    const value = (returned as Item | null | undefined)?.[key.name];
    if (value === undefined) throw new Error(`The create hook of "${name}" must call next() or return an existing row.`);
    return (await this.#statements.selectLocked(tx, scope, key, [value], intent))[0] ?? notFound(this.#policy);
  }

  async #reread({ tx, scope, intent }: WriteState, { intent: { key } }: WrittenRow): Promise<Item> {
    const { column, value } = key as RowKey;
    return (await this.#statements.selectLocked(tx, scope, column, [value], intent))[0] ?? notFound(this.#policy);
  }

  async #insert(state: WriteState): Promise<void> {
    const { tx, request, intent, rows } = state;
    const all = rows.map((row) => this.#values.created(request, row.intent.values, intent));
    const [only] = rows as readonly [WrittenRow];
    const made =
      rows.length === 1
        ? [await atRow(only.intent, () => this.#statements.insert(tx, all[0] as Item, undefined, only.intent.values))]
        : await this.#statements.insertMany(tx, all, this.#needsRows(state));
    for (const [index, row] of rows.entries()) {
      row.after = made[index] as Item;
      row.isWritten = true;
    }
  }

  /** False when nobody reads rows that were made: then they are not asked back. A tenth of an import. */
  #needsRows({ asked: { authorize, present, children } }: WriteState): boolean {
    const isRead = authorize !== undefined || present !== undefined || children !== undefined;
    return isRead || this.#plan.isWatched || this.#plan.mayLeaveScope();
  }

  /** Rows that get the same values are changed by one statement. */
  async #updateRows(state: WriteState, { valuesOfRow }: Asked): Promise<void> {
    const { tx, request, intent, rows } = state;
    const [first] = rows;
    const isSame =
      rows.length > 1 &&
      valuesOfRow === undefined &&
      rows.every((row) => row.intent.values === first?.intent.values) &&
      !this.#plan.writesEncrypted(first?.intent.values ?? {});
    if (first === undefined || !isSame || isEmpty(first.intent.values)) {
      for (const row of rows) await atRow(row.intent, async () => this.#updateOne(state, row));
      return;
    }
    const { key } = this.#policy;
    const keyOf = (row: Item | null) => String(row?.[key.name]);
    const values = this.#values.updated(request, first.intent.values, intent);
    const keys = rows.map(({ before }) => before?.[key.name]);
    const { at: place, valuesAt = place } = first.intent;
    const updated = await atRow({ ...first.intent, ...(valuesAt === undefined ? {} : { at: valuesAt }) }, () =>
      this.#statements.updateMany(tx, key, keys, values),
    );
    const byKey = new Map(updated.map((row) => [keyOf(row), row]));
    for (const row of rows) {
      row.after = byKey.get(keyOf(row.before)) ?? notFound(this.#policy);
      row.isWritten = true;
    }
  }

  async #updateOne(state: WriteState, row: WrittenRow): Promise<void> {
    const values = await this.#valuesOf(state, row);
    if (isEmpty(values)) await this.#touch(state, row);
    else await this.#update(state, row, values);
  }

  async #valuesOf({ asked }: WriteState, { intent: { values }, before }: WrittenRow): Promise<Item> {
    return asked.valuesOfRow === undefined ? values : { ...values, ...(await asked.valuesOfRow(before as Item)) };
  }

  /** Nothing was sent. Where children change, timestamps, stamps and version of their row move with them, if it has any. */
  async #touch(state: WriteState, row: WrittenRow): Promise<void> {
    row.after = row.before;
    const isTouched = this.#policy.statements.columns.some(
      ({ settings }) => settings.increment === true || settings.touch !== undefined || settings.stamp === 'updated_by',
    );
    if (state.asked.children === undefined || !isTouched) return;
    await this.#update(state, row, {});
    row.isWritten = false;
  }

  async #update(state: WriteState, row: WrittenRow, values: Item): Promise<void> {
    await this.#updateTo(state, row, this.#values.updated(state.request, values, state.intent));
  }

  async #updateTo({ tx, scope, intent }: WriteState, row: WrittenRow, values: Item): Promise<void> {
    row.after =
      (await this.#statements.update(tx, scope, this.#keyOf(row), values, { fixed: intent.fixed, before: row.before })) ??
      notFound(this.#policy);
    row.isWritten = true;
  }

  #keyOf({ before }: WrittenRow): RowKey {
    const { key } = this.#policy;
    return { column: key, value: before?.[key.name] };
  }

  async #delete(state: WriteState): Promise<void> {
    const { tx, rows } = state;
    if (this.#policy.softDelete !== undefined || rows.length === 1) {
      for (const row of rows) await atRow(row.intent, () => this.#deleteOne(state, row));
      return;
    }
    const { key } = this.#policy;
    await this.#statements.deleteMany(
      tx,
      key,
      rows.map(({ before }) => before?.[key.name]),
    );
    for (const row of rows) row.isWritten = true;
  }

  /** Every row has a deletion of its own, with an id that its cascade shares. */
  async #deleteOne(state: WriteState, row: WrittenRow): Promise<void> {
    const { tx, request, scope, intent } = state;
    const { softDelete } = this.#policy;
    if (softDelete === undefined) row.isWritten = await this.#statements.delete(tx, scope, this.#keyOf(row), { fixed: intent.fixed });
    else await this.#updateTo(state, row, { ...newDeletion(softDelete, request), ...this.#values.stamps(request) });
  }

  // One statement: its condition has the key, the scope, the version and the states, and tells in one more SELECT why no row was hit.

  async writeNow(db: Db, request: CrudRequest, scope: WriteScope, intent: Intent, asked: Asked): Promise<Item> {
    const [only] = intent.rows as readonly [RowIntent];
    const form = asked.present?.form;
    const { fixed } = intent;
    let row: Item | undefined;
    if (intent.verb === 'create')
      row = await this.#single.insert(db, this.#values.created(request, only.values, intent), form, only.values);
    else {
      const key = only.key as RowKey;
      const conditions = { fixed, ifMatch: only.ifMatch };
      if (intent.verb === 'destroy') row = await this.#deleteNow(db, request, scope, key, conditions);
      else {
        const { from = [] } = intent.action === undefined ? {} : this.#rule(intent.action.name);
        const onlyFrom = intent.action === undefined ? {} : { onlyFrom: { column: this.#policy.options.state as string, values: from } };
        const values = this.#values.updated(request, intent.action === undefined ? only.values : this.#moved(intent), intent);
        row = await this.#single.update(db, scope, key, values, { ...conditions, ...onlyFrom }, form);
      }
      row ??= await this.#whyNot(db, scope, intent, only, asked);
    }
    await asked.present?.build(db, [row]);
    return row;
  }

  async #deleteNow(
    db: Db,
    request: CrudRequest,
    scope: Scope,
    key: RowKey,
    conditions: { readonly fixed?: Item | undefined; readonly ifMatch?: RowIntent['ifMatch'] },
  ): Promise<Item | undefined> {
    const { softDelete } = this.#policy;
    if (softDelete !== undefined)
      return this.#single.update(db, scope, key, { ...newDeletion(softDelete, request), ...this.#values.stamps(request) }, conditions);
    return (await this.#single.delete(db, scope, key, conditions)) ? {} : undefined;
  }

  async #whyNot(db: Db, scope: WriteScope, { fixed, action }: Intent, row: RowIntent, asked: Asked): Promise<never> {
    if (row.ifMatch === undefined && action === undefined && scope.allowed === undefined) notFound(this.#policy);
    const found = await this.#statements.select(db, scope, row.key as RowKey, { fixed });
    if (found === undefined) notFound(this.#policy);
    refuseStale(this.#policy, [{ intent: row, row: found }], asked);
    throw action === undefined ? staleRow(this.#policy, found, asked) : notPossible(this.#policy, action.name, found);
  }

  /** The database does not say which row of a statement broke a rule: they are tried one by one, and undone. */
  async culprit(db: Db, request: CrudRequest, intent: Intent, error: unknown): Promise<unknown> {
    const isOneStatement = this.#plan.hookOf(intent.verb) === undefined && (intent.verb === 'create' || intent.verb === 'destroy');
    if (!isOneStatement || constraintViolation(error) === undefined) return error;
    const attempt = async (tx: Db, { key, values }: RowIntent): Promise<unknown> =>
      key === undefined
        ? this.#statements.insert(tx, this.#values.created(request, values, intent), undefined, values)
        : // The rows were found before; without the references among them, they may be out of the caller's sight.
          this.#statements.deleteMany(tx, key.column, [key.value]);
    return db
      .transaction(async (tx) => {
        const keys = intent.rows.flatMap(({ key }) => key ?? []);
        const values = keys.map(({ value }) => value);
        if (keys[0] !== undefined) await detachFromEachOther(tx, this.#policy, keys[0].column, values);
        for (const row of intent.rows) await atRow(row, () => attempt(tx, row));
        throw error;
      })
      .catch((found: unknown) => found);
  }
}

export function writeContext(tx: Db, request: CrudRequest): WriteContext {
  const caller = callerOf(request);
  const { user, principal, tenant, services, now } = caller;
  return { tx, user, principal, tenant, services, requestId: request.requestId, now, caller };
}

/** What the work of one row throws says which row it was, where a request has several. */
export function atRow<R>({ at: place, valuesAt }: RowIntent, work: () => Promise<R>): Promise<R> {
  return place === undefined ? work() : atItem(place, work, valuesAt);
}

function isEmpty(values: Item): boolean {
  return Object.keys(values).length === 0;
}
