import { createHash, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { parseDocument, type Document } from './document.ts';
import { RemoteSourceError } from './errors.ts';
import { parseEtag, parseGeneration } from './validators.ts';

/** The last good document and what a conditional request needs. */
export interface Kept {
  readonly document: Document;
  readonly digest: string;
  readonly etag: string | undefined;
  readonly generation: number | undefined;
}

interface Label {
  readonly format: 1;
  readonly application: string;
  readonly profile: string;
  readonly etag: string | null;
  readonly generation: number | null;
  readonly sha256: string;
}

export interface Section {
  readonly application: string;
  readonly profile: string;
}

export const digestOf = (body: Buffer): string => createHash('sha256').update(body).digest('hex');

/**
 * Reads a cache file: one line of JSON that labels the document, then the document exactly as the server sent it.
 * Undefined when there is none; a `cache-read` error when there is one that must not be used.
 */
export async function readCacheFile(path: string, section: Section, maxBytes: number): Promise<Kept | undefined> {
  const content = await readTrusted(path, maxBytes);
  if (content === undefined) return undefined;
  const newline = content.indexOf(0x0a);
  const body = content.subarray(newline + 1);
  const label = parseLabel(content.subarray(0, Math.max(newline, 0)).toString('utf8'));
  if (label === undefined || label.sha256 !== digestOf(body)) throw unusable(path, 'it is not a whole cache file');
  if (label.application !== section.application || label.profile !== section.profile) throw unusable(path, 'it belongs to another section');
  return {
    document: parseDocument(body),
    digest: label.sha256,
    etag: parseEtag(label.etag),
    generation: parseGeneration(label.generation),
  };
}

async function readTrusted(path: string, maxBytes: number): Promise<Buffer | undefined> {
  let file;
  try {
    // Without O_NONBLOCK a named pipe in the file's place would hang the start.
    file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw unusable(path, `it cannot be opened (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
  }
  try {
    const found = await file.stat();
    const { mode, uid, size } = found;
    if (!found.isFile()) throw unusable(path, 'it is not a regular file');
    const self = process.getuid?.();
    // A user who can write this file decides the configuration of a service that starts while the server is down.
    if (self !== undefined && ((mode & 0o022) !== 0 || (uid !== self && uid !== 0))) {
      throw unusable(path, 'others can write it; remove it, or restrict it to its owner with chmod 600');
    }
    if (size > maxBytes + LABEL_BYTES_MAX) throw unusable(path, 'it is larger than maxBytes');
    return await file.readFile();
  } finally {
    await file.close();
  }
}

const LABEL_BYTES_MAX = 4_096;

function parseLabel(line: string): Label | undefined {
  try {
    const label = JSON.parse(line) as Label;
    return label.format === 1 && typeof label.sha256 === 'string' ? label : undefined;
  } catch {
    return undefined;
  }
}

function unusable(path: string, why: string): RemoteSourceError {
  return new RemoteSourceError('cache-read', `cacheFile ${path} is not used: ${why}`);
}

/**
 * Replaces the cache file in one step: a reader, or a process that starts after a crash, sees the old content or the new, never a mixture.
 * The new file is created for its owner only, so that there is no moment in which others can read it.
 */
export async function writeCacheFile(path: string, section: Section, kept: Kept, body: Buffer): Promise<void> {
  const { etag = null, generation = null, digest } = kept;
  const label: Label = { format: 1, application: section.application, profile: section.profile, etag, generation, sha256: digest };
  const temporary = `${path}.${randomBytes(8).toString('hex')}.tmp`;
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(Buffer.concat([Buffer.from(`${JSON.stringify(label)}\n`), body]));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw new RemoteSourceError(
      'cache-write',
      `cacheFile ${path} could not be written: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`,
    );
  }
}

/** Makes the rename itself durable. Not every platform can open a folder; there the rename is still atomic. */
async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch {
    return;
  }
}

// A write takes milliseconds; a temporary this old was left by a process that was killed, and holds secrets.
const ABANDONED_MS = 60_000;

export async function removeAbandoned(path: string, now: number): Promise<void> {
  const folder = dirname(path);
  const ours = (name: string): boolean => name.startsWith(`${basename(path)}.`) && /\.[0-9a-f]{16}\.tmp$/.test(name);
  for (const name of (await readdir(folder).catch(() => [])).filter(ours)) {
    const file = join(folder, name);
    const age = await stat(file).then(
      (found) => now - found.mtimeMs,
      () => 0,
    );
    if (age > ABANDONED_MS) await unlink(file).catch(() => undefined);
  }
}
