import { resolveReference, type ColumnSettings } from '../db/column.ts';
import type { Db } from '../db/db.ts';
import { quoteName } from '../db/names.ts';
import { insertion } from '../db/repository.ts';
import type { ModelColumn } from '../db/model-statements.ts';
import { coreErrors } from '../errors/core-errors.ts';
import type { FieldError } from '../errors/kit-error.ts';
import type { AuditEntry, AuditSink } from '../auth/audit-sink.ts';
import type { EventEntry, EventPublisher } from '../app/registry.ts';
import { announcedRow, auditedRow, changedColumns } from './change.ts';
import { callerOf, type CrudRequest, type Scope, type WriteScope } from './crud-request.ts';
import { crudErrors } from './errors.ts';
import type { FieldRule } from './field-rule.ts';
import type { Policy } from './policy.ts';
import type { Precondition } from './precondition.ts';
import type { Change, ChangeEvent, Via, WriteContext } from './resource.ts';
import type { AccessWrite } from './row-access.ts';
import type { TransitionRule } from './transition-rule.ts';
import type { Item } from './select-unit.ts';

/** Where changes are recorded and announced, if anywhere. */
export interface Recorders {
  readonly audit: AuditSink | null;
  readonly events: EventPublisher | null;
}

/** Which row: a unique column and its value. */
export interface RowKey {
  readonly column: ModelColumn;
  readonly value: unknown;
}

/** How a write is made: what a request adds to its values. */
export interface WriteOptions {
  readonly via: Via;
  /** Names of the members the client sent: what its right to write is decided by. */
  readonly sent: readonly string[];
  /** Columns that the address sets: the parent. */
  readonly fixed?: Item;
  readonly ifMatch?: Precondition | undefined;
  /** Settles a permission that needs the row; throws the denial. */
  readonly authorize?: (row: Item) => Promise<unknown>;
  /** Makes what the caller gets of the written row; inside the transaction where that takes statements of its own (`isDeep`). */
  readonly present?: { readonly isDeep: boolean; readonly build: (db: Db, row: Item) => Promise<void> };
  /** Makes the tag of the row as it is now, for 412. */
  readonly etagOf?: (row: Item) => string;
}

const NOTHING_FIXED: Item = Object.freeze({});

/**
 * The one way rows change. Every mutation goes through the same steps, in one transaction: scope, lock, precondition, input, hook, statement,
 * still in scope, change record, audit, events.
 */
export class Writer {
  readonly policy: Policy;
  readonly #recorders: Recorders;
  readonly #stamps: { readonly created: readonly string[]; readonly updated: readonly string[] };

  constructor(policy: Policy, recorders: Recorders) {
    this.policy = policy;
    this.#recorders = recorders;
    const stamped = (role: string) => policy.statements.columns.filter(({ settings }) => settings.stamp === role).map(({ name }) => name);
    this.#stamps = { created: [...stamped('created_by'), ...stamped('updated_by')], updated: stamped('updated_by') };
  }

  get #records(): boolean {
    const { audit, events } = this.policy.options;
    return (
      (audit !== false && this.#recorders.audit !== null) || (events !== undefined && events !== false && this.#recorders.events !== null)
    );
  }

