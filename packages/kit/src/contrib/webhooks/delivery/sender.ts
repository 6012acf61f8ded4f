import { BoundedMap } from '../../../db/values/bounded-map.ts';
import { destinationNameOf, reaches, type Audience } from '../publishing/audience.ts';
import { serverAttributes } from '../../../observe/server-attributes.ts';
import { activeTracing, inSpan } from '../../../observe/tracing.ts';
import { MESSAGING_SYSTEM } from '../publishing/traced-events.ts';
import type { Claim } from './claim-store.ts';
import type { AttemptResult } from './delivery-outcome.ts';
import { LEASE_MARGIN_MS } from '../options.ts';
import { InvalidSecret } from '../signing/secret.ts';
import { SecretUnavailable } from '../../../db/sealing/secret-box.ts';
import { signatureHeader, signingKey, type SigningKey } from '../signing/signature.ts';
import {
  EXCERPT_BYTES_MAX,
  httpTransport,
  decodeExcerpt,
  type Transport,
  type TransportRequest,
  type TransportResult,
} from '../network/transport.ts';
import { sendToDestination } from '../destinations/send-to-destination.ts';
import { VERSION } from '../version.ts';
import { openHeaders, type CustomHeaders } from '../endpoints/custom-headers.ts';
import { eventData } from '../endpoints/endpoint-record.ts';
import { earlierSecrets } from '../endpoints/older-secrets.ts';
import { HINDRANCES } from '../endpoints/owner-standing.ts';
import { isEventType } from '../publishing/subscription.ts';
import type { Webhooks } from '../webhooks.ts';
import { outcomeOf } from './webhook-metrics.ts';

/** One claim, sent (or refused) once. */
export interface SendReport {
  readonly claim: Claim;
  /** Null: the event has no audience; nothing was sent and nothing is decided. */
  readonly result: AttemptResult | null;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly durationMs: number;
  readonly excerpt: string | null;
}

type Refusal = Extract<AttemptResult, { kind: 'refused' }>;

const KEYS_MAX = 10_000;
export const USER_AGENT = `kit-webhooks/${VERSION}`;
/** A transport of the application's own that forgets its timeout is given up well before the lease ends. */
const FOREIGN_TRANSPORT_MARGIN_MS = LEASE_MARGIN_MS / 2;

/** Sends claims. Never rejects: whatever goes wrong is a report. */
export class Sender {
  readonly #webhooks: Webhooks;
  readonly #transport: Transport;
  readonly #ownsTransport: boolean;
  /** By stored secret: to decrypt and parse one takes 85 µs of the 175 µs of a delivery (webhook-deliver); to sign takes 6. */
  readonly #keys = new BoundedMap<string, SigningKey>(KEYS_MAX);
  /** By stored form: to decrypt them takes 82 µs of the same 175. */
  readonly #headers = new BoundedMap<string, CustomHeaders>(KEYS_MAX);

  constructor(webhooks: Webhooks) {
    const { transport, timeoutMs, urlPolicy } = webhooks.settings;
    this.#webhooks = webhooks;
    this.#ownsTransport = transport === undefined;
    this.#transport = transport ?? httpTransport({ policy: urlPolicy, timeoutMs });
  }

  /** Every await is paid for each delivery: without traces and metrics there is one. */
  send(claim: Claim): Promise<SendReport> {
    const { metrics } = this.#webhooks;
    const sent = activeTracing() === undefined ? this.#send(claim) : this.#sendTraced(claim);
    return metrics === undefined ? sent : sent.then((report) => this.#counted(report, metrics));
  }

  #counted(report: SendReport, metrics: NonNullable<Webhooks['metrics']>): SendReport {
    const database = this.#webhooks.database.using;
    const outcome = outcomeOf(report.result);
    if (outcome === undefined) return report;
    metrics.attempts.add({ database, outcome });
    metrics.sendSeconds.observe({ database }, report.durationMs / 1000);
    return report;
  }

