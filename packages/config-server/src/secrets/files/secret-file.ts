import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { jsonValue } from '../../client/json-value.ts';
import { joinKeyPath } from '../../document/key-path.ts';
import { parseFile } from '../../document/formats.ts';
import { LoadFailure } from '../../document/load-failure.ts';
import type { AgeLibrary } from '../age-library.ts';
import { looksEncrypted, sealValue } from '../encrypted-value.ts';
import { DecryptionBudget, type Keyring } from '../keyring.ts';
import { openBoundValue, openFile, withValues } from '../open-secrets.ts';
import { parseOrdered, type OrderedTable } from '../ordered-tree.ts';
import { openSopsDocument, openWithDataKey, plainBytes, sopsMac } from '../sops-document.ts';
import { isSopsDocument, readSopsMetadata, type SopsMetadata, type SopsRecipient } from '../sops-metadata.ts';
import { compileRule, keysOf, type IsEncrypted, type SopsRule } from '../sops-rules.ts';
import { DATA_KEY_BYTES, encodeSopsValue, looksLikeSopsValue, openSopsValue, sealSopsValue, sopsPath } from '../sops-value.ts';
import { locateValues, readableReplacement, replaceParts, replacement, type LocatedValue, type Part } from './file-text.ts';
import { NotEditable } from './place.ts';
import { joinBlock, sopsBlock, splitBlock } from './sops-block.ts';
import { openComments, sealComments, type OpenedComment } from './sops-comments.ts';

/** An encrypted value of a file: kept, so that a value that did not change keeps its ciphertext and makes no diff. */
interface Sealed {
  readonly value: unknown;
  readonly ciphertext: string;
  /** The file that a single value is bound to; undefined for a value of a SOPS document. */
  readonly file?: string;
}

/** The SOPS part of a file. */
interface SopsPart {
  readonly metadata: SopsMetadata;
  readonly dataKey: Buffer;
  readonly body: string;
  readonly block: string;
  /** Comments that sops encrypted. */
  readonly comments: readonly OpenedComment[];
}

/** A file with every value decrypted, and what is needed to encrypt it again. */
export interface OpenText {
  readonly text: string;
  readonly sops: SopsPart | undefined;
  readonly sealed: ReadonlyMap<string, Sealed>;
}

/** Who can decrypt what is encrypted from now on, and the file that new values are bound to. */
export interface Sealing {
  readonly age: AgeLibrary;
  readonly recipients: readonly string[];
  readonly name: string;
}

/** Decrypts every value of a file in its text. Everything is verified as the server verifies it. */
export async function openText(path: string, text: string, keyring: Keyring): Promise<OpenText> {
  const origin = `file ${path}`;
  const bytes = Buffer.from(text);
  const raw = parseFile(path, bytes, origin);
  const { via, raw: opened } = await openFile({ path, origin, bytes, raw }, { keyring, mounts: [], ownFiles: [] });
  const sops = isSopsDocument(raw) ? await sopsPart(path, text, keyring) : undefined;
  const body = sops?.body ?? text;
  const sealed = new Map<string, Sealed>();
  const comments = sops?.comments.map(({ part }) => part) ?? [];
  const values: { readonly place: LocatedValue; readonly value: unknown }[] = [];
  for (const place of locateValues(path, body)) {
    const key = joinKeyPath(place.path);
    const how = via.get(key);
    if (how === undefined || typeof place.value !== 'string') continue;
    const value = valueAtPath(opened, place.path);
    const bound = how === 'age' ? await openBoundValue(key, place.value, { path, origin }, keyring, new DecryptionBudget()) : undefined;
    sealed.set(key, { value, ciphertext: place.value, ...(bound === undefined ? {} : { file: bound.file }) });
    values.push({ place, value });
  }
  const isDecrypted = (plainText: string): boolean => {
    const decrypted = attempt(() => parseFile(path, Buffer.from(plainText), origin));
    return decrypted !== undefined && sameData(decrypted, opened);
  };
  const ways = [
    values.map(({ place, value }) => readableReplacement(path, body, place, value)),
    values.map(({ place, value }) => replacement(path, place, value)),
  ];
  const plainText = ways.map((parts) => replaceParts(body, [...comments, ...parts])).find(isDecrypted);
  if (plainText === undefined) throw new NotEditable('the file cannot be decrypted in place; write its values in a simpler way');
  return { text: plainText, sops, sealed };
}

