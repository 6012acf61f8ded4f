import type { Database, Db } from '../../../db/engine/db.ts';
import type { ServiceScope } from '../../../di/container.ts';
import type { Log } from '../../../http/log.ts';
import { isSchema, type OutputOf, type Schema } from '../../../http/declare/schema.ts';
import { JOB_NAME_LENGTH_MAX, QUEUE_NAME_LENGTH_MAX } from '../models.ts';
import { retryPolicy, retryRules, type RetryOptions, type RetryPolicy } from './retry-policy.ts';
import { parseSchedule, scheduleRule, type Schedule, type ScheduleOptions } from './schedule.ts';
import { InvalidOptions, objectOf, optionFaults, type OptionRules } from '../../../options/read-options.ts';
import { aFunction, filledText, flag, listOf, required, rule, TIMER_MS_MAX, wholeNumber } from '../../../options/value-rule.ts';

export type InputOf<S> = S extends Schema ? NonNullable<S['~standard']['types']>['input'] : never;

/** What a handler may return: what goes into the result's schema; nothing without one. */
export type ResultOf<R> = R extends Schema ? NonNullable<R['~standard']['types']>['input'] : void | undefined;

/** Records what a job has done, so that a retry does not do it again. */
export interface Step {
  /** Runs at least once; its result, JSON of at most 256 KiB, is recorded and returned by every later attempt. */
  <T>(name: string, work: () => T | Promise<T>): Promise<T>;
  /** Runs `work` and records its result in one transaction: exactly once. */
  commit<T>(name: string, work: (tx: Db) => Promise<T>): Promise<T>;
}

/** What a handler gets. */
export interface JobContext<Input = unknown, Result = unknown> {
  readonly id: string;
  readonly input: Input;
  /** 1 for the first. */
  readonly attempt: number;
  readonly owner: string;
  readonly tenantKey: string;
  /** Whether the owner may still act, in the tenant where the job has one: ask again before an effect of a job that takes long. */
  readonly mayAct: () => Promise<boolean>;
  /** Aborted when the job is cancelled, its time is up, its lease was lost or the worker stops: pass it to everything that takes long. */
  readonly signal: AbortSignal;
  /** Percent from 0 to 100, and what is being done. */
  readonly progress: (percent: number, message?: string) => Promise<void>;
  readonly step: Step;
  /** Effects and "succeeded" in one transaction, rolled back together when the job is no longer ours. Return what it returns. */
  readonly commit: <T extends Result>(work: (tx: Db) => Promise<T>) => Promise<T>;
  readonly db: Database;
  readonly services: ServiceScope;
  readonly log: Log;
}

export interface JobOptions<I extends Schema, R extends Schema | undefined> {
  /** The schema of the input: checked when the job is started, and again before it runs. */
  readonly input: I;
  /** The schema of the value that `run` returns. Default: the result is not stored. */
  readonly result?: R;
  /** Raised when old code must not run new input. Default: 1. A worker gives back jobs of a higher version than its own. */
  readonly version?: number;
  /** Earlier names: their jobs are run by this one. */
  readonly aliases?: readonly string[];
  /** How often and after which delays a failed job runs again. */
  readonly retry?: RetryOptions;
  /** Of one attempt. Default: five minutes. */
  readonly timeoutMs?: number;
  /** Default: `default`. */
  readonly queue?: string;
  /** Jobs of its queue that one process runs at a time; the same for every job of a queue that says it. Default: 10. */
  readonly concurrency?: number;
  /** Starts it by the clock. */
  readonly schedule?: ScheduleOptions<InputOf<I>>;
  /**
   * The job acts for its owner: before each attempt the owner must be an active user, and a member of the tenant where the job has one. Otherwise the
   * job fails permanently with `owner_not_allowed`. Default: false.
   */
  readonly actsForOwner?: boolean;
  /** Names of fields of the input and the result, at any depth, that are masked wherever they are shown. */
  readonly sensitive?: readonly string[];
  /** The work. A job may run more than once: see `step` and `commit` of the context. */
  run(context: JobContext<OutputOf<I>, ResultOf<R>>): ResultOf<R> | Promise<ResultOf<R>>;
}

