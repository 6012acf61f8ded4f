import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AuthRequest, Authenticator } from '../../auth/request/authenticator.ts';
import type { Membership } from '../../auth/people/membership.ts';
import type { Principal, User } from '../../auth/people/principal.ts';
import type { Clock } from '../../db/clock.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import type { StatementCause } from '../../db/engine/long-statement.ts';
import type { Scope } from '../../di/container.ts';
import type { PermissionContext, Rule, Verdict } from '../../permissions/permission.ts';
import type { ThrottleResult } from '../../throttle/enforce.ts';
import type { Caller } from '../declare/caller.ts';
import type { CompiledRoute } from './compiled-route.ts';
import type { Host } from './host.ts';
import type { IdempotencyOutcome } from '../declare/idempotency-outcome.ts';
import type { Log } from '../log.ts';
import { clientKey } from '../../throttle/client-key.ts';

/** Where the request of a call keeps the exchange that it is part of. Clients cannot set it. */
export const parentKey: unique symbol = Symbol('kit.parent');

/** For the answer of a database whose time is over. */
const ANSWER_MS = 250;

/**
 * One request and its answer, as the pipeline, permissions, throttles and middleware see it.
 * Everything that costs (client address, log, signal, services) is made when first asked for.
 */
export class Exchange implements AuthRequest, PermissionContext, StatementCause {
  readonly host: Host;
  /** Null when the request matches no route. */
  readonly route: CompiledRoute | null;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** The request that this one is a call of: a tool call of mcp(). It was authenticated and measured; null for a request of its own. */
  readonly parent: Exchange | null;
  /** The phase whose throttle rejected the request. */
  throttledIn: 'client' | 'principal' | null = null;
  /** `performance.now()` when the request arrived. */
  readonly startedAt: number;
  principal: Principal | null = null;
  /** Who authenticated the principal. */
  authenticator: Authenticator | null = null;
  /** What authentication came to; null where the route has none, or the request did not get as far. */
  authentication: 'accepted' | 'anonymous' | 'refused' | 'failed' | null = null;
  /** Shown to the caller and written in every log line; middleware may replace it before anything is answered. */
  requestId: string;
  /** The permission's answer so far; `unknown` until the handler calls `authorize(object)`. */
  verdict: Verdict = false;
  /** The throttles that measured this request; the RateLimit headers are made of them. */
  throttled: readonly ThrottleResult[] = [];
  /** Of a route that responds to its own throttles: the budget of the caller that is spent. Its calls are rejected with it. */
  spentBudget: ThrottleResult | null = null;
  /** What was thrown, if anything, for the request log. */
  error: unknown = undefined;
  /** The code the caller was told, once there was an error. */
  errorCode: string | undefined;
  /** Set when a check found that the response does not match its schema. */
  hasInvalidResponse = false;
  /** Whether the request has a span that is recorded. Kept here because asking the async context costs a hundredth of a small GET, each time. */
  isRecorded = false;
  /** The trace that the request belongs to, as its tracer has it. Declared, so that every exchange has one shape. */
  traceContext: unknown;
  /** What the connection had sent when the request arrived; null unless metrics count it. */
  bytesSentBefore: number | null = null;
  /** Statements so far and the time they took. Counted while some middleware of the route has `onQuery`. */
  queryCount = 0;
  queryMs = 0;
  /** Rows that the caller sent to be written one by one: a statement for each of them is no mistake. See nPlusOne(). */
  itemCount = 0;
  /** The open transaction of an atomic route. */
  tx: Db | undefined;
  /** Whether that transaction is for the handler alone: what fails in the handler rolls all of it back. */
  ownsTransaction = false;
  /** The response is a stream of events, of a route that also has an ordinary response: it has no time of its own, and ends when the server begins to stop. */
  isLive = false;
  /** The response has values that are shown once: it is not stored for an idempotency key. */
  isShownOnce = false;
  /** What the idempotency key of the request came to; null without one. */
  idempotency: IdempotencyOutcome | null = null;
  /** The tag of the response, once the handler set it. */
  etag: string | undefined = undefined;
  /** Whether the handler compared `If-Match` with the current version. */
  isMatchDecided = false;
  /** The tenant, once it was asked for. */
  knownTenant: string | null = null;
  /** What `createApp({ membership })` returned, once the tenant was asked for. */
  knownMembership: Membership | null = null;
  /** Set where the tenant depends on arguments that are not known yet: a list of tools asks before there is a call. */
  isTenantOpen = false;
  /** Set where each call of the tool can name the tenant. */
  takesTenant = false;
  #handlerDb: Database | undefined;
  #isCovered: boolean | undefined;
  #hasCoveredCall = false;
  #queryPlan: string[] | undefined;
  #clientAddress: string | undefined;
  #log: Log | undefined;
  #aborter: AbortController | undefined;
  #limit: AbortController | undefined;
  #services: Scope | undefined;
  #tenant: { readonly value: string | null | Promise<string | null> } | undefined;