  /** Whether a write is one statement: nobody looks at the row before, after or beside it. */
  #isPlain(hook: unknown, request: CrudRequest): boolean {
    return hook === undefined && this.policy.options.onChange === undefined && !this.#mayLeaveScope(request) && !this.#records;
  }

  /** Tenant and owner never change; what else decides about a row may be changed by a write. */
  #mayLeaveScope(request: CrudRequest): boolean {
    const { rows, access } = this.policy.options;
    return rows !== undefined || access !== undefined || this.policy.adminRule(request) !== undefined;
  }

  /** Makes a row and returns it whole. */
  async create(db: Db, request: CrudRequest, input: Item, options: WriteOptions): Promise<Item> {
    const { hooks } = this.policy.options;
    const scope = await this.policy.scope(request);
    const forced = this.#forced(request, options);
    await this.#refuseUnwritable(request, options.sent, { ...input, ...forced });
    const checks = await this.#references(request, input);
    if (
      this.#isPlain(hooks?.create, request) &&
      checks.length === 0 &&
      options.present?.isDeep !== true &&
      options.authorize === undefined
    ) {
      const row = await this.#insert(db, { ...input, ...forced });
      await options.present?.build(db, row);
      return row;
    }
    return db.transaction(async (tx) => {
      await this.#checkReferences(tx, checks);
      const context = this.#context(tx, request);
      const hook = hooks?.create;
      const insertRow = (values: Item) => this.#insert(tx, { ...values, ...forced });
      const { written, returned } =
        hook === undefined
          ? { written: await insertRow(input), returned: undefined }
          : await runHook(`create hook of "${this.policy.name}"`, insertRow, (next) => hook({ ...context, input }, next as never));
      const after = written ?? (await this.#existing(tx, scope, returned, options));
      if (written !== undefined) {
        await this.#tellAccess(tx, request, 'create', null, after);
        await this.#stillVisible(tx, request, scope, after);
      }
      await options.authorize?.(after);
      if (written !== undefined) await this.#changed(context, request, { operation: 'create', via: options.via, before: null, after });
      await options.present?.build(tx, after);
      return after;
    });
  }

  /** Changes a row among those the caller sees and returns it whole. `changes` may be empty: then nothing is written. */
  async update(db: Db, request: CrudRequest, key: RowKey, changes: Item, options: WriteOptions): Promise<Item> {
    const { hooks } = this.policy.options;
    const scope = await this.policy.writeScope(request);
    const isWritable = await this.#isWritableByRequest(request, options.sent);
    const checks = await this.#references(request, changes);
    const hasChanges = Object.keys(changes).length > 0;
    const isPlain =
      this.#isPlain(hooks?.update, request) && checks.length === 0 && options.authorize === undefined && options.present?.isDeep !== true;
    if (isWritable && hasChanges && isPlain) {
      const updated = await this.#update(db, request, scope, key, changes, options);
      if (updated !== undefined) {
        await options.present?.build(db, updated);
        return updated;
      }
      throw await this.#missing(db, scope, key, options);
    }
    return db.transaction(async (tx) => {
      const before = await this.#locked(tx, scope, key, options);
      await options.authorize?.(before);
      this.#refuseStale(before, options);
      await this.#refuseUnwritable(request, options.sent, before);
      await this.#checkReferences(tx, checks);
      if (!hasChanges) {
        await options.present?.build(tx, before);
        return before;
      }
      const context = this.#context(tx, request);
      const hook = hooks?.update;
      const updateRow = async (values: Item) =>
        (await this.#update(tx, request, scope, key, values, { ...options, ifMatch: undefined })) ?? notFound();
      const written =
        hook === undefined
          ? await updateRow(changes)
          : (
              await runHook(`update hook of "${this.policy.name}"`, updateRow, (next) =>
                hook({ ...context, before, input: changes }, next as never),
              )
            ).written;
      const after = written ?? (await this.#locked(tx, scope, key, options));
      if (written !== undefined) {
        await this.#tellAccess(tx, request, 'update', before, after);
        await this.#stillVisible(tx, request, scope, after);
        await this.#changed(context, request, { operation: 'update', via: options.via, before, after });
      }
      await options.present?.build(tx, after);
      return after;
    });
  }

  async destroy(db: Db, request: CrudRequest, key: RowKey, options: WriteOptions): Promise<void> {
    const { hooks } = this.policy.options;
    const scope = await this.policy.writeScope(request);
    if (this.#isPlain(hooks?.destroy, request) && options.authorize === undefined) {
      if (await this.#delete(db, scope, key, options)) return;
      throw await this.#missing(db, scope, key, options);
    }
    await db.transaction(async (tx) => {
      const before = await this.#locked(tx, scope, key, options);
      await options.authorize?.(before);
      this.#refuseStale(before, options);
      const context = this.#context(tx, request);
      const hook = hooks?.destroy;
      const deleteRow = () => this.#delete(tx, scope, key, { ...options, ifMatch: undefined });
      const isGone =
        hook === undefined
          ? await deleteRow()
          : (await runHook(`destroy hook of "${this.policy.name}"`, deleteRow, (next) => hook({ ...context, before }, next as never)))
              .written;
      if (isGone !== true) return;
      await this.#tellAccess(tx, request, 'destroy', before, null);
      await this.#changed(context, request, { operation: 'destroy', via: options.via, before, after: null });
    });
  }

  /** Moves the state of a row, if it is in one of the states the transition starts from. */
  async transition(db: Db, request: CrudRequest, key: RowKey, name: string, input: unknown, options: WriteOptions): Promise<Item> {
    const { hooks, transitions, onChange } = this.policy.options;
    const state = this.policy.options.state as string;
    const { from, to, guard, input: schema } = (transitions as unknown as Record<string, TransitionRule>)[name] as TransitionRule;
    const scope = await this.policy.writeScope(request);
    const refuse = (row: Item, detail?: string) =>
      crudErrors.invalid_transition({
        detail: detail ?? `"${name}" is not possible from "${String(row[state])}".`,
        extensions: { from: row[state], to, allowed: from },
      });
    // Nobody looks at the row: one statement moves it, and the states are in its condition.
    const isPlain = guard === undefined && schema === undefined && onChange === undefined && this.#isPlain(hooks?.transition, request);
    if (isPlain && options.authorize === undefined && options.present?.isDeep !== true) {
      const moved = await this.#update(db, request, scope, key, { [state]: to }, options, { column: state, values: from });
      if (moved !== undefined) {
        await options.present?.build(db, moved);
        return moved;
      }
      const row = await this.#select(db, scope, key, options, false);
      if (row === undefined) notFound();
      this.#refuseStale(row, options);
      throw refuse(row);
    }
    return db.transaction(async (tx) => {
      const before = await this.#locked(tx, scope, key, options);
      await options.authorize?.(before);
      this.#refuseStale(before, options);
      if (!from.includes(before[state])) throw refuse(before);
      const allowed = guard?.(before, callerOf(request)) ?? true;
      if (allowed !== true) throw refuse(before, typeof allowed === 'string' ? allowed : undefined);
      const context = this.#context(tx, request);
      const hook = hooks?.transition;
      const moveRow = async (values: Item = {}) =>
        (await this.#update(tx, request, scope, key, { ...values, [state]: to }, { ...options, ifMatch: undefined })) ?? notFound();
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
        await this.#tellAccess(tx, request, 'update', before, after);
        await this.#stillVisible(tx, request, scope, after);
        await this.#changed(context, request, { operation: `transition:${name}`, via: options.via, before, after });
      }
      await options.present?.build(tx, after);
      return after;
    });
  }

  /** The row by its key, among those the caller sees, locked against other writers. */
  async #locked(tx: Db, scope: WriteScope, key: RowKey, options: WriteOptions): Promise<Item> {
    const row = await this.#select(tx, scope, key, options, true);
    return row ?? notFound();
  }

  /** One statement decides whether there is a row for the caller, and whether it may do this to it. */
  async #select(db: Db, scope: WriteScope, key: RowKey, options: WriteOptions, lock: boolean): Promise<Item | undefined> {
    const { statements } = this.policy;
    const parameters: unknown[] = [];
    const { allowed } = scope;
    const isOpen = allowed === undefined || allowed.compiled.constant === true;
    const decision = isOpen
      ? ''
      : `, case when ${allowed.compiled.append(db.dialect, 't0', parameters)} then 1 else 0 end as ${quoteName(ALLOWED)}`;
    const where = this.#whereKey(db, scope, key, options, parameters);
    // The writer of SQLite is alone anyway. FOR NO KEY UPDATE lets rows that refer to this one be written meanwhile.
    const locking = lock && db.dialect === 'postgres' ? ' for no key update of t0' : '';
    const [row] = await db.query<Item>(
      `select ${statements.list}${decision} from ${statements.table} t0 where ${where}${locking}`,
      parameters,
    );
    if (row === undefined || isOpen) return row;
    const { [ALLOWED]: isAllowed, ...rest } = row;
    if (Number(isAllowed) !== 1) throw actionDenied(allowed.action);
    return rest;
  }

  /** Grants follow the row: made for its creator, moved, removed with it. */
  async #tellAccess(
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

  /** `t0.id = $1 and …`: the key, what the address fixes, and the rows the caller sees. */
  #whereKey(
    db: Db,
    { compiled }: Scope,
    { column, value }: RowKey,
    { fixed = NOTHING_FIXED }: WriteOptions,
    parameters: unknown[],
  ): string {
    const terms = [`t0.${quoteName(column.name)} = $${parameters.push(column.encode(value))}`];
    for (const [name, each] of Object.entries(fixed))
      terms.push(`t0.${quoteName(name)} = $${parameters.push(this.policy.statements.column(name).encode(each))}`);
    if (compiled.constant !== true) terms.push(compiled.append(db.dialect, 't0', parameters));
    return terms.join(' and ');
  }

  #insert(db: Db, values: Item): Promise<Item> {
    const { statements } = this.policy;
    const { names, parameters } = insertion(db, statements, values);
    const text = statements.text(`crud insert ${names.join()}`, () => {
      const columns =
        names.length === 0
          ? ' default values'
          : ` (${names.map(quoteName).join(', ')}) values (${names.map((_, index) => `$${index + 1}`).join(', ')})`;
      return `insert into ${statements.table}${columns} returning ${statements.list}`;
    });
    return db.execute<Item>(text, parameters).then(({ rows }) => rows[0] as Item);
  }

  /** Undefined when no row of this key, scope and version is there. */
  async #update(
    db: Db,
    request: CrudRequest,
    scope: Scope,
    key: RowKey,
    changes: Item,
    options: WriteOptions,
    onlyFrom?: { readonly column: string; readonly values: readonly unknown[] },
  ): Promise<Item | undefined> {
    const { statements } = this.policy;
    const parameters: unknown[] = [];
    const assignments: string[] = [];
    const stamped = Object.fromEntries(this.#stamps.updated.map((name) => [name, request.user?.id ?? null]));
    const values: Item = { ...changes, ...this.#neverChanged(options), ...stamped };
    for (const name of Object.keys(changes)) statements.column(name);
    for (const { name, settings, encode } of statements.columns) {
      if (settings.increment === true) assignments.push(`${quoteName(name)} = ${quoteName(name)} + 1`);
      else if (values[name] !== undefined) assignments.push(`${quoteName(name)} = $${parameters.push(encode(values[name]))}`);
      else if (settings.touch !== undefined) assignments.push(`${quoteName(name)} = $${parameters.push(encode(settings.touch(db.clock)))}`);
    }
    let where = this.#whereKey(db, scope, key, options, parameters);
    where += this.#versionCondition(options.ifMatch, parameters);
    if (onlyFrom !== undefined) {
      const { encode } = statements.column(onlyFrom.column);
      const states = onlyFrom.values.map((value) => `$${parameters.push(encode(value))}`);
      where += ` and t0.${quoteName(onlyFrom.column)} in (${states.join(', ')})`;
    }
    const text = `update ${statements.table} as t0 set ${assignments.join(', ')} where ${where} returning ${statements.list}`;
    const { rows } = await db.execute<Item>(text, parameters);
    return rows[0];
  }

  /** Key, tenant, owner, parent and version never change here, whatever a hook says. */
  #neverChanged({ fixed = NOTHING_FIXED }: WriteOptions): Item {
    const { tenant } = this.policy.options;
    const names = [this.policy.key.name, tenant as string | undefined, this.policy.owner?.column, ...Object.keys(fixed)];
    return Object.fromEntries(names.flatMap((name) => (name === undefined ? [] : [[name, undefined]])));
  }

  #versionCondition(ifMatch: Precondition | undefined, parameters: unknown[]): string {
    if (ifMatch === undefined || ifMatch.any) return '';
    const version = this.policy.options.version as string | undefined;
    // Without a version no tag can be compared with the row.
    if (version === undefined) return ' and 1 = 0';
    const column = this.policy.statements.column(version);
    const versions = ifMatch.versions.filter((text) => /^\d{1,10}$/.test(text)).map(Number);
    if (versions.length === 0) return ' and 1 = 0';
    return ` and t0.${quoteName(version)} in (${versions.map((each) => `$${parameters.push(column.encode(each))}`).join(', ')})`;
  }

  async #delete(db: Db, scope: Scope, key: RowKey, options: WriteOptions): Promise<boolean> {
    const parameters: unknown[] = [];
    let where = this.#whereKey(db, scope, key, options, parameters);
    where += this.#versionCondition(options.ifMatch, parameters);
    const { count } = await db.execute(`delete from ${this.policy.statements.table} as t0 where ${where}`, parameters);
    return count > 0;
  }

  /** Why no row was hit: it is not there for this caller, or it has another version. */
  async #missing(db: Db, scope: WriteScope, key: RowKey, options: WriteOptions): Promise<Error> {
    if (options.ifMatch === undefined) return coreErrors.not_found();
    const row = await this.#select(db, scope, key, options, false);
    return row === undefined ? coreErrors.not_found() : stale(row, options);
  }

  #refuseStale(row: Item, options: WriteOptions): void {
    const { ifMatch } = options;
    if (ifMatch === undefined || ifMatch.any) return;
    if (!ifMatch.versions.includes(String(row[this.policy.options.version as string]))) throw stale(row, options);
  }

  async #stillVisible(tx: Db, request: CrudRequest, { compiled }: Scope, row: Item): Promise<void> {
    if (!this.#mayLeaveScope(request)) return;
    if (compiled.constant === true) return;
    const parameters: unknown[] = [];
    const isVisible = compiled.isEvaluable
      ? compiled.matches(row) === true
      : (
          await tx.query(
            `select 1 from ${this.policy.statements.table} t0 where t0.${quoteName(this.policy.key.name)} = $${parameters.push(this.policy.key.encode(row[this.policy.key.name]))} and ${compiled.append(tx.dialect, 't0', parameters)}`,
            parameters,
          )
        ).length > 0;
    if (!isVisible) notFound();
  }

  /** What the policy and the address set on create: tenant, owner, parent, user stamps. */
  #forced(request: CrudRequest, { fixed = NOTHING_FIXED }: WriteOptions): Item {
    const { policy } = this;
    const { user, tenant } = request;
    const forced: Item = { ...fixed };
    const tenantColumn = policy.options.tenant as string | undefined;
    const admin = policy.adminRule(request);
    if (tenantColumn !== undefined && admin?.tenant !== 'all')
      forced[tenantColumn] = identity(policy.statements.column(tenantColumn), tenant as string);
    // In the admin site the owner of a new row comes from the form.
    if (policy.owner !== undefined && admin === undefined) {
      // Anonymous callers may see rows that say so; a row they make would have no owner.
      if (user === null) throw coreErrors.not_authenticated();
      forced[policy.owner.column] = identity(policy.statements.column(policy.owner.column), user.id);
    }
    for (const name of this.#stamps.created) forced[name] = user?.id ?? null;
    return forced;
  }

  #rule(name: string): FieldRule | undefined {
    return this.policy.options.fields?.[name];
  }

  /** Whether the caller may write all it sent, whatever the row is. What it may not is refused after 404 and 412. */
  async #isWritableByRequest(request: CrudRequest, sent: readonly string[]): Promise<boolean> {
    for (const name of sent) {
      const permission = this.#rule(name)?.writableBy;
      if (permission !== undefined && (await permission.evaluate(request.context)) !== true) return false;
    }
    return true;
  }

  /** 403 with the names of what the caller sent and may not write. Rules about the row look at `row`; unknown counts as no. */
  async #refuseUnwritable(request: CrudRequest, sent: readonly string[], row: Item): Promise<void> {
    const refused: string[] = [];
    for (const name of sent) {
      const permission = this.#rule(name)?.writableBy;
      if (permission !== undefined && (await permission.evaluate(request.context, row)) !== true) refused.push(name);
    }
    if (refused.length > 0) throw unwritable(refused);
  }

  /** The references among the values that lead to rows only some callers see. */
  async #references(request: CrudRequest, values: Item): Promise<ReferenceCheck[]> {
    const checks: ReferenceCheck[] = [];
    for (const [name, value] of Object.entries(values)) {
      if (value === null || value === undefined) continue;
      const column = this.policy.statements.byName.get(name);
      const target = column === undefined ? undefined : this.policy.referenced(column);
      if (target === undefined) continue;
      const scope = await target.scope(request);
      // Every row is visible: the database's own check of the reference is enough.
      if (scope.compiled.constant !== true) checks.push({ name, value, target, scope });
    }
    return checks;
  }

  async #checkReferences(tx: Db, checks: readonly ReferenceCheck[]): Promise<void> {
    const errors: FieldError[] = [];
    for (const { name, value, target, scope } of checks) {
      const parameters: unknown[] = [];
      const key = `t0.${quoteName(target.key.name)} = $${parameters.push(target.key.encode(value))}`;
      const text = `select 1 from ${target.statements.table} t0 where ${key} and ${scope.compiled.append(tx.dialect, 't0', parameters)}`;
      if ((await tx.query(text, parameters)).length === 0) errors.push(unknownReference(name));
    }
    if (errors.length > 0) throw coreErrors.validation_error({ errors });
  }

  #context(tx: Db, { user, principal, tenant, services, requestId, clock }: CrudRequest): WriteContext {
    return { tx, user, principal, tenant, services, requestId, now: clock.now() };
  }

  /** Tells everybody about a changed row: `onChange`, the audit trail, events. All in the transaction of the change. */
  async #changed(
    context: WriteContext,
    request: CrudRequest,
    { operation, via, before, after }: Pick<Change, 'operation' | 'via'> & { readonly before: Item | null; readonly after: Item | null },
  ): Promise<void> {
    const { policy } = this;
    const { onChange, audit, events } = policy.options;
    const changed = before === null || after === null ? [] : changedColumns(policy, before, after);
    const all = before === null || after === null ? [...policy.statements.byName.keys()] : changed;
    if (before !== null && after !== null && changed.length === 0) return;
    const change = { ...context, operation, via, before, after, changed: all, caller: callerOf(request) } as unknown as Change;
    await onChange?.(change as never);
    if (audit !== false) await this.#recorders.audit?.record(context.tx, [auditEntry(policy, change, context)]);
    if (events === undefined || events === false || this.#recorders.events === null) return;
    const event = typeof events === 'function' ? (events as (change: Change) => ChangeEvent | null)(change) : defaultEvent(policy, change);
    if (event !== null) await this.#recorders.events.publish(context.tx, [eventEntry(policy, event, change)]);
  }
}

