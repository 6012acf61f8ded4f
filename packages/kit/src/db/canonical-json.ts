import { jsonText } from './json-parameter.ts';

/** A value as a JSON column returns it: dates and bigints are strings, undefined members are dropped. */
export function plainJson(value: unknown): unknown {
  return value === undefined ? null : (JSON.parse(jsonText(value)) as unknown);
}

/**
 * JSON text that does not depend on the order of members: equal values have equal text, different values have different text. Needed for
 * hashes, because PostgreSQL stores the members of a JSON value in its own order. The text is for hashing and comparing only.
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(ordered(plainJson(value)));
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, ordered(member)] as const);
  // A list of pairs, not an object: JavaScript always puts integer-like names first.
  return { '': entries.sort(([a], [b]) => (a < b ? -1 : 1)) };
}
