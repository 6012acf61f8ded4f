import type { Clock } from '../../db/clock.ts';
import type { Database } from '../../db/db.ts';
import type { Dialect } from '../../db/dialect.ts';

/** A parameter of the statements that run on foreign transactions: nothing that two drivers bind differently. */
export type SqlParameter = string | number | null;

/**
 * Somebody's open transaction, as `publish` needs it. The kit's own handles are executors already; the adapters make one
 * from the transaction of another library.
 */
export interface SqlExecutor {
  readonly dialect: Dialect;
  /** The alias of the kit database that this transaction belongs to. */
  readonly using?: string;
  /** The kit's handle on the same database, whose webhook settings and clock then apply. */
  readonly database?: Database;
  readonly clock?: Clock;
  /** False when there is no open transaction; refused then. Unknown counts as open. */
  readonly isTransaction?: boolean;
  /** Runs one statement with `$1` placeholders (each used once or more) and returns its rows. */
  query<R>(text: string, parameters: readonly SqlParameter[]): Promise<R[]>;
  /** Runs the callback after the outermost transaction has committed. Absent where the library offers no such hook. */
  afterCommit?(callback: () => unknown): void;
}
