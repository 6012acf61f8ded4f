import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import { FaultCollector } from '../../errors/fault-collector.ts';
import { crudErrors } from '../declare/errors.ts';
import type { Item } from '../declare/item.ts';
import type { Change, WriteContext } from '../declare/resource.ts';
import type { AccessWrite } from '../declare/row-access.ts';
import { actionRulesOf, type TransitionRule } from '../declare/action-rule.ts';
import type { CrudRequest, WriteScope } from '../policy/crud-request.ts';
import type { Policy, StoredColumn } from '../policy/policy.ts';
import { deletionOf, type SoftDelete } from '../policy/soft-delete.ts';
import { logWritten, wakeReaders } from './change-log.ts';
import { cascadeDeletion, cascadeRestore, type CascadeOptions, refuseBelowDeleted } from './cascade.ts';
import { changedColumns } from './change.ts';
import type { Asked, Intent, RowIntent, Verb } from './intent.ts';
import { possibleTransitions, transitionRulesOf } from './possible-transitions.ts';
import { type PendingChange, recordChanges, type Recorders } from './record-changes.ts';
import { type RowKey, RowStatements } from './row-statements.ts';
import { type JudgedRow, ruleFaults } from './row-rules.ts';
import { RowValues } from './row-values.ts';
import { atRow, RowWriter, writeContext, type WriteState, type WrittenRow } from './row-writer.ts';
import {
  checkReferences,
  isWritableByRequest,
  notFound,
  NotPossible,
  referencesOf,
  refuseMissing,
  refuseStale,
  refuseTransition,
  refuseUnwritable,
} from './steps.ts';
import { announceTouched } from './touched.ts';
import { WritePlan } from './write-plan.ts';

const NOTHING_ASKED: Asked = Object.freeze({});

/**
 * The one way rows change: API, bulk, import, nested rows, the admin site and programs hand in an intent. Its rows go through the same steps
 * in one transaction, which is run again when another one makes it lose: target, authorize, precondition, state, writable, validate and references, write, access, changed, children, record, present.
 */
export class Pipeline {
  readonly policy: Policy;
  readonly statements: RowStatements;
  readonly #recorders: Recorders;
  readonly #plan: WritePlan;
  readonly #values: RowValues;
  readonly #writer: RowWriter;

  constructor(policy: Policy, recorders: Recorders) {
    this.policy = policy;
    this.statements = new RowStatements(policy);
    this.#recorders = recorders;
    this.#plan = new WritePlan(policy, recorders);
    this.#values = new RowValues(policy);
    this.#writer = new RowWriter(policy, this.statements, this.#plan, this.#values);
  }