  constructor(host: Host, route: CompiledRoute | null, request: FastifyRequest, reply: FastifyReply) {
    this.host = host;
    this.route = route;
    this.request = request;
    this.reply = reply;
    this.parent = (request as { readonly [parentKey]?: Exchange })[parentKey] ?? null;
    this.requestId = request.id;
    this.startedAt = performance.now();
  }

  get method(): string {
    return this.request.raw.method as string;
  }

  get url(): string {
    return this.request.raw.url as string;
  }

  get headers(): Readonly<Record<string, string | string[] | undefined>> {
    return this.request.raw.headers;
  }

  get user(): User | null {
    return this.principal === null ? null : this.principal.user;
  }

  /** Whose tenant the request acts for. The app's resolver is asked once per request, when it is first read. */
  get tenant(): string | null | Promise<string | null> {
    this.#tenant ??= { value: this.host.tenantOf(this) };
    return this.#tenant.value;
  }

  /** Whether anything of the request depends on the tenant. */
  get isTenantAsked(): boolean {
    return this.#tenant !== undefined;
  }

  /** What the caller is in the tenant: found together with the tenant, so asked once. */
  get membership(): Promise<Membership | null> {
    return Promise.resolve(this.tenant).then(() => this.knownMembership);
  }

  get namesTenant(): string {
    return this.host.namesTenant;
  }

  get tenantManagers(): readonly string[] | undefined {
    return this.host.tenantManagers;
  }

  async caller(): Promise<Caller> {
    const tenant = await this.tenant;
    return { user: this.user, principal: this.principal, tenant, membership: this.knownMembership };
  }

  get scope(): string | undefined {
    return this.route?.scope;
  }

  get audience(): string | null {
    return (this.route?.metadata['audience'] as string | undefined) ?? null;
  }

  get rules(): Readonly<Record<string, Rule>> {
    return this.host.rules;
  }

  get db(): Database {
    return this.host.db;
  }

  /** The replica of a database that the route reads from, while it is fresh enough for this caller. Never inside a transaction. */
  replicaOf(using: string): Database | undefined {
    const { route, host } = this;
    if (route?.readFrom === undefined || host.replicas === null || this.tx !== undefined) return undefined;
    return host.replicas.fresh(route.readFrom, using, this.statementOwner);
  }

  /** The database of the handler, chosen once. */
  get handlerDb(): Database {
    if (this.route?.readFrom === undefined) return this.host.db;
    return (this.#handlerDb ??= this.replicaOf('default') ?? this.host.db);
  }

  get clock(): Clock {
    return this.host.clock;
  }

  get clientAddress(): string {
    this.#clientAddress ??= this.host.trustedProxies.clientAddress(
      this.request.raw.socket.remoteAddress ?? '',
      this.request.raw.headers['x-forwarded-for'],
    );
    return this.#clientAddress;
  }

  get log(): Log {
    this.#log ??= this.host.log.child({ request_id: this.requestId });
    return this.#log;
  }

  /** Aborted when the client goes away before the answer is complete, when the route's time is over, or when the server stops waiting. */
  get signal(): AbortSignal {
    return this.#abort().signal;
  }

