import { randomBytes } from 'node:crypto';
import { constants, type Dirent } from 'node:fs';
import { link, lstat, mkdir, open, readdir, realpath, rm, rmdir, stat, unlink, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import type { Readable } from 'node:stream';
import type { KitError } from '../../../errors/kit-error.ts';
import { type OptionRules, readOptions } from '../../../options/read-options.ts';
import { filledText, required, rule } from '../../../options/value-rule.ts';
import { uploadErrors } from '../errors.ts';
import type {
  ListedObject,
  PresignRequest,
  SignedRequest,
  StoredObject,
  StoredPart,
  StoreHost,
  UploadStore,
} from '../declare/upload-store.ts';
import { storeFault } from './disk-faults.ts';
import { hashOf, writeStream } from './write-stream.ts';
import { signAddress } from './url-signature.ts';

export interface DiskStoreOptions {
  /** Made when it is missing. Only the app's own user needs to reach it. */
  readonly folder: string;
  /** Where the app serves signed addresses. Default: `/uploads/files`. */
  readonly path?: string;
  /** `https://api.example.com`, in front of the URLs. Default: none; URLs begin with the path, for clients that know the origin. */
  readonly baseUrl?: string;
}

const rules: OptionRules<DiskStoreOptions> = {
  folder: required(filledText),
  path: rule('a path such as "/uploads/files"', (path) => typeof path === 'string' && /^(?:\/[\w.-]+)+$/.test(path)),
  baseUrl: rule(
    'an address such as "https://api.example.com"',
    (url) => typeof url === 'string' && /^https?:\/\/[^/?#]+(?:\/[^?#]*)?$/.test(url),
  ),
};
const SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/;
/** Random bytes in the name that a file has until it is whole. */
const TEMPORARY_BYTES = 8;
const TEMPORARY = new RegExp(`^\\.[0-9a-f]{${2 * TEMPORARY_BYTES}}\\.tmp$`);
const PARTS = /\.parts-[0-9a-f]{32}$/;

/** Uploads in a folder of this machine, sent to and fetched from the app itself. For development and single machines. */
export function diskStore(options: DiskStoreOptions): DiskStore {
  const { folder, path = '/uploads/files', baseUrl = '' } = readOptions('diskStore()', options, rules);
  return new DiskStore(resolve(folder), path, baseUrl.replace(/\/$/, ''));
}

/** A file that arrives: what it must be, and what decides whether it may appear. */
export interface Arrival {
  readonly key: string;
  readonly length: number;
  readonly sha256: string | null;
  /** Asked when every byte is on the disk; throwing makes it as if nothing had been sent. */
  readonly admit: () => Promise<void>;
}

export class DiskStore implements UploadStore {
  readonly name = 'disk';
  readonly hasSingleUseUrls = true;
  readonly prefix = '';
  readonly path: string;
  readonly origin: string | undefined;
  readonly #folder: string;
  readonly #baseUrl: string;
  #root: string | undefined;
  #host: StoreHost | undefined;

  constructor(folder: string, path: string, baseUrl: string) {
    this.#folder = folder;
    this.path = path;
    this.#baseUrl = baseUrl;
    this.origin = baseUrl === '' ? undefined : new URL(baseUrl).origin;
  }

  attach(host: StoreHost): void {
    this.#host = host;
  }

  async presign(request: PresignRequest): Promise<SignedRequest> {
    if (this.#host === undefined) throw new Error('The disk store is not attached to an app.');
    const { id, expiresAt } = request;
    const expires = Math.floor(expiresAt.getTime() / 1000);
    const at = (query: string) => `${this.#baseUrl}${this.path}/${id}?${query}`;
    const { urlKeys } = this.#host;
    if (request.operation === 'get')
      return {
        method: 'GET',
        url: at(signAddress({ method: 'GET', id, expires, disposition: request.disposition }, urlKeys)),
        headers: {},
      };
    const { size: length, checksumSha256 } = request;
    const signed = { method: 'PUT', id, expires, length, sha256: checksumSha256 ?? undefined } as const;
    if (request.operation === 'part')
      return {
        method: 'PUT',
        url: at(signAddress({ ...signed, part: request.number }, urlKeys)),
        headers: { 'content-length': String(length) },
      };
    const { contentType: type } = request;
    return {
      method: 'PUT',
      url: at(signAddress({ ...signed, type }, urlKeys)),
      headers: { 'content-length': String(length), 'content-type': type },
    };
  }

  async head(key: string, { checksum = false }: { readonly checksum?: boolean } = {}): Promise<StoredObject | null> {
    const handle = await this.#open(key);
    if (handle === null) return null;
    try {
      const { size, mtimeNs, mtimeMs } = await handle.stat({ bigint: true });
      const checksumSha256 = checksum ? await hashOf(handle) : null;
      const etag = `${size.toString(16)}-${mtimeNs.toString(16)}`;
      return { size: Number(size), contentType: null, etag, versionId: null, checksumSha256, modifiedAt: new Date(Number(mtimeMs)) };
    } finally {
      await handle.close();
    }
  }

  async read(
    key: string,
    { start = 0, end, ifMatch }: { readonly start?: number; readonly end?: number; readonly ifMatch?: string } = {},
  ): Promise<Readable> {
    const handle = await this.#open(key);
    if (handle === null) throw uploadErrors.upload_changed();
    const { size, mtimeNs } = await handle.stat({ bigint: true });
    if (ifMatch !== undefined && ifMatch !== `${size.toString(16)}-${mtimeNs.toString(16)}`) {
      await handle.close();
      throw uploadErrors.upload_changed();
    }
    return handle.createReadStream({ start, ...(end === undefined ? {} : { end: end - 1 }) });
  }

  /** A second name for the same bytes: nothing is copied, and it is there as a whole or not at all. */
  async copy(from: string, to: string, { ifMatch }: { readonly ifMatch: string }): Promise<Pick<StoredObject, 'etag' | 'versionId'>> {
    const found = await this.head(from);
    if (found === null) throw uploadErrors.not_uploaded();
    if (found.etag !== ifMatch) throw uploadErrors.upload_changed();
    const source = await this.#place(from);
    const target = await this.#place(to, true);
    await this.#run(async () => {
      await link(source, target).catch((error: unknown) => {
        // Deleted since it was looked at.
        throw isMissing(error) ? uploadErrors.not_uploaded() : error;
      });
      await syncFolder(dirname(target));
    });
    const copied = await this.head(to);
    if (copied?.etag !== ifMatch) {
      await this.remove(to);
      throw uploadErrors.upload_changed();
    }
    return { etag: copied.etag, versionId: null };
  }

  async remove(key: string): Promise<void> {
    const path = await this.#place(key);
    await this.#run(async () => {
      await unlink(path).catch(ignoreMissing);
      await removeLeftovers(path);
      // The folder of this one upload; it stays while something else is in it.
      await rmdir(dirname(path)).catch(() => undefined);
    });
  }

  async *list(prefix: string): AsyncGenerator<ListedObject> {
    for await (const { key, path } of this.#files(prefix)) {
      const found = await stat(path).catch(ignoreMissing);
      if (found !== undefined) yield { key, size: found.size, modifiedAt: found.mtime };
    }
  }

  async createMultipart(key: string): Promise<string> {
    const id = randomBytes(16).toString('hex');
    const path = await this.#place(key, true);
    await this.#run(() => mkdir(`${path}.parts-${id}`, { mode: 0o700 }));
    return id;
  }

  async listParts(key: string, multipartId: string): Promise<readonly StoredPart[]> {
    return (await storedParts(await this.#parts(key, multipartId))).current;
  }

  async completeMultipart(key: string, multipartId: string, parts: readonly StoredPart[]): Promise<void> {
    const folder = await this.#parts(key, multipartId);
    const target = await this.#place(key, true);
    await this.#publish(target, async (handle) => {
      for (const { etag } of parts) {
        const part = await open(join(folder, etag), constants.O_RDONLY | constants.O_NOFOLLOW);
        // Goes on where the last part ended. On a full disk a single `write` may take less than it was given, without an error.
        await handle.writeFile(part.createReadStream());
      }
    });
    await rm(folder, { recursive: true, force: true });
  }

  async abortMultipart(key: string, multipartId: string): Promise<void> {
    const folder = await this.#parts(key, multipartId);
    await this.#run(() => rm(folder, { recursive: true, force: true }));
  }

  async *listMultiparts(prefix: string): AsyncGenerator<{ readonly key: string; readonly multipartId: string; readonly startedAt: Date }> {
    for await (const { key, path } of this.#files(prefix, PARTS)) {
      const multipartId = key.slice(-32);
      const found = await stat(path).catch(ignoreMissing);
      if (found !== undefined) yield { key: key.slice(0, -('.parts-'.length + 32)), multipartId, startedAt: found.birthtime };
    }
  }

  /** Takes a file from a client: to a temporary name, flushed, then under its own name if nothing has that name yet. */
  async receive(source: Readable, { key, length, sha256, admit }: Arrival): Promise<void> {
    const target = await this.#place(key, true);
    await this.#publish(target, async (handle) => {
      await writeStream(source, handle, { length, sha256 });
      return admit;
    });
  }

  async receivePart(source: Readable, multipartId: string, number: number, { key, length, sha256, admit }: Arrival): Promise<void> {
    const folder = await this.#parts(key, multipartId);
    const hex = Buffer.from(sha256 ?? '', 'base64').toString('hex');
    const target = join(folder, `${String(number).padStart(5, '0')}-${length}-${hex}`);
    await this.#publish(target, async (handle) => {
      await writeStream(source, handle, { length, sha256 });
      return admit;
    });
    // Else a part that is sent again and again, each time as another one, would fill the disk beyond every quota.
    const { replaced } = await storedParts(folder);
    for (const name of replaced) await unlink(join(folder, name)).catch(ignoreMissing);
  }

  /** No reader ever sees a part of a file: it gets its name when it is whole and on the disk, and never the name of another one. */
  async #publish(target: string, fill: (handle: FileHandle) => Promise<(() => Promise<void>) | void>): Promise<void> {
    const temporary = `${target}.${randomBytes(TEMPORARY_BYTES).toString('hex')}.tmp`;
    await this.#run(async () => {
      const handle = await open(temporary, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW, 0o600);
      try {
        let admit: (() => Promise<void>) | void;
        try {
          admit = await fill(handle);
          await handle.sync();
        } finally {
          await handle.close();
        }
        await admit?.();
        await link(temporary, target);
        await syncFolder(dirname(target));
      } finally {
        await unlink(temporary).catch(() => undefined);
      }
    });
  }

  async #open(key: string): Promise<FileHandle | null> {
    const path = await this.#place(key);
    try {
      const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
      if ((await handle.stat()).isFile()) return handle;
      await handle.close();
      throw uploadErrors.store_unavailable({ message: 'A name in the upload folder is not a file.' });
    } catch (error) {
      if (isMissing(error)) return null;
      throw storeFault(error);
    }
  }

  #parts(key: string, multipartId: string): Promise<string> {
    if (!/^[0-9a-f]{32}$/.test(multipartId)) throw uploadErrors.not_uploaded();
    return this.#place(key).then((path) => `${path}.parts-${multipartId}`);
  }

  /** The path of a key. Neither the key nor a symbolic link on the way can lead out of the folder. */
  async #place(key: string, make = false): Promise<string> {
    const segments = key.split('/');
    if (!segments.every((segment) => SEGMENT.test(segment))) throw new Error('A key of the upload store is malformed.');
    return this.#run(async () => {
      const root = await this.#realRoot();
      const path = join(root, ...segments);
      const folder = dirname(path);
      if (make) await makeFolders(root, segments.slice(0, -1));
      const real = await realpath(folder).catch(ignoreMissing);
      if (real !== undefined && real !== folder) throw linkRefused();
      return path;
    });
  }

  /** A folder that cannot be made is tried again with the next call: whoever mends the disk need not restart the app. */
  async #realRoot(): Promise<string> {
    if (this.#root !== undefined) return this.#root;
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    return (this.#root = await realpath(this.#folder));
  }

  async *#files(prefix: string, folders: RegExp | null = null): AsyncGenerator<{ readonly key: string; readonly path: string }> {
    const start = await this.#place(`${prefix}x`);
    const base = dirname(start);
    const walk = async function* (path: string, key: string): AsyncGenerator<{ readonly key: string; readonly path: string }> {
      const entries: Dirent[] = await readdir(path, { withFileTypes: true }).catch((error: unknown) => ignoreMissing(error) ?? []);
      for (const entry of entries) {
        const inner = `${key}${entry.name}`;
        if (entry.isDirectory() && PARTS.test(entry.name)) {
          if (folders !== null) yield { key: inner, path: join(path, entry.name) };
        } else if (entry.isDirectory()) yield* walk(join(path, entry.name), `${inner}/`);
        else if (entry.isFile() && folders === null) yield { key: inner, path: join(path, entry.name) };
      }
    };
    yield* walk(base, prefix.endsWith('/') ? prefix : `${dirname(prefix)}${sep}`);
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw storeFault(error);
    }
  }
}

