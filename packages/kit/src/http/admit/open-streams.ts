import { AsyncLocalStorage } from 'node:async_hooks';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import type { Membership } from '../../auth/people/membership.ts';
import type { Principal } from '../../auth/people/principal.ts';
import { inTime } from '../../auth/rights/in-time.ts';
import { settledStandings } from '../../auth/rights/settled-standings.ts';
import { withStaffRights } from '../../auth/rights/staff-rights.ts';
import type { Db } from '../../db/engine/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import type { PermissionContext } from '../../permissions/permission.ts';
import { viewedNow } from './viewing.ts';
import { CallerCounts } from '../exchange/caller-counts.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Host } from '../exchange/host.ts';

/** How often the callers of open streams are looked up: a revoked credential ends its streams within a second. */
const LOOK_EVERY_MS = 500;
const RETRY_AFTER_SECONDS = 10;

/** The callers of all streams are looked up together: not as part of the request that came first. */
const outsideOfRequests = AsyncLocalStorage.snapshot();

/**
 * The event streams and exports of one app that are open in this process. An ordinary request is over before its credential changes; a stream would
 * outlive it, so the callers of all streams are looked up together, and streams end whose caller has lost the credential, has changed, or has left
 * the tenant that the stream was opened in. Callers that cannot be looked up keep their streams; the others are looked up all the same.
 */
export class OpenStreams {
  readonly #host: Host;
  readonly #streams = new Set<Exchange>();
  readonly #counts = new CallerCounts();
  #timer: NodeJS.Timeout | undefined;
  readonly #looking = new Set<object>();

  constructor(host: Host) {
    this.#host = host;
  }

  /** Counts a stream until the returned function is called. Throws when its caller has too many. */
  add(exchange: Exchange): () => void {
    const max = this.#host.inputLimits.streamsPerCaller;
    const done = this.#counts.add(exchange, max);
    if (done === undefined)
      throw coreErrors.too_many_streams({
        headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
        extensions: { streams_max: max },
      });
    const end = this.watch(exchange);
    return () => {
      done();
      end();
    };
  }

  /** Looks at the caller of a response that takes long, until the returned function is called, once or more. */
  watch(exchange: Exchange): () => void {
    this.#streams.add(exchange);
    this.#timer ??= outsideOfRequests(() => setInterval(() => this.#look(), LOOK_EVERY_MS).unref());
    return () => this.#remove(exchange);
  }

  #remove(exchange: Exchange): void {
    this.#streams.delete(exchange);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    const known = [...this.#streams].filter(({ principal }) => principal !== null);
    for (const [authenticator, streams] of Map.groupBy(known, (exchange) => exchange.authenticator))
      if (authenticator !== null) void this.#alone(authenticator, () => this.#endInvalid(authenticator, streams));
    void this.#alone(this.#host, () => this.#endOfFormerMembers([...this.#streams]));
    void this.#alone(this.#counts, () => this.#endMoved([...this.#streams]));
  }

  /** One look of a kind at a time: a slow database must not collect them, and an authenticator or a resolver that fails or hangs must not keep others from theirs. */
  async #alone(kind: object, look: () => Promise<void>): Promise<void> {
    if (this.#looking.has(kind)) return;
    this.#looking.add(kind);
    try {
      await look();
    } catch (error) {
      this.#noteFailure(error);
    } finally {
      this.#looking.delete(kind);
    }
  }

  /** The database or a service did not answer: that says nothing about the callers. */
  #noteFailure(error: unknown): void {
    this.#host.log.warn({ err: error }, 'could not look up the callers of open streams');
  }

  /** See {@link requireStillAdmitted}. */
  async requireStillAdmitted(exchange: Exchange, tx: Db): Promise<void> {
    const { authenticator, principal, route } = exchange;
    const db = tx.database === this.#host.db ? tx : this.#host.db;
    if (principal !== null && authenticator !== null) {
      await this.#endInvalid(authenticator, [exchange], db);
      await this.#endMoved([exchange]);
      await this.#endOfFormerMembers([exchange], db);
    }
    exchange.signal.throwIfAborted();
    const context = contextOn(db, exchange);
    if (route !== null && (await route.permission.evaluate(context)) === false) throw await route.permission.denial(context);
  }

  async #endInvalid(authenticator: Authenticator, streams: readonly Exchange[], db: Db = this.#host.db): Promise<void> {
    const current = await currentPrincipals(db, authenticator, streams, (error) => this.#noteFailure(error));
    for (const exchange of streams) {
      const now = await viewedNow(exchange, current.get(exchange));
      if (now === undefined || exchange.signal.aborted) continue;
      if (now === null || !isSame(exchange.principal, now))
        exchange.abort(coreErrors.invalid_credentials({ detail: 'The credential of this stream has been revoked or changed.' }));
      // The tenant may follow from what the credential says now.
      else if (exchange.isTenantAsked) exchange.principal = now;
    }
  }

  /** A caller who keeps the credential may be in another tenant by now. Where memberships are declared, they decide. */
  async #endMoved(streams: readonly Exchange[]): Promise<void> {
    const { tenantNow } = this.#host;
    if (tenantNow === undefined) return;
    for (const exchange of streams) {
      if (!exchange.isTenantAsked || exchange.principal === null || exchange.signal.aborted) continue;
      try {
        const tenant = await inTime('the tenant', Promise.resolve(tenantNow(exchange)));
        if (tenant !== exchange.knownTenant)
          exchange.abort(coreErrors.permission_denied({ detail: 'You are in another tenant now. Open the stream again.' }));
      } catch (error) {
        if (isKitError(error) && error.status < 500) exchange.abort(error);
        else this.#noteFailure(error);
      }
    }
  }

  /** A caller who leaves the tenant, or gets other roles there, keeps the credential: the stream ends all the same. */
  async #endOfFormerMembers(streams: readonly Exchange[], db: Db = this.#host.db): Promise<void> {
    const proved = streams.filter(
      ({ principal, knownMembership, signal }) => principal !== null && knownMembership !== null && !signal.aborted,
    );
    const { standings } = this.#host;
    const asked = proved.flatMap(({ principal, knownTenant: tenant }) =>
      principal === null ? [] : [{ userId: principal.user.id, tenant, principal }],
    );
    const settled = await settledStandings(standings, db, asked);
    let failure: unknown;
    for (const [index, exchange] of proved.entries()) {
      const found = settled[index];
      if (found?.status !== 'fulfilled') failure ??= found?.reason;
      else if (!found.value.ok) exchange.abort(found.value.why === 'suspended' ? coreErrors.tenant_suspended() : coreErrors.not_a_member());
      else if (!hasSameRoles(exchange.knownMembership, found.value.membership))
        exchange.abort(coreErrors.permission_denied({ detail: 'Your roles in this tenant have changed.' }));
    }
    if (failure !== undefined) this.#noteFailure(failure);
  }
}

