import { setTimeout as pause } from 'node:timers/promises';
import { ambientScope, openScopeOf, runInScope, type AmbientScope } from './ambient.ts';
import type { Clock } from '../clock.ts';
import type { Database, Db, ExecuteResult } from './db.ts';
import type { Dialect } from '../dialect.ts';
import type {
  Engine,
  EngineTransaction,
  EngineTransactionOptions,
  QueryOptions,
  SentStatement,
  StreamOptions,
  TransactionOptions,
} from './engine.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { dbErrors } from '../errors.ts';
import type { DbLog } from '../log.ts';
import type { ObservedRunner } from './observed-runner.ts';
import type { DataKeys } from '../sealing/data-keys.ts';
import { withoutKeyed } from '../sealing/keyed-parameter.ts';
import { isReadOnly } from '../sql/statement-text.ts';
import { refuseUnknownNames } from '../../options/read-options.ts';
import { requestDeadline } from './long-statement.ts';

const STREAM_CHUNK = 200;
/** At most, before a transaction is run again. */
const RETRY_PAUSE_MS = 50;

const TRANSACTION_OPTIONS: ReadonlySet<string> = new Set(
  Object.keys({ isolation: true, readOnly: true, retries: true } satisfies Record<keyof TransactionOptions, true>),
);

/** What every handle on one database shares. */
export interface HandleContext {
  readonly engine: Engine;
  readonly using: string;
  readonly clock: Clock;
  readonly log: DbLog;
  /** The keys of encrypted columns; undefined where the database was opened without. */
  readonly dataKeys: DataKeys | undefined;
  /** The handle outside any transaction. */
  readonly database: () => Database;
}

/** The database handle and, with a scope, the handle of one transaction or savepoint. */
export class Handle {
  readonly context: HandleContext;
  readonly runner: ObservedRunner;
  readonly #scope: TransactionScope | undefined;

  constructor(context: HandleContext, runner: ObservedRunner, scope?: TransactionScope) {
    this.context = context;
    this.runner = runner;
    this.#scope = scope;
  }

  get dialect(): Dialect {
    return this.context.engine.dialect;
  }

  get using(): string {
    return this.context.using;
  }

  get clock(): Clock {
    return this.context.clock;
  }

  get isTransaction(): boolean {
    return this.#scope !== undefined;
  }

  get database(): Database {
    return this.context.database();
  }

  async query<R>(text: string, parameters: readonly unknown[] = [], options?: QueryOptions): Promise<R[]> {
    // Not through execute(): one more promise costs more than what it would save here.
    const own = this.#own(text, parameters);
    const result = this.runner.runNow(own.text, own.parameters, options) ?? (await this.runner.run(own.text, own.parameters, options));
    return result.rows as R[];
  }

