import { type OptionRules, readOptions } from '../../../options/read-options.ts';
import { aFunction, nullable, objectWith, parsedBy, required, rule, sentenceRule } from '../../../options/value-rule.ts';
import { rateFault } from '../../../throttle/rate.ts';
import { parseSchedule } from '../endpoints/retry-schedule.ts';
import { parsePatterns } from '../publishing/subscription.ts';
import { webhookEnvelope, type Envelope } from './envelope.ts';

/** An event on its way to a destination. */
export interface DestinationMessage {
  /** The id of the event, the same with every attempt: brokers and consumers deduplicate on it. */
  readonly id: string;
  /** Such as `order.paid`. */
  readonly type: string;
  /** Events with the same key are sent one after the other, in the order of their publication. */
  readonly orderingKey: string | null;
  /** `content-type`, `webhook-id` and what the envelope adds; names in lower case, values in ASCII. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface DestinationOptions {
  /** Stored with its deliveries: lowercase letters, digits and `-`. Another name is another destination. */
  readonly name: string;
  /** Exact types, patterns such as `order.*`, or `*`. Default: `['*']`; the events of all owners and tenants. */
  readonly events?: readonly string[];
  /** Default: the body of webhooks, `{ type, timestamp, data }`. */
  readonly envelope?: Envelope;
  /** Delays between attempts in seconds. Default: the schedule of `webhooks()`. */
  readonly schedule?: readonly number[] | null;
  /** Messages at most, such as `100/s`. Default: unlimited. */
  readonly rateLimit?: string | null;
  /**
   * Sends one message. Resolves when the destination has stored it; every error is a failed attempt. `signal` is aborted when the time of the attempt
   * is over.
   */
  readonly send: (message: DestinationMessage, signal: AbortSignal) => Promise<unknown>;
  /** A sentence when the destination would lose messages, asked at startup; null: it does not. */
  readonly check?: (signal: AbortSignal) => Promise<string | null>;
  /** Closes connections when the worker stops. */
  readonly close?: () => Promise<unknown>;
}

/** A place besides HTTP endpoints that events are sent to. Declared by the operator in `webhooks({ destinations: […] })`. */
export interface Destination extends Required<DestinationOptions> {
  /** Set by `destination()`: `webhooks()` accepts only such objects. */
  readonly isDestination: true;
}

/** Thrown by `send` for a message that the destination will never take: it fails permanently at once. */
export class UndeliverableMessage extends Error {
  override readonly name = 'UndeliverableMessage';
}

const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

export const destinationRules: OptionRules<DestinationOptions> = {
  name: required(rule('a name of lowercase letters, digits and "-"', (value) => typeof value === 'string' && NAME.test(value))),
  events: sentenceRule(patternsFault),
  envelope: objectWith('an envelope: cloudEvents({ source })', 'pack'),
  schedule: nullable(parsedBy(parseSchedule)),
  rateLimit: nullable(sentenceRule(rateFault)),
  send: required(aFunction),
  check: aFunction,
  close: aFunction,
};

function patternsFault(value: unknown): string | null {
  const patterns = parsePatterns(value);
  return 'faults' in patterns ? patterns.faults.map(({ message }) => message).join(' ') : null;
}

/**
 * Declares a destination. Its deliveries are those of an endpoint: the same retries, order, dead letters and pages of the admin site.
 *
 * @example
 * ```ts
 * const kafka = destination({
 *   name: 'kafka',
 *   send: ({ id, type, headers, body }) => producer.send({ topic: type, messages: [{ key: id, headers, value: body }] }),
 * });
 * webhooks({ destinations: [kafka] });
 * ```
 */
export function destination(options: DestinationOptions): Destination {
  const {
    events = ['*'],
    envelope = webhookEnvelope,
    schedule = null,
    rateLimit = null,
    ...rest
  } = readOptions('destination()', options, destinationRules);
  const { check = () => Promise.resolve(null), close = () => Promise.resolve() } = rest;
  return Object.freeze({ ...rest, events: [...new Set(events)], envelope, schedule, rateLimit, check, close, isDestination: true });
}

/** The options that every kind of destination has. */
export type SharedOptions = Pick<DestinationOptions, 'name' | 'events' | 'envelope' | 'schedule' | 'rateLimit'>;

const { name, events, envelope, schedule, rateLimit } = destinationRules;
export const sharedRules: OptionRules<SharedOptions> = { name, events, envelope, schedule, rateLimit };
