import type { AuditEntry, AuditSink } from '../../auth/request/audit-sink.ts';
import type { GroupDirectory } from '../../auth/people/group-directory.ts';
import type { IdentityDirectory } from '../../auth/people/identity-directory.ts';
import type { ServiceUserSource, UsersWithoutLogin } from '../../auth/request/service-users.ts';
import type { SessionTenants } from '../../auth/people/session-tenants.ts';
import type { UserRegistration } from '../../auth/people/user-registration.ts';
import type { Viewing } from '../../auth/request/viewing.ts';
import type { Standings } from '../../auth/rights/standing.ts';
import type { Db } from '../../db/engine/db.ts';
import type { SqlExecutor } from '../../db/engine/foreign/sql-executor.ts';
import type { EventHandler } from '../../events/event-handler.ts';
import type { MetricRegistry } from '../../observe/metric-registry.ts';
import type { AccountRoutes, TenantRoutes } from './account-routes.ts';
import type { LoginProvider } from './login-provider.ts';
import type { AppTenants } from '../tenants/tenant-directory.ts';
import { standingsOf } from './standing.ts';

/** Where modules meet without importing one another: what the modules of an application provide (see `provides` of Module). */
export interface Registry {
  /** Null: nothing is recorded. */
  readonly audit: AuditSink | null;
  /** Null: nothing is published. */
  readonly events: EventPublisher | null;
  /** Null: handlers of domain events cannot be durable. */
  readonly jobs: DurableHandlers | null;
  /** Where the modules declare their metrics; see `metrics` of Module. */
  readonly metrics: MetricRegistry | null;
  /** Null: there are no groups. */
  readonly groups: GroupDirectory | null;
  /** Null: nobody logs in with a browser. What `createApp({ login })` was given, else the `login` of a module. */
  readonly login: LoginProvider | null;
  /** Null: users of identity providers cannot be provisioned. */
  readonly identities: IdentityDirectory | null;
  /** Null: sessions do not remember a tenant. */
  readonly sessionTenants: SessionTenants | null;
  /** Null: nobody creates an account with an invitation. */
  readonly registration: UserRegistration | null;
  /** Null: users without a login cannot be made. */
  readonly usersWithoutLogin: UsersWithoutLogin | null;
  /** Null: nobody looks at the application as somebody else. */
  readonly viewing: Viewing | null;
  /** Null: there are no service users. */
  readonly serviceUsers: ServiceUserSource | null;
  /** Null: nobody counts the quotas of credentials, and none can be set. */
  readonly quotas: RequestQuotas | null;
  /** Null: pages for people have no login that they could call. */
  readonly accountRoutes: AccountRoutes | null;
  /** Null: pages for people know no tenants. */
  readonly tenantRoutes: TenantRoutes | null;
  /** Whether a person may still act, in a tenant or in general. Never null: without users and tenants it knows nobody. */
  readonly standings: Standings;
  /** The tenants of the app. Never null: an app without tenants says so. */
  readonly tenants: AppTenants;
  /** Called in the transaction that deletes a group. */
  readonly groupChanges: readonly GroupChangeListener[];
  /** Called in the transaction by everything that changes users (activates, deactivates, deletes). */
  readonly userChanges: readonly UserChangeListener[];
  /** Called in a transaction by everything that removes users from tenants. */
  readonly memberChanges: readonly MemberChangeListener[];
}

/** What `provides` of a module may return. */
export type ProvidedRegistry = Partial<Omit<Registry, 'login' | 'standings' | 'tenants'>>;

/** Requests that are counted by calendar period. The requests module provides it. */
export interface RequestQuotas {
  /** What a key used in the periods that are under way. */
  usageOfKey(db: Db, keyId: string): Promise<readonly PeriodUsage[]>;
  /** How much each of these tenants is used, for lists of tenants. */
  useOfTenants(db: Db, tenants: readonly string[]): Promise<ReadonlyMap<string, TenantUse>>;
}

/** What the request log has of a tenant. */
export interface TenantUse {
  /** Of the last 30 days. */
  readonly requests: number;
  /** Of the newest request in the log. */
  readonly lastAt: Date | null;
}

/** Requests that were counted in a period. */
export interface PeriodUsage {
  readonly period: string;
  readonly from: Date;
  readonly until: Date;
  readonly used: number;
  /** Null: only counted. */
  readonly quota: number | null;
}

/** Runs durable handlers of domain events. The jobs module provides one. */
export interface DurableHandlers {
  /** Stores a handler's work in the caller's transaction. */
  start(tx: SqlExecutor, handler: EventHandler, data: unknown): Promise<unknown>;
}

export type GroupChangeListener = (tx: Db, groupId: string) => Promise<void>;

/** Who changed the user, and in which request: for the audit entries of what follows. */
export interface UserChange {
  readonly by: AuditEntry['actor'];
  readonly requestId: string | null;
}

/** A user that the directory no longer finds was deleted. */
export type UserChangeListener = (tx: Db, userId: string, change?: UserChange) => Promise<void>;

/** A user who is no longer a member of a tenant. */
export interface FormerMember {
  readonly userId: string;
  readonly tenant: string;
}

export type MemberChangeListener = (tx: Db, former: FormerMember, change?: UserChange) => Promise<void>;

/** What happened, and its audience: exactly one of `owner`, `tenantKey` (or both together) and `broadcast`. */
export interface EventEntry {
  readonly type: string;
  readonly data: object;
  readonly owner?: string;
  readonly tenantKey?: string;
  readonly broadcast?: true;
  /** Events with the same key are delivered to an endpoint in the order they were published. */
  readonly orderingKey?: string;
}

/** Where events go. The webhooks module provides one. */
export interface EventPublisher {
  /** Aliases of the databases that events can be published in; undefined: in all. */
  readonly databases?: readonly string[];
  /** Stores the events in the caller's transaction, with one statement (two on SQLite). An empty list does nothing. */
  publish(tx: Db, events: readonly EventEntry[]): Promise<unknown>;
  /** Removes the events about records whose data is erased, whoever they were for, in the caller's transaction: those with the ordering key `type:id`. */
  erase?(tx: Db, records: { readonly type: string; readonly ids: readonly string[] }): Promise<void>;
}

export const emptyRegistry: Registry = Object.freeze({
  audit: null,
  events: null,
  jobs: null,
  metrics: null,
  groups: null,
  login: null,
  identities: null,
  sessionTenants: null,
  registration: null,
  usersWithoutLogin: null,
  serviceUsers: null,
  viewing: null,
  quotas: null,
  accountRoutes: null,
  tenantRoutes: null,
  standings: standingsOf({ users: null, tenants: {} }),
  tenants: { exist: false, directory: null },
  groupChanges: [],
  userChanges: [],
  memberChanges: [],
});
