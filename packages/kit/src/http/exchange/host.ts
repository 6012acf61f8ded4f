import type { AuditSink } from '../../auth/request/audit-sink.ts';
import type { Viewing } from '../../auth/request/viewing.ts';
import type { Standings } from '../../auth/rights/standing.ts';
import type { Clock } from '../../db/clock.ts';
import type { Database } from '../../db/engine/db.ts';
import type { Replicas } from '../../db/engine/replicas.ts';
import type { Container } from '../../di/container.ts';
import type { ErrorMap } from '../../errors/error-map.ts';
import type { ErrorFormat } from '../../errors/render.ts';
import type { InputLimits } from '../../options/input-limits.ts';
import type { Rule } from '../../permissions/permission.ts';
import type { ThrottleStorage } from '../../throttle/storage.ts';
import type { ThrottleRates } from '../../throttle/throttle.ts';
import type { BlockingWatch } from './blocking-watch.ts';
import type { Log } from '../log.ts';
import type { ResponseChecks } from '../declare/response-checks.ts';
import type { TrustedProxies } from './trusted-proxies.ts';

/** What the request pipeline needs of the app that runs it. */
export interface Host {
  readonly db: Database;
  readonly databases: Readonly<Record<string, Database>>;
  /** Null where no route reads from one. */
  readonly replicas: Replicas | null;
  readonly services: Container;
  readonly clock: Clock;
  /** Null when no module records. */
  readonly audit: AuditSink | null;
  readonly log: Log & { child(bindings: object): Log };
  readonly errorFormat: ErrorFormat;
  readonly responseChecks: ResponseChecks;
  /** The app's own error maps, for requests that match no route. */
  readonly errors: readonly ErrorMap[];
  readonly rules: Readonly<Record<string, Rule>>;
  readonly trustedProxies: TrustedProxies;
  readonly throttleStorage: ThrottleStorage;
  readonly throttleRates: ThrottleRates;
  /** Where requests name their tenant, for errors: "in the header `X-Tenant`". Empty where the app does not declare it. */
  readonly namesTenant: string;
  /** Roles that manage a tenant. Undefined: the app's own tenants do not say. */
  readonly tenantManagers: readonly string[] | undefined;
  /** Whose tenant the exchange acts for. */
  tenantOf(exchange: object): string | null | Promise<string | null>;
  /** Whose tenant an open request would act for by now. Undefined where there are no tenants, or memberships prove them. */
  readonly tenantNow: ((exchange: object) => Promise<string | null>) | undefined;
  /** What the callers of open streams may still do in the tenants that their requests proved. */
  readonly standings: Standings;
  /** Members of staff who look as a user. Null: nobody does. */
  readonly viewing: Viewing | null;
  readonly blocking: BlockingWatch;
  readonly inputLimits: InputLimits;
  /** Aborted when the server begins to stop: streams end now, ordinary requests may finish. */
  readonly draining: AbortSignal;
  /** Aborted when the server must not wait for open requests any longer. */
  readonly stopping: AbortSignal;
  /** Work that outlives its request and that shutdown waits for. */
  track(work: Promise<unknown>): void;
}
