import { resolve } from 'node:path';
import { joinKeyPath, splitKeyPath } from '../../document/key-path.ts';
import { LoadFailure } from '../../document/load-failure.ts';
import { isSupportedExtension } from '../../document/formats.ts';
import type { AgeLibrary } from '../age-library.ts';
import { looksEncrypted } from '../encrypted-value.ts';
import { locateValues } from '../files/file-text.ts';
import { NotEditable } from '../files/place.ts';
import { readSnapshot, replaceFile } from '../files/replace-file.ts';
import { isSopsText, openText, type OpenText } from '../files/open-text.ts';
import { rekeyDocument, resealDocument, sealDocument } from '../files/seal-document.ts';
import { checkMoved, NO_RECIPIENTS, sealValues, type Sealing } from '../files/seal-values.ts';
import type { Keyring } from '../keyring.ts';
import { DEFAULT_RULE, type SopsRule } from '../sops-rules.ts';
import { findRecipients, type RecipientOptions } from './recipients.ts';

export interface CommandOptions extends RecipientOptions {
  readonly file: string;
  readonly keys: readonly string[];
  readonly rule: SopsRule | undefined;
  readonly toStandardOutput: boolean;
}

/** What a command needs of the world. */
export interface CommandContext {
  readonly age: AgeLibrary;
  readonly keyring: () => Keyring;
  readonly now: () => Date;
  readonly edit: (name: string, text: string) => string;
  /** Whether to edit again after a mistake; false where nobody can be asked. */
  readonly askToEditAgain: (problem: string) => boolean;
  readonly print: (text: string) => void;
}

export async function encrypt(options: CommandOptions, context: CommandContext): Promise<string> {
  const file = readSnapshot(existing(options.file));
  const path = resolve(options.file);
  if (isSopsText(path, file.text)) throw new NotEditable('the file is a SOPS document already; use edit or rekey');
  const sealing = sealingFor(path, options, context);
  if (sealing.recipients.length === 0) throw new NotEditable(NO_RECIPIENTS);
  if (options.keys.length === 0) {
    replaceFile(file, await sealDocument(path, file.text, options.rule ?? DEFAULT_RULE, sealing, context.now()));
    return `${options.file} is a SOPS document for ${counted(sealing.recipients.length, 'recipient')}`;
  }
  if (options.rule !== undefined)
    throw new NotEditable('--key encrypts single values, --encrypted-regex a whole document; use one of them');
  const keys = new Set(options.keys.map((key) => joinKeyPath(splitKeyPath(key))));
  const present = new Map(locateValues(path, file.text).map((place) => [joinKeyPath(place.path), place.value]));
  for (const key of keys) checkKey(key, present);
  replaceFile(file, await sealValues(path, file.text, keys, sealing));
  return `${options.file}: ${counted(keys.size, 'value')} encrypted for ${counted(sealing.recipients.length, 'recipient')}, bound to ${sealing.name}`;
}

function checkKey(key: string, present: ReadonlyMap<string, unknown>): void {
  if (!present.has(key)) {
    throw new NotEditable(`the file has no value at key ${key}; a TOML table with its own header must be written as an inline table first`);
  }
  const value = present.get(key);
  if (typeof value === 'string' && looksEncrypted(value)) throw new NotEditable(`key ${key} is encrypted already; use edit or rekey`);
}

export async function decrypt(options: CommandOptions, context: CommandContext): Promise<string | undefined> {
  const file = readSnapshot(existing(options.file));
  const open = await openEncrypted(options.file, file.text, context);
  if (options.toStandardOutput) {
    context.print(open.text);
    return undefined;
  }
  replaceFile(file, open.text);
  return `${options.file} is decrypted: ${counted(open.sealed.size, 'value')} in plain text`;
}

export async function rekey(options: CommandOptions, context: CommandContext): Promise<string> {
  const file = readSnapshot(existing(options.file));
  const path = resolve(options.file);
  const sealing = sealingFor(path, options, context);
  if (sealing.recipients.length === 0) throw new NotEditable(NO_RECIPIENTS);
  const open = await openEncrypted(options.file, file.text, context);
  const text = await sealValues(path, open.text, new Set(), sealing, open.sealed, false);
  replaceFile(file, open.sops === undefined ? text : await rekeyDocument(path, text, open, sealing, context.now()));
  return `${options.file} is encrypted for ${counted(sealing.recipients.length, 'recipient')}`;
}

export async function edit(options: CommandOptions, context: CommandContext): Promise<string> {
  const file = readSnapshot(existing(options.file));
  const path = resolve(options.file);
  const open = await openEncrypted(options.file, file.text, context);
  let text = open.text;
  for (;;) {
    text = context.edit(path, text);
    if (text === open.text && options.keys.length === 0) return `${options.file} is unchanged`;
    // A disk that is full leaves an empty file, and so does a person who wants to stop.
    if (text.trim() === '') throw new NotEditable('the editor left an empty file; nothing was written');
    try {
      replaceFile(file, await seal(path, text, open, options, context));
      return `${options.file} is saved`;
    } catch (error) {
      const isMistake = error instanceof LoadFailure || error instanceof NotEditable;
      if (!isMistake || !context.askToEditAgain(error.message)) throw error;
    }
  }
}

async function seal(path: string, text: string, open: OpenText, options: CommandOptions, context: CommandContext): Promise<string> {
  const keys = new Set(options.keys.map((key) => joinKeyPath(splitKeyPath(key))));
  const withValues = await sealValues(path, text, keys, sealingFor(path, options, context), open.sealed);
  const saved = open.sops === undefined ? withValues : resealDocument(path, withValues, open, context.now());
  checkMoved(path, open, saved);
  return saved;
}

async function openEncrypted(file: string, text: string, context: CommandContext): Promise<OpenText> {
  const open = await openText(resolve(file), text, context.keyring());
  if (open.sops === undefined && open.sealed.size === 0) throw new NotEditable('the file has no encrypted value; use encrypt');
  return open;
}

function sealingFor(path: string, options: CommandOptions, { age }: CommandContext): Sealing {
  return { age, ...findRecipients(age, path, options) };
}

function existing(file: string): string {
  if (isSupportedExtension(file)) return file;
  throw new NotEditable('only .toml, .yaml, .yml and .json files are supported');
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
