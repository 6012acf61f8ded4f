import { isDeepStrictEqual } from 'node:util';
import { joinKeyPath } from '../../document/key-path.ts';
import { parseFile } from '../../document/formats.ts';
import type { AgeLibrary } from '../age-library.ts';
import { sealValue } from '../encrypted-value.ts';
import { withValues } from '../open-secrets.ts';
import { locateValues, replaceParts, replacement, type LocatedValue, type Part } from './file-text.ts';
import type { OpenText, Sealed } from './open-text.ts';
import { NotEditable } from './place.ts';
import { attempt, plain, sameData } from './same-data.ts';

/** Who can decrypt what is encrypted from now on, and the file that new values are bound to. */
export interface Sealing {
  readonly age: AgeLibrary;
  readonly recipients: readonly string[];
  readonly name: string;
}

/** Encrypts single values: those at `keys`, and those that were encrypted before. Unchanged ones keep their ciphertext. */
export async function sealValues(
  path: string,
  text: string,
  keys: ReadonlySet<string>,
  sealing: Sealing,
  previous: ReadonlyMap<string, Sealed> = new Map(),
  keepUnchanged = true,
): Promise<string> {
  const parts: Part[] = [];
  const values = new Map<string, unknown>();
  let outer: { readonly key: string; readonly end: number } | undefined;
  for (const place of locateValues(path, text)) {
    const key = joinKeyPath(place.path);
    const before = previous.get(key);
    if (!keys.has(key) && before?.file === undefined) continue;
    if (outer !== undefined && place.start < outer.end)
      throw new NotEditable(`key ${key} is inside key ${outer.key}, which is encrypted as a whole; encrypt one of them`);
    outer = { key, end: place.end };
    values.set(key, place.value);
    const isSame = keepUnchanged && before?.file !== undefined && isDeepStrictEqual(plain(before.value), plain(place.value));
    const value = isSame ? before.ciphertext : await sealPlace(place, key, sealing, before?.file ?? sealing.name);
    parts.push(replacement(path, place, value));
  }
  const sealed = replaceParts(text, parts);
  const read = attempt(() => withValues(parseFile(path, Buffer.from(sealed), ''), values));
  if (read === undefined || !sameData(read, parseFile(path, Buffer.from(text), `file ${path}`))) throw new NotEditable(NOT_SEALED);
  return sealed;
}

export const NOT_SEALED = 'the file cannot be encrypted in place; write its values in a simpler way';

/**
 * Single values are encrypted by their keys, and a SOPS document may have a rule for keys. A value that an editor moved to another key,
 * or to another position of an array, would be saved in plain text without anybody noticing.
 */
export function checkMoved(path: string, open: OpenText, saved: string): void {
  const before = new Map(locateValues(path, open.text).map((place) => [joinKeyPath(place.path), place.value]));
  const after = new Map(locateValues(path, saved).map((place) => [joinKeyPath(place.path), place.value]));
  for (const [key, { value, ciphertext, file }] of open.sealed) {
    if (typeof value === 'boolean' || value === null || after.get(key) === ciphertext) continue;
    // A value of a SOPS document stays encrypted as long as its key is there.
    if (file === undefined && after.has(key)) continue;
    for (const [place, found] of after) {
      if (!sameData(found, value) || sameData(before.get(place), found)) continue;
      throw new NotEditable(`key ${place} has the value of key ${key}, which was encrypted, in plain text; use --key ${place}`);
    }
  }
}

async function sealPlace(place: LocatedValue, key: string, { age, recipients }: Sealing, file: string): Promise<string> {
  if (recipients.length === 0) throw new NotEditable(NO_RECIPIENTS);
  return sealValue(age, { file, key, value: plain(place.value) }, recipients);
}

export const NO_RECIPIENTS =
  'no recipient is known; give --recipient or --recipients-file, or put a file .age-recipients beside or above the file';
