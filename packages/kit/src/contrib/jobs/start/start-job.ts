import { isDeepStrictEqual } from 'node:util';
import { canonicalJson } from '../../../db/values/canonical-json.ts';
import { isTimestamp } from '../../../db/values/timestamp.ts';
import { systemClock } from '../../../db/clock.ts';
import { runSteps, type SqlExecutor, type SqlSteps, type SyncSqlExecutor } from '../../../db/engine/foreign/sql-executor.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { didYouMean } from '../../../options/did-you-mean.ts';
import { actingRequestId } from '../../../http/exchange/acting-request.ts';
import type { SchemaIssue, SchemaResult } from '../../../http/declare/schema.ts';
import { jobErrors, StartRefused } from '../errors.ts';
import { isJob, type JobDefinition } from '../declare/job.ts';
import { findJobs, type Jobs } from '../rows/jobs.ts';
import { KEY_LENGTH_MAX, PAYLOAD_BYTES_MAX, PRIORITY_MAX, type JobStatus } from '../models.ts';
import { wakeAfterCommit } from '../../../work/wake-workers.ts';
import { findByUniqueKey, insertJob, insertJobs, WAKE_CHANNEL, wakePayload, type NewJob } from './start-store.ts';
import { jsonTextOf, jsonValueOf } from '../declare/stored-json.ts';
import { startTraced } from './traced-start.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { aList, anObject } from '../../../options/value-rule.ts';
import { stepsOf } from '../../../db/values/standard-schema.ts';

export interface StartOptions {
  /** Who may see the job. Not whose authority it runs with: a job that acts for a user checks that user again when it runs. */
  readonly owner?: string | undefined;
  /** The tenant that the job belongs to. Default: none. */
  readonly tenantKey?: string | undefined;
  /** Not before this instant. */
  readonly runAt?: Date | undefined;
  /** Not before so many seconds have passed. */
  readonly delaySeconds?: number | undefined;
  /** Higher comes first. Default: 0. */
  readonly priority?: number | undefined;
  /** Jobs with one key (of one name, tenant and owner) exist once until the first has finished: starting another returns the first. */
  readonly uniqueKey?: string | undefined;
  /** When the unique key is free again. Default: `finished`. */
  readonly uniqueUntil?: 'finished' | 'started' | undefined;
  /** Jobs with one key run one after the other, in the order in which they were started, whatever the number of workers. */
  readonly serialKey?: string | undefined;
  /** The alias of the database that the transaction must belong to; refused when it is another. */
  readonly using?: string | undefined;
}

export type StartManyOptions = Omit<StartOptions, 'uniqueKey' | 'uniqueUntil'>;

export interface StartedJob {
  readonly id: string;
  readonly status: JobStatus;
  /** False: the unique key was taken, and this is the job that has it. */
  readonly created: boolean;
  /** Where to read it; null when no JobController is mounted. */
  readonly url: string | null;
}

export interface StartedJobs {
  /** In the order of the inputs. */
  readonly ids: readonly string[];
}

export const JOBS_AT_ONCE_MAX = 1000;

/**
 * Stores a job in the caller's own transaction: it exists exactly when the business change does. Everything that is wrong with the call is
 * refused before anything is written.
 *
 * @example
 * ```ts
 * await db.transaction(async (tx) => {
 *   const order = await insert(tx, orders, values);
 *   await startJob(tx, sendInvoice, { orderId: order.id }, { owner: user.id });
 * });
 * ```
 */
export async function startJob<Input>(
  tx: SqlExecutor,
  definition: JobDefinition<Input>,
  input: Input,
  options: StartOptions = {},
): Promise<StartedJob> {
  const call = checkedCall(tx, definition, options, 'startJob');
  const job = newJob(call, await checkedInput(definition, input));
  const started = wokenFor(call, job, await stored(tx, call, job));
  await handedOver(call, started.created && job.isReady ? [job.id] : []);
  return started;
}

