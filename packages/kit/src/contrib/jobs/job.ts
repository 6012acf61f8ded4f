import type { Database, Db } from '../../db/db.ts';
import { sensitiveNames } from '../../db/sensitive-members.ts';
import type { ServiceScope } from '../../di/container.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Log } from '../../http/log.ts';
import { isSchema, jsonSchemaOf, type OutputOf, type Schema } from '../../http/schema.ts';
import { JOB_NAME_LENGTH_MAX, QUEUE_NAME_LENGTH_MAX } from './models.ts';
import { DEFAULT_RETRY, retryFaults, type RetryOptions, type RetryPolicy } from './retry-policy.ts';
import { parseSchedule, type Schedule, type ScheduleOptions } from './schedule.ts';
import { requireArguments } from '../../options/read-options.ts';
import { anObject, filledText } from '../../options/value-rule.ts';

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
  readonly input: I;
  readonly result?: R;
  /** Raised when old code must not run new input; 1 unless given. A worker gives back jobs of a higher version than its own. */
  readonly version?: number;
  /** Earlier names: their jobs are run by this one. */
  readonly aliases?: readonly string[];
  readonly retry?: RetryOptions;
  /** Of one attempt; five minutes unless given. */
  readonly timeoutMs?: number;
  /** `default` unless given. */
  readonly queue?: string;
  /** Jobs of its queue that one process runs at a time; the same for every job of a queue that says it. 10 unless given. */
  readonly concurrency?: number;
  /** Starts it by the clock. */
  readonly schedule?: ScheduleOptions<InputOf<I>>;
  /** Names of fields of the input and the result, at any depth, that are masked wherever they are shown. */
  readonly sensitive?: readonly string[];
  run(context: JobContext<OutputOf<I>, ResultOf<R>>): ResultOf<R> | Promise<ResultOf<R>>;
}

/** A declared job: everything is checked and complete. */
export interface JobDefinition<Input = unknown> {
  readonly isJob: true;
  readonly name: string;
  readonly input: Schema;
  readonly result: Schema | undefined;
  readonly version: number;
  readonly aliases: readonly string[];
  readonly retry: RetryPolicy;
  readonly timeoutMs: number;
  readonly queue: string;
  readonly concurrency: number | undefined;
  readonly schedule: Schedule | null;
  readonly sensitive: ReadonlySet<string>;
  // oxlint-disable-next-line typescript/no-explicit-any -- contravariant in the context; job() checked it against the schemas
  readonly run: (context: JobContext<any, any>) => unknown;
  /** Types only. */
  readonly $input?: Input;
}

const OPTIONS: Readonly<Record<keyof JobOptions<Schema, undefined>, true>> = {
  input: true,
  result: true,
  version: true,
  aliases: true,
  retry: true,
  timeoutMs: true,
  queue: true,
  concurrency: true,
  schedule: true,
  sensitive: true,
  run: true,
};
const RETRY_OPTIONS = ['attempts', 'backoff', 'firstDelaySeconds', 'delaySecondsMax'];
const SCHEDULE_OPTIONS = ['cron', 'timeZone', 'missed', 'input'];

const DEFAULT_TIMEOUT_MS = 5 * 60_000;
/** The longest time a timer of Node can wait. */
const TIMEOUT_MS_MAX = 2_147_483_647;
const NAME = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;

