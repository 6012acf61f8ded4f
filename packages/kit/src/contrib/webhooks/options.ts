import { DEFAULT_DISABLE_AFTER_MS } from './delivery/delivery-outcome.ts';
import { DEFAULT_SCHEDULE, parseSchedule, type RetrySchedule } from './delivery/retry-schedule.ts';
import { DEFAULT_TIMEOUT_MS, type Transport } from './network/transport.ts';
import { URLPolicy } from './network/url-policy.ts';

export interface WebhookOptions {
  /** Requests a worker has under way at a time, at most; 100 unless given. */
  readonly concurrency?: number;
  /** Of these, requests to one endpoint; 10 unless given, so an endpoint that hangs costs the others no more than that. */
  readonly concurrencyPerEndpoint?: number;
  /** The deadline of one attempt, from the DNS query to the last byte; 15 seconds unless given. */
  readonly timeoutMs?: number;
  /** Delays between attempts in seconds. */
  readonly schedule?: readonly number[];
  /** Up to 10 % is added to each delay unless false. */
  readonly jitter?: boolean;
  /** Continuous failure after which an endpoint is disabled; 5 days unless given. */
  readonly disableAfterMs?: number;
  /** How long a rotated endpoint signs with both secrets; 24 hours unless given, 0 for not at all. */
  readonly rotationOverlapMs?: number;
  readonly urlPolicy?: URLPolicy;
  /** Another HTTP client, which must enforce its own timeout and address policy. */
  readonly transport?: Transport;
  /** Fernet keys for signing secrets: the first encrypts, all decrypt. The setting WEBHOOK_SECRET_KEYS unless given. */
  readonly secretKeys?: readonly string[];
  /** Refuses to store a secret in plain text. */
  readonly strictSecrets?: boolean;
  /** Of the JSON text of an event's data; 256 KiB unless given. */
  readonly payloadBytesMax?: number;
  /** Endpoints per owner (and tenant); 50 unless given. */
  readonly endpointsPerOwnerMax?: number;
  /** How often a worker looks for due work when nothing wakes it; one second unless given. */
  readonly pollIntervalMs?: number;
  /** Runs a worker inside the application's process. False unless given: production runs `kit webhooks deliver --loop`. */
  readonly worker?: boolean;
  /** Aliases of the databases that events are published in; `default` alone unless given. */
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
  databases: ['default'] as readonly string[],
} as const;

const KNOWN = [...Object.keys(DEFAULTS), 'schedule', 'urlPolicy', 'transport', 'secretKeys'];

/** Smallest and largest whole number of each numeric option. */
const BOUNDS: readonly (readonly [keyof WebhookOptions, number, number])[] = [
  ['concurrency', 1, 10_000],
  ['concurrencyPerEndpoint', 1, 10_000],
  ['timeoutMs', 1, 10 * 60_000],
  ['disableAfterMs', 1, 365 * 24 * HOUR_MS],
  ['rotationOverlapMs', 0, 365 * 24 * HOUR_MS],
  // Enough for the events of this module: an endpoint whose disabling cannot be told could not be disabled.
  ['payloadBytesMax', 4096, 16 * 1024 * 1024],
  ['endpointsPerOwnerMax', 1, 1_000_000],
  ['pollIntervalMs', 10, HOUR_MS],
];

/** What is wrong with the numbers among the options, said in full. */
export function numericFaults(options: Readonly<Record<string, unknown>>): string[] {
  return BOUNDS.flatMap(([name, min, max]) => {
    const value = options[name];
    if (!Object.hasOwn(options, name) || (Number.isInteger(value) && (value as number) >= min && (value as number) <= max)) return [];
    return [`${name} is ${String(value)}; use a whole number from ${min} to ${max}.`];
  });
}

/** Every fault is reported at once; keys are never part of the message. */
export function readWebhookOptions(options: WebhookOptions = {}): WebhookSettings {
  const faults = Object.keys(options)
    .filter((name) => !KNOWN.includes(name))
    .map((name) => `${name} is not an option; the options are ${KNOWN.join(', ')}.`);
  const { schedule, urlPolicy, transport, secretKeys, ...rest } = options;
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  const settings = { ...DEFAULTS, ...given, schedule: readSchedule(schedule, faults), urlPolicy: urlPolicy ?? URLPolicy(), transport };
  faults.push(...numericFaults(settings));
  if (settings.databases.length === 0) faults.push('databases is empty; name at least one, such as "default".');
  if (secretKeys !== undefined && !(Array.isArray(secretKeys) && secretKeys.every((key) => typeof key === 'string')))
    faults.push('secretKeys is not a list of texts; create a key with the command generate-key.');
  if (faults.length > 0) throw new TypeError(`webhooks(): ${faults.join(' ')}`);
  Object.defineProperty(settings, 'secretKeys', { value: secretKeys, enumerable: false });
  return Object.freeze(settings) as unknown as WebhookSettings;
}

function readSchedule(schedule: readonly number[] | undefined, faults: string[]): RetrySchedule {
  try {
    return schedule === undefined ? DEFAULT_SCHEDULE : parseSchedule(schedule);
  } catch (error) {
    faults.push(`schedule: ${(error as Error).message}`);
    return DEFAULT_SCHEDULE;
  }
}

/** The setting WEBHOOK_SECRET_KEYS: keys separated by commas or white space. */
export function splitSecretKeys(text: string | undefined): readonly string[] {
  return (text ?? '').split(/[\s,]+/).filter((key) => key !== '');
}