  /** The statement as the engine takes it; what follows sees no plaintext of encrypted columns. */
  #own(text: string, parameters: readonly unknown[]): { readonly text: string; readonly parameters: readonly unknown[] } {
    const { engine, dataKeys } = this.context;
    return engine.toOwnPlaceholders(text, withoutKeyed(parameters, dataKeys, engine.dialect));
  }

  async send(text: string, parameters: readonly unknown[], sent: SentStatement = {}): Promise<void> {
    const own = this.#own(text, parameters);
    if (this.runner.send(own.text, own.parameters, sent)) return;
    try {
      const { count } = this.runner.runNow(own.text, own.parameters) ?? (await this.runner.run(own.text, own.parameters));
      sent.answered?.(undefined, count);
    } catch (error) {
      sent.answered?.(error, 0);
      throw sent.failureOf?.(error) ?? error;
    }
  }

  async execute<R>(text: string, parameters: readonly unknown[] = [], options?: QueryOptions): Promise<ExecuteResult<R>> {
    const own = this.#own(text, parameters);
    return (this.runner.runNow(own.text, own.parameters, options) ??
      (await this.runner.run(own.text, own.parameters, options))) as ExecuteResult<R>;
  }

  async together<R>(statements: readonly TogetherStatement[]): Promise<ExecuteResult<R>[]> {
    const transaction = this.#scope === undefined ? this.context.engine.beginNow?.({}) : undefined;
    if (transaction === undefined) return this.#oneByOne(statements);
    const runner = this.runner.over(transaction);
    try {
      const results = statements.map(({ text, parameters, options }) => {
        const own = this.#own(text, parameters);
        return runner.runNow(own.text, own.parameters, options) as ExecuteResult<R>;
      });
      await transaction.commit();
      return results;
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
  }

  /** One that fails fails the transaction around them, too. */
  async #oneByOne<R>(statements: readonly TogetherStatement[]): Promise<ExecuteResult<R>[]> {
    if (this.#scope === undefined) return this.transaction((tx) => (tx as unknown as Handle).#oneByOne(statements));
    const results: ExecuteResult<R>[] = [];
    for (const { text, parameters, options } of statements) results.push(await this.execute<R>(text, parameters, options));
    return results;
  }

  async *stream<R>(
    text: string,
    parameters: readonly unknown[] = [],
    chunkSize = STREAM_CHUNK,
    options?: StreamOptions,
  ): AsyncIterableIterator<R[]> {
    const own = this.#own(text, parameters);
    for await (const { rows } of this.runner.stream(own.text, own.parameters, chunkSize, options)) yield rows as R[];
  }

  afterCommit(callback: () => unknown): void {
    // The outer handle used inside a transaction still means "when this is saved".
    const scope = this.#scope ?? (openScopeOf(this.context.engine) as TransactionScope | undefined);
    if (scope === undefined) void runCallbacks([callback], this.context.log);
    else scope.add(callback);
  }

  async transaction<R>(work: (tx: Db) => Promise<R>, options: TransactionOptions = {}): Promise<R> {
    if (this.#scope !== undefined) return innermost(this.#scope).savepoint(work);
    refuseUnknownNames('transaction()', options, TRANSACTION_OPTIONS);
    return this.runTransaction(work, options);
  }

  /** Also takes what only migrations may ask for. */
  async runTransaction<R>(work: (tx: Db) => Promise<R>, options: EngineTransactionOptions): Promise<R> {
    for (let retriesLeft = options.retries ?? 0; ; retriesLeft--) {
      try {
        return await this.#attempt(work, options);
      } catch (error) {
        if (!this.context.engine.isRetryable(error)) throw error;
        if (retriesLeft <= 0)
          throw isKitError(error) ? error : dbErrors.write_conflict({ cause: error, message: (error as Error | null)?.message });
        this.runner.observers.retried();
        // Two that lost to one another must not meet again.
        await pause(Math.random() * RETRY_PAUSE_MS);
      }
    }
  }

  async #attempt<R>(work: (tx: Db) => Promise<R>, options: EngineTransactionOptions): Promise<R> {
    const { engine } = this.context;
    const deadline = requestDeadline();
    deadline?.throwIfAborted();
    const transaction = engine.beginNow?.(options) ?? (await engine.begin(options));
    const scope = new TransactionScope(this.context, transaction, this.runner, undefined);
    if (deadline === undefined) return this.#end(transaction, scope, scope.run(work));
    const cancel = (): void => transaction.cancel(deadline.reason);
    deadline.addEventListener('abort', cancel, { once: true });
    if (deadline.aborted) cancel();
    try {
      return await this.#end(transaction, scope, scope.run(work));
    } finally {
      deadline.removeEventListener('abort', cancel);
    }
  }

  /** Commits when the work is done, rolls back when it failed. */
  async #end<R>(transaction: EngineTransaction, scope: TransactionScope, running: Promise<R>): Promise<R> {
    let result: R;
    try {
      result = await running;
      await transaction.commit();
    } catch (error) {
      scope.close();
      await transaction.rollback();
      throw error;
    }
    if (scope.callbacks.length > 0) await runCallbacks(scope.callbacks, this.context.log);
    return result;
  }
}

export function engineOf(db: Db): Engine {
  return (db as unknown as Handle).context.engine;
}

/**
 * Runs a statement of a transaction without waiting for its result: on PostgreSQL it goes out with the next statement or with the commit, which
 * saves a round trip. When it fails, they fail with its error, and nothing is saved.
 */
export async function sendStatement(tx: Db, text: string, parameters: readonly unknown[], sent?: SentStatement): Promise<void> {
  await (tx as unknown as Handle).send(text, parameters, sent);
}

export interface TogetherStatement {
  readonly text: string;
  readonly parameters: readonly unknown[];
  readonly options?: QueryOptions;
}

/** Runs statements one after the other, all of them or none. Where the engine has not to wait for anything, there is no transaction in between to pay for. */
export function runTogether<R>(db: Db, statements: readonly TogetherStatement[]): Promise<ExecuteResult<R>[]> {
  return (db as unknown as Handle).together<R>(statements);
}

/** A transaction or one of its savepoints: its handle, its callbacks and whether it is still open. */
class TransactionScope implements AmbientScope {
  readonly engine: Engine;
  readonly handle: Db;
  readonly outer: AmbientScope | undefined;
  readonly callbacks: (() => unknown)[] = [];
  readonly parent: TransactionScope | undefined;
  readonly #context: HandleContext;
  readonly #transaction: EngineTransaction;
  readonly #runner: ObservedRunner;
  readonly #depth: number;
  #open = true;
  #count = 0;
  /** Savepoints asked for and not yet over. */
  #pending = 0;
  /** The savepoint that is open on the connection now. */
  #child: TransactionScope | undefined;
  /** A write from outside this savepoint landed in it: they share one connection. */
  #intruded = false;
  /** Such a write was rolled back with the savepoint it landed in, although it was reported as done. */
  #lost = false;
  /** Savepoints of one parent follow one another, however many are started at once: they nest on one connection. */
  #last: Promise<unknown> | undefined;

