import { AsyncLocalStorage } from 'node:async_hooks';

/** What an engine receives for a statement that may read many rows: when it has to end, and why it may end sooner. */
export interface LongStatement {
  /** The time that is left, from now; at least 1. Of a stream: for each chunk. The database ends the statement: 503 `statement_timeout`. */
  readonly deadlineMs: number;
  /** Aborted when nobody waits for the rows any longer: the client went away, or got its response. The statement is cancelled. */
  readonly signal?: AbortSignal | undefined;
  /** Whom the statement counts for: `key …`, `user …` or `address …`. */
  readonly owner?: string | undefined;
  /** What it reads, for the log, never values. */
  readonly reads?: string | undefined;
  /** Others are under way: on PostgreSQL it then has one process of the server, without parallel workers. */
  readonly isOneOfSeveral?: boolean | undefined;
}

/** How a statement ended before its time: by its deadline, because nobody waited for it, or before it was sent because its caller had too many. */
export type StatementOutcome = 'timed_out' | 'cancelled' | 'rejected';

/** What metrics tell callers apart by: never who they are. */
export type OwnerKind = 'key' | 'user' | 'address' | 'none';

export function ownerKind(owner = ''): OwnerKind {
  const kind = owner.split(' ', 1)[0];
  return kind === 'key' || kind === 'user' || kind === 'address' ? kind : 'none';
}

/** A request, as far as its statements depend on it. Everything is read when a statement needs it. */
export interface StatementCause {
  /** What is left for a statement that begins now. */
  readonly statementMsLeft: number;
  /** For each chunk of a stream. */
  readonly chunkMs: number;
  readonly signal: AbortSignal;
  readonly statementOwner: string;
  /** Aborted when the time of the route is over. Undefined: the route has no limit of its own. */
  readonly deadline: AbortSignal | undefined;
  /** The response has left: what still runs is work of its own, with budgets of its own. */
  readonly isOver: boolean;
}

const causes = new AsyncLocalStorage<StatementCause>();

/** Statements that `work` marks with `mayBeLong`, also in what it awaits, belong to this request. */
export function runCausing<R>(cause: StatementCause, work: () => R): R {
  return causes.run(cause, work);
}

/** Several requests wait for what `work` returns: its statements have the time of the one that began it, and do not end with its client. */
export function runShared<R>(work: () => R): R {
  const cause = causes.getStore();
  return cause === undefined ? work() : causes.run(new SharedCause(cause), work);
}

class SharedCause implements StatementCause {
  readonly #first: StatementCause;
  readonly signal = new AbortController().signal;
  readonly deadline = undefined;
  readonly isOver = false;

  constructor(first: StatementCause) {
    this.#first = first;
  }

  get statementMsLeft(): number {
    return this.#first.statementMsLeft;
  }

  get chunkMs(): number {
    return this.#first.chunkMs;
  }

  get statementOwner(): string {
    return this.#first.statementOwner;
  }
}

/** The end of the running request. A transaction that is open then is rolled back. */
export function requestDeadline(): AbortSignal | undefined {
  return causes.getStore()?.deadline;
}

/** Undefined outside a request: background work has its own budgets and is not ended here. */
export function longStatement(reads: string, isStream = false): LongStatement | undefined {
  const cause = causes.getStore();
  if (cause === undefined || cause.isOver) return undefined;
  const deadlineMs = isStream ? cause.chunkMs : Math.max(1, cause.statementMsLeft);
  return { deadlineMs, signal: cause.signal, owner: cause.statementOwner, reads };
}
