import { jsonText } from './json-parameter.ts';
import { dateJson } from './timestamp.ts';
import { jsonValue } from './json-value.ts';
import { isMembers } from '../../options/value-rule.ts';

/** A value as a JSON column returns it: dates and bigints are strings, undefined members are dropped. */
export function plainJson(value: unknown): unknown {
  return value === undefined ? null : jsonValue(jsonText(value));
}

/**
 * JSON text that does not depend on the order of members: equal values have equal text, different values have different text. Needed for
 * hashes, because PostgreSQL stores the members of a JSON value in its own order. The text is for hashing and comparing only: an object is
 * written as its sorted pairs, `{"":[["a",1],["b",2]]}`.
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(ordered(value)) ?? 'null';
}

/** The value with its objects as sorted pairs: one call of JSON.stringify then takes half the time of putting the text together here. */
function ordered(value: unknown): unknown {
  switch (typeof value) {
    case 'bigint':
      return value.toString();
    case 'object':
      return value === null ? null : Array.isArray(value) ? value.map(ordered) : orderedObject(value);
    default:
      // Undefined, functions and symbols have no text.
      return value;
  }
}

function orderedObject(value: object): unknown {
  if (value instanceof Date && value.toJSON === Date.prototype.toJSON) return dateJson(value);
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return ordered((value as { toJSON(): unknown }).toJSON());
  const pairs: unknown[] = [];
  for (const name of sorted(Object.keys(value))) {
    const member = ordered((value as Readonly<Record<string, unknown>>)[name]);
    if (member !== undefined && typeof member !== 'function' && typeof member !== 'symbol') pairs.push([name, member]);
  }
  return { '': pairs };
}

/** A replacer for JSON.stringify: members by name. For text that was stored or is read by people, where the pairs of {@link canonicalJson} are none. */
export function sortedMembers(_name: string, value: unknown): unknown {
  return isMembers(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value;
}

/** By code unit. Most objects have few members, often in order: looking is cheaper than sorting. */
function sorted(names: string[]): string[] {
  for (let index = 1; index < names.length; index += 1) if ((names[index - 1] as string) > (names[index] as string)) return names.sort();
  return names;
}