/** The same for synchronous libraries whose transactions are functions that return no promise, such as better-sqlite3. */
export function startJobSync<Input>(
  tx: SyncSqlExecutor,
  definition: JobDefinition<Input>,
  input: Input,
  options: StartOptions = {},
): StartedJob {
  if (typeof tx === 'object' && tx !== null && !('sync' in tx))
    throw new StartRefused('not_synchronous', 'This library answers with promises: use `await startJob(…)`.');
  const call = checkedCall(tx, definition, options, 'startJobSync');
  if (call.jobs?.settings.taskQueue !== undefined && call.jobs.settings.taskQueue !== null)
    throw new StartRefused('not_synchronous', 'Jobs are handed to a task queue here, which takes promises: use `await startJob(…)`.');
  const text = serialised(definition, input);
  const checked = definition.input['~standard'].validate(jsonValueOf(text));
  if (checked instanceof Promise)
    throw new StartRefused('not_synchronous', `The input of ${definition.name} is checked with promises: use \`await startJob(…)\`.`);
  requireValid(definition, input, text, checked);
  const job = newJob(call, text);
  return wokenFor(call, job, stored(tx, call, job) as StartedJob);
}

function stored(tx: SqlExecutor, { definition, jobs }: CheckedCall, job: NewJob): StartedJob | Promise<StartedJob> {
  return startTraced(definition, [job.id], (traceparent) => runSteps(tx, storedOnce(tx, jobs, { ...job, traceparent })));
}

/** Starts up to 1,000 jobs with one statement. Every input is checked first: all are started or none. */
export async function startJobs<Input>(
  tx: SqlExecutor,
  definition: JobDefinition<Input>,
  inputs: readonly Input[],
  options: StartManyOptions = {},
): Promise<StartedJobs> {
  requireArguments('startJobs()', { inputs, options }, { inputs: aList, options: anObject });
  for (const name of ['uniqueKey', 'uniqueUntil'])
    if (Object.hasOwn(options, name))
      throw new StartRefused('option_unknown', `startJobs() has no option "${name}": start jobs with unique keys one by one.`);
  const call = checkedCall(tx, definition, options, 'startJobs');
  if (!Array.isArray(inputs) || inputs.length > JOBS_AT_ONCE_MAX)
    throw new StartRefused('too_many', `startJobs() takes a list of at most ${JOBS_AT_ONCE_MAX} inputs.`);
  const each: Pick<NewJob, 'id' | 'input'>[] = [];
  for (const [index, input] of inputs.entries()) {
    each.push({ id: uuidv7(call.clock), input: await checkedInput(definition, input, `[${index}]`) });
  }
  if (each.length === 0) return { ids: [] };
  const job = newJob(call, '');
  const ids = each.map(({ id }) => id);
  await startTraced(definition, ids, (traceparent) => runSteps(tx, insertJobs(tx, { ...job, traceparent }, each)));
  wakeAfterCommit(tx, WAKE_CHANNEL, wakePayload(job));
  await handedOver(call, job.isReady ? ids : []);
  return { ids };
}

interface CheckedCall {
  readonly tx: SqlExecutor;
  readonly definition: JobDefinition;
  readonly jobs: Jobs | undefined;
  readonly clock: { now(): Date };
  readonly options: StartOptions;
}

const OPTIONS: Readonly<Record<keyof StartOptions, true>> = {
  owner: true,
  tenantKey: true,
  runAt: true,
  delaySeconds: true,
  priority: true,
  uniqueKey: true,
  uniqueUntil: true,
  serialKey: true,
  using: true,
};

function checkedCall(tx: SqlExecutor, definition: JobDefinition, given: StartOptions | undefined, verb: string): CheckedCall {
  const options = given ?? {};
  const known = Object.keys(OPTIONS);
  for (const name of Object.keys(options))
    if (!Object.hasOwn(OPTIONS, name))
      throw new StartRefused(
        'option_unknown',
        `${verb}() has no option ${JSON.stringify(name)}.${didYouMean(name, known) || ` It has ${known.join(', ')}.`}`,
      );
  if (!isJob(definition)) throw new StartRefused('job_unknown', `${verb}() takes a job that was declared with job(name, options).`);
  const jobs = jobsOfTransaction(tx, options.using, verb);
  if (jobs !== undefined && jobs.settings.catalog.find(definition.name) !== definition)
    throw new StartRefused('job_unknown', `No worker would run "${definition.name}": list it in jobs({ jobs: […] }).`);
  checkOptions(options);
  return { tx, definition, jobs, clock: jobs?.clock ?? tx.clock ?? systemClock, options };
}

