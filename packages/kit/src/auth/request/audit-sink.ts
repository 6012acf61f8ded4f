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
  /**
   * The id of the tenant that the change belongs to: its owners can read the entry, and it is erased with the tenant. Default: none; an entry that a
   * handler records has the tenant of its request.
   */
  readonly tenant?: string | null;
}

/** Whose values are dropped from the entries: each names some, and entries of any of them are erased. */
export interface AuditErasure {
  /** What is erased, for the entry `audit.erased`: an id, never a name. */
  readonly target_type: string;
  readonly target_id: string;
  /** Entries of this tenant. */
  readonly tenant?: string;
  /** Entries of what this user did. */
  readonly actorId?: string;
  /** Entries about these records. */
  readonly records?: { readonly type: string; readonly ids: readonly string[] };
  /** Who erases; a program by its name. The entry that says so is kept. */
  readonly by?: AuditEntry['actor'];
}

/** What became of the entries. */
export interface ErasedEntries {
  readonly erased: number;
  /** Entries of releases whose hash covers the values themselves: they stay as they are, until they are pruned. */
  readonly kept: number;
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
  /**
   * Drops the values, names and request ids of entries; who acted, what was done and to which id stay, and the chain stays whole. In batches, each a
   * transaction with an entry `audit.erased` that names the places: killed at any moment, it goes on with the next call. Entries that are recorded
   * while it runs are erased, too.
   */
  erase?(db: Db, erasure: AuditErasure): Promise<ErasedEntries>;
}
