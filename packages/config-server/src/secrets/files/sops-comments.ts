import { Lexer } from 'yaml';
import type { IsEncrypted } from '../sops-rules.ts';
import { openSopsValue, sealSopsValue, sopsPath } from '../sops-value.ts';
import { formatOf, locateValues, type LocatedValue, type Part } from './file-text.ts';
import { NotEditable } from './place.ts';

/** The type of a comment that sops encrypted. The MAC does not cover comments, and only YAML has any. */
const COMMENT = 'comment';
const ENCRYPTED_COMMENT = /^ENC\[AES256_GCM,.*,type:comment\]\s*$/;

/** A comment that was decrypted: what it is encrypted with, and what it was. */
export interface OpenedComment {
  readonly text: string;
  readonly ciphertext: string;
  readonly keys: readonly string[];
  /** Decrypts the comment in the text it was found in. */
  readonly part: Part;
}

/** Decrypts the comments that sops encrypted. Left alone they would be lost: with the metadata, or with the data key. */
export function openComments(path: string, body: string, dataKey: Buffer): OpenedComment[] {
  return commentsOf(path, body, ENCRYPTED_COMMENT).map(({ start, end, text, near }) => {
    const ciphertext = text.trimEnd();
    const keys = near.find((candidate) => openSopsValue(ciphertext, dataKey, sopsPath(candidate)) !== undefined);
    const plain = keys === undefined ? undefined : openSopsValue(ciphertext, dataKey, sopsPath(keys))?.bytes.toString();
    if (keys === undefined || plain === undefined || /[\r\n]/.test(plain)) {
      const line = body.slice(0, start).split('\n').length;
      throw new NotEditable(`the comment on line ${line} does not decrypt; put it back to where it was, or remove it`);
    }
    return { text: plain, ciphertext, keys, part: { start, end, text: plain } };
  });
}

/**
 * Encrypts comments as sops does, in a document that had encrypted ones: a changed comment may be a secret like the one before it.
 * Comments that stay keep their ciphertext, unless it is of another data key.
 */
export function sealComments(
  path: string,
  body: string,
  dataKey: Buffer,
  isEncrypted: IsEncrypted,
  opened: readonly OpenedComment[],
  keepUnchanged: boolean,
): Part[] {
  if (opened.length === 0) return [];
  const unused = [...opened];
  return commentsOf(path, body).flatMap(({ start, end, text, keys, near }) => {
    const index = unused.findIndex(
      (before) => before.text === text && near.some((candidate) => sopsPath(candidate) === sopsPath(before.keys)),
    );
    const [before] = index === -1 ? [] : unused.splice(index, 1);
    if (before !== undefined && keepUnchanged) return [{ start, end, text: before.ciphertext }];
    const place = before?.keys ?? keys;
    if (text === '' || !isEncrypted(place)) return [];
    return [{ start, end, text: sealSopsValue({ type: COMMENT, bytes: Buffer.from(text) }, dataKey, sopsPath(place)) }];
  });
}

interface Comment {
  /** Of the text after the number sign. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** The keys of the table or array that sops puts the comment in. */
  readonly keys: readonly string[];
  /** The tables and arrays around the comment: sops moves a comment when it writes a file. */
  readonly near: readonly (readonly string[])[];
}

function commentsOf(path: string, text: string, pattern = /^/): Comment[] {
  if (formatOf(path) !== 'yaml') return [];
  const found = commentRanges(text).filter(({ start, end }) => pattern.test(text.slice(start, end)));
  if (found.length === 0) return [];
  const places = locateValues(path, text);
  let next = 0;
  return found.map(({ start, end }) => {
    while (next < places.length && places[next]!.start < start) next++;
    const [before, after] = [places[next - 1], places[next]];
    const near = [...enclosing(after), ...enclosing(before), []];
    return { start, end, text: text.slice(start, end), keys: tableOf(text, start, before, after), near };
  });
}

/** Where the comments of a YAML text are. In a string a number sign is nothing special. */
function commentRanges(text: string): { readonly start: number; readonly end: number }[] {
  const ranges: { start: number; end: number }[] = [];
  let at = 0;
  let isScalar = false;
  for (const lexeme of new Lexer().lex(text)) {
    // Marks of the lexer, which the text does not have.
    const isMark = lexeme === '\u0002' || lexeme === '\u0018' || lexeme === '\u001F';
    if (!isScalar && !isMark && lexeme.startsWith('#')) ranges.push({ start: at + 1, end: at + lexeme.trimEnd().length });
    isScalar = lexeme === '\u001F';
    if (!isMark) at += lexeme.length;
  }
  return ranges;
}

/** The tables and arrays above a value, from the inside to the outside. */
function enclosing(place: LocatedValue | undefined): (readonly string[])[] {
  return place === undefined ? [] : place.keys.map((_, index) => place.keys.slice(0, place.keys.length - index));
}

/** A comment after a value is beside it; a comment on its own line is before the next key, except below the last key of a table. */
function tableOf(text: string, start: number, before: LocatedValue | undefined, after: LocatedValue | undefined): readonly string[] {
  const indent = text.slice(text.lastIndexOf('\n', start) + 1, start - 1);
  const isTrailing = indent.trim() !== '';
  const following = text.slice(start).replace(/^.*(?:\n[^\S\n]*(?:#.*)?(?=\n|$))*\n?/, '');
  const isBelow = before !== undefined && /^[^\S\n]*/.exec(following)![0].length < indent.length;
  if (before !== undefined && (isTrailing || isBelow || after === undefined)) return tableWith(before);
  if (after === undefined) return [];
  // A table begins with its first key, which may be the next one.
  return after.container && after.start === text.length - following.trimStart().length ? after.keys : tableWith(after);
}

/** The keys of the table or array that a value is in, without the positions in arrays. */
function tableWith({ keys, isElement }: LocatedValue): readonly string[] {
  return isElement ? keys : keys.slice(0, -1);
}