const openStreams = new WeakMap<Host, OpenStreams>();

export function openStreamsOf(host: Host): OpenStreams {
  const known = openStreams.get(host) ?? new OpenStreams(host);
  openStreams.set(host, known);
  return known;
}

/**
 * Throws when the caller of a request has lost the right to it since it began: for work that takes long, before it is committed. `tx` is its transaction: what is
 * in the same database is asked there, so that one connection is enough.
 */
export function requireStillAdmitted(exchange: Exchange, tx: Db): Promise<void> {
  return openStreamsOf(exchange.host).requireStillAdmitted(exchange, tx);
}

/** With one question where the authenticator can answer it, else by authenticating one request of each credential again. Without what is not known. */
async function currentPrincipals(
  db: Db,
  authenticator: Authenticator,
  streams: readonly Exchange[],
  onFailure: (error: unknown) => void,
): Promise<ReadonlyMap<Exchange, Principal | null>> {
  const byCredential = Map.groupBy(streams, ({ principal }) => principal?.credentialId ?? '');
  // Without an id it is not known which credential is which: those are asked one by one.
  const nameless = byCredential.get('') ?? [];
  byCredential.delete('');
  const found = byCredential.size === 0 ? undefined : await authenticator.principalsOf?.(db, [...byCredential.keys()]);
  const current = new Map<Exchange, Principal | null>();
  const remember = (exchanges: readonly Exchange[], principal: Principal | null): void => {
    for (const exchange of exchanges) current.set(exchange, principal === null ? null : withStaffRights(principal));
  };
  const askAgain = async (exchanges: readonly Exchange[]): Promise<void> => {
    try {
      remember(exchanges, await authenticatedAgain(authenticator, exchanges[0] as Exchange));
    } catch (error) {
      onFailure(error);
    }
  };
  for (const [id, each] of byCredential)
    if (found === undefined) await askAgain(each);
    else remember(each, found.get(id) ?? null);
  for (const exchange of nameless) await askAgain([exchange]);
  return current;
}

async function authenticatedAgain(authenticator: Authenticator, exchange: Exchange): Promise<Principal | null> {
  try {
    return (await inTime(authenticator.name, Promise.resolve(authenticator.authenticate(exchange)))) ?? null;
  } catch (error) {
    if (isKitError(error) && error.status === 401) return null;
    throw error;
  }
}

/** What a permission is asked with, in a transaction. The tenant is found only where it is asked for. */
function contextOn(db: Db, exchange: Exchange): PermissionContext {
  const { method, url, headers, principal, user, isTenantOpen, takesTenant, namesTenant, tenantManagers, scope, audience, rules } =
    exchange;
  return {
    method,
    url,
    headers,
    principal,
    user,
    isTenantOpen,
    takesTenant,
    namesTenant,
    tenantManagers,
    scope,
    audience,
    rules,
    db,
    get tenant() {
      return exchange.tenant;
    },
    get membership() {
      return exchange.membership;
    },
  };
}

function hasSameRoles(before: Membership | null, now: Membership | null): boolean {
  const roles = (membership: Membership | null) => JSON.stringify([...(membership?.roles ?? [])].toSorted());
  return roles(before) === roles(now);
}

/** Whether a permission would still decide the same: what the caller is called makes no difference. */
function isSame(before: Principal | null, now: Principal): boolean {
  if (before === null || before.user.id !== now.user.id || !now.user.is_active) return false;
  if ((before.boundTenant ?? null) !== (now.boundTenant ?? null)) return false;
  if (before.user.is_staff !== now.user.is_staff || before.user.is_superuser !== now.user.is_superuser) return false;
  return before.scopes === now.scopes || JSON.stringify(before.scopes) === JSON.stringify(now.scopes);
}
