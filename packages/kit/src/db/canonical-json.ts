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
      return JSON.stringify(value);
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
  if ('toJSON' in value && typeof value.toJSON === 'function') return textOf((value as { toJSON(): unknown }).toJSON());
  let text = '';
  for (const name of Object.keys(value).sort()) {
    const member = textOf((value as Readonly<Record<string, unknown>>)[name]);
    if (member !== undefined) text += `${text === '' ? '' : ','}[${JSON.stringify(name)},${member}]`;
  }
  return `{"":[${text}]}`;
}