  constructor(context: HandleContext, transaction: EngineTransaction, runner: ObservedRunner, parent: TransactionScope | undefined) {
    this.#context = context;
    this.engine = context.engine;
    this.#transaction = transaction;
    this.#runner = runner;
    this.parent = parent;
    this.#depth = parent === undefined ? 0 : parent.#depth + 1;
    this.outer = ambientScope();
    const admitted = runner.over(transaction, (text, writes) => this.#admit(text, writes));
    this.handle = new Handle(context, admitted, this);
  }

  /** A savepoint ends with the transaction around it, whatever its own callback still does. */
  isOpen(): boolean {
    return this.#open && (this.parent === undefined || this.parent.isOpen());
  }

  close(): void {
    this.#open = false;
  }

  add(callback: () => unknown): void {
    this.#refuseWhenClosed(); // it would never run
    this.callbacks.push(callback);
  }

  async run<R>(work: (tx: Db) => Promise<R>): Promise<R> {
    return this.#over(runInScope(this, () => work(this.handle)));
  }

  async #over<R>(running: Promise<R>): Promise<R> {
    try {
      const result = await running;
      this.#refuseHalfDone();
      return result;
    } finally {
      this.close();
    }
  }

  savepoint<R>(work: (tx: Db) => Promise<R>): Promise<R> {
    this.#pending += 1;
    const turn = (this.#last ?? Promise.resolve()).then(() => this.#savepoint(work)).finally(() => (this.#pending -= 1));
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #savepoint<R>(work: (tx: Db) => Promise<R>): Promise<R> {
    this.#refuseWhenClosed();
    const name = `kit_${this.#depth}_${++this.#count}`;
    const child = new TransactionScope(this.#context, this.#transaction, this.#runner, this);
    this.#child = child; // from now on: what is sent before the answer lands in the savepoint too
    try {
      await this.#transaction.savepoint(name);
      const result = await child.run(work);
      this.#refuseWhenClosed();
      await this.#transaction.releaseSavepoint(name);
      this.callbacks.push(...child.callbacks);
      return result;
    } catch (error) {
      // Without a connection there is nothing to roll back to; the caller needs the first error, not this one.
      if (this.isOpen()) await this.#transaction.rollbackToSavepoint(name).catch(() => undefined);
      if (child.#intruded) this.#lost = true;
      throw error;
    } finally {
      this.#child = undefined;
    }
  }

  #admit(text: string, writes = false): void {
    this.#refuseWhenClosed();
    if (this.#child === undefined || (!writes && isReadOnly(text))) return;
    const caller = openScopeOf(this.engine);
    for (let open: TransactionScope | undefined = this.#child; open !== undefined; open = open.#child) {
      if (!isWithin(caller, open)) open.#intruded = true;
    }
  }

  /** A transaction that would lose a part of its writes saves nothing. */
  #refuseHalfDone(): void {
    if (this.#pending > 0) {
      throw dbErrors.transaction_finished({
        message: 'A savepoint was still open when the transaction around it ended: await tx.transaction(…). Nothing was saved.',
      });
    }
    if (this.#lost) {
      throw dbErrors.transaction_aborted({
        message: 'A statement ran beside a savepoint and was rolled back with it: await one before starting the other. Nothing was saved.',
      });
    }
  }

  #refuseWhenClosed(): void {
    if (!this.isOpen())
      throw dbErrors.transaction_finished({ message: 'This transaction has ended: await everything inside its callback.' });
  }
}

/** Inside a savepoint's callback the transaction's own handle means the savepoint: waiting for it to end would never end. */
function innermost(scope: TransactionScope): TransactionScope {
  const ambient = openScopeOf(scope.engine);
  if (!(ambient instanceof TransactionScope)) return scope;
  return isWithin(ambient, scope) ? ambient : scope;
}

function isWithin(scope: AmbientScope | undefined, outer: TransactionScope): boolean {
  let each = scope instanceof TransactionScope ? scope : undefined;
  while (each !== undefined && each !== outer) each = each.parent;
  return each !== undefined;
}

/** One after another. */
async function runCallbacks(callbacks: readonly (() => unknown)[], log: DbLog): Promise<void> {
  for (const callback of callbacks) {
    try {
      await callback();
    } catch (error) {
      callbackFailed(error, log);
    }
  }
}

function callbackFailed(error: unknown, log: DbLog): void {
  log.error({ err: error }, 'an after-commit callback failed');
}