interface ReferenceCheck {
  readonly name: string;
  readonly value: unknown;
  readonly target: Policy;
  readonly scope: Scope;
}

/**
 * Runs a hook around its write. The row that `next` wrote counts, whatever the hook returns, so that audit and events tell the truth; a failed
 * write fails the request even when the hook caught it.
 */
async function runHook<R>(
  name: string,
  write: (values: Item) => Promise<R>,
  run: (next: (values: Item) => Promise<R>) => Promise<unknown>,
): Promise<{ readonly written: R | undefined; readonly returned: unknown }> {
  let writing: Promise<R> | undefined;
  const returned = await run((values) => {
    if (writing !== undefined) throw new Error(`The ${name} called next() twice. A hook writes one row.`);
    return (writing = write(values));
  });
  return { written: await writing, returned };
}

function notFound(): never {
  throw coreErrors.not_found();
}

function stale(row: Item, { etagOf }: WriteOptions): Error {
  const etag = etagOf?.(row);
  return crudErrors.precondition_failed(etag === undefined ? {} : { extensions: { etag }, headers: { etag } });
}

/** The column of a statement that says whether the action is allowed. */
const ALLOWED = '~allowed';

function actionDenied(action: string): Error {
  return coreErrors.permission_denied({ detail: `You may see this, but not do "${action}" to it.`, extensions: { action } });
}

