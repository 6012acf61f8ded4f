import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
  type Stats,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { NotEditable } from './place.ts';

/** A file as it was read. */
export interface FileSnapshot {
  /** Where the links of the given path lead: a link stays a link. */
  readonly path: string;
  /** Without a byte order mark, which not every parser of a format takes. */
  readonly text: string;
  readonly hasByteOrderMark: boolean;
  readonly bytes: Buffer;
  readonly stats: Stats;
}

const BYTE_ORDER_MARK = '\uFEFF';

export function readSnapshot(path: string): FileSnapshot {
  const real = realpathSync(path);
  const descriptor = openSync(real, 'r');
  try {
    const stats = fstatSync(descriptor);
    const bytes = readFileSync(descriptor);
    const whole = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    const hasByteOrderMark = whole.startsWith(BYTE_ORDER_MARK);
    return { path: real, text: hasByteOrderMark ? whole.slice(1) : whole, hasByteOrderMark, bytes, stats };
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Replaces a file in one step: readers, and a machine that loses power, find the old text or the new text. Mode and owner stay. A file
 * that changed since it was read is not replaced.
 */
export function replaceFile(snapshot: FileSnapshot, text: string): void {
  const { path, stats, hasByteOrderMark } = snapshot;
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);
  const descriptor = openSync(temporary, 'wx', 0o600);
  try {
    try {
      writeFileSync(descriptor, hasByteOrderMark ? BYTE_ORDER_MARK + text : text);
      keepOwner(descriptor, stats);
      fchmodSync(descriptor, stats.mode & 0o777);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    exclusively(path, () => {
      if (isChanged(snapshot)) throw new NotEditable('the file was changed by somebody else in the meantime; nothing was written');
      renameSync(temporary, path);
    });
  } catch (error) {
    unlinkSync(temporary);
    throw error;
  }
  syncFolder(dirname(path));
}

/** By content: another file may have the inode and, within a tick of the clock, the time of this one. */
function isChanged({ path, bytes, stats }: FileSnapshot): boolean {
  const { mode, uid, gid } = statSync(path);
  return mode !== stats.mode || uid !== stats.uid || gid !== stats.gid || !readFileSync(path).equals(bytes);
}

/** A lock is for one comparison and one rename. One that is older was left by a process that was killed. */
const LOCK_AGE_MS_MAX = 30_000;

/** Two processes that compare at the same time would both find the file as they read it, and the second would undo the first. */
function exclusively(path: string, work: () => void): void {
  const lock = join(dirname(path), `.${basename(path)}.lock`);
  while (!takeLock(lock)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  try {
    work();
  } finally {
    rmSync(lock, { force: true });
  }
}

function takeLock(lock: string): boolean {
  try {
    closeSync(openSync(lock, 'wx', 0o600));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const created = statSync(lock, { throwIfNoEntry: false })?.mtimeMs;
  if (created !== undefined && Date.now() - created > LOCK_AGE_MS_MAX) rmSync(lock, { force: true });
  return false;
}

/** With another owner or group the server might no longer be able to read the file. */
function keepOwner(descriptor: number, { uid, gid }: Stats): void {
  const now = fstatSync(descriptor);
  if (now.uid === uid && now.gid === gid) return;
  try {
    fchownSync(descriptor, uid, gid);
  } catch {
    throw new NotEditable('the owner and group of the file cannot be kept; run the program as its owner; nothing was written');
  }
}

function syncFolder(folder: string): void {
  // Windows cannot open a folder; there the rename is as durable as it gets.
  if (process.platform === 'win32') return;
  const descriptor = openSync(folder, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}