function jobsOfTransaction(tx: SqlExecutor | null | undefined, using: string | undefined, verb: string): Jobs | undefined {
  if (typeof tx?.query !== 'function' || tx.isTransaction === false)
    throw new StartRefused(
      'no_transaction',
      `${verb}() writes in your own transaction and none is open: call it inside db.transaction(async (tx) => …) with that tx.`,
    );
  const alias = tx.using ?? tx.database?.using;
  if (using !== undefined && alias !== undefined && using !== alias)
    throw new StartRefused(
      'wrong_database',
      `The transaction belongs to the database "${alias}", not to "${using}": a job must be stored where the change is.`,
    );
  const { database } = tx;
  if (database === undefined) return undefined;
  if (database.dialect !== tx.dialect)
    throw new StartRefused(
      'wrong_database',
      `The transaction is on ${tx.dialect}, the database "${database.using}" on ${database.dialect}.`,
    );
  const jobs = findJobs(database);
  if (jobs === undefined)
    throw new StartRefused(
      'not_installed',
      `Jobs are not set up for the database "${database.using}": list it in jobs({ databases: […] }), or start the job in one that is.`,
    );
  return jobs;
}

/** Every fault at once; the code is that of the first. */
function checkOptions({ runAt, delaySeconds, priority, uniqueUntil, ...keys }: StartOptions): void {
  const faults: { readonly code: 'option_invalid' | 'key_invalid'; readonly message: string }[] = [];
  const refuseIf = (isWrong: boolean, message: string): void => {
    if (isWrong) faults.push({ code: 'option_invalid', message });
  };
  refuseIf(runAt !== undefined && !(runAt instanceof Date && isTimestamp(runAt)), 'runAt must be a Date in the years 1 to 9999.');
  refuseIf(
    delaySeconds !== undefined && !(typeof delaySeconds === 'number' && delaySeconds >= 0 && delaySeconds <= 3_155_760_000),
    'delaySeconds must be a number of seconds from 0 to a hundred years.',
  );
  refuseIf(runAt !== undefined && delaySeconds !== undefined, 'Give runAt or delaySeconds, not both.');
  refuseIf(
    priority !== undefined && !(Number.isInteger(priority) && Math.abs(priority) <= PRIORITY_MAX),
    `priority must be an integer from -${PRIORITY_MAX} to ${PRIORITY_MAX}.`,
  );
  refuseIf(
    uniqueUntil !== undefined && uniqueUntil !== 'finished' && uniqueUntil !== 'started',
    'uniqueUntil must be "finished" or "started".',
  );
  refuseIf(uniqueUntil !== undefined && keys.uniqueKey === undefined, 'uniqueUntil needs a uniqueKey.');
  for (const name of ['owner', 'tenantKey', 'uniqueKey', 'serialKey'] as const)
    if (!isKey(keys[name])) faults.push({ code: 'key_invalid', message: `${name} must be a string of 1 to ${KEY_LENGTH_MAX} characters.` });
  const [first] = faults;
  if (first !== undefined) throw new StartRefused(first.code, faults.map(({ message }) => message).join(' '));
}

function isKey(key: unknown): boolean {
  if (key === undefined) return true;
  return typeof key === 'string' && key !== '' && key.length <= KEY_LENGTH_MAX && !key.includes('\0') && key.isWellFormed();
}

/** The text of an input that its schema accepts. What is checked is what is stored: the value as the worker reads it, from JSON. */
export async function checkedInput(definition: JobDefinition, input: unknown, where = ''): Promise<string> {
  const text = serialised(definition, input, where);
  requireValid(definition, input, text, await definition.input['~standard'].validate(jsonValueOf(text)), where);
  return text;
}

