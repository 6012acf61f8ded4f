import type { Stats } from 'node:fs';
import { LoadFailure } from '../document/load-failure.ts';
import type { FileAccess } from '../file-access.ts';
import type { FileSource } from './definition.ts';

/**
 * A save in place truncates and then writes; a ConfigMap swap moves all files at once. Reading in the middle of either gives
 * a document that was never written, and a truncated TOML file even parses. So a set of files counts as read when none of them changed
 * between the first byte of the first and the last byte of the last, and none was written within the last SETTLE_MS.
 */
const SETTLE_MS = 20;
const ATTEMPTS_MAX = 10;
/** A save in place begins with an empty file. On a busy machine its content may come late. */
const SETTLE_EMPTY_MS = SETTLE_MS * ATTEMPTS_MAX;

export type Sources = ReadonlyMap<FileSource, Buffer>;

/** What one attempt found of a file. */
interface Found {
  readonly stats: Stats | undefined;
  readonly content: Buffer | undefined;
}

/**
 * Reads files as one consistent set. An optional file that does not exist is absent from the result. A file whose content is rewritten in
 * place again and again fails: a part of it would be a document that nobody wrote. A file that is replaced that often is complete, and one
 * that is only touched is what it was.
 */
export async function readSources(files: readonly FileSource[], access: FileAccess, clock: () => number = Date.now): Promise<Sources> {
  let earlier: readonly Found[] = [];
  let rewritten: FileSource | undefined;
  for (let attempt = 1; ; attempt++) {
    const before = await together(files.map((file) => tryRead(file, () => access.stat(file.path))));
    const contents = await together(files.map((file) => tryRead(file, () => access.read(file.path))));
    const after = await together(files.map((file) => tryRead(file, () => access.stat(file.path))));
    const now = clock();
    const settled = after.every((stats, index) => sameStats(before[index], stats) && !justWritten(stats, now));
    if (settled) return collect(files, contents);
    const found = files.map((_, index) => ({ stats: after[index], content: contents[index] }));
    rewritten = files.find((_, index) => isRewritten(earlier[index], found[index]!)) ?? rewritten;
    if (attempt === ATTEMPTS_MAX) {
      if (rewritten !== undefined) throw unsettled(rewritten);
      return collect(files, contents);
    }
    earlier = found;
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  }
}

function collect(files: readonly FileSource[], contents: readonly (Buffer | undefined)[]): Sources {
  const sources = new Map<FileSource, Buffer>();
  for (const [index, file] of files.entries()) {
    const content = contents[index];
    if (content !== undefined) sources.set(file, content);
    else if (!file.optional) throw missing(file);
  }
  return sources;
}

type Read<Result> = Result | undefined | Promise<Result | undefined>;

/** Synchronous access needs no promises: a start with 10,000 files would make more than 100,000. */
function together<Result>(reads: Read<Result>[]): (Result | undefined)[] | Promise<(Result | undefined)[]> {
  return reads.some((read) => read instanceof Promise)
    ? Promise.all(reads as Promise<Result | undefined>[])
    : (reads as (Result | undefined)[]);
}

function tryRead<Result>(file: FileSource, read: () => Result | Promise<Result>): Read<Result> {
  try {
    const result = read();
    return result instanceof Promise ? result.catch((error: unknown) => absentOrThrow(file, error)) : result;
  } catch (error) {
    return absentOrThrow(file, error);
  }
}

function absentOrThrow(file: FileSource, error: unknown): undefined {
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
  if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
  throw new LoadFailure('io', `file ${file.listed}`, `the file cannot be read (${code})`);
}

function missing(file: FileSource): LoadFailure {
  return new LoadFailure(
    'missing',
    `file ${file.listed}`,
    'the file does not exist; create it, or list it as { path = "…", optional = true }',
  );
}

function unsettled(file: FileSource): LoadFailure {
  return new LoadFailure(
    'io',
    `file ${file.listed}`,
    'the file keeps changing while it is read; replace it by a rename, or write it less often',
  );
}

/** Whether the same file has other content. A file in its place may have its inode, but not its time of birth. */
function isRewritten(earlier: Found | undefined, { stats, content }: Found): boolean {
  if (earlier?.stats === undefined || stats === undefined || earlier.content === undefined || content === undefined) return false;
  const isSameFile = earlier.stats.ino === stats.ino && earlier.stats.dev === stats.dev && earlier.stats.birthtimeMs === stats.birthtimeMs;
  return isSameFile && !earlier.content.equals(content);
}

function sameStats(a: Stats | undefined, b: Stats | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.ino === b.ino && a.dev === b.dev && a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs;
}

function justWritten(stats: Stats | undefined, now: number): boolean {
  if (stats === undefined) return false;
  const age = now - stats.mtimeMs;
  return age >= 0 && age < (stats.size === 0 ? SETTLE_EMPTY_MS : SETTLE_MS);
}