function unwritable(fields: readonly string[]): Error {
  return coreErrors.permission_denied({ detail: `You may not write ${fields.join(', ')}.`, extensions: { fields } });
}

function unknownReference(name: string): FieldError {
  return { location: ['body', name], code: 'unknown_reference', message: 'There is no such row.' };
}

function identity(column: ModelColumn, text: string): unknown {
  const { kind } = resolveReference(column.settings);
  return kind === 'int' ? Number(text) : kind === 'bigint' ? BigInt(text) : text;
}

const PAST: Readonly<Record<string, string>> = { create: 'created', update: 'updated', destroy: 'deleted', restore: 'restored' };

/** `order.created`, `order.pay`. */
function actionOf({ name }: Policy, { operation }: Change): string {
  return `${name}.${operation.startsWith('transition:') ? operation.slice('transition:'.length) : (PAST[operation] as string)}`;
}

function auditEntry(policy: Policy, change: Change, { principal, user, requestId }: WriteContext): AuditEntry {
  const row = (change.after ?? change.before) as Item;
  return {
    actor: principal ?? user,
    action: actionOf(policy, change),
    target_type: policy.name,
    target_id: String(row[policy.key.name]),
    before: auditedRow(policy, change.before as Item | null),
    after: auditedRow(policy, change.after as Item | null),
    request_id: requestId,
    ...(change.via === 'single' ? {} : { metadata: { via: change.via } }),
  };
}

