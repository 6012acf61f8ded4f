import type pg from 'pg';
import type { QueryOptions, StatementResult } from '../engine.ts';
import { dbErrors } from '../../errors.ts';
import type { LongStatement } from '../long-statement.ts';
import { sendCancelRequest } from './cancel-request.ts';
import { driverStatement, type QuerySettings, toResult } from './client-queries.ts';
import { type DriverResult, PrecededQuery } from './statement-query.ts';

/** A server that has not ended a statement this long after its deadline does not answer any more. */
const GRACE_MS = 2_000;
/** How often a backend looks whether its client is still there, while it runs a statement. */
const CLIENT_CHECK_MS = 1_000;

interface LongStatementsOptions {
  readonly acquire: () => Promise<pg.PoolClient>;
  readonly release: (client: pg.PoolClient, failure: unknown) => void;
  readonly settings: QuerySettings;
}

/**
 * Statements that may be long, each alone on a connection. The deadline travels with the statement, under one Sync: PostgreSQL makes one
 * transaction of the two, in which `set_config(…, true)` holds, so nothing of it is left on a connection that a pooler gives to another client. When
 * nobody waits for the rows any longer the server is asked to stop, and the connection is closed: a request that came late must not end the
 * next statement.
 */
export class LongStatements {
  readonly #options: LongStatementsOptions;
  #checksClients: boolean | undefined;

  constructor(options: LongStatementsOptions) {
    this.#options = options;
  }

  async run(text: string, parameters: readonly unknown[], options: QueryOptions, long: LongStatement): Promise<StatementResult> {
    const { acquire, release, settings: querySettings } = this.#options;
    const statement = driverStatement(querySettings, text, parameters, options);
    const begin = performance.now();
    const client = await acquire();
    let failure: unknown;
    try {
      this.#checksClients ??= await canCheckClients(client);
      // It waited for a connection and nobody waits for it: it is not sent.
      long.signal?.throwIfAborted();
      const leftMs = Math.max(1, Math.ceil(long.deadlineMs - (performance.now() - begin)));
      const settings = [...(this.#checksClients ? [CLIENT_CHECK] : []), ...(long.isOneOfSeveral === true ? [ONE_PROCESS] : [])];
      const first = deadlineStatement(leftMs, settings);
      const answered = new Promise<DriverResult>((resolve, reject) => {
        client.query(new PrecededQuery(first, statement, (error, result) => (error ? reject(error) : resolve(result))));
      });
      return toResult(await this.#bounded(client, answered, leftMs, long, (reason) => (failure = reason)));
    } catch (error) {
      failure ??= error;
      throw error;
    } finally {
      release(client, failure);
    }
  }

  /** Asks the server to end what a connection runs. Returns why the connection is closed and not used again. */
  cancel(client: pg.PoolClient, reads = 'the statement'): Error {
    void sendCancelRequest(client);
    return dbErrors.database_unavailable({ message: `${reads} was cancelled` });
  }

  /** The answer. A server that does not give it a little after the deadline loses the connection. */
  async inTime<T>(client: pg.PoolClient, answer: Promise<T>, leftMs: number, reads = 'the statement'): Promise<T> {
    const timer = setTimeout(() => {
      const message = `the server did not answer ${reads} ${GRACE_MS} ms after its deadline`;
      client.connection.stream.destroy(dbErrors.database_unavailable({ message }));
    }, leftMs + GRACE_MS);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Waits for the answer. `spoil` tells why the connection cannot be used again. */
  async #bounded(
    client: pg.PoolClient,
    answered: Promise<DriverResult>,
    leftMs: number,
    { signal, reads }: LongStatement,
    spoil: (reason: Error) => void,
  ): Promise<DriverResult> {
    const cancel = (): void => spoil(this.cancel(client, reads));
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      return await this.inTime(client, answered, leftMs, reads);
    } catch (error) {
      throw signal?.aborted === true ? signal.reason : error;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }
}

/** A shorter limit of the role, or of the transaction, stays. */
const DEADLINE = `set_config('statement_timeout', case when current_setting('statement_timeout')::interval > '0' and
  current_setting('statement_timeout')::interval < $1::text::interval then current_setting('statement_timeout') else $1 end, true)`;
const CLIENT_CHECK = `set_config('client_connection_check_interval', '${CLIENT_CHECK_MS}', true)`;
/** A read in parallel takes two more processes of the server: the processors would go to those who have the most reads. */
const ONE_PROCESS = `set_config('max_parallel_workers_per_gather', '0', true)`;

/** Limits the statements behind it, up to the end of the transaction. */
export function deadlineStatement(leftMs: number, settings: readonly string[] = []): { readonly text: string; readonly values: string[] } {
  return { text: `select ${[DEADLINE, ...settings].join(', ')}`, values: [`${Math.ceil(leftMs)}ms`] };
}

/** PostgreSQL 14 and newer, where the server's operating system can tell. */
async function canCheckClients(client: pg.PoolClient): Promise<boolean> {
  try {
    await client.query(`select ${CLIENT_CHECK}`);
    return true;
  } catch (error) {
    // What the server refuses has a code; a lost connection is the statement's failure.
    if (typeof (error as { code?: unknown }).code === 'string' && /^[0-9A-Z]{5}$/.test((error as { code: string }).code)) return false;
    throw error;
  }
}
