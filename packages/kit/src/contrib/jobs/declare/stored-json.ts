import { jsonValue } from '../../../db/values/json-value.ts';

// What a job stores is JSON: its input, its result and the results of its steps. A value that JSON would change is rejected, because the
// handler would later work with something else than was given.

/** The JSON text of a value; undefined is stored as the empty text. */
export function jsonTextOf(value: unknown): { readonly text: string } | { readonly fault: string } {
  if (value === undefined) return { text: '' };
  try {
    // First, because it also finds values that contain themselves.
    const text = JSON.stringify(value) as string | undefined;
    const fault = changedByJson(value, '', 1);
    if (fault === null && text !== undefined) return { text };
    return { fault: fault ?? 'The value is not JSON.' };
  } catch (error) {
    return { fault: faultOfUnreadable(value) ?? (error instanceof Error ? error.message : String(error)) };
  }
}

/** Null where the value cannot be looked at either: a getter of it throws. */
function faultOfUnreadable(value: unknown): string | null {
  try {
    return changedByJson(value, '', 1, new Set());
  } catch {
    return null;
  }
}

/** Deeper values would exhaust the stack of whatever reads them. */
const DEPTH_MAX = 500;

/** The value of stored text. */
export function jsonValueOf(text: string): unknown {
  return text === '' ? undefined : jsonValue(text);
}

/**
 * A sentence about the first place where JSON has another value: `lines.2 is a Map`. Objects with `toJSON`, such as dates, say themselves what
 * they are in JSON; members that are undefined are as good as missing.
 */
function changedByJson(value: unknown, path: string, depth: number, seen?: Set<object>): string | null {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? null : sentence(path, String(value));
    case 'bigint':
      return sentence(path, 'a bigint');
    case 'function':
    case 'symbol':
    case 'undefined':
      return sentence(path, typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`);
    case 'object':
      return value === null ? null : changedObject(value, path, depth, seen);
    default:
      return null;
  }
}

function changedObject(value: object, path: string, depth: number, seen?: Set<object>): string | null {
  if (depth > DEPTH_MAX) return `It has more than ${DEPTH_MAX} levels of objects and lists.`;
  if (seen?.has(value)) return sentence(path, 'an object that contains itself');
  seen?.add(value);
  if (value instanceof Date && Number.isNaN(value.getTime())) return sentence(path, 'an invalid date');
  if (ArrayBuffer.isView(value)) return sentence(path, `a ${value.constructor.name}`);
  const { toJSON } = value as { readonly toJSON?: unknown };
  if (typeof toJSON === 'function') return null;
  if (!Array.isArray(value)) {
    const tag = Object.prototype.toString.call(value).slice('[object '.length, -1);
    if (tag !== 'Object') return sentence(path, `${/^[AEIOU]/.test(tag) ? 'an' : 'a'} ${tag}`);
  }
  // With its holes.
  const members: Iterable<[string | number, unknown]> = Array.isArray(value) ? value.entries() : Object.entries(value);
  for (const [name, member] of members) {
    if (member === undefined && !Array.isArray(value)) continue;
    const fault = changedByJson(member, path === '' ? String(name) : `${path}.${name}`, depth + 1, seen);
    if (fault !== null) return fault;
  }
  seen?.delete(value);
  return null;
}

function sentence(path: string, what: string): string {
  return `${path === '' ? 'It' : path} is ${what}, which JSON cannot store.`;
}
