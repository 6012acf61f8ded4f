import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import type { AgeLibrary } from '../age-library.ts';
import { RECIPIENTS_MAX } from '../keyring.ts';
import { NotEditable } from '../files/place.ts';

/** Beside or above the files it is for: one recipient per line, as `age -R` takes them. */
const RECIPIENTS_FILE = '.age-recipients';

export interface RecipientOptions {
  readonly recipients: readonly string[];
  readonly recipientFiles: readonly string[];
  readonly name: string | undefined;
}

export interface FoundRecipients {
  readonly recipients: readonly string[];
  /** What single values are bound to: the path of the file from the folder of `.age-recipients`, or its name. */
  readonly name: string;
}

/** The recipients given, or else those of the nearest `.age-recipients`. */
export function findRecipients(age: AgeLibrary, file: string, options: RecipientOptions): FoundRecipients {
  const nearest = nearestFile(dirname(file));
  const given = [
    ...options.recipients.map((recipient) => checked(age, recipient, '--recipient')),
    ...options.recipientFiles.flatMap((path) => recipientsIn(age, path)),
  ];
  const recipients = [...new Set(given.length > 0 || nearest === undefined ? given : recipientsIn(age, nearest))];
  if (recipients.length > RECIPIENTS_MAX) throw new NotEditable(`more than ${RECIPIENTS_MAX} recipients are not accepted by the server`);
  const path = nearest === undefined ? basename(file) : relative(dirname(nearest), file);
  return { recipients, name: options.name ?? path.split(sep).join('/') };
}

function nearestFile(folder: string): string | undefined {
  const path = join(folder, RECIPIENTS_FILE);
  if (existsSync(path)) return path;
  return dirname(folder) === folder ? undefined : nearestFile(dirname(folder));
}

function recipientsIn(age: AgeLibrary, path: string): string[] {
  const lines = readLines(path).map((line) => line.trim());
  return lines.flatMap((line, index) => (line === '' || line.startsWith('#') ? [] : [checked(age, line, `${path}, line ${index + 1}`)]));
}

function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split(/\r?\n/);
  } catch (error) {
    throw new NotEditable(`the recipients file ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

function checked(age: AgeLibrary, recipient: string, where: string): string {
  try {
    new age.Encrypter().addRecipient(recipient);
    return recipient;
  } catch {
    // Not quoted: it may be an identity in the wrong place.
    throw new NotEditable(`${where}: the recipient is not a public key of age, such as age1…; print it with: age-keygen -y`);
  }
}