/** Declares a job. Every fault of the declaration is reported at once. */
export function job<I extends Schema, R extends Schema | undefined = undefined>(
  name: string,
  options: JobOptions<I, R>,
): JobDefinition<InputOf<I>> {
  requireArguments('job()', { name, options }, { name: filledText, options: anObject });
  const faults = [...nameFaults('name', name), ...optionFaults(options)];
  let schedule: Schedule | null = null;
  try {
    if (options.schedule !== undefined) schedule = parseSchedule(options.schedule);
  } catch (error) {
    faults.push((error as Error).message);
  }
  if (faults.length > 0) throw new TypeError(`job(${JSON.stringify(name)}): ${faults.join('; ')}.`);
  const { version = 1, aliases = [], retry = {}, timeoutMs = DEFAULT_TIMEOUT_MS, queue = 'default', concurrency, sensitive = [] } = options;
  return Object.freeze({
    isJob: true,
    name,
    input: options.input,
    result: options.result,
    version,
    aliases: Object.freeze([...aliases]),
    retry: Object.freeze({ ...DEFAULT_RETRY, ...retry }),
    timeoutMs,
    queue,
    concurrency,
    schedule,
    sensitive: new Set([...sensitive, ...[options.input, options.result].flatMap(markedNames)]),
    run: (context: JobContext<OutputOf<I>, ResultOf<R>>) => options.run(context),
  });
}

/** Members that a schema marks with `x-sensitive`. */
function markedNames(schema: Schema | undefined): string[] {
  try {
    return schema === undefined ? [] : sensitiveNames(jsonSchemaOf(schema, 'input'));
  } catch {
    return []; // a schema that JSON Schema cannot describe marks nothing
  }
}

export function isJob(value: unknown): value is JobDefinition {
  return typeof value === 'object' && value !== null && (value as Partial<JobDefinition>).isJob === true;
}

function optionFaults(options: JobOptions<Schema, Schema | undefined>): string[] {
  if (typeof options !== 'object' || options === null) return ['the second argument is an object of options'];
  const {
    input,
    result,
    version = 1,
    aliases = [],
    retry = {},
    timeoutMs = 1,
    queue = 'default',
    concurrency = 1,
    sensitive = [],
  } = options;
  const faults = [
    ...unknown('', options, Object.keys(OPTIONS)),
    ...unknown('retry.', retry, RETRY_OPTIONS),
    ...unknown('schedule.', options.schedule ?? {}, SCHEDULE_OPTIONS),
    ...retryFaults(retry),
  ];
  if (!isSchema(input)) faults.push('input must be a schema');
  if (result !== undefined && !isSchema(result)) faults.push('result must be a schema');
  if (typeof options.run !== 'function') faults.push('run must be a function');
  if (!isWhole(version, 1, 1_000_000)) faults.push('version must be a whole number from 1 to 1000000');
  if (!isWhole(timeoutMs, 1, TIMEOUT_MS_MAX)) faults.push(`timeoutMs must be a whole number from 1 to ${TIMEOUT_MS_MAX}`);
  if (!isWhole(concurrency, 1, 10_000)) faults.push('concurrency must be a whole number from 1 to 10000');
  if (!isQueueName(queue)) faults.push(`queue must be a text of 1 to ${QUEUE_NAME_LENGTH_MAX} letters, digits, "_", "-" and "."`);
  if (!Array.isArray(aliases)) faults.push('aliases must be a list of names');
  else faults.push(...aliases.flatMap((alias) => nameFaults('aliases', alias)));
  if (!Array.isArray(sensitive) || !sensitive.every((field) => typeof field === 'string')) faults.push('sensitive must be a list of names');
  return faults;
}

function unknown(prefix: string, given: object, known: readonly string[]): string[] {
  return Object.keys(given)
    .filter((name) => !known.includes(name))
    .map(
      (name) =>
        `"${prefix}${name}" is not an option${didYouMean(name, known).replace(/\.$/, '') || `; the options are ${known.join(', ')}`}`,
    );
}

function nameFaults(what: string, name: unknown): string[] {
  if (typeof name === 'string' && name.length <= JOB_NAME_LENGTH_MAX && NAME.test(name)) return [];
  return [
    `${what}: ${JSON.stringify(name)} is not a name; use at most ${JOB_NAME_LENGTH_MAX} letters, digits, "_" and "-" with dots between, such as "reports.send"`,
  ];
}

export function isQueueName(name: unknown): name is string {
  return typeof name === 'string' && name.length <= QUEUE_NAME_LENGTH_MAX && NAME.test(name);
}

function isWhole(value: unknown, min: number, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}
