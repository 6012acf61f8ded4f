import { readdirSync, realpathSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { readRegularFile } from '../file-access.ts';
import { loadAge, type AgeLibrary } from '../secrets/age-library.ts';
import { Keyring } from '../secrets/keyring.ts';
import type { Secrets } from '../secrets/secrets.ts';
import type { Problem } from './problem.ts';
import { TableReader } from './table-reader.ts';

/** Enough for a rotation in every team; each identity is tried on each ciphertext. */
const IDENTITIES_MAX = 64;
const IDENTITY = /^AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]+$/;

export interface SecretsRead {
  readonly secrets: Secrets | undefined;
  /** Identity files, and the folders that have them: a folder ends with a slash, for every name in it counts. */
  readonly files: readonly string[];
}

/** The `[server.secrets]` table. A mount that does not exist is added to `missing`. A problem names the file and the line; nothing of an identity is ever quoted. */
export function readSecrets(
  server: TableReader,
  folder: string,
  modes: boolean,
  ownFiles: readonly string[],
  missing: string[],
): SecretsRead {
  const reader = server.table('secrets');
  if (reader === undefined) return { secrets: undefined, files: [] };
  const files: string[] = [];
  const listed = readPaths(reader, 'identities', folder);
  const mounts = readPaths(reader, 'mounts', folder) ?? [];
  if (listed === undefined && !reader.has('mounts'))
    reader.problem('', 'sets neither identities nor mounts; set one of them or remove the table');
  reader.finish();
  for (const [index, mount] of mounts.entries()) checkMount(reader, `mounts[${index}]`, mount, missing);
  const keyring = listed === undefined ? undefined : readKeyring(reader, listed, modes, files);
  return { secrets: { keyring, mounts, ownFiles: [...ownFiles, ...files].map(realPath) }, files };
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function readPaths(reader: TableReader, key: string, folder: string): string[] | undefined {
  const value = reader.value(key);
  if (value === undefined) return undefined;
  const paths: unknown[] = Array.isArray(value) ? value : [value];
  // Quoted as a path that does not exist, an identity written here would be printed.
  if (paths.length > 0 && paths.every((path): path is string => isPath(path))) return paths.map((path) => resolve(folder, path));
  reader.problem(key, 'must be a path or an array of paths');
  return [];
}

function isPath(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !/[\r\n]|AGE-SECRET-KEY-/i.test(value);
}

function checkMount(reader: TableReader, key: string, path: string, missing: string[]): void {
  try {
    if (statSync(path).isDirectory()) return;
    reader.problem(key, `${path} is not a folder`);
  } catch (error) {
    reader.problem(key, `${path} cannot be read (${codeOf(error)})`);
  }
  missing.push(path);
}

function readKeyring(reader: TableReader, listed: readonly string[], modes: boolean, files: string[]): Keyring | undefined {
  const age = loadAge();
  if (age === undefined) {
    reader.problem('identities', 'needs the package age-encryption, which cannot be loaded; install it beside this one, or remove the key');
    return undefined;
  }
  const identities: string[] = [];
  for (const path of listed) identities.push(...readIdentities(reader, age, path, modes, files));
  if (identities.length > IDENTITIES_MAX)
    reader.problem('identities', `names more than ${IDENTITIES_MAX} identities; remove those that are no longer used`);
  return identities.length === 0 ? undefined : new Keyring(age, identities);
}

/** Identities for a program without a server.toml, with a sentence for each problem. */
export function readIdentityPaths(
  age: AgeLibrary,
  paths: readonly string[],
): { readonly identities: string[]; readonly problems: readonly string[] } {
  const problems: Problem[] = [];
  const reader = new TableReader('', {}, problems);
  const identities = paths.flatMap((path) => readIdentities(reader, age, resolve(path), process.platform !== 'win32', []));
  return { identities, problems: problems.map(({ message }) => message) };
}

/** The identities of a file, or of every file in a folder. Names that begin with a dot are skipped: Kubernetes keeps its links there. */
function readIdentities(reader: TableReader, age: AgeLibrary, path: string, modes: boolean, files: string[]): string[] {
  files.push(path);
  try {
    const stats = statSync(path);
    if (modes && !isOwnerOnly(reader, path, stats.mode, stats.isDirectory())) return [];
    if (!stats.isDirectory()) return readIdentityFile(reader, age, path);
    files[files.length - 1] = `${path}/`;
    const names = readdirSync(path).filter((name) => !name.startsWith('.'));
    const found = names.sort().flatMap((name) => readFolderEntry(reader, age, join(path, name), modes, files));
    if (names.length === 0)
      reader.problem('identities', `${path} has no identity file; create one with: age-keygen -o ${join(path, 'identity.txt')}`);
    return found;
  } catch (error) {
    reader.problem('identities', `${path} cannot be read (${codeOf(error)})`);
    return [];
  }
}

function readFolderEntry(reader: TableReader, age: AgeLibrary, path: string, modes: boolean, files: string[]): string[] {
  try {
    const stats = statSync(path);
    if (stats.isDirectory()) return [];
    files.push(path);
    return modes && !isOwnerOnly(reader, path, stats.mode, false) ? [] : readIdentityFile(reader, age, path);
  } catch (error) {
    reader.problem('identities', `${path} cannot be read (${codeOf(error)})`);
    return [];
  }
}

function isOwnerOnly(reader: TableReader, path: string, mode: number, folder: boolean): boolean {
  if ((mode & 0o077) === 0) return true;
  const shown = (mode & 0o777).toString(8).padStart(4, '0');
  reader.problem(
    'identities',
    `${path} is accessible to others than its owner (mode ${shown}); restrict it with: chmod ${folder ? '0500' : '0400'} ${path}`,
  );
  return false;
}

function readIdentityFile(reader: TableReader, age: AgeLibrary, path: string): string[] {
  const identities: string[] = [];
  const lines = readRegularFile(path).toString().split(/\r?\n/);
  for (const [index, line] of lines.entries()) {
    const text = line.trim();
    if (text === '' || text.startsWith('#')) continue;
    if (isIdentity(age, text)) identities.push(text);
    else reader.problem('identities', `${path} has something else than an age identity on line ${index + 1}; create one with: age-keygen`);
  }
  if (identities.length === 0) reader.problem('identities', `${path} has no age identity; create one with: age-keygen`);
  return identities;
}

function isIdentity(age: AgeLibrary, text: string): boolean {
  if (!IDENTITY.test(text)) return false;
  try {
    new age.Decrypter().addIdentity(text);
    return true;
  } catch {
    return false;
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'unknown error';
}
