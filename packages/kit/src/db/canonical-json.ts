import { jsonText } from './json-parameter.ts';

/** A value as a JSON column returns it: dates and bigints are strings, undefined members are dropped. */
export function plainJson(value: unknown): unknown {
  return value === undefined ? null : (JSON.parse(jsonText(value)) as unknown);
}

/**
 * JSON text that does not depend on the order of members: equal values have equal text, different values have different text. Needed for
 * hashes, because PostgreSQL stores the members of a JSON value in its own order. The text is for hashing and comparing only: an object is
 * written as its sorted pairs, `{"":[["a",1],["b",2]]}`.
 */
export function canonicalJson(value: unknown): string {
  return textOf(value) ?? 'null';
}

/** As JSON.stringify does: undefined for what JSON leaves out. */
function textOf(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return quoted(value);
    case 'bigint':
      return `"${value}"`;
    case 'object':
      return value === null ? 'null' : Array.isArray(value) ? listText(value) : objectText(value);
    default:
      // Numbers and booleans; undefined, functions and symbols have no text.
      return JSON.stringify(value);
  }
}

function listText(values: readonly unknown[]): string {
  let text = '[';
  for (let index = 0; index < values.length; index += 1) text += (index === 0 ? '' : ',') + (textOf(values[index]) ?? 'null');
  return `${text}]`;
}

function objectText(value: object): string | undefined {
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return textOf((value as { toJSON(): unknown }).toJSON());
  let text = '';
  for (const name of sorted(Object.keys(value))) {
    const member = textOf((value as Readonly<Record<string, unknown>>)[name]);
    if (member !== undefined) text += `${text === '' ? '' : ','}[${quoted(name)},${member}]`;
  }
  return `{"":[${text}]}`;
}

/** By code unit. Most objects have few members, often in order: looking is cheaper than sorting. */
function sorted(names: string[]): string[] {
  for (let index = 1; index < names.length; index += 1) if ((names[index - 1] as string) > (names[index] as string)) return names.sort();
  return names;
}

const SHORT = 64;
/** ASCII that JSON writes as it is. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** As JSON.stringify, which takes twice as long for a short text. */
function quoted(text: string): string {
  return text.length < SHORT && PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}
