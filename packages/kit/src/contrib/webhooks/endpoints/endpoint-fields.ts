// The rules about what a caller says of an endpoint. Every check throws a 422 that names its field.
import { hasHiddenCharacters } from '../../../auth/people/hidden-characters.ts';
import { codePoints } from '../../../db/declare/column-codec.ts';
import { FaultCollector } from '../../../errors/fault-collector.ts';
import type { KitError } from '../../../errors/kit-error.ts';
import { rateFault } from '../../../throttle/rate.ts';
import { parseSchedule } from './retry-schedule.ts';
import { webhookErrors } from '../errors.ts';
import { DESCRIPTION_LENGTH_MAX } from '../models.ts';
import { URL_NOT_ALLOWED } from '../network/url-policy.ts';
import type { WebhookEndpoint } from './store.ts';
import type { Webhooks } from '../webhooks.ts';
import { editHeaders, type CustomHeaders, type HeaderEdit } from './custom-headers.ts';
import { parsePatterns } from '../publishing/subscription.ts';

/** What a caller says about an endpoint; undefined is not said. */
export interface EndpointFields {
  /** Where events are sent. Must be allowed by the URL policy. */
  readonly url?: string | undefined;
  /** Exact types, patterns such as `order.*`, or `*`. */
  readonly events?: readonly string[] | undefined;
  /** For people: what receives the events. */
  readonly description?: string | undefined;
  /** Delays in seconds; null for the module's schedule. */
  readonly schedule?: readonly number[] | null | undefined;
  /** A text sets a header, null removes it; headers that are not named stay. */
  readonly headers?: HeaderEdit | undefined;
  /** Such as `10/s`; null for no limit. */
  readonly rateLimit?: string | null | undefined;
  /** Sends `traceparent`, so that the receiver can continue the trace. */
  readonly sendTraceparent?: boolean | undefined;
  /** What may be subscribed to. Default: everything. */
  readonly availableEvents?: readonly string[] | undefined;
}

export type EndpointColumns = Pick<
  WebhookEndpoint,
  'url' | 'events' | 'description' | 'schedule' | 'headers' | 'header_names' | 'rate_limit' | 'send_traceparent'
>;

/** The columns of the fields that are given; `current` are the headers that an edit is about. Faults are added to `faults`. */
export function endpointColumns(
  webhooks: Webhooks,
  fields: EndpointFields,
  faults: FaultCollector,
  current: CustomHeaders = {},
): Partial<EndpointColumns> {
  const { url, events, description, schedule, headers, rateLimit, sendTraceparent } = fields;
  const columns: Partial<EndpointColumns> = {};
  const set = (given: unknown, column: () => Partial<EndpointColumns>): void => {
    if (given !== undefined) Object.assign(columns, faults.check(column));
  };
  set(url, () => ({ url: checkedUrl(webhooks, url) }));
  set(events, () => ({ events: checkedEvents(events, fields.availableEvents) }));
  set(description, () => ({ description: checkedDescription(description) }));
  set(schedule, () => ({ schedule: checkedSchedule(schedule) }));
  set(headers, () => checkedHeaders(webhooks, current, headers));
  set(rateLimit, () => ({ rate_limit: checkedRateLimit(rateLimit ?? null) }));
  set(sendTraceparent, () => ({ send_traceparent: checkedSendTraceparent(sendTraceparent) }));
  return columns;
}

/** A fault of one field, under the name that it has on the wire. */
export function invalidField(field: string, message: string): KitError {
  return webhookErrors.invalid_endpoint({ detail: message, errors: [{ location: ['body', field], code: `invalid_${field}`, message }] });
}

/** The URL, if the policy allows it; every refusal reads the same. */
function checkedUrl({ settings, log }: Webhooks, url: unknown): string {
  const checked = settings.urlPolicy.checkUrl(url);
  if (checked.ok) return url as string;
  log.warn({ detail: checked.detail }, 'the URL of a webhook endpoint was refused');
  throw webhookErrors.url_not_allowed({
    message: checked.detail,
    errors: [{ location: ['body', 'url'], code: 'url_not_allowed', message: URL_NOT_ALLOWED }],
  });
}

function checkedEvents(events: unknown, availableEvents?: readonly string[]): string[] {
  const patterns = parsePatterns(events, availableEvents);
  if (!('faults' in patterns)) return [...patterns];
  const faults = new FaultCollector();
  for (const { code, message, entries } of patterns.faults) {
    const places: (string | number)[][] = entries.length === 0 ? [[]] : entries.map((entry) => [entry]);
    const errors = places.map((place) => ({ location: ['body', 'events', ...place], code, message }));
    faults.refuse(webhookErrors[code]({ detail: message, errors }));
  }
  faults.throwIfAny();
  return [];
}

/** Written by owners, read by staff. Line breaks are text, and some languages and emoji need joiners. */
function checkedDescription(description: unknown): string {
  if (typeof description !== 'string' || codePoints(description) > DESCRIPTION_LENGTH_MAX)
    throw invalidField('description', `The description is a string of at most ${DESCRIPTION_LENGTH_MAX} characters.`);
  if (hasHiddenCharacters(description.replaceAll(/[\r\n\t\u200c\u200d]/g, '')))
    throw invalidField(
      'description',
      'The description must not contain control characters, or characters that change the direction of text.',
    );
  return description;
}

function checkedSchedule(schedule: unknown): number[] | null {
  try {
    return schedule === null ? null : [...parseSchedule(schedule)];
  } catch (error) {
    throw invalidField('schedule', (error as Error).message);
  }
}

function checkedRateLimit(rate: string | null): string | null {
  const fault = rate === null ? null : rateFault(rate);
  if (fault !== null) throw invalidField('rate_limit', fault);
  return rate;
}

function checkedSendTraceparent(send: unknown): boolean {
  if (typeof send !== 'boolean') throw invalidField('send_traceparent', 'Whether the trace is sent is true or false.');
  return send;
}

/** The columns of the headers after the edit. */
function checkedHeaders({ secrets }: Webhooks, current: CustomHeaders, edit: unknown): Pick<EndpointColumns, 'headers' | 'header_names'> {
  const headers = editHeaders(current, edit);
  if (Array.isArray(headers))
    throw webhookErrors.invalid_endpoint({
      detail: headers.map(({ name, message }) => (name === '' ? message : `${name}: ${message}`)).join(' '),
      errors: headers.map(({ name, message }) => ({
        location: name === '' ? ['body', 'headers'] : ['body', 'headers', name],
        code: 'invalid_header',
        message,
      })),
    });
  const names = Object.keys(headers);
  return names.length === 0
    ? { headers: null, header_names: null }
    : { headers: secrets.seal(JSON.stringify(headers)), header_names: names };
}
