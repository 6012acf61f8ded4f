import { isSchema } from '../../http/declare/schema.ts';
import type { Destination } from './destinations/destination.ts';
import { webhookEnvelope, type Envelope } from './destinations/envelope.ts';
import type { EventType } from './publishing/event-type.ts';
import { DEFAULT_DISABLE_AFTER_MS } from './delivery/delivery-outcome.ts';
import { DEFAULT_SCHEDULE, parseSchedule, type RetrySchedule } from './endpoints/retry-schedule.ts';
import { DEFAULT_TIMEOUT_MS, type Transport } from './network/transport.ts';
import { URLPolicy } from './network/url-policy.ts';
import { type OptionRules, readOptions } from '../../options/read-options.ts';
import { filledText, flag, listOf, nullable, objectWith, parsedBy, secret, wholeNumber, sentenceRule } from '../../options/value-rule.ts';

export interface WebhookOptions {
  /**
   * Requests a worker has under way at a time. Default: 100. A request that takes longer than half a second leaves its place to another; of such
   * slow requests there are as many besides.
   */
  readonly concurrency?: number;
  /** Of these, requests to one endpoint. Default: 10, so an endpoint that hangs costs the others no more than that. */
  readonly concurrencyPerEndpoint?: number;
  /** The deadline of one attempt, from the DNS query to the last byte. Default: 15 seconds. */
  readonly timeoutMs?: number;
  /** Delays between attempts in seconds. */
  readonly schedule?: readonly number[];
  /** Up to 10 % is added to each delay unless false. */
  readonly jitter?: boolean;
  /** Continuous failure after which an endpoint is disabled. Default: 5 days. */
  readonly disableAfterMs?: number;
  /** How long a rotated endpoint signs with both secrets. Default: 24 hours; 0 for not at all. */
  readonly rotationOverlapMs?: number;
  /** Which addresses may be sent to. Default: public addresses over HTTPS. */
  readonly urlPolicy?: URLPolicy;
  /** Another HTTP client, which must enforce its own timeout and address policy. */
  readonly transport?: Transport;
  /** Fernet keys for signing secrets: the first encrypts, all decrypt. Default: the setting WEBHOOK_SECRET_KEYS. */
  readonly secretKeys?: readonly string[];
  /** Refuses to store a secret in plain text. */
  readonly strictSecrets?: boolean;
  /** Of the JSON text of an event's data. Default: 256 KiB. */
  readonly payloadBytesMax?: number;
  /** Endpoints per owner (and tenant). Default: 50. */
  readonly endpointsPerOwnerMax?: number;
  /** How often a worker looks for due work when nothing wakes it. Default: one second. */
  readonly pollIntervalMs?: number;
  /** Runs a worker inside the application's process. Default: false; production runs `kit webhooks deliver --loop`. */
  readonly worker?: boolean;
  /**
   * Workers remove finished events that are older, with their deliveries and attempts, a few at a time. Default: null; they stay until
   * `kit webhooks prune`.
   */
  readonly retentionDays?: number | null;
  /** Declared types of events: listed at `/event-types` and in the OpenAPI document, and checked by `publish`. */
  readonly eventTypes?: readonly EventType[];
  /** Where events are sent besides endpoints, for the operator: brokers and other systems. Default: none. */
  readonly destinations?: readonly Destination[];
  /** What endpoints receive. Default: the body `{ type, timestamp, data }`; `cloudEvents({ source })` sends CloudEvents 1.0. */
  readonly envelope?: Envelope;
  /**
   * Sends receivers the `traceparent` of the request that published an event. Default: false, because it tells them when two events come from one
   * request. Needs tracing() where events are published.
   */
  readonly sendTraceparent?: boolean;
  /** Aliases of the databases that events are published in. Default: `default` alone. */
  readonly databases?: readonly string[];
}

/** Complete and frozen. */
export interface WebhookSettings extends Required<Omit<WebhookOptions, 'transport' | 'secretKeys' | 'schedule'>> {
  readonly schedule: RetrySchedule;
  readonly transport: Transport | undefined;
  /** Undefined: not said, the app's setting decides. Not enumerable, so that it is not printed. */
  readonly secretKeys: readonly string[] | undefined;
}

