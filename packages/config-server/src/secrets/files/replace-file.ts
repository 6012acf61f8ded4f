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
  readonly stats: Stats;
}

const BYTE_ORDER_MARK = '\uFEFF';

export function readSnapshot(path: string): FileSnapshot {
  const real = realpathSync(path);
  const descriptor = openSync(real, 'r');
  try {
    const stats = fstatSync(descriptor);
    const whole = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(descriptor));
    const hasByteOrderMark = whole.startsWith(BYTE_ORDER_MARK);
    return { path: real, text: hasByteOrderMark ? whole.slice(1) : whole, hasByteOrderMark, stats };
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Replaces a file in one step: readers, and a machine that loses power, find the old text or the new text. Mode and owner stay. A file
 * that changed since it was read is not replaced.
 */
export function replaceFile({ path, stats, hasByteOrderMark }: FileSnapshot, text: string): void {
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
    const now = statSync(path);
    if (now.ino !== stats.ino || now.mtimeMs !== stats.mtimeMs || now.size !== stats.size) {
      throw new NotEditable('the file was changed by somebody else in the meantime; nothing was written');
    }
    renameSync(temporary, path);
  } catch (error) {
    unlinkSync(temporary);
    throw error;
  }
  syncFolder(dirname(path));
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
