import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { joinKeyPath } from '../../document/key-path.ts';
import { parseFile } from '../../document/formats.ts';
import { looksEncrypted } from '../encrypted-value.ts';
import { parseOrdered, type OrderedTable } from '../ordered-tree.ts';
import { openWithDataKey, plainBytes, sopsMac } from '../sops-document.ts';
import { readSopsMetadata, type SopsMetadata, type SopsRecipient } from '../sops-metadata.ts';
import { compileRule, keysOf, type IsEncrypted, type SopsRule } from '../sops-rules.ts';
import { DATA_KEY_BYTES, encodeSopsValue, looksLikeSopsValue, openSopsValue, sealSopsValue, sopsPath } from '../sops-value.ts';
import { locateValues, replaceParts, replacement } from './file-text.ts';
import type { OpenText, Sealed } from './open-text.ts';
import { NotEditable } from './place.ts';
import { attempt, plain } from './same-data.ts';
import { NO_RECIPIENTS, NOT_SEALED, type Sealing } from './seal-values.ts';
import { joinBlock, sopsBlock } from './sops-block.ts';
import { sealComments } from './sops-comments.ts';

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

function timestamp(now: Date): string {
  return `${now.toISOString().slice(0, 19)}Z`;
}
