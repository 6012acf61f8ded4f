import { plainJson } from '../../../db/values/canonical-json.ts';
import { dateJson } from '../../../db/values/timestamp.ts';
import { isSensitiveName, MASK } from '../../../middleware/masking.ts';
import { isPlainObject } from '../../../options/value-rule.ts';

/** Values that are deeper are read by JSON.parse first: JSON.stringify says so of one that contains itself. */
const DEPTH_MAX = 100;

/**
 * What JSON makes of a value (see `plainJson`), with no member of a sensitive name showing its value, at any depth. `sensitive` are names that
 * the app's models mark; null: nothing is masked. In one pass: writing and parsing JSON first was the larger part of the work for an entry.
 */
export function masked(value: unknown, sensitive: ReadonlySet<string> | null, depth = 0): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      // JSON has no negative zero.
      return Number.isFinite(value) ? value + 0 : null;
    case 'bigint':
      return value.toString();
    case 'object':
      return value === null ? null : maskedObject(value, sensitive, depth);
    default:
      // Undefined, functions and symbols have no JSON.
      return undefined;
  }
}

function maskedObject(value: object, sensitive: ReadonlySet<string> | null, depth: number): unknown {
  if (value instanceof Date) return dateJson(value);
  if (Array.isArray(value)) return Array.from(value, (item: unknown) => masked(item, sensitive, depth + 1) ?? null);
  if (depth > DEPTH_MAX || !isPlain(value)) return masked(plainJson(value), sensitive, Number.NEGATIVE_INFINITY);
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    const isSensitive = sensitive !== null && member !== null && (sensitive.has(name) || isSensitiveName(name));
    const shown = isSensitive ? MASK : masked(member, sensitive, depth + 1);
    if (shown === undefined || member === undefined) continue;
    // Assigning __proto__ would set the prototype; defined, it stays a member.
    if (name === '__proto__') Object.defineProperty(copy, name, { value: shown, enumerable: true });
    else copy[name] = shown;
  }
  return copy;
}

/** An object that JSON reads member by member. */
function isPlain(value: object): boolean {
  return isPlainObject(value) && typeof value['toJSON'] !== 'function';
}
