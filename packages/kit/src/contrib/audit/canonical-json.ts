import { jsonText } from '../../db/json-parameter.ts';

/** A value as it comes back from a JSON column: dates and bigints are texts, undefined members are gone. */
export function plainJson(value: unknown): unknown {
  return value === undefined ? null : (JSON.parse(jsonText(value)) as unknown);
}

/**
 * JSON with the members of every object in one order. PostgreSQL keeps JSON in an order of its own, so the text that was hashed can only
 * be had again in an order that does not depend on it.
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(ordered(plainJson(value)));
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, ordered(member)] as const);
  // A list of pairs, not an object: JavaScript puts integer-like names first, whatever order they are added in.
  return { '': entries.sort(([a], [b]) => (a < b ? -1 : 1)) };
}
