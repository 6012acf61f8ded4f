import type { Dialect } from '../dialect.ts';
import { type LongStatement, type OwnerKind, ownerKind, type StatementOutcome } from './long-statement.ts';
import type { QueryEvent, QueryObserver } from './query-observer.ts';

/** Is told about every statement of one database. */
export interface DatabaseObserver {
  readonly onQuery?: QueryObserver;
  /** Asked before each statement: false means that `onQuery` would do nothing with it, and it need not be measured. Default: always. */
  readonly wantsQuery?: () => boolean;
  /** A transaction is run again after a serialization failure or a deadlock. */
  readonly onRetry?: () => void;
  /** A read of a request ended early: `timed_out`, `cancelled` (its client went away) or `rejected` (503 `too_busy` or `database_busy`). */
  readonly onStatementEnd?: (outcome: StatementOutcome, caller: OwnerKind) => void;
}

/** How busy a database's connections are. On SQLite the one connection that writes is counted. */
export interface PoolStatus {
  readonly max: number;
  readonly used: number;
  /** Statements and transactions that wait for a connection. */
  readonly waiting: number;
  /** Reads that wait for the share of their caller, by the kind of caller. */
  readonly waitingForShare?: Readonly<Partial<Record<OwnerKind, number>>> | undefined;
}

/** The observers of one database; shared by all its handles. */
export class DatabaseObservers {
  readonly dialect: Dialect;
  readonly #observers = new Set<DatabaseObserver>();
  #observesAll = false;
  /** Of the observers that do not want every statement. */
  #wanting: readonly (() => boolean)[] = [];

  constructor(dialect: Dialect) {
    this.dialect = dialect;
  }

  add(observer: DatabaseObserver): () => void {
    this.#observers.add(observer);
    this.#update();
    return () => {
      this.#observers.delete(observer);
      this.#update();
    };
  }

  /** Asked before every statement. */
  observesQuery(): boolean {
    return this.#observesAll || this.#wanting.some((wantsQuery) => wantsQuery());
  }

  queried(event: QueryEvent): void {
    for (const observer of this.#observers) observer.onQuery?.(event);
  }

  retried(): void {
    for (const observer of this.#observers) observer.onRetry?.();
  }

  ended(outcome: StatementOutcome, { owner }: LongStatement): void {
    const kind = ownerKind(owner);
    for (const observer of this.#observers) observer.onStatementEnd?.(outcome, kind);
  }

  #update(): void {
    const watching = [...this.#observers].filter(({ onQuery }) => onQuery !== undefined);
    this.#observesAll = watching.some(({ wantsQuery }) => wantsQuery === undefined);
    this.#wanting = watching.flatMap(({ wantsQuery }) => wantsQuery ?? []);
  }
}
