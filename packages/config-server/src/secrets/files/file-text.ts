import { extname } from 'node:path';
import { stringify } from 'yaml';
import { parseFile, type RawTable } from '../../document/formats.ts';
import { jsonPlaces } from './json-places.ts';
import { NotEditable, type Place } from './place.ts';
import { tomlPlaces } from './toml-places.ts';
import { yamlPlaces } from './yaml-places.ts';

export type FileFormat = 'json' | 'toml' | 'yaml';

export function formatOf(path: string): FileFormat {
  const extension = extname(path).toLowerCase();
  return extension === '.json' ? 'json' : extension === '.toml' ? 'toml' : 'yaml';
}

/** A place with its value. */
export interface LocatedValue extends Place {
  readonly value: unknown;
  /** The path without positions in arrays. */
  readonly keys: readonly string[];
  /** Whether the value is an element of an array. */
  readonly isElement: boolean;
}

/** Every value of a file with its place, in the order of the file. Throws a LoadFailure for a file that is not valid. */
export function locateValues(path: string, text: string): LocatedValue[] {
  const raw = parseFile(path, Buffer.from(text), `file ${path}`);
  const format = formatOf(path);
  const places = format === 'json' ? jsonPlaces(text) : format === 'toml' ? tomlPlaces(text) : yamlPlaces(text);
  return places
    .filter((place) => place.path.length > 0)
    .sort((a, b) => a.start - b.start || b.end - a.end)
    .map((place) => Object.assign(place, valueIn(raw, place.path)));
}

/** A part of a text, and what replaces it. */
export interface Part {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Replaces parts of a text. They must not overlap. */
export function replaceParts(text: string, parts: readonly Part[]): string {
  let result = '';
  let at = 0;
  for (const part of [...parts].sort((a, b) => a.start - b.start)) {
    result += text.slice(at, part.start) + part.text;
    at = part.end;
  }
  return result + text.slice(at);
}

function valueIn(raw: RawTable, path: readonly string[]): Pick<LocatedValue, 'value' | 'keys' | 'isElement'> {
  const keys: string[] = [];
  let value: unknown = raw;
  let isElement = false;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key))
      throw new NotEditable('the file cannot be edited in place');
    isElement = Array.isArray(value);
    if (!isElement) keys.push(key);
    value = (value as RawTable)[key];
  }
  return { value, keys, isElement };
}

/** Replaces the value at a place. */
export function replacement(path: string, place: Place, value: unknown): Part {
  return { start: place.start, end: place.end, text: valueText(path, value, place.flow) + (place.comment ?? '') };
}

/** Replaces a ciphertext by its value, for people who edit it: a text of several lines has several lines, where it can. */
export function readableReplacement(path: string, text: string, place: Place, value: unknown): Part {
  const lines = typeof value === 'string' && value.includes('\n') ? linesText(path, text, place, value) : undefined;
  return lines === undefined ? replacement(path, place, value) : { start: place.start, end: place.end, text: lines };
}

function linesText(path: string, text: string, place: Place, value: string): string | undefined {
  const format = formatOf(path);
  // In TOML the line ends of a text are part of it, and an editor may make them all alike.
  if (text.includes('\r\n')) return undefined;
  if (format === 'toml') return ['"""', ...value.split('\n').map((line) => tomlText(line).slice(1, -1))].join('\n') + '"""';
  const isLast = /[^\S\n]*(?:\n|$)/y;
  isLast.lastIndex = place.end;
  if (format === 'json' || place.flow || UNSUITED_FOR_A_BLOCK.test(value) || !isLast.test(text)) return undefined;
  const [before] = /^ *(?:- +)*/.exec(text.slice(text.lastIndexOf('\n', place.start) + 1, place.start)) ?? [''];
  const indented = value.replace(/\n$/, '').replaceAll(/^(?=.)/gm, ' '.repeat(before.length + 2));
  return `${value.endsWith('\n') ? '|' : '|-'}\n${indented}`;
}

/** A block that begins with a blank, or ends with empty lines, needs more than its lines; control characters need quotes. */
// oxlint-disable-next-line no-control-regex
const UNSUITED_FOR_A_BLOCK = /^\s|\n\n$|[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u2028\u2029\uFEFF]/;

/** A value as the format writes it. */
function valueText(path: string, value: unknown, flow: boolean): string {
  const format = formatOf(path);
  // JavaScript writes it without its sign.
  if (Object.is(value, -0)) return '-0.0';
  if (format === 'toml') return tomlText(value);
  if (typeof value === 'bigint') return String(value);
  if (format === 'json' || flow || typeof value === 'object')
    return JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? Number(item) : item));
  const plain = stringify(value, { lineWidth: 0 }).trimEnd();
  return plain.includes('\n') || plain.startsWith('|') || plain.startsWith('>') ? JSON.stringify(value) : plain;
}

function tomlText(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value).replaceAll('\u007f', String.raw`\u007f`);
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return `[${value.map(tomlText).join(', ')}]`;
  if (value === null) throw new NotEditable('TOML cannot hold null');
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object') return JSON.stringify(value);
  const pairs = Object.keys(value).map(
    (key) => `${/^[\w-]+$/.test(key) ? key : JSON.stringify(key)} = ${tomlText((value as RawTable)[key])}`,
  );
  return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`;
}
