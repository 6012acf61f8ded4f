import { isUtf8 } from 'node:buffer';
import { coreErrors } from '../../errors/core-errors.ts';
import type { KitError } from '../../errors/kit-error.ts';
import { INPUT_LIMITS, type InputLimits } from '../../options/input-limits.ts';
import { findInexactNumbers, findJsonFault, type JsonFault } from './find-json-fault.ts';
import { EXACT_DIGITS, NUMBER_NOT_EXACT, NUMBER_NOT_EXACT_MESSAGE, noteInexactNumbers } from './inexact-numbers.ts';
import { jsonValue } from '../../db/values/json-value.ts';

const TOO_MANY_MEMBERS = 'too_many_members';
const TOO_MANY_ITEMS = 'too_many_items';

/** How deep a document may be nested, and how much may be in it. */
export type JsonLimits = Pick<InputLimits, 'jsonDepth' | 'jsonMembers' | 'jsonItems'>;

/** Keys that reach an object's prototype when copied carelessly. No honest client sends them. */
const prototypeKeys: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * Reads a JSON body, stricter than JSON.parse: valid UTF-8, no duplicate or prototype keys, no numbers that become infinite, no text a
 * database cannot hold (U+0000, lone surrogates), no more levels, members and items than the limits. Those are counted before anything is
 * parsed.
 *
 * The native parser does the reading. Duplicates are found by counting: as many keys in the value as colons outside strings, or one was
 * lost. Only a body with a fault is read again, character by character, to say where.
 */
export function parseJson(bytes: Buffer, limits: JsonLimits = INPUT_LIMITS): unknown {
  if (!isUtf8(bytes)) throw coreErrors.malformed_body({ detail: 'The request body is not valid UTF-8.' });
  const text = bytes.toString('utf8');
  const read = readJson(text, limits);
  const { jsonDepth: depthMax, jsonMembers: membersMax, jsonItems: itemsMax } = limits;
  if (read.isTooDeep === true)
    throw coreErrors.too_deep({
      detail: `The request body is nested more than ${depthMax} levels deep.`,
      extensions: { depth_max: depthMax },
    });
  if (read.fault?.code === TOO_MANY_MEMBERS)
    throw coreErrors.too_many_members({
      detail: `The request body has more than ${membersMax} members.`,
      extensions: { members_max: membersMax },
    });
  if (read.fault?.code === TOO_MANY_ITEMS)
    throw coreErrors.too_many_items({
      detail: `The arrays of the request body have more than ${itemsMax} items.`,
      extensions: { items_max: itemsMax },
    });
  if (read.fault !== undefined) throw malformed(read.fault);
  // In a body with members, numbers are reported at their place, together with what the schema finds.
  if (read.inexact?.some((path) => path.length === 0) === true)
    throw coreErrors.validation_error({ errors: [{ location: ['body'], code: NUMBER_NOT_EXACT, message: NUMBER_NOT_EXACT_MESSAGE }] });
  return read.value;
}

export interface ReadJson {
  readonly value?: unknown;
  readonly fault?: JsonFault;
  readonly isTooDeep?: boolean;
  /** Where numbers are that were not read exactly. They are also noted for {@link inexactNumberFaults}. */
  readonly inexact?: readonly (readonly (string | number)[])[];
}

