import { type Clock } from '../clock.ts';
import type { QueryObserver } from '../engine/query-observer.ts';
import type { DbLog } from '../log.ts';
import type { DataKeys, DataKeySettings } from '../sealing/data-keys.ts';
import type { OptionRules } from '../../options/read-options.ts';
import { aFunction, clock, filledText, flag, milliseconds, objectWith, oneOf, wholeNumber } from '../../options/value-rule.ts';

export interface DatabaseOptions {
  /** The alias under which code finds it: `currentTransaction('reports')`. */
  readonly name?: string;
  /** PostgreSQL connections at most. */
  readonly poolMax?: number;
  /**
   * What a commit on SQLite survives. `normal` (default): a crash of the process; a power loss may take the last commits.
   * `full`: a power loss too, at the price of one sync to disk per commit.
   */
  readonly durability?: 'normal' | 'full';
  /** False: no named prepared statements, for poolers that cannot keep them. */
  readonly prepare?: boolean;
  /** How long a statement waits for the writer (SQLite) or a free connection (PostgreSQL) before it is refused. */
  readonly waitMsMax?: number;
  /** PostgreSQL: how long opening a connection may take; with several hosts, each. `connect_timeout` of the URL takes precedence. */
  readonly connectMsMax?: number;
  /**
   * PostgreSQL: how long a statement may be without an answer before the server is asked, over a new connection, whether it works on it. A
   * connection whose server is gone is closed. 0: the server is not asked.
   */
  readonly silenceMsMax?: number;
  /** PostgreSQL: an older connection is closed when it comes back, so that one opens where the address leads now. */
  readonly connectionAgeMsMax?: number;
  /**
   * PostgreSQL: after so long without traffic the system asks whether the other side is there, each second, 10 times. 0: never.
   * `keepalives_idle` and `keepalives=0` of the URL take precedence.
   */
  readonly keepAliveMs?: number;
  /** Percent of the connections that one caller's reads may have when they can take long. Default: 50; at least one connection. */
  readonly callerPercent?: number;
  /** Such reads of one caller that may wait for its share; one more is 503 `too_busy`. Default: 20. */
  readonly callerWaitingMax?: number;
  /** PostgreSQL: no statement of these connections runs longer, whoever sent it. Default: as the server, or the role, has it. Behind a pooler set it on the role. */
  readonly statementMsMax?: number;
  /** False: a SQLite file that does not exist is not created; the database is then empty and in memory. */
  readonly createFile?: boolean;
  /** The keys of encrypted columns, for programs without an app: an app reads DATA_KEYS and DATA_SEARCH_KEYS itself. */
  readonly dataKeys?: DataKeySettings | DataKeys;
  /** The time. Default: the system clock. */
  readonly clock?: Clock;
  /** Called after each statement, with its text and duration. */
  readonly onQuery?: QueryObserver;
  /** Where warnings and errors are written. Default: nowhere. */
  readonly log?: DbLog;
}

export const databaseRules: OptionRules<DatabaseOptions> = {
  name: filledText,
  poolMax: wholeNumber(1),
  durability: oneOf('normal', 'full'),
  prepare: flag,
  waitMsMax: milliseconds(0),
  connectMsMax: milliseconds(1),
  silenceMsMax: milliseconds(0),
  connectionAgeMsMax: milliseconds(1),
  keepAliveMs: milliseconds(0),
  callerPercent: wholeNumber(1, 100),
  callerWaitingMax: wholeNumber(0),
  statementMsMax: milliseconds(1),
  createFile: flag,
  dataKeys: objectWith('{ keys, searchKeys }'),
  clock,
  onQuery: aFunction,
  log: objectWith('a log with warn and error, such as pino()', 'warn', 'error'),
};

/** How long a statement waits for the writer or a connection unless the options say otherwise. */
export const WAIT_MS_MAX = 10_000;
