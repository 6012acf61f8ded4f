import type { Authenticator } from '../auth/authenticator.ts';
import type { Membership } from '../auth/membership.ts';
import type { Principal } from '../auth/principal.ts';
import { withStaffRights } from '../auth/staff-rights.ts';
import type { Database } from '../db/db.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { isKitError } from '../errors/kit-error.ts';
import { CallerCounts } from './caller-counts.ts';
import type { Exchange } from './exchange.ts';
import type { Host } from './host.ts';

/** How often the callers of open streams are looked up: a revoked credential ends its streams within a second. */
const LOOK_EVERY_MS = 500;
const RETRY_AFTER_SECONDS = 10;

/**
 * The event streams of one app that are open in this process. An ordinary request is over before its credential changes; a stream would
 * outlive it, so the callers of all streams are looked up together, and streams end whose caller has lost the credential, has changed, or has left
 * the tenant that the stream was opened in.
 */
export class OpenStreams {
  readonly #host: Host;
  readonly #streams = new Set<Exchange>();
  readonly #counts = new CallerCounts();
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

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
    this.#streams.add(exchange);
    this.#timer ??= setInterval(() => void this.#look(), LOOK_EVERY_MS).unref();
    return () => {
      done();
      this.#remove(exchange);
    };
  }

  #remove(exchange: Exchange): void {
    this.#streams.delete(exchange);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** One look at a time: a slow database must not collect them. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#endInvalid();
    } catch (error) {
      // The database did not answer: that says nothing about the callers.
      this.#host.log.warn({ err: error }, 'could not look up the callers of open streams');
    } finally {
      this.#isLooking = false;
    }
  }

  async #endInvalid(): Promise<void> {
    const known = [...this.#streams].filter(({ principal }) => principal !== null);
    for (const [authenticator, streams] of Map.groupBy(known, (exchange) => exchange.authenticator)) {
      if (authenticator === null) continue;
      const current = await currentPrincipals(this.#host.db, authenticator, streams);
      for (const exchange of streams)
        if (!isSame(exchange.principal, current.get(exchange)))
          exchange.abort(coreErrors.invalid_credentials({ detail: 'The credential of this stream has been revoked or changed.' }));
    }
    await this.#endOfFormerMembers();
  }

  /** A caller who leaves the tenant, or gets other roles there, keeps the credential: the stream ends all the same. */
  async #endOfFormerMembers(): Promise<void> {
    const proved = [...this.#streams].filter(({ knownMembership, signal }) => knownMembership !== null && !signal.aborted);
    const current = proved.length === 0 ? [] : await this.#host.membershipsOf(proved);
    for (const [index, exchange] of proved.entries()) {
      const now = current[index] ?? null;
      if (now === null) exchange.abort(coreErrors.not_a_member());
      else if (!hasSameRoles(exchange.knownMembership, now))
        exchange.abort(coreErrors.permission_denied({ detail: 'Your roles in this tenant have changed.' }));
    }
  }
}

const openStreams = new WeakMap<Host, OpenStreams>();

export function openStreamsOf(host: Host): OpenStreams {
  const known = openStreams.get(host) ?? new OpenStreams(host);
  openStreams.set(host, known);
  return known;
}

/** With one question where the authenticator can answer it, else by authenticating one request of each credential again. */
async function currentPrincipals(
  db: Database,
  authenticator: Authenticator,
  streams: readonly Exchange[],
): Promise<ReadonlyMap<Exchange, Principal>> {
  const byCredential = Map.groupBy(streams, ({ principal }) => principal?.credentialId ?? '');
  // Without an id it is not known which credential is which: those are asked one by one.
  const nameless = byCredential.get('') ?? [];
  byCredential.delete('');
  const found = byCredential.size === 0 ? undefined : await authenticator.principalsOf?.(db, [...byCredential.keys()]);
  const current = new Map<Exchange, Principal>();
  for (const [id, each] of byCredential) {
    const principal = found === undefined ? await authenticatedAgain(authenticator, each[0] as Exchange) : found.get(id);
    if (principal !== undefined) for (const exchange of each) current.set(exchange, withStaffRights(principal));
  }
  for (const exchange of nameless) {
    const principal = await authenticatedAgain(authenticator, exchange);
    if (principal !== undefined) current.set(exchange, withStaffRights(principal));
  }
  return current;
}

async function authenticatedAgain(authenticator: Authenticator, exchange: Exchange): Promise<Principal | undefined> {
  try {
    return (await authenticator.authenticate(exchange)) ?? undefined;
  } catch (error) {
    if (isKitError(error) && error.status === 401) return undefined;
    throw error;
  }
}

function hasSameRoles(before: Membership | null, now: Membership): boolean {
  const roles = (membership: Membership | null) => JSON.stringify([...(membership?.roles ?? [])].toSorted());
  return roles(before) === roles(now);
}

/** Whether a permission would still decide the same: what the caller is called makes no difference. */
function isSame(before: Principal | null, now: Principal | undefined): boolean {
  if (before === null || now === undefined || before.user.id !== now.user.id || !now.user.is_active) return false;
  if (before.user.is_staff !== now.user.is_staff || before.user.is_superuser !== now.user.is_superuser) return false;
  return before.scopes === now.scopes || JSON.stringify(before.scopes) === JSON.stringify(now.scopes);
}