  /** The pipeline of another resource, with the same recorders. */
  of(policy: Policy): Pipeline {
    return policy === this.policy ? this : new Pipeline(policy, this.#recorders);
  }

  /** Does what the intent says, and returns the rows whole, in its order: as they were, for those that were removed. */
  async run(db: Db, request: CrudRequest, intent: Intent): Promise<Item[]> {
    try {
      return await this.#run(db, request, intent);
    } catch (error) {
      if (!(error instanceof NotPossible)) throw error;
      throw await this.#invalidTransition(db, request, intent, error);
    }
  }

  async #run(db: Db, request: CrudRequest, intent: Intent): Promise<Item[]> {
    const { verb, action, asked = NOTHING_ASKED } = intent;
    // A program may pass a name on; routes exist for known ones only.
    if (verb === 'transition') this.#rule(action?.name as string);
    if (verb === 'action') requireAction(this.policy, action?.name as string);
    const scope = await this.#scopeOf(verb, request);
    const form = this.#plan.formOf(intent, await this.#needsChecks(request, intent));
    const [only] = intent.rows;
    if (form === 'statement' && only !== undefined) {
      const written = await atRow(only, () => this.#writer.writeNow(db, request, scope, intent, asked));
      if (this.policy.isLogged) wakeReaders(db);
      return [written];
    }
    try {
      return await this.#inTransaction(db, intent, (tx, changes) => {
        const rows = intent.rows.map((row): WrittenRow => ({ intent: row, before: null, after: null, isWritten: false }));
        return this.#steps({ tx, request, intent, asked, scope, rows, changes });
      });
    } catch (error) {
      throw intent.rows.length > 1 ? await this.#writer.culprit(db, request, intent, error) : error;
    }
  }

  async #scopeOf(verb: Verb, request: CrudRequest): Promise<WriteScope> {
    if (verb === 'restore' && this.policy.softDelete === undefined) notFound(this.policy);
    if (verb === 'create') return this.policy.rows.visible(request);
    return this.policy.rows.forWrite(request, verb === 'restore' ? 'deleted' : 'live');
  }

  /** True when what was sent has to be compared with the row, or with rows of other tables. */
  async #needsChecks(request: CrudRequest, intent: Intent): Promise<boolean> {
    const { rows, verb } = intent;
    const [only, ...others] = rows;
    if (only === undefined || others.length > 0 || (verb !== 'create' && verb !== 'update')) return false;
    if (this.#plan.validates(verb) || this.#deletableParents(intent).length > 0) return true;
    if (this.#plan.hasWriteRules && !(await isWritableByRequest(this.policy, request, only.sent))) return true;
    return (await referencesOf(this.policy, request, [{ values: only.values, at: [] }])).length > 0;
  }

  /** Runs the steps in one transaction and records what changed at its end, unless an outer intent does. */
  async #inTransaction<R>(db: Db, { changes, asked, rows }: Intent, work: (tx: Db, changes: PendingChange[]) => Promise<R>): Promise<R> {
    // Application code that called may catch the error and go on: then only a savepoint undoes the write. Which of many rows failed is looked up after it.
    const isOwn = asked?.ownsTransaction === true && db.isTransaction && rows.length === 1;
    const run = (tx: Db) => work(tx, changes ?? []);
    return isOwn ? run(db) : db.transaction(run, CONFLICT_RETRIES);
  }

  /**
   * The rows that intents are about to write, locked in the order of their keys: two requests that write the same rows wait for each other
   * instead of failing. Values without a row are missing from the result.
   */
  async lockRows(tx: Db, scope: WriteScope, column: StoredColumn, values: readonly unknown[], fixed: Intent['fixed']): Promise<Item[]> {
    return this.statements.selectMany(tx, scope, column, values, { fixed });
  }

  /** All or nothing of several intents that are one request: the changes of all of them are recorded together. */
  async together<R>(db: Db, work: (tx: Db, changes: PendingChange[]) => Promise<R>): Promise<R> {
    return db.transaction(async (tx) => {
      const changes: PendingChange[] = [];
      const result = await work(tx, changes);
      await recordChanges(tx, this.#recorders, changes);
      return result;
    }, CONFLICT_RETRIES);
  }

  async #steps(state: WriteState): Promise<Item[]> {
    const { verb } = state.intent;
    if (verb !== 'create') await this.#target(state);
    if (verb === 'transition') this.#state(state);
    await this.#writable(state);
    await this.#valid(state);
    await this.#writer.write(state);
    await this.#touched(state);
    await this.#access(state);
    if (verb === 'create') await this.#authorizeMade(state);
    await this.#changed(state);
    await logWritten(state.tx, this.policy, verb, state.rows);
    await this.#children(state);
    if (state.intent.changes === undefined) await recordChanges(state.tx, this.#recorders, state.changes);
    const written = state.rows.map(({ before, after }) => (after ?? before) as Item);
    await state.asked.present?.build(state.tx, written);
    return written;
  }

  // 1–3: the rows by key among the visible ones, locked in key order; the permission about each; its version.

  async #target({ tx, scope, intent, asked, rows }: WriteState): Promise<void> {
    const keys = rows.map((row) => (row.intent.key as RowKey).value);
    const { column } = (rows[0] as WrittenRow).intent.key as RowKey;
    const lock = intent.verb !== 'action' || actionRulesOf(this.policy.options)[intent.action?.name as string]?.lock !== false;
    const found = await this.statements.selectLocked(tx, scope, column, keys, { fixed: intent.fixed, lock });
    const stored = (value: unknown) => String(column.encode(value));
    const byKey = new Map(found.map((row) => [stored(row[column.name]), row]));
    // The database says what is equal: a column may ignore case.
    const ofRow = ({ key }: RowIntent) => (rows.length === 1 ? found[0] : byKey.get(stored((key as RowKey).value)));
    for (const row of rows) row.before = ofRow(row.intent) ?? null;
    const missing = rows.filter(({ before }) => before === null);
    if (missing.length > 0)
      refuseMissing(
        this.policy,
        missing.map((row) => row.intent),
      );
    for (const { before } of rows) await asked.authorize?.(before as Item);
    refuseStale(
      this.policy,
      rows.map((row) => ({ intent: row.intent, row: row.before as Item })),
      asked,
    );
    if (intent.verb === 'restore') for (const { before } of rows) await refuseBelowDeleted(tx, this.policy, before as Item);
  }

  // 4: the transition is possible from the state, and its guard agrees.

  #state({ request, intent, rows }: WriteState): void {
    const { name } = intent.action as { readonly name: string };
    for (const { before } of rows) refuseTransition(this.policy, request, name, this.#rule(name), before as Item);
  }

  #rule(name: string): TransitionRule {
    const rules = transitionRulesOf(this.policy);
    if (Object.hasOwn(rules, name)) return rules[name] as TransitionRule;
    throw new Error(`The resource "${this.policy.name}" has no transition "${name}". Known: ${Object.keys(rules).join(', ') || 'none'}.`);
  }

  // 5: the caller may write what it sent, decided on the row before, on create on the row as it would be written.

  async #writable({ request, intent, rows }: WriteState): Promise<void> {
    if (!this.#plan.hasWriteRules) return;
    for (const { intent: row, before } of rows)
      await atRow(row, () => refuseUnwritable(this.policy, request, row.sent, before ?? this.#values.made(request, row.values, intent)));
  }

  // 6: the rules of the resource agree with the values, and every reference names a row that the caller sees. All faults together.

  async #valid(state: WriteState): Promise<void> {
    const { tx, request, intent, asked, rows } = state;
    if (!this.#plan.validates(intent.verb)) return this.#references(state);
    const faults = new FaultCollector();
    const judged: JudgedRow[] = [];
    for (const { intent: row, before } of rows) {
      const more = before === null ? undefined : await asked.valuesOfRow?.(before);
      judged.push({ ...row, values: { ...row.values, ...more }, before });
    }
    faults.add(...(await ruleFaults(this.policy, tx, request, judged)));
    await faults.check(() => this.#references(state));
    faults.throwIfAny();
  }

  /** One statement per target. */

  async #references({ tx, request, intent, rows }: WriteState): Promise<void> {
    await this.#holdParents(tx, request, intent);
    const sent = rows.map(({ intent: { values, at: place = ['body'], valuesAt = place }, before }) => ({ values, at: valuesAt, before }));
    await checkReferences(tx, await referencesOf(this.policy, request, sent));
  }

  /** 404 for new rows below a parent that is no longer there. It was found before the transaction, and may have been deleted since. */
  async #holdParents(tx: Db, request: CrudRequest, intent: Intent): Promise<void> {
    for (const { target, value } of this.#deletableParents(intent)) {
      const scope = await target.rows.ofEdge(request);
      if ((await new RowStatements(target).visibleKeys(tx, scope, [value])).size === 0) notFound(target);
    }
  }

  /** Parents in the address of new rows that can be soft-deleted. That of nested rows is locked: it is written in the same transaction. */
  #deletableParents({ verb, via, fixed = {} }: Intent): { readonly target: Policy; readonly value: unknown }[] {
    if (verb !== 'create' || via === 'nested') return [];
    return Object.entries(fixed).flatMap(([name, value]) => {
      const target = this.policy.references.get(name);
      return target?.softDelete === undefined ? [] : [{ target, value }];
    });
  }

  /** Functions of a module write without statements of the resource: nobody else announces their rows. */
  async #touched({ tx, intent: { verb }, rows }: WriteState): Promise<void> {
    const { resource, options } = this.policy;
    if (options.writes !== 'verbs' && verb !== 'action') return;
    if (rows.length > 0) await announceTouched(tx, resource);
  }

  // 8: grants follow the row; then it is still among the rows that the caller sees.

  async #access({ tx, request, intent: { verb }, scope, rows }: WriteState): Promise<void> {
    const operation = verb === 'transition' || verb === 'action' ? 'update' : verb;
    const written = rows.filter(({ isWritten }) => isWritten);
    for (const { before, after } of written) await this.#tellAccess(tx, request, operation, before, after);
    if (verb === 'destroy' || !this.#plan.mayLeaveScope()) return;
    const live = verb === 'restore' ? await this.policy.rows.visible(request) : scope;
    const after = written.map((row) => row.after as Item);
    if (after.length > 0 && !(await this.statements.areVisible(tx, live, after))) notFound(this.policy);
  }

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
    await access.written({ ...this.policy.rows.accessContext(request, tx), operation, before, after, requestId });
  }

  async #authorizeMade({ asked, rows }: WriteState): Promise<void> {
    for (const { after } of rows) await asked.authorize?.(after as Item);
  }

  // 9: onChange hears of every row that changed; audit entries and events are collected.

  async #changed({ tx, request, intent, rows, changes }: WriteState): Promise<void> {
    if (!this.#plan.isRecorded) return;
    const { verb, via, action } = intent;
    const operation: Change['operation'] = verb === 'transition' || verb === 'action' ? `${verb}:${action?.name}` : verb;
    const context = writeContext(tx, request);
    for (const { before, after, isWritten } of rows)
      if (isWritten) await this.#noteChange(changes, context, { operation, via, before, after: verb === 'destroy' ? null : after });
  }

  async #noteChange(changes: PendingChange[], context: WriteContext, written: NotedChange): Promise<void> {
    const { policy } = this;
    const { before, after } = written;
    const changed = before === null || after === null ? policy.codeColumns : changedColumns(policy, before, after);
    // An action is recorded also where it changes no column: that somebody did it is the record.
    if (changed.length === 0 && !written.operation.startsWith('action:')) return;
    const change = { ...context, ...written, changed } as unknown as Change;
    await policy.options.onChange?.(change as never);
    changes.push({ policy, change });
  }

  // 10: rows that are written with the row, and those that go and come with it.

  async #children({ tx, request, intent: { verb }, asked, rows, changes }: WriteState): Promise<void> {
    for (const { before, after, isWritten } of rows) {
      if (asked.children !== undefined && (isWritten || verb === 'update'))
        await asked.children(tx, after as Item, verb === 'create', changes);
      if (!isWritten || !this.#plan.cascades) continue;
      const soft = this.policy.softDelete as SoftDelete;
      if (verb === 'destroy')
        await cascadeDeletion(tx, this.policy, before as Item, deletionOf(soft, after as Item), this.#cascade(tx, request, changes, verb));
      const deletionId = before?.[soft.deletionId] as string | null | undefined;
      if (verb === 'restore' && deletionId !== null && deletionId !== undefined)
        await cascadeRestore(tx, this.policy, before as Item, deletionId, this.#cascade(tx, request, changes, verb));
    }
  }

  #cascade(tx: Db, request: CrudRequest, changes: PendingChange[], operation: 'destroy' | 'restore'): CascadeOptions {
    return {
      stamps: (policy) => this.of(policy).#values.stamps(request),
      isWatched: (policy) => this.of(policy).#plan.isWatched || policy.options.access?.written !== undefined,
      changed: async (policy, before, after) => {
        const pipeline = this.of(policy);
        await pipeline.#tellAccess(tx, request, operation, before, after);
        const written = { operation, via: 'cascade', before, after: operation === 'destroy' ? null : after } as const;
        if (pipeline.#plan.isRecorded) await pipeline.#noteChange(changes, writeContext(tx, request), written);
        await logWritten(tx, policy, 'update', [{ before, after, isWritten: true }]);
      },
    };
  }

  async #invalidTransition(db: Db, request: CrudRequest, { action, asked }: Intent, { row, message: detail }: NotPossible): Promise<Error> {
    const allowed =
      asked?.transitionsOf === undefined
        ? (await possibleTransitions(this.policy, request, row, db)).map((each) => each.name)
        : await asked.transitionsOf(row);
    const { to } = this.#rule(action?.name as string);
    return crudErrors.invalid_transition({ detail, extensions: { from: row[this.policy.options.state as string], to, allowed } });
  }
}

function requireAction({ name, options }: Policy, action: string): void {
  const rules = actionRulesOf(options);
  if (!Object.hasOwn(rules, action))
    throw new Error(`The resource "${name}" has no action "${action}". Known: ${Object.keys(rules).join(', ') || 'none'}.`);
}

/** What a write did to a row. */
type NotedChange = Pick<Change, 'operation' | 'via'> & { readonly before: Item | null; readonly after: Item | null };
