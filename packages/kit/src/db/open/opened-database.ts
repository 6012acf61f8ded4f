import { systemClock } from '../clock.ts';
import { type DatabaseObserver, DatabaseObservers, type PoolStatus } from '../engine/database-observer.ts';
import type { Db } from '../engine/db.ts';
import type { Engine, ListenOptions, NotificationListener } from '../engine/engine.ts';
import { Handle, type HandleContext } from '../engine/handle.ts';
import { ObservedRunner } from '../engine/observed-runner.ts';
import { StatementShares } from '../engine/statement-shares.ts';
import { silentLog } from '../log.ts';
import type { DataKeys } from '../sealing/data-keys.ts';
import { INPUT_LIMITS } from '../../options/input-limits.ts';
import { readOptions } from '../../options/read-options.ts';
import { aFunction } from '../../options/value-rule.ts';
import { type DatabaseOptions, WAIT_MS_MAX } from './database-options.ts';
import { maskPassword } from './mask-password.ts';

const PAYLOAD_BYTES_MAX = 7999;

/** The handle outside any transaction, which also owns the connections. */
export class OpenedDatabase extends Handle {
  readonly url: string;
  #shares: StatementShares | undefined;
  #closed: Promise<void> | undefined;

  constructor(url: string, engine: Engine, options: Omit<DatabaseOptions, 'dataKeys'>, dataKeys?: DataKeys) {
    const using = options.name ?? 'default';
    const observers = new DatabaseObservers(engine.dialect);
    if (options.onQuery !== undefined) observers.add({ onQuery: options.onQuery });
    const shares = sharesOf(engine, options);
    const runner = new ObservedRunner(engine, using, observers, shares);
    const context: HandleContext = {
      engine,
      using,
      clock: options.clock ?? systemClock,
      log: options.log ?? silentLog,
      dataKeys,
      database: () => this,
    };
    super(context, runner);
    this.#shares = shares;
    this.url = maskPassword(url);
  }

  /** Statements go to this engine from now on. */
  protected connect(engine: Engine, options: DatabaseOptions): void {
    this.#shares = sharesOf(engine, options);
    this.runner.connect(engine, this.#shares);
    Object.assign<HandleContext, Partial<HandleContext>>(this.context, { engine });
  }

  listen(channel: string, listener: NotificationListener, options: ListenOptions = {}): Promise<() => Promise<void>> {
    readOptions('listen()', options, { onDisconnect: aFunction, onReconnect: aFunction });
    return this.context.engine.listen(channel, listener, options);
  }

  async notify(db: Db, channel: string, payload = ''): Promise<void> {
    if (Buffer.byteLength(payload) > PAYLOAD_BYTES_MAX)
      throw new RangeError('A notification carries at most 7,999 bytes: send a key, not the data.');
    await this.context.engine.notify(db, channel, payload);
  }

  get pool(): PoolStatus {
    const { pool } = this.context.engine;
    return this.#shares === undefined ? pool : { ...pool, waitingForShare: this.#shares.waiting };
  }

  observe(observer: DatabaseObserver): () => void {
    return this.runner.observers.add(observer);
  }

  get closed(): boolean {
    return this.#closed !== undefined;
  }

  close(): Promise<void> {
    // An application and its test may both end the same handle: the second waits for the first.
    this.#closed ??= this.context.engine.close();
    return this.#closed;
  }
}

/** Undefined where there is one connection for everything. */
function sharesOf(engine: Engine, options: DatabaseOptions): StatementShares | undefined {
  if (engine.longStatementsMax === undefined) return undefined;
  return new StatementShares({
    connections: engine.longStatementsMax,
    percent: options.callerPercent ?? INPUT_LIMITS.callerPercent,
    waitingMax: options.callerWaitingMax ?? INPUT_LIMITS.callerWaiting,
    waitMsMax: options.waitMsMax ?? WAIT_MS_MAX,
    streams: () => engine.streams ?? 0,
  });
}
