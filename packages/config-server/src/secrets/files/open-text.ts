import { joinKeyPath } from '../../document/key-path.ts';
import { parseFile } from '../../document/formats.ts';
import { DecryptionBudget, type Keyring } from '../keyring.ts';
import { openBoundValue, openFile } from '../open-secrets.ts';
import { parseOrdered } from '../ordered-tree.ts';
import { openSopsDocument } from '../sops-document.ts';
import { isSopsDocument, type SopsMetadata } from '../sops-metadata.ts';
import { locateValues, readableReplacement, replaceParts, replacement, type LocatedValue } from './file-text.ts';
import { NotEditable } from './place.ts';
import { attempt, sameData } from './same-data.ts';
import { splitBlock } from './sops-block.ts';
import { openComments, type OpenedComment } from './sops-comments.ts';

/** An encrypted value of a file: kept, so that a value that did not change keeps its ciphertext and makes no diff. */
export interface Sealed {
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

function valueAtPath(raw: unknown, path: readonly string[]): unknown {
  return path.reduce((value, key) => (value as Record<string, unknown>)[key], raw);
}

/** Whether a file is a SOPS document. Throws a LoadFailure for a file that is not valid. */
export function isSopsText(path: string, text: string): boolean {
  return isSopsDocument(parseFile(path, Buffer.from(text), `file ${path}`));
}
