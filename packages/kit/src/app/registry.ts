import type { Principal, User } from '../auth/principal.ts';
import type { Db } from '../db/db.ts';
import type { MetricRegistry } from '../observe/metric-registry.ts';

/** Where modules meet without importing one another: each slot is filled by the module that provides it, or stays null (then nobody records). */
export interface Registry {
  audit: AuditSink | null;
  events: EventPublisher | null;
  /** Where the modules declare their metrics; see `metrics` of Module. */
  metrics: MetricRegistry | null;
  /** Whoever changes users (activates, deactivates, deletes) calls these in the transaction; whoever remembers users adds one. */
  readonly userChanges: UserChangeListener[];
}

export type UserChangeListener = (tx: Db, userId: string) => Promise<void>;

export interface AuditEntry {
  readonly actor?: Principal | User | string | null;
  readonly action: string;
  readonly target_type: string;
  readonly target_id: string;
  readonly before?: object | null;
  readonly after?: object | null;
  readonly request_id?: string | null;
  readonly metadata?: object;
}

export interface AuditSink {
  /** Writes in the caller's transaction: the entry exists exactly when the change does. */
  record(tx: Db, entry: AuditEntry): Promise<void>;
}

export interface EventPublisher {
  publish(
    tx: Db,
    type: string,
    data: object,
    audience: { readonly owner?: string; readonly tenantKey?: string; readonly broadcast?: true },
  ): Promise<unknown>;
}