/** Reads JSON by the rules of a body: {@link parseJson}. */
export function readJson(text: string, { jsonDepth, jsonMembers, jsonItems }: JsonLimits = INPUT_LIMITS): ReadJson {
  const shape = scan(text);
  if (shape.depth > jsonDepth) return { isTooDeep: true };
  if (shape.colons > jsonMembers) return { fault: { ...AT_START, code: TOO_MANY_MEMBERS, message: `more than ${jsonMembers} members` } };
  if (shape.items > jsonItems) return { fault: { ...AT_START, code: TOO_MANY_ITEMS, message: `arrays with more than ${jsonItems} items` } };
  let value: unknown;
  try {
    value = jsonValue(text);
  } catch {
    return { fault: findJsonFault(text, prototypeKeys) };
  }
  // Looking once at the text saves looking at every key: bodies that mention these words are rare.
  const isSuspect = shape.hasEscapes || text.includes('proto') || text.includes('constructor');
  const keys = countKeys(value, isSuspect);
  if (keys !== shape.colons) return { fault: findJsonFault(text, prototypeKeys) };
  if (shape.digits <= EXACT_DIGITS) return { value };
  const inexact = findInexactNumbers(text);
  noteInexactNumbers(value, inexact);
  return { value, inexact };
}

const AT_START = { line: 1, column: 1, path: [] } as const;

function malformed(found: JsonFault): KitError {
  return coreErrors.malformed_body({
    detail: `The request body is not acceptable JSON: ${found.message} at line ${found.line}, column ${found.column}.`,
    errors: [
      { location: ['body', ...found.path], code: found.code, message: `${found.message} at line ${found.line}, column ${found.column}` },
    ],
  });
}

const QUOTE = 34;
const BACKSLASH = 92;
const SPACE = 32;

const ZERO = 48;
const NINE = 57;
const POINT = 46;

interface JsonShape {
  readonly depth: number;
  /** One per member. */
  readonly colons: number;
  /** Of all arrays. */
  readonly items: number;
  readonly hasEscapes: boolean;
  /** Of the longest number. */
  readonly digits: number;
}

function scan(text: string): JsonShape {
  /** Members and items: the first one of an object or array that is not empty, and one after every comma. */
  let values = 0;
  let isEmpty = false;
  let depth = 0;
  let deepest = 0;
  let colons = 0;
  let hasEscapes = false;
  let digits = 0;
  let longest = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= ZERO && code <= NINE) {
      isEmpty = false;
      digits += 1;
      if (digits > longest) longest = digits;
      continue;
    }
    if (code !== POINT) digits = 0;
    if (code === QUOTE) {
      isEmpty = false;
      for (at += 1; at < text.length; at += 1) {
        const inner = text.charCodeAt(at);
        if (inner === QUOTE) break;
        if (inner === BACKSLASH) {
          hasEscapes = true;
          at += 1;
        }
      }
    } else if (code === 123 || code === 91) {
      depth += 1;
      values += 1;
      isEmpty = true;
      if (depth > deepest) deepest = depth;
    } else if (code === 125 || code === 93) {
      depth -= 1;
      if (isEmpty) values -= 1;
      isEmpty = false;
    } else if (code === 58) colons += 1;
    else if (code === 44) values += 1;
    else if (code > SPACE) isEmpty = false;
  }
  return { depth: deepest, colons, items: values - colons, hasEscapes, digits: longest };
}

/**
 * Keys of every object in the value; NaN, which equals no count, when something in it is not acceptable. Texts and key names need a look
 * only in a suspect body: without escapes a string of valid UTF-8 cannot hold U+0000 or half a surrogate pair.
 */
function countKeys(value: unknown, isSuspect: boolean): number {
  if (typeof value === 'number') return Number.isFinite(value) ? 0 : Number.NaN;
  if (typeof value === 'string') return isSuspect && !isStorable(value) ? Number.NaN : 0;
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countKeys(item, isSuspect);
    return count;
  }
  // JSON.parse makes plain objects, so there is nothing inherited to skip; Object.keys would make a list of each.
  // oxlint-disable-next-line guard-for-in
  for (const key in value) {
    if (isSuspect && (prototypeKeys.has(key) || !isStorable(key))) return Number.NaN;
    count += 1 + countKeys((value as Record<string, unknown>)[key], isSuspect);
  }
  return count;
}

/** Text both databases can hold. */
export function isStorable(text: string): boolean {
  return !text.includes('\u0000') && text.isWellFormed();
}
