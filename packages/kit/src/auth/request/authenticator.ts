import type { Clock } from '../../db/clock.ts';
import type { Db } from '../../db/engine/db.ts';
import type { ErrorDefinition } from '../../errors/catalog.ts';
import type { MetricRegistry } from '../../observe/metric-registry.ts';
import type { IdentityDirectory } from '../people/identity-directory.ts';
import type { Principal } from '../people/principal.ts';

/** What an authenticator may look at: never the body, which has not been read when it runs. */
export interface AuthRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly clientAddress: string;
  readonly db: Db;
}

type Answer<T> = T | Promise<T>;

/** What an authenticator may use of the app that it is given to. */
export interface AuthenticatorHost {
  readonly clock: Clock;
  readonly log: { info(details: object, message: string): void; warn(details: object, message: string): void };
  /** Null without metrics(). */
  readonly metrics: MetricRegistry | null;
  /** Null without a module that stores identities, such as accounts(). */
  readonly identities: IdentityDirectory | null;
  /** The URLs of API_SERVERS: how clients address the app. */
  readonly servers: readonly string[];
  /** True for the first call with this key within the time, in all processes that share the throttle storage of the app. */
  firstUse(key: string, forMs: number): Promise<boolean>;
  /** Random bytes that all processes of the app share, made when they are first asked for. */
  secret(name: string): Promise<Uint8Array>;
}

/** A route of the app, as far as an authenticator decides about calls of it. Each route is one object. */
export interface CalledRoute {
  readonly method: string;
  /** Those that its requests are accepted from. */
  readonly authenticators: readonly { readonly name: string }[];
}

export interface Authenticator {
  /** Unique in the app; routes choose a subset by it, OpenAPI names the security scheme after it. */
  readonly name: string;
  /** Its `WWW-Authenticate` challenge, e.g. `Bearer realm="api"`, or one of each scheme that it accepts. Default: `Session realm="api"`. */
  readonly challenge?: string | readonly string[] | undefined;
  /** The OpenAPI security scheme object. */
  readonly securityScheme: Readonly<Record<string, unknown>>;
  /** Authorization servers whose access tokens it accepts, for clients that look for where to get one (RFC 9728). */
  readonly issuers?: readonly string[] | undefined;
  /** How clients ask one of its issuers for a scope of the app. Undefined: not known. Default: as the app does. */
  scopeAtIssuer?(scope: string, issuer: string): string | undefined;
  /** The errors that `authenticate` throws, for the OpenAPI document. Default: `invalid_credentials`. */
  readonly raises?: readonly ErrorDefinition[] | undefined;
  /**
   * `null`: the request carries no credential of this kind, the next authenticator is asked.
   * Throws a KitError of status 401: a credential was presented and is bad.
   * Answering without a promise avoids a turn of the event loop.
   */
  authenticate(request: AuthRequest): Answer<Principal | null>;
  /**
   * For pages that call routes for the person who looks at them. A request with the credential reaches only the routes that name this authenticator in `auth`;
   * a call that such a route makes for it reaches the routes for which this says true, and no other. Default: requests reach every route without `auth`.
   */
  callsRoute?(route: CalledRoute, principal: Principal): boolean;
  /**
   * Set by authenticators whose credential the browser sends by itself (cookies). Called after they authenticated an unsafe request
   * (not GET, HEAD, OPTIONS or QUERY), unless the route says `csrf: false`; throws `csrf_failed` when the request does not prove its origin.
   */
  verifyCsrf?(request: AuthRequest, principal: Principal): Answer<void>;
  /**
   * The principals of these credentials as they are now, by `credentialId`. Leaves out what was revoked, has expired or belongs to an inactive
   * user. Called twice a second for the callers of all open event streams together, so it should be one statement. Without it, one
   * request of each credential is authenticated again.
   */
  principalsOf?(db: Db, credentialIds: readonly string[]): Promise<ReadonlyMap<string, Principal>>;
  /** Called once while the app is created, without I/O. What it throws stops the start. */
  install?(host: AuthenticatorHost): void;
  /** What `ready` of HealthController reports for it, by name. `{ warning }` reports a problem that does not stop the work. */
  readonly healthChecks?: Readonly<Record<string, (context: { readonly signal: AbortSignal }) => unknown>>;
}