export const DEFAULT_PAYLOAD_BYTES_MAX = 256 * 1024;
/** A claim outlives its request by this much; only then is its worker taken for dead. */
export const LEASE_MARGIN_MS = 60_000;

const HOUR_MS = 3_600_000;
const RETENTION_DAYS_MAX = 36_500;

const DEFAULTS = {
  concurrency: 100,
  concurrencyPerEndpoint: 10,
  timeoutMs: DEFAULT_TIMEOUT_MS,
  jitter: true,
  disableAfterMs: DEFAULT_DISABLE_AFTER_MS,
  rotationOverlapMs: 24 * HOUR_MS,
  strictSecrets: false,
  payloadBytesMax: DEFAULT_PAYLOAD_BYTES_MAX,
  endpointsPerOwnerMax: 50,
  pollIntervalMs: 1000,
  worker: false,
  retentionDays: null,
  eventTypes: [] as readonly EventType[],
  destinations: [] as readonly Destination[],
  envelope: webhookEnvelope,
  sendTraceparent: false,
  databases: ['default'] as readonly string[],
} as const;

/** For a worker too: one with half a slot, or a timeout that no timer can hold, would do harm quietly. */
export const workerRules = {
  concurrency: wholeNumber(1, 10_000),
  concurrencyPerEndpoint: wholeNumber(1, 10_000),
  timeoutMs: wholeNumber(1, 10 * 60_000),
  pollIntervalMs: wholeNumber(10, HOUR_MS),
} as const;

export const webhookRules: OptionRules<WebhookOptions> = {
  ...workerRules,
  schedule: parsedBy(parseSchedule),
  jitter: flag,
  disableAfterMs: wholeNumber(1, 365 * 24 * HOUR_MS),
  rotationOverlapMs: wholeNumber(0, 365 * 24 * HOUR_MS),
  urlPolicy: objectWith('a policy: URLPolicy({ … })', 'checkUrl', 'refuseAddress', 'isLocal'),
  transport: objectWith('a transport: { send, close }', 'send', 'close'),
  secretKeys: secret(
    'a list of strings; create a key with `kit webhooks generate-key`',
    (value) => Array.isArray(value) && value.every((key) => typeof key === 'string'),
  ),
  strictSecrets: flag,
  // Enough for the events of this module: an endpoint whose disabling cannot be told could not be disabled.
  payloadBytesMax: wholeNumber(4096, 16 * 1024 * 1024),
  endpointsPerOwnerMax: wholeNumber(1, 1_000_000),
  worker: flag,
  retentionDays: nullable(wholeNumber(1, RETENTION_DAYS_MAX)),
  eventTypes: sentenceRule(eventTypesFault),
  destinations: sentenceRule(destinationsFault),
  envelope: objectWith('an envelope: cloudEvents({ source })', 'pack'),
  sendTraceparent: flag,
  databases: listOf(filledText, { min: 1 }),
};

function eventTypesFault(value: unknown): string | null {
  if (!Array.isArray(value) || !value.every((each) => typeof each?.name === 'string' && isSchema(each?.schema)))
    return 'is not a list of eventType(name, schema).';
  const names = value.map((each: EventType) => each.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  return twice === undefined ? null : `declares "${twice}" twice.`;
}

function destinationsFault(value: unknown): string | null {
  if (!Array.isArray(value) || !value.every((each) => each?.isDestination === true))
    return 'is not a list of destinations: destination({ name, send }), natsDestination({ … }), …';
  const names = value.map((each: Destination) => each.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  return twice === undefined ? null : `declares the destination "${twice}" twice.`;
}

/** Every fault is reported at once; keys are never part of the message. */
export function readWebhookOptions(options: WebhookOptions = {}): WebhookSettings {
  readOptions('webhooks()', options, webhookRules);
  const { schedule, urlPolicy, transport, secretKeys, ...rest } = options;
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  const settings = {
    ...DEFAULTS,
    ...given,
    schedule: schedule === undefined ? DEFAULT_SCHEDULE : parseSchedule(schedule),
    urlPolicy: urlPolicy ?? URLPolicy(),
    transport,
  };
  Object.defineProperty(settings, 'secretKeys', { value: secretKeys, enumerable: false });
  return Object.freeze(settings) as unknown as WebhookSettings;
}