  /** A read has its time from its arrival. Work that writes, and streams, may go on longer: each of their reads has the time. */
  get statementMsLeft(): number {
    const { route } = this;
    const ofRoute = route?.timeoutMs ?? 0;
    const isRead = route?.kind === 'json' && !this.isLive && (route.method === 'GET' || route.isRead);
    const { statementMs } = this.host.inputLimits;
    if (ofRoute === 0 && !isRead) return statementMs;
    // A little before the route's own limit, so that the response says what took so long.
    const wholeMs = ofRoute > 0 ? ofRoute - Math.min(ANSWER_MS, ofRoute / 10) : statementMs;
    return wholeMs - (performance.now() - this.startedAt);
  }

  get chunkMs(): number {
    return this.host.inputLimits.exportBatchMs;
  }

  /** A key counts for itself: the programs of one user do not wait for each other. Anonymous callers of one IPv6 network are one. */
  get statementOwner(): string {
    const { principal } = this;
    if (principal === null) return `address ${clientKey(this.clientAddress)}`;
    return principal.scheme === 'api_key' && principal.credentialId !== undefined
      ? `key ${principal.credentialId}`
      : `user ${principal.user.id}`;
  }

  get isOver(): boolean {
    return this.reply.sent || this.reply.raw.writableEnded;
  }

  /** Whether the error is only that nobody waits for the response any longer. */
  isAbort(error: unknown): boolean {
    return this.#aborter?.signal.aborted === true && this.#aborter.signal.reason === error;
  }

  /** Begins the time of the route; the result ends it. */
  limit(): (reason: unknown) => void {
    const aborter = (this.#limit = new AbortController());
    return (reason) => {
      this.abort(reason);
      aborter.abort(reason);
    };
  }

  get deadline(): AbortSignal | undefined {
    return this.#limit?.signal;
  }

  abort(reason: unknown): void {
    this.#abort().abort(reason);
  }

  #abort(): AbortController {
    if (this.#aborter !== undefined) return this.#aborter;
    const aborter = new AbortController();
    this.#aborter = aborter;
    const stopping = this.route?.kind === 'stream' || this.isLive ? this.host.draining : this.host.stopping;
    const stop = () => aborter.abort(stopping.reason);
    if (stopping.aborted) stop();
    else stopping.addEventListener('abort', stop, { once: true });
    const { raw } = this.reply;
    const closed = () => {
      stopping.removeEventListener('abort', stop);
      if (!raw.writableFinished) aborter.abort(new DOMException('The client closed the connection.', 'AbortError'));
    };
    if (raw.destroyed) closed();
    // It closes once: what `once` would keep of each open stream is 136 bytes.
    else raw.on('close', closed);
    return aborter;
  }

  /** True for the first call inside a request, whose budgets the request itself has spent; other calls of a batch spend their own. */
  get isCovered(): boolean {
    this.#isCovered ??= this.parent === null ? false : this.parent.#coverCall();
    return this.#isCovered;
  }

  #coverCall(): boolean {
    const covers = !this.#hasCoveredCall;
    this.#hasCoveredCall = true;
    return covers;
  }

  leaveTransaction(): void {
    this.tx = undefined;
    this.ownsTransaction = false;
  }

  /** What the SQL of this request does, in a few words without values: `orders join customer`. Shown by queryHeaders() in development. */
  noteQueryPlan(text: string): void {
    (this.#queryPlan ??= []).push(text);
  }

  get queryPlan(): readonly string[] {
    return this.#queryPlan ?? [];
  }

  get services(): Scope {
    if (this.#services !== undefined) return this.#services;
    const scope = this.host.services.scope(this);
    this.#services = scope;
    const end = () =>
      this.host.track(
        Promise.resolve(scope.end()).catch((error: unknown) => this.log.error({ err: error }, 'services of a request could not be ended')),
      );
    if (this.reply.raw.destroyed) end();
    else this.reply.raw.once('close', end);
    return scope;
  }
}