async function sopsPart(path: string, text: string, keyring: Keyring): Promise<SopsPart> {
  const split = splitBlock(path, text);
  const opened = await openSopsDocument(parseOrdered(path, text), keyring, new DecryptionBudget());
  if (split === undefined || 'problem' in opened)
    throw new NotEditable('the metadata below sops are written in a way that cannot be edited in place');
  const { metadata, dataKey } = opened;
  return { metadata, dataKey, ...split, comments: openComments(path, split.body, dataKey) };
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

const NOT_SEALED = 'the file cannot be encrypted in place; write its values in a simpler way';

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

/** Encrypts the whole file as a SOPS document. */
export async function sealDocument(path: string, text: string, rule: SopsRule, sealing: Sealing, now: Date): Promise<string> {
  const dataKey = randomBytes(DATA_KEY_BYTES);
  const age = await sealDataKey(dataKey, sealing);
  const { body, mac } = sealBody(path, text, dataKey, { rule, macOnlyEncrypted: false });
  const lastModified = timestamp(now);
  const block = sopsBlock(path, body, { age, lastModified, mac: sealMac(mac, dataKey, lastModified), rule, macOnlyEncrypted: false });
  return verified(path, text, joinBlock(path, { body, block }), dataKey);
}

/** Encrypts an edited SOPS document again, with the same data key and recipients. */
export function resealDocument(path: string, text: string, open: OpenText, now: Date): string {
  const { metadata, dataKey, block } = open.sops!;
  const { body, mac } = sealBody(path, text, dataKey, metadata, open);
  const lastModified = timestamp(now);
  // A recipient of a key service may have been created at the same time.
  const at = block.indexOf('lastmodified');
  const renewed = block.slice(0, at) + block.slice(at).replace(metadata.lastModified, lastModified);
  const sealedMac = sealMac(mac, dataKey, lastModified);
  return verified(path, text, joinBlock(path, { body, block: renewed.replace(metadata.mac, sealedMac) }), dataKey);
}

/**
 * Encrypts a SOPS document for other recipients. When somebody loses access, every value gets a new data key: the old one may have been
 * kept. Otherwise only the list of recipients changes.
 */
export async function rekeyDocument(path: string, text: string, open: OpenText, sealing: Sealing, now: Date): Promise<string> {
  const { metadata, dataKey: oldKey } = open.sops!;
  if (metadata.otherRecipients) {
    throw new NotEditable('the document also has recipients that are not of age; change its recipients with: sops updatekeys');
  }
  const isRevoked = metadata.age.some(({ recipient }) => !sealing.recipients.includes(recipient));
  const dataKey = isRevoked ? randomBytes(DATA_KEY_BYTES) : oldKey;
  const age = await sealDataKey(dataKey, sealing, isRevoked ? [] : metadata.age);
  const { body, mac } = sealBody(path, text, dataKey, metadata, open);
  const lastModified = timestamp(now);
  const block = sopsBlock(path, body, {
    age,
    lastModified,
    mac: sealMac(mac, dataKey, lastModified),
    rule: metadata.rule,
    macOnlyEncrypted: metadata.macOnlyEncrypted,
  });
  return verified(path, text, joinBlock(path, { body, block }), dataKey);
}

async function sealDataKey(
  dataKey: Buffer,
  { age, recipients }: Sealing,
  existing: readonly SopsRecipient[] = [],
): Promise<SopsRecipient[]> {
  if (recipients.length === 0) throw new NotEditable(NO_RECIPIENTS);
  return Promise.all(
    recipients.map(async (recipient) => {
      const before = existing.find((entry) => entry.recipient === recipient);
      if (before !== undefined) return before;
      const encrypter = new age.Encrypter();
      encrypter.addRecipient(recipient);
      return { recipient, enc: age.armor.encode(await encrypter.encrypt(dataKey)) };
    }),
  );
}

function sealMac(mac: string, dataKey: Buffer, lastModified: string): string {
  return sealSopsValue({ type: 'str', bytes: Buffer.from(mac) }, dataKey, lastModified);
}

function sealBody(
  path: string,
  text: string,
  dataKey: Buffer,
  metadata: Pick<SopsMetadata, 'rule' | 'macOnlyEncrypted'>,
  open?: OpenText,
): { readonly body: string; readonly mac: string } {
  const places = locateValues(path, text);
  const tree = parseOrdered(path, text);
  const isEncrypted = compileRule(metadata.rule, keysOf(tree));
  if (isEncrypted === undefined) throw new NotEditable(`the expression of ${metadata.rule.name} is not supported or takes too long`);
  // A ciphertext of another data key is of no use.
  const keepUnchanged = open?.sops?.dataKey.equals(dataKey) === true;
  const parts = sealComments(path, text, dataKey, isEncrypted, open?.sops?.comments ?? [], keepUnchanged);
  for (const place of places) {
    const { value, keys } = place;
    if (place.container || value === null || value === '' || !isEncrypted(keys)) continue;
    // The server would serve the inner ciphertext: what it decrypted is final.
    if (typeof value === 'string' && (looksEncrypted(value) || looksLikeSopsValue(value)))
      throw new NotEditable(`key ${joinKeyPath(place.path)} is encrypted already; decrypt the file first`);
    const before = keepUnchanged ? open.sealed.get(joinKeyPath(place.path)) : undefined;
    const isSame = before !== undefined && isUnchanged(before, value, dataKey, keys);
    const ciphertext = isSame ? before.ciphertext : sealLeaf(value, dataKey, keys);
    parts.push(replacement(path, place, ciphertext));
  }
  return { body: replaceParts(text, parts), mac: macOf(tree, isEncrypted, metadata.macOnlyEncrypted) };
}

/** Whether a ciphertext is of this value, and of the text that the MAC covers: other programs may write a number in another way. */
function isUnchanged(before: Sealed, value: unknown, dataKey: Buffer, keys: readonly string[]): boolean {
  if (before.file !== undefined || !isDeepStrictEqual(plain(before.value), plain(value))) return false;
  return typeof value === 'boolean' || openSopsValue(before.ciphertext, dataKey, sopsPath(keys))?.bytes.equals(plainBytes(value)) === true;
}

function sealLeaf(value: unknown, dataKey: Buffer, keys: readonly string[]): string {
  const leaf = value instanceof Date ? { type: 'time', bytes: Buffer.from(value.toISOString()) } : encodeSopsValue(value as string);
  return sealSopsValue(leaf, dataKey, sopsPath(keys));
}

function macOf(tree: OrderedTable, isEncrypted: IsEncrypted, macOnlyEncrypted: boolean): string {
  const mac = sopsMac({ macOnlyEncrypted });
  const visit = (node: unknown, keys: readonly string[]): void => {
    if (node instanceof Map) for (const [key, item] of node as OrderedTable) visit(item, [...keys, key]);
    else if (Array.isArray(node)) for (const item of node) visit(item, keys);
    else if (node !== null && node !== undefined) mac.add(plainBytes(node), isEncrypted(keys));
  };
  visit(tree, []);
  return mac.digest();
}

/** Nothing is written that does not decrypt to exactly what was encrypted. */
function verified(path: string, plainText: string, text: string, dataKey: Buffer): string {
  const wanted = parseFile(path, Buffer.from(plainText), `file ${path}`);
  const opened = attempt(() => {
    const tree = parseOrdered(path, text);
    const metadata = readSopsMetadata(tree);
    return typeof metadata === 'string' ? { problem: metadata } : openWithDataKey(tree, metadata, dataKey);
  });
  if (opened === undefined || 'problem' in opened || !isDeepStrictEqual(plain(opened.raw), plain(wanted))) {
    throw new NotEditable(NOT_SEALED);
  }
  return text;
}

/** A parser fails on a file that was written in an unusual way, and so do we. */
function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** JSON values, for comparing: an integer may be a bigint on one side and a number on the other. */
function plain(value: unknown): unknown {
  const text = JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? exact(item) : item));
  return text === undefined ? value : jsonValue(text);
}

/** Whether two parsed values are the same, also integers that JSON does not carry. */
function sameData(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(comparable(a), comparable(b));
}

function comparable(value: unknown): unknown {
  const integer = (item: bigint): number | string => (Number.isSafeInteger(Number(item)) ? Number(item) : String(item));
  const text = JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? integer(item) : item));
  return text === undefined ? undefined : jsonValue(text);
}

function exact(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new NotEditable('an integer beyond ±(2^53−1) cannot be encrypted; write it as a string');
  return number;
}

function timestamp(now: Date): string {
  return `${now.toISOString().slice(0, 19)}Z`;
}

function valueAtPath(raw: unknown, path: readonly string[]): unknown {
  return path.reduce((value, key) => (value as Record<string, unknown>)[key], raw);
}

/** Whether a file is a SOPS document. Throws a LoadFailure for a file that is not valid. */
export function isSopsText(path: string, text: string): boolean {
  return isSopsDocument(parseFile(path, Buffer.from(text), `file ${path}`));
}

/** Problems whose sentence may be printed. */
export function isPrintable(error: unknown): error is Error {
  return error instanceof NotEditable || error instanceof LoadFailure;
}