function defaultEvent(policy: Policy, change: Change): ChangeEvent {
  const row = (change.after ?? change.before) as Item;
  const { owner, options } = policy;
  const tenant = options.tenant as string | undefined;
  const announced = announcedRow(policy, row);
  return {
    type: actionOf(policy, change),
    data: { id: announced[policy.key.name], changed: change.changed.filter((name) => name in announced), object: announced },
    audience: {
      ...(owner === undefined ? {} : { owner: String(row[owner.column]) }),
      ...(tenant === undefined ? {} : { tenantKey: String(row[tenant]) }),
    },
  };
}

function eventEntry(policy: Policy, { type, data, audience }: ChangeEvent, change: Change): EventEntry {
  const row = (change.after ?? change.before) as Item;
  return { type, data, ...audience, orderingKey: `${policy.name}:${String(row[policy.key.name])}` };
}

/** What a column gets when a PUT leaves it out: its default, else null; undefined when it has neither. */
export function absentValue(settings: ColumnSettings, now: Date): unknown {
  const { dbDefault, nullable } = settings;
  if (settings.default !== undefined) return settings.default({ now: () => now });
  if (dbDefault !== undefined) {
    if ('value' in dbDefault)
      return settings.kind === 'json' || settings.kind === 'array'
        ? (JSON.parse(String(dbDefault.value)) as unknown)
        : settings.kind === 'bigint'
          ? BigInt(dbDefault.value)
          : dbDefault.value;
    return dbDefault.make === 'now' ? now : crypto.randomUUID();
  }
  return nullable ? null : undefined;
}