  /** In the trace of the request that published the event. A retry is linked to the publication it repeats. */
  #sendTraced(claim: Claim): Promise<SendReport> {
    const { event, attempts } = claim;
    const attributes = {
      'messaging.system': MESSAGING_SYSTEM,
      'messaging.operation.type': 'process',
      'messaging.operation.name': 'deliver',
      'messaging.destination.name': event.type,
      'messaging.message.id': event.id,
      'kit.webhooks.delivery_id': claim.id,
      'kit.webhooks.attempt': attempts + 1,
    };
    const links = attempts > 0 && event.traceparent !== null ? [event.traceparent] : [];
    return inSpan(`deliver ${event.type}`, { kind: 'consumer', parent: event.traceparent, links, attributes }, async (span) => {
      const report = await this.#send(claim);
      const outcome = outcomeOf(report.result);
      if (outcome !== undefined && outcome !== 'succeeded') span?.fail(outcome);
      return report;
    });
  }

  async #send(claim: Claim): Promise<SendReport> {
    const startedAt = this.#webhooks.clock.now();
    const start = performance.now();
    let result: AttemptResult | null;
    let excerpt: string | null = null;
    try {
      const name = destinationNameOf(claim.endpoint);
      if (name !== null) {
        result = await this.#sendToDestination(name, claim);
        if (result?.kind === 'accepted') excerpt = '';
        return this.#report({ claim, result, startedAt, excerpt }, start);
      }
      const request = this.#requestOf(claim, startedAt);
      if (request === null || 'kind' in request) {
        result = request;
      } else {
        const answer = await this.#call(request, claim);
        if (answer.kind === 'response') excerpt = storable(answer.bodyExcerpt);
        else this.#warnOfPolicy(claim, answer.detail);
        result = answer.kind === 'response' ? answer : { ...answer, error: storable(answer.error) };
      }
    } catch (error) {
      this.#webhooks.log.error({ err: error, delivery_id: claim.id }, 'could not send a webhook');
      result = failure('connection', 'The request failed inside the sender.');
    }
    return this.#report({ claim, result, startedAt, excerpt }, start);
  }

  #report(sent: Omit<SendReport, 'endedAt' | 'durationMs'>, start: number): SendReport {
    return { ...sent, endedAt: this.#webhooks.clock.now(), durationMs: Math.round(performance.now() - start) };
  }

  async #sendToDestination(name: string, { event, endpoint, orderingKey }: Claim): Promise<AttemptResult | null> {
    const { destinations, timeoutMs } = this.#webhooks.settings;
    if (audienceOf(event) === null) return null;
    if (!endpoint.is_active) return refused('endpoint_disabled', 'The destination is disabled.');
    if (!isSendable(event)) return refused('payload', 'The stored data of the event is not JSON.');
    const destination = destinations.find((each) => each.name === name);
    if (destination === undefined) return failure('connection', 'This process does not declare the destination.');
    const result = await sendToDestination(destination, { ...event, orderingKey }, timeoutMs);
    return result.kind === 'accepted' ? result : { ...result, error: storable(result.error) };
  }

  async close(): Promise<void> {
    await Promise.all(this.#webhooks.settings.destinations.map(({ close }) => close().catch(() => undefined)));
    if (this.#ownsTransport) await this.#transport.close();
  }

  /** The request, or why nothing is sent; null while the event has no audience. */
  #requestOf(claim: Claim, now: Date): TransportRequest | Refusal | null {
    const { event, endpoint } = claim;
    const audience = audienceOf(event);
    if (audience === null) return null;
    if (!endpoint.is_active) return refused('endpoint_disabled', 'The endpoint is disabled.');
    if (!reaches(audience, { owner: endpoint.owner_id, tenantKey: endpoint.tenant_key }))
      return refused('audience_changed', 'The endpoint no longer belongs to the audience of the event.');
    if (claim.ownerHindrance !== undefined) return refused('audience_changed', HINDRANCES[claim.ownerHindrance]);
    let keys: SigningKey[];
    let custom: CustomHeaders | null;
    try {
      keys = this.#keysOf(endpoint, now);
      custom = endpoint.headers === null ? null : this.#headersOf(endpoint.headers);
    } catch (error) {
      if (!isUnusable(error)) throw error;
      this.#webhooks.log.warn({ err: error, endpoint_id: endpoint.id }, 'the signing secret of a webhook endpoint cannot be used');
      return refused('secret_unavailable', 'The signing secret or the custom headers cannot be read.');
    }
    if (!isSendable(event)) {
      this.#webhooks.log.error({ event_id: event.id }, 'the stored data of a webhook event is not JSON');
      return refused('payload', 'The stored data of the event is not JSON.');
    }
    const { body, headers: packed } = this.#webhooks.settings.envelope.pack({ ...event, orderingKey: claim.orderingKey });
    const message = { id: `msg_${event.id}`, timestamp: Math.floor(now.getTime() / 1000), body };
    const headers = {
      ...packed,
      'user-agent': USER_AGENT,
      'webhook-id': message.id,
      'webhook-timestamp': String(message.timestamp),
      'webhook-signature': signatureHeader(keys, message),
    };
    return { url: endpoint.url, headers: custom === null ? headers : { ...custom, ...headers }, body };
  }

  #warnOfPolicy({ id }: Claim, detail: string | null): void {
    if (detail !== null) this.#webhooks.log.warn({ delivery_id: id, detail }, 'a webhook was refused by the URL policy');
  }

  /** The outgoing call is a span of its own. Its URL may hold a secret, so only the host is shown. */
  #call(request: TransportRequest, { event, endpoint }: Claim): Promise<TransportResult> {
    const sendTraceparent = this.#webhooks.settings.sendTraceparent || endpoint.send_traceparent;
    const tracing = activeTracing();
    if (tracing === undefined) return this.#sendRequest(sendTraceparent ? withTraceparent(request, event.traceparent) : request);
    const attributes = { 'http.request.method': 'POST', ...serverAttributes(request.url) };
    return tracing.span('POST', { kind: 'client', attributes }, async (span) => {
      const traceparent = tracing.traceparent() ?? event.traceparent;
      const answer = await this.#sendRequest(sendTraceparent ? withTraceparent(request, traceparent) : request);
      if (answer.status !== null) span?.set({ 'http.response.status_code': answer.status });
      if (answer.kind === 'failure') span?.fail(answer.reason);
      else if (answer.status >= 400) span?.fail(String(answer.status));
      return answer;
    });
  }

  #sendRequest(request: TransportRequest): Promise<TransportResult> {
    if (this.#ownsTransport) return this.#transport.send(request);
    return guarded(this.#transport, request, this.#webhooks.settings.timeoutMs + FOREIGN_TRANSPORT_MARGIN_MS);
  }

  /** The current key and, after rotations, those before it that were promised to sign until their time. */
  #keysOf(endpoint: Claim['endpoint'], now: Date): SigningKey[] {
    const keys = [this.#keyOf(endpoint.secret)];
    for (const { secret } of earlierSecrets(endpoint, now)) {
      try {
        keys.push(this.#keyOf(secret));
      } catch (error) {
        if (!isUnusable(error)) throw error;
        // It may have been rotated for this very reason: the others are better than nothing for the whole overlap.
        this.#webhooks.log.warn({ err: error, endpoint_id: endpoint.id }, 'a previous signing secret of a webhook endpoint cannot be used');
      }
    }
    return keys;
  }

  #headersOf(stored: string): CustomHeaders {
    const known = this.#headers.get(stored);
    if (known !== undefined) return known;
    const headers = openHeaders(this.#webhooks.secrets, stored);
    this.#headers.set(stored, headers);
    return headers;
  }

  #keyOf(stored: string): SigningKey {
    const known = this.#keys.get(stored);
    if (known !== undefined) return known;
    const key = signingKey(this.#webhooks.secrets.open(stored));
    this.#keys.set(stored, key);
    return key;
  }
}

/** What `publish` stores, and no other text. */
function isSendable(event: Claim['event']): boolean {
  return isEventType(event.type) && eventData(event) !== null;
}

function withTraceparent(request: TransportRequest, traceparent: string | null): TransportRequest {
  return traceparent === null ? request : { ...request, headers: { ...request.headers, traceparent } };
}

export function audienceOf({
  audience,
  owner_id: owner,
  tenant_key: tenantKey,
}: Pick<Claim['event'], 'audience' | 'owner_id' | 'tenant_key'>): Audience | null {
  switch (audience) {
    case 'broadcast':
      return { kind: 'broadcast' };
    case 'owner':
      return { kind: 'owner', owner };
    case 'tenant':
      return { kind: 'tenant', tenantKey };
    case 'owner_in_tenant':
      return { kind: 'owner_in_tenant', owner, tenantKey };
    default:
      return null;
  }
}

/** A transport of the application may throw, hang or return something invalid. */
async function guarded(transport: Transport, request: TransportRequest, deadlineMs: number): Promise<TransportResult> {
  const { promise: expired, resolve } = Promise.withResolvers<TransportResult>();
  const timer = setTimeout(() => resolve(failure('timeout', 'The transport did not return in time.')), deadlineMs);
  try {
    const result = await Promise.race([transport.send(request), expired]);
    return wellFormed(result) ?? failure('connection', 'The transport returned something that is not a result.');
  } catch {
    return failure('connection', 'The transport failed.');
  } finally {
    clearTimeout(timer);
  }
}

function isUnusable(error: unknown): boolean {
  return error instanceof SecretUnavailable || error instanceof InvalidSecret;
}

const TRANSPORT_REASONS: ReadonlySet<unknown> = new Set(['timeout', 'connection', 'tls', 'blocked_address', 'payload']);

/** The result without anything that cannot be stored; null when it is not a result. */
function wellFormed(result: TransportResult): TransportResult | null {
  const { status } = result;
  if (result.kind === 'response' && isStatus(status)) {
    const retryAfter = typeof result.retryAfter === 'string' ? result.retryAfter : null;
    return { kind: 'response', status, retryAfter, bodyExcerpt: excerptOf(result.bodyExcerpt) };
  }
  if (result.kind !== 'failure' || !TRANSPORT_REASONS.has(result.reason)) return null;
  const error = typeof result.error === 'string' ? result.error : 'The transport failed.';
  const detail = typeof result.detail === 'string' ? result.detail : null;
  return { kind: 'failure', reason: result.reason, error, detail, status: isStatus(status) ? status : null };
}

function isStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status as number) >= 100 && (status as number) <= 999;
}

function excerptOf(text: unknown): string {
  return typeof text === 'string' ? decodeExcerpt([Buffer.from(text.slice(0, EXCERPT_BYTES_MAX)).subarray(0, EXCERPT_BYTES_MAX)]) : '';
}

function failure(reason: 'connection' | 'timeout', error: string): TransportResult & AttemptResult & { kind: 'failure' } {
  return { kind: 'failure', reason, error, detail: null, status: null };
}

function refused(reason: Refusal['reason'], error: string): Refusal {
  return { kind: 'refused', reason, error };
}

/** Text from outside that every database stores. */
function storable(text: string): string {
  if (text === '') return text;
  return typeof text === 'string' ? text.toWellFormed().replaceAll('\0', '\uFFFD') : '';
}
