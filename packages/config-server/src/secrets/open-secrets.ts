import { joinKeyPath } from '../document/key-path.ts';
import { parseFile, type RawTable } from '../document/formats.ts';
import { LoadFailure } from '../document/load-failure.ts';
import { DEPTH_MAX, emptyTable } from '../document/value.ts';
import { ciphertextOf, isBoundTo, looksEncrypted, parseBoundValue, type BoundValue } from './encrypted-value.ts';
import { DecryptionBudget, type Keyring } from './keyring.ts';
import { parseOrdered } from './ordered-tree.ts';
import { looksLikeReference, parseReference } from './reference.ts';
import type { Secrets } from './secrets.ts';
import { openSopsDocument } from './sops-document.ts';
import { isSopsDocument } from './sops-metadata.ts';
import { looksLikeSopsValue } from './sops-value.ts';

/** A file that was parsed, before its secrets are opened. */
export interface ParsedFile {
  readonly path: string;
  readonly origin: string;
  readonly bytes: Uint8Array;
  readonly raw: RawTable;
  /** The table that is served; absent for the whole document. Single values and references outside of it are left alone. */
  readonly table?: string;
}

/** A string in a file that stands for a file of a mount. */
export interface FileReference {
  readonly key: string;
  readonly origin: string;
  readonly path: string;
}

/** A file whose encrypted values were replaced, and where its references still are. */
export interface OpenedFile {
  readonly raw: RawTable;
  readonly references: readonly FileReference[];
  /** How a value came into the file, by key path: `sops`, `age`, or the reference. */
  readonly via: ReadonlyMap<string, string>;
}

/** Decrypts a file and finds its references. A decrypted value is final: it is never taken for a reference or a ciphertext. */
export async function openFile(file: ParsedFile, { keyring, mounts }: Secrets): Promise<OpenedFile> {
  const via = new Map<string, string>();
  const budget = new DecryptionBudget();
  let { raw } = file;
  if (keyring !== undefined && isSopsDocument(raw)) {
    const opened = await openSops(file, keyring, budget);
    raw = opened.raw;
    for (const key of opened.decrypted) via.set(key, 'sops');
  }
  const found = findSecrets({ ...file, raw }, via, keyring !== undefined, mounts);
  const values = new Map<string, unknown>();
  if (keyring !== undefined) {
    for (const { key, text } of found.encrypted) values.set(key, (await openBoundValue(key, text, file, keyring, budget)).value);
  }
  for (const key of values.keys()) via.set(key, 'age');
  for (const { key, path } of found.references) via.set(key, `ref+file://${path}`);
  return { raw: withValues(raw, values), references: found.references, via };
}

/** A copy of a table with the values at some key paths replaced. */
export function withValues(raw: RawTable, values: ReadonlyMap<string, unknown>): RawTable {
  return values.size === 0 ? raw : (replace(raw, [], values) as RawTable);
}

async function openSops(
  file: ParsedFile,
  keyring: Keyring,
  budget: DecryptionBudget,
): Promise<{ raw: RawTable; decrypted: ReadonlySet<string> }> {
  let tree;
  try {
    tree = parseOrdered(file.path, new TextDecoder().decode(file.bytes));
  } catch {
    throw new LoadFailure('decrypt', file.origin, 'the SOPS document has aliases or nests too deep');
  }
  const opened = await openSopsDocument(tree, keyring, budget);
  if ('problem' in opened) throw new LoadFailure('decrypt', file.origin, opened.problem, opened.key);
  return opened;
}

interface Found {
  readonly encrypted: { readonly key: string; readonly text: string }[];
  readonly references: FileReference[];
}

/** Looks for ciphertexts and references in the served table, except among values that were decrypted already. */
function findSecrets(
  { raw, origin, table }: ParsedFile,
  final: ReadonlyMap<string, string>,
  ciphertexts: boolean,
  mounts: readonly string[],
): Found {
  const found: Found = { encrypted: [], references: [] };
  const visit = (value: unknown, path: readonly string[]): void => {
    if (typeof value === 'string') {
      if (value.startsWith('ENC[') || value.startsWith('ref+')) inspect(value, joinKeyPath(path));
    } else if (typeof value === 'object' && value !== null && !(value instanceof Date)) {
      if (path.length > DEPTH_MAX) throw new LoadFailure('parse', origin, `tables and arrays nest deeper than ${DEPTH_MAX} levels`);
      for (const key of Object.keys(value)) visit((value as RawTable)[key], [...path, key]);
    }
  };
  const inspect = (text: string, key: string): void => {
    if (final.has(key)) return;
    if (ciphertexts && looksEncrypted(text)) found.encrypted.push({ key, text });
    else if (ciphertexts && looksLikeSopsValue(text)) {
      throw new LoadFailure('decrypt', origin, `key ${key} is a value of a SOPS document, but the file has no SOPS metadata for it`, key);
    } else if (mounts.length > 0 && looksLikeReference(text)) {
      const reference = parseReference(text);
      if ('problem' in reference) throw new LoadFailure('reference', origin, `key ${key} ${reference.problem}`, key);
      found.references.push({ key, origin, path: reference.path });
    }
  };
  if (table === undefined) visit(raw, []);
  else if (Object.hasOwn(raw, table)) visit(raw[table], [table]);
  return found;
}

/** Decrypts one value and checks that it belongs to this key and file. */
export async function openBoundValue(
  key: string,
  text: string,
  file: Pick<ParsedFile, 'path' | 'origin'>,
  keyring: Keyring,
  budget: DecryptionBudget,
): Promise<BoundValue> {
  const failure = (what: string): LoadFailure => new LoadFailure('decrypt', file.origin, `key ${key} ${what}`, key);
  const ciphertext = ciphertextOf(text);
  if (ciphertext === undefined) throw failure('is not a complete ENC[age,…] value');
  const opened = await keyring.open(ciphertext, budget);
  if ('problem' in opened) throw failure(AGE_PROBLEMS[opened.problem]);
  const bound = parseBoundValue(opened.plaintext, (bytes) => parseFile('value.json', bytes, file.origin));
  if (bound === undefined) throw failure('decrypts, but not to a value of this format; encrypt it with config-secrets');
  if (bound.key !== key || !isBoundTo(bound.file, file.path)) {
    throw failure('was encrypted for another key or file; encrypt it for this place with config-secrets');
  }
  return bound;
}

const AGE_PROBLEMS = {
  'no-identity': 'does not decrypt with any identity; add the identity, or rekey the file for one of them',
  damaged: 'does not decrypt: it is damaged',
  recipients: 'has more recipients than are accepted',
  budget: 'is one encrypted value too many for the recipients and identities; encrypt the file as one SOPS document instead',
} as const;

function replace(value: unknown, path: readonly string[], values: ReadonlyMap<string, unknown>): unknown {
  if (typeof value === 'string') {
    const key = joinKeyPath(path);
    return values.has(key) ? values.get(key) : value;
  }
  if (Array.isArray(value)) return value.map((item, index) => replace(item, [...path, String(index)], values));
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0 || value instanceof Date) return value;
  const table: RawTable = emptyTable();
  for (const key of Object.keys(value)) table[key] = replace((value as RawTable)[key], [...path, key], values);
  return table;
}
