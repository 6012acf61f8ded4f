// Event types and the patterns that subscribe to them.

export const EVENT_TYPE_LENGTH_MAX = 100;
export const PATTERNS_MAX = 50;

/** What this module publishes itself: it may be subscribed to whatever the application's events are. */
const OWN_EVENTS = ['webhook.endpoint.disabled', 'webhook.ping'] as const;

const PART = '[A-Za-z0-9_-]+';
const TYPE = new RegExp(`^${PART}(?:\\.${PART})*$`);
const PATTERN = new RegExp(`^(?:\\*|${PART}(?:\\.${PART})*(?:\\.\\*)?)$`);

/** Dot-separated parts of letters, digits, `_` and `-`, such as `order.item.added`. */
export function isEventType(text: unknown): text is string {
  return typeof text === 'string' && text.length <= EVENT_TYPE_LENGTH_MAX && TYPE.test(text);
}

/** An exact type, `<prefix>.*`, or `*`. */
export function isPattern(text: unknown): text is string {
  return typeof text === 'string' && text.length <= EVENT_TYPE_LENGTH_MAX && PATTERN.test(text);
}

/** `order.*` matches everything below `order`, at any depth, but not `order` itself. */
export function matchesPattern(pattern: string, type: string): boolean {
  if (pattern === '*' || pattern === type) return true;
  return pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1));
}

/**
 * Every pattern that matches the type. Subscriptions are looked up by these few exact strings, so the cost of a
 * publish depends on the subscribers found and not on how many endpoints exist.
 */
export function candidatePatterns(type: string): readonly string[] {
  const patterns = [type];
  for (let dot = type.lastIndexOf('.'); dot !== -1; dot = type.lastIndexOf('.', dot - 1)) patterns.push(`${type.slice(0, dot)}.*`);
  patterns.push('*');
  return patterns;
}

export interface SubscriptionFault {
  readonly code: 'invalid_events' | 'unknown_event';
  readonly message: string;
  /** Places in the list, from 0, that it is about; none: it is about the list. */
  readonly entries: readonly number[];
}

/** The patterns of an endpoint, without repetitions, or everything that is wrong with them. */
export function parsePatterns(
  value: unknown,
  availableEvents?: readonly string[],
): readonly string[] | { readonly faults: readonly SubscriptionFault[] } {
  if (!Array.isArray(value) || value.length === 0) return ofList('Give at least one event type or pattern.');
  if (value.length > PATTERNS_MAX) return ofList(`Give at most ${PATTERNS_MAX} event types or patterns.`);
  const faults: SubscriptionFault[] = [];
  const invalid = placesOf(value, (pattern) => !isPattern(pattern));
  if (invalid.length > 0) {
    const which = invalid.length === 1 ? 'Entry' : 'Each of the entries';
    const places = invalid.map((index) => index + 1).join(', ');
    const message = `${which} ${places} is not an event type (such as "order.paid"), a pattern (such as "order.*") or "*".`;
    faults.push({ code: 'invalid_events', message, entries: invalid });
  }
  const unknown =
    availableEvents === undefined ? [] : placesOf(value, (pattern) => isPattern(pattern) && !matchesAny(pattern, availableEvents));
  if (unknown.length > 0) {
    const named = [...new Set(unknown.map((index) => String(value[index])))].join(', ');
    faults.push({ code: 'unknown_event', message: `No available event matches ${named}.`, entries: unknown });
  }
  return faults.length > 0 ? { faults } : [...new Set(value as string[])];
}

function placesOf(list: readonly unknown[], test: (entry: unknown) => boolean): number[] {
  return list.flatMap((entry, index) => (test(entry) ? [index] : []));
}

function matchesAny(pattern: string, types: readonly string[]): boolean {
  const own = pattern === '*' ? [] : OWN_EVENTS;
  return [...types, ...own].some((type) => matchesPattern(pattern, type));
}

function ofList(message: string): { readonly faults: readonly SubscriptionFault[] } {
  return { faults: [{ code: 'invalid_events', message, entries: [] }] };
}
