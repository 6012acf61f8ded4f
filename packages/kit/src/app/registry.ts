import type { AuditSink } from '../auth/audit-sink.ts';
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

export interface EventPublisher {
  publish(
    tx: Db,
    type: string,
    data: object,
    audience: { readonly owner?: string; readonly tenantKey?: string; readonly broadcast?: true },
  ): Promise<unknown>;
}
