// The program of a reader: a process with one read-only connection, started by a `Reader`. It does one order at a time. A thread of its own,
// `stop-thread`, receives the number of the statement to stop, because nothing else is received while SQLite runs.
import { flushCompileCache } from 'node:module';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { isKitError } from '../../../../errors/kit-error.ts';
import { retryWhileBusy } from '../busy.ts';
import { SqliteConnection, StatementStopped } from '../connection.ts';
import type { RowDecoder } from '../row-decoder.ts';
import type { ReaderAnswer, ReaderFailure, ReaderOrder } from './reader-message.ts';

const [file = '', durability, busyDeadlineMs] = process.argv.slice(2);

// The parent decides when this process ends: a terminal and service managers signal every process of the group.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('disconnect', () => process.exit());

const stopped = new Int32Array(new SharedArrayBuffer(4));
new Worker(new URL(`./stop-thread${extname(import.meta.url)}`, import.meta.url), { workerData: stopped, execArgv: [] }).unref();

/** The statement that runs. */
let running = 0;
/** Of the open statement. */
let rows: Iterator<unknown[]> | undefined;
let columns: string | undefined;

const opened = whileBusy(
  () =>
    new SqliteConnection(file, {
      readOnly: true,
      durability: durability === 'full' ? 'full' : 'normal',
      isStopped,
    }),
);
// A file that cannot be opened is the failure of each order.
opened.catch(() => undefined);

const texts = new WeakMap<RowDecoder, string>();

process.on('message', (order: ReaderOrder) => {
  if (order.kind === 'close') return close();
  if (order.kind === 'forget') return void opened.then((connection) => connection.forgetStatements()).catch(() => undefined);
  void answer(order).then(send, (error: unknown) => send({ failure: failureOf(error) }));
});
flushCompileCache();

async function answer(order: Exclude<ReaderOrder, { kind: 'close' | 'forget' }>): Promise<ReaderAnswer> {
  const connection = await opened;
  running = order.number;
  if (isStopped()) throw new StatementStopped();
  if (order.kind === 'next') return next(order.size);
  if (order.kind === 'open') {
    const result = connection.open(order.text, order.values);
    columns = textOf(result.decoder);
    rows = result.rows[Symbol.iterator]();
    return next(order.size);
  }
  const result = await whileBusy(() => connection.read(order.text, order.values));
  if (typeof result === 'number') throw new Error('A reader received a statement without a result.');
  return { columns: textOf(result.decoder), rows: result.rows };
}

function next(size: number): ReaderAnswer {
  const chunk: unknown[] = [];
  while (rows !== undefined && chunk.length < size) {
    const step = nextRow(rows);
    if (step.done === true) rows = undefined;
    else chunk.push(step.value);
  }
  return { ...(columns !== undefined && { columns }), rows: chunk };
}

/** A statement that failed would begin again with the next step. */
function nextRow(from: Iterator<unknown[]>): IteratorResult<unknown[]> {
  try {
    return from.next();
  } catch (error) {
    rows = undefined;
    throw error;
  }
}

function isStopped(): boolean {
  return Atomics.load(stopped, 0) === running;
}

function close(): void {
  rows?.return?.();
  rows = undefined;
}

function textOf(decoder: RowDecoder | undefined): string {
  if (decoder === undefined) throw new Error('A reader received a statement without a result.');
  let text = texts.get(decoder);
  if (text === undefined) texts.set(decoder, (text = JSON.stringify(decoder.columns)));
  return text;
}

function whileBusy<R>(attempt: () => R): Promise<R> {
  return retryWhileBusy(attempt, Number(busyDeadlineMs));
}

function failureOf(error: unknown): ReaderFailure {
  // The parent translates it.
  const source = isKitError(error) ? (error.cause ?? error) : error;
  const { message, code, errcode, errstr } = source as ReaderFailure;
  return { message, code, errcode, errstr };
}

function send(message: ReaderAnswer): void {
  // The parent is gone when this fails, and `disconnect` ends the process.
  process.send?.(message, undefined, undefined, () => undefined);
}
