import { RemoteSourceError } from './errors.ts';
import { jsonValue } from './json-value.ts';

/** A resolved configuration document, frozen all the way down: every reader of a source sees the same, unaltered one. */
export type Document = { readonly [key: string]: unknown };

/** Parses a whole body. A torn, non-UTF-8 or non-object body is refused without quoting any of it: bodies hold secrets. */
export function parseDocument(body: Buffer): Document {
  let value: unknown;
  try {
    value = jsonValue(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new RemoteSourceError('invalid-body', 'the response is not complete JSON in UTF-8');
  }
  if (!isDocument(value)) throw new RemoteSourceError('invalid-body', 'the response is JSON but not an object');
  return freeze(value);
}

export function isDocument(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Freezes tables and arrays. What a schema made of values, such as a Buffer or an object of a class, is left alone: some of these cannot be
 * frozen, and others do not work any more. Without recursion: a deeply nested document must not overflow the stack.
 */
export function freeze<T>(root: T): T {
  const waiting: unknown[] = [root];
  const seen = new Set<unknown>();
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value !== 'object' || value === null || !isPlain(value) || seen.has(value)) continue;
    seen.add(value);
    Object.freeze(value);
    for (const key of Object.keys(value)) waiting.push((value as Record<string, unknown>)[key]);
  }
  return root;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === null || prototype === Object.prototype;
}

/** The key path's segments. `\.` is a dot inside a key and `\\` a backslash, as in the server's own paths. */
export function parseKeyPath(path: string | readonly string[]): readonly string[] {
  if (typeof path !== 'string') {
    if (Array.isArray(path) && path.length > 0 && path.every((segment) => typeof segment === 'string')) return path;
    throw new RemoteSourceError('path', 'a key path is a dotted string or a non-empty array of strings');
  }
  const segments = [''];
  for (let index = 0; index < path.length; index += 1) {
    const character = path[index];
    if (character === '.') segments.push('');
    else if (character === '\\' && (path[index + 1] === '.' || path[index + 1] === '\\'))
      segments.push(segments.pop() + path[(index += 1)]!);
    else segments.push(segments.pop() + character!);
  }
  return segments;
}

/** Own keys only, so that `constructor` or `__proto__` finds data or nothing. */
export function valueAt(document: Document, segments: readonly string[]): unknown {
  let value: unknown = document;
  for (const segment of segments) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, segment)) return undefined;
    if (Array.isArray(value) && segment === 'length') return undefined;
    value = (value as Record<string, unknown>)[segment];
  }
  return value;
}
