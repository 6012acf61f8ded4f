import type { SqlExecutor } from '../../../db/engine/foreign/sql-executor.ts';

/** What an engine is told about a job. It gets the job when it may run: delays, retries and serial keys are kept by our row. */
export interface EnqueueOptions {
  /** The queue of the job. */
  readonly queue: string;
  /** Higher comes first. */
  readonly priority: number;
}

/**
 * Runs jobs by an engine other than the toolkit's own. The payload is the job's id and the engine's own attempts are 1: our row is claimed by
 * its id, and schedules retries itself.
 */
export interface TaskQueue {
  /** Hands a job over: in the transaction where the engine can, else after its commit. */
  enqueue(tx: SqlExecutor, jobId: string, options: EnqueueOptions): void | Promise<void>;
  /** What the engine cannot do for these jobs; reported at start-up. */
  faults?(facts: QueueFacts): readonly string[];
}

/** What a queue must know to say whether it can serve an application. */
export interface QueueFacts {
  readonly dialect: 'postgres' | 'sqlite';
  readonly queues: readonly string[];
  /** Jobs that declare a concurrency, which only our own worker can keep. */
  readonly limited: readonly string[];
}

/** What no engine beside our own can do. */
export function engineFaults(engine: string, { limited }: QueueFacts): string[] {
  if (limited.length === 0) return [];
  return [`${engine} runs the jobs here, and its own concurrency holds: remove \`concurrency\` from ${limited.join(', ')}.`];
}

/** The same, for engines that live in PostgreSQL. */
export function postgresOnly(engine: string, facts: QueueFacts): string[] {
  const elsewhere =
    facts.dialect === 'postgres' ? [] : [`${engine} enqueues in the transaction on PostgreSQL, and this database is ${facts.dialect}.`];
  return [...elsewhere, ...engineFaults(engine, facts)];
}