/** The parts in a folder. One that was sent again with other bytes takes the place of the one before, as in every store. */
async function storedParts(folder: string): Promise<{ readonly current: readonly StoredPart[]; readonly replaced: readonly string[] }> {
  const names = await readdir(folder).catch((error: unknown) => ignoreMissing(error) ?? []);
  const found = names.flatMap((name) => {
    const [, number, size, sha256 = ''] = /^(\d{5})-(\d+)-([0-9a-f]{64})$/.exec(name) ?? [];
    return number === undefined
      ? []
      : [{ number: Number(number), size: Number(size), etag: name, checksumSha256: Buffer.from(sha256, 'hex').toString('base64') }];
  });
  const current: StoredPart[] = [];
  for (const [, same] of Map.groupBy(found, ({ number }) => number))
    current.push(same.length === 1 ? same[0]! : await newest(folder, same));
  const kept = new Set(current.map(({ etag }) => etag));
  return {
    current: current.toSorted((a, b) => a.number - b.number),
    replaced: found.flatMap(({ etag }) => (kept.has(etag) ? [] : [etag])),
  };
}

/** The one whose last byte came last: a time that no longer changes, so that whoever removes the others keeps the same one. */
async function newest(folder: string, parts: readonly StoredPart[]): Promise<StoredPart> {
  const timed = await Promise.all(
    parts.map(async (part) => ({ part, at: (await stat(join(folder, part.etag), { bigint: true }).catch(ignoreMissing))?.mtimeNs ?? -1n })),
  );
  return timed.reduce((best, each) => (each.at > best.at || (each.at === best.at && each.part.etag > best.part.etag) ? each : best)).part;
}

/** What a process that was killed while it wrote this file, or after it had put the parts together, has left. */
async function removeLeftovers(path: string): Promise<void> {
  const [folder, name] = [dirname(path), basename(path)];
  const entries = await readdir(folder).catch((error: unknown) => ignoreMissing(error) ?? []);
  for (const entry of entries) {
    const rest = entry.startsWith(name) ? entry.slice(name.length) : '';
    if (TEMPORARY.test(rest) || PARTS.test(rest)) await rm(join(folder, entry), { recursive: true, force: true });
  }
}

/** One after the other, and never through a link: `recursive` would follow it. */
async function makeFolders(root: string, segments: readonly string[]): Promise<void> {
  let path = root;
  for (const segment of segments) {
    path = join(path, segment);
    await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    });
    if (!(await lstat(path)).isDirectory()) throw linkRefused();
  }
}

function linkRefused(): KitError {
  return uploadErrors.store_unavailable({ message: 'A folder of the upload store is a symbolic link, or not a folder: rejected.' });
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

function ignoreMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error;
}

/** A name is on the disk when its folder is. */
async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