function requireValid({ name }: JobDefinition, input: unknown, text: string, result: SchemaResult<unknown>, where = ''): void {
  if (result.issues === undefined) return;
  const said = result.issues.slice(0, 5).map((issue) => issueText(issue));
  const isChanged = !isDeepStrictEqual(input, jsonValueOf(text));
  const hint = isChanged
    ? ' The input is stored as JSON and checked as the worker reads it: a Date is a string there, so declare z.iso.datetime() or z.coerce.date().'
    : '';
  throw new StartRefused('input_invalid', `The input${where} of ${name} does not match its schema: ${said.join('; ')}.${hint}`);
}

/** The value itself is not part of it: it may be a secret. */
export function issueText(issue: SchemaIssue): string {
  const at = stepsOf(issue).join('.');
  return at === '' ? issue.message : `${at}: ${issue.message}`;
}

function serialised({ name }: JobDefinition, input: unknown, where = ''): string {
  const json = jsonTextOf(input);
  if ('fault' in json) throw new StartRefused('input_invalid', `The input${where} of ${name} cannot be stored. ${json.fault}`);
  const { text } = json;
  // PostgreSQL stores no NUL characters; JSON text has them escaped, and lone surrogates too.
  const bytes = Buffer.byteLength(text);
  if (bytes <= PAYLOAD_BYTES_MAX) return text;
  throw new StartRefused(
    'payload_too_large',
    `The input is ${bytes} bytes of JSON; the limit is ${PAYLOAD_BYTES_MAX}. Store it elsewhere and pass a reference.`,
  );
}

function newJob({ definition, clock, options }: CheckedCall, input: string): NewJob {
  const createdAt = clock.now();
  const { delaySeconds = 0, uniqueKey = null, serialKey = null, owner = '', tenantKey = '', priority = 0 } = options;
  const runAt = options.runAt ?? new Date(createdAt.getTime() + Math.round(delaySeconds * 1000));
  return {
    id: uuidv7(clock),
    name: definition.name,
    version: definition.version,
    queue: definition.queue,
    isReady: serialKey === null && runAt <= createdAt,
    input,
    attemptsMax: definition.retry.attempts,
    priority,
    runAt,
    uniqueKey,
    uniqueUntilStarted: options.uniqueUntil === 'started',
    serialKey,
    owner,
    tenantKey,
    createdAt,
    traceparent: null,
    requestId: actingRequestId(),
  };
}

/** The key may become free between the two statements, at most as often as there are other jobs with it. */
const TRIES_MAX = 10;

function* storedOnce(tx: SqlExecutor, jobs: Jobs | undefined, job: NewJob): SqlSteps<StartedJob> {
  const started = (id: string, status: JobStatus, created: boolean): StartedJob => ({ id, status, created, url: jobs?.urlOf(id) ?? null });
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    if (yield* insertJob(tx, job)) return started(job.id, 'queued', true);
    const first = yield* findByUniqueKey(job);
    if (first === undefined) continue;
    if (isSameInput(first.input, job.input)) return started(first.id, first.status as JobStatus, false);
    throw jobErrors.unique_key_reused();
  }
  throw jobErrors.unique_key_taken();
}

/** By value: the order of members says nothing. */
function isSameInput(first: string, second: string): boolean {
  if (first === second || first === '' || second === '') return first === second;
  return canonicalJson(jsonValueOf(first)) === canonicalJson(jsonValueOf(second));
}

function wokenFor({ tx }: CheckedCall, job: NewJob, started: StartedJob): StartedJob {
  if (started.created) wakeAfterCommit(tx, WAKE_CHANNEL, wakePayload(job));
  return started;
}

/** To the queue of another engine, if one runs the jobs. */
async function handedOver({ tx, jobs, definition, options }: CheckedCall, ids: readonly string[]): Promise<void> {
  const queue = jobs?.settings.taskQueue ?? null;
  if (queue === null) return;
  for (const id of ids) await queue.enqueue(tx, id, { queue: definition.queue, priority: options.priority ?? 0 });
}