/** A declared job: everything is checked and complete. */
export interface JobDefinition<Input = unknown> {
  /** Tells jobs apart from other values. */
  readonly isJob: true;
  /** The stored name; part of every row of the job. */
  readonly name: string;
  /** The schema of the input. */
  readonly input: Schema;
  /** The schema of the result; undefined where no result is stored. */
  readonly result: Schema | undefined;
  /** The version that this code can run. */
  readonly version: number;
  /** Earlier names, whose jobs this one runs. */
  readonly aliases: readonly string[];
  /** The complete retry policy. */
  readonly retry: RetryPolicy;
  /** The deadline of one attempt. */
  readonly timeoutMs: number;
  /** The queue that its jobs wait in. */
  readonly queue: string;
  /** Jobs of the queue that one process runs at a time; undefined where the job does not set it. */
  readonly concurrency: number | undefined;
  /** When the clock starts it; null for jobs that are started by code only. */
  readonly schedule: Schedule | null;
  /** Whether the owner must still have the right to act. */
  readonly actsForOwner: boolean;
  /** Names of fields that are masked wherever input and result are shown. */
  readonly sensitive: ReadonlySet<string>;
  /** The work. */
  // oxlint-disable-next-line typescript/no-explicit-any -- contravariant in the context; job() checked it against the schemas
  readonly run: (context: JobContext<any, any>) => unknown;
  /** Types only. */
  readonly $input?: Input;
}

const DEFAULT_TIMEOUT_MS = 5 * 60_000;
const NAME = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;

const aName = rule(
  `at most ${JOB_NAME_LENGTH_MAX} letters, digits, "_" and "-" with dots between, such as "reports.send"`,
  (value) => typeof value === 'string' && value.length <= JOB_NAME_LENGTH_MAX && NAME.test(value),
);
const aSchema = rule('a schema, such as z.object({ … })', isSchema);

const jobRules: OptionRules<JobOptions<Schema, Schema | undefined>> = {
  input: required(aSchema),
  result: aSchema,
  version: wholeNumber(1, 1_000_000),
  aliases: listOf(aName),
  retry: objectOf<RetryOptions>(retryRules),
  timeoutMs: wholeNumber(1, TIMER_MS_MAX),
  queue: rule(`a name of 1 to ${QUEUE_NAME_LENGTH_MAX} letters, digits, "_", "-" and "."`, isQueueName),
  concurrency: wholeNumber(1, 10_000),
  schedule: scheduleRule,
  actsForOwner: flag,
  sensitive: listOf(filledText),
  run: required(aFunction),
};

/**
 * Declares a job. Every fault of the declaration is reported at once.
 *
 * @example
 * ```ts
 * export const sendInvoice = job('invoice.send', {
 *   input: z.object({ orderId: z.uuid() }),
 *   retry: { attempts: 5 },
 *   async run({ input, db, step }) {
 *     await step('mail', () => mailInvoice(db, input.orderId));
 *   },
 * });
 * ```
 */
export function job<I extends Schema, R extends Schema | undefined = undefined>(
  name: string,
  options: JobOptions<I, R>,
): JobDefinition<InputOf<I>> {
  const place = typeof name === 'string' ? `job(${JSON.stringify(name)})` : 'job()';
  const faults = [...aName(name, place, 'name'), ...optionFaults(place, options, jobRules as OptionRules<JobOptions<I, R>>)];
  if (faults.length > 0) throw new InvalidOptions(faults);
  const {
    version = 1,
    aliases = [],
    retry = {},
    timeoutMs = DEFAULT_TIMEOUT_MS,
    queue = 'default',
    concurrency,
    actsForOwner = false,
    sensitive = [],
  } = options;
  return Object.freeze({
    isJob: true,
    name,
    input: options.input,
    result: options.result,
    version,
    aliases: Object.freeze([...aliases]),
    retry: retryPolicy(retry),
    timeoutMs,
    queue,
    concurrency,
    schedule: options.schedule === undefined ? null : parseSchedule(options.schedule),
    actsForOwner,
    sensitive: new Set(sensitive),
    run: (context: JobContext<OutputOf<I>, ResultOf<R>>) => options.run(context),
  });
}

export function isJob(value: unknown): value is JobDefinition {
  return typeof value === 'object' && value !== null && (value as Partial<JobDefinition>).isJob === true;
}

export function isQueueName(name: unknown): name is string {
  return typeof name === 'string' && name.length <= QUEUE_NAME_LENGTH_MAX && NAME.test(name);
}
