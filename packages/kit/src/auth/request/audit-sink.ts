import type { Db } from '../../db/engine/db.ts';
import type { Principal, User } from '../people/principal.ts';

/** Who did what to which object. */
export interface AuditEntry {
  /** A string names a program, such as a command. Without one: the caller of the request whose handler records it, else unknown. */
  readonly actor?: Principal | User | string | null;
  readonly action: string;
  readonly target_type: string;
  readonly target_id: string;
  readonly before?: object | null;
  readonly after?: object | null;
  readonly request_id?: string | null;
  readonly metadata?: object;
}

const maskedRows = new WeakSet<object>();

/** Marks `before` or `after` of an entry whose sensitive members are masked already, by their place in a schema: the names of its members say nothing more. */
export function maskedByPlace<R extends object>(row: R): R {
  maskedRows.add(row);
  return row;
}

export function isMaskedByPlace(row: object): boolean {
  return maskedRows.has(row);
}

/** Where audit entries go. The audit module provides one. */
export interface AuditSink {
  /** Aliases of the databases whose changes it can record; undefined: of all. */
  readonly databases?: readonly string[];
  /**
   * Writes the entries in the caller's transaction, with one statement: they exist exactly when the change does. Outside a transaction the
   * entries are a transaction of their own. An empty list does nothing. On PostgreSQL they go out with the next statement or the commit: an entry
   * that cannot be written fails these, and with them the change.
   */
  record(tx: Db, entries: readonly AuditEntry[]): Promise<void>;
}
