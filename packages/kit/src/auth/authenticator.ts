import type { ErrorDefinition } from '../errors/catalog.ts';
import type { Db } from '../db/db.ts';
import type { Principal } from './principal.ts';

/** What an authenticator may look at: never the body, which has not been read when it runs. */
export interface AuthRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly clientAddress: string;
  readonly db: Db;
}

type Answer<T> = T | Promise<T>;

export interface Authenticator {
  /** Unique in the app; routes choose a subset by it, OpenAPI names the security scheme after it. */
  readonly name: string;
  /** One `WWW-Authenticate` challenge, e.g. `Bearer realm="api"`. Cookie schemes have none. */
  readonly challenge?: string | undefined;
  /** The OpenAPI security scheme object. */
  readonly securityScheme: Readonly<Record<string, unknown>>;
  /** The errors that `authenticate` throws, for the OpenAPI document. Default: `invalid_credentials`. */
  readonly raises?: readonly ErrorDefinition[] | undefined;
  /**
   * `null`: the request carries no credential of this kind, the next authenticator is asked.
   * Throws a KitError of status 401: a credential was presented and is bad.
   * Answering without a promise avoids a turn of the event loop.
   */
  authenticate(request: AuthRequest): Answer<Principal | null>;
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
}
