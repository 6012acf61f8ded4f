import { inspect } from 'node:util';
import { digestOf, readCacheFile, removeAbandoned, writeCacheFile, type Kept } from './cache-file.ts';
import { ChangeListeners } from './change-listeners.ts';
import { freeze, isDocument, parseKeyPath, valueAt, type Document } from './document.ts';
import { RemoteSourceError } from './errors.ts';
import { fetchDocument, type FetchLimits } from './fetch-document.ts';
import type { KeyPath, ValueAt } from './key-path-types.ts';
import { DocumentMismatch } from './mismatch.ts';
import { parseCount, parseSectionOptions, refuseUnknown, SECTION_OPTION_NAMES, throwFaults } from './options.ts';
import type { SectionAddress, SectionOptions } from './options.ts';
import type { StandardSchema } from './standard-schema.ts';

export interface RemoteSourceOptions<Config extends object = Document> extends SectionOptions {
  /** Milliseconds from name lookup to last byte. Default 10,000. */
  timeout?: number;
  /** Size of the document in bytes, decompressed. Default 8 MiB. */
  maxBytes?: number;
  /** Where to keep the last good document, so that a service can start while the server is down. */
  cacheFile?: string;
  /** A Standard Schema that every document must satisfy. One that does not is an error of the refresh; the last good document stays. */
  schema?: StandardSchema<Config>;
}

export interface RefreshResult {
  /** Whether `current` is another document than before the call. */
  readonly changed: boolean;
  /** Why the document could not be fetched. The last good one stays. */
  readonly error?: RemoteSourceError;
  /** Why the copy on disk could not be read or written. Independent of `error`. */
  readonly cacheError?: RemoteSourceError;
  /** Errors that listeners threw. The document was swapped all the same. */
  readonly listenerErrors?: readonly unknown[];
}

const TIMEOUT_MS = 10_000;
const BYTES_MAX = 8 * 1024 * 1024;
const KNOWN = [...SECTION_OPTION_NAMES, 'timeout', 'maxBytes', 'cacheFile', 'schema'];

/** The configuration document of one section, fetched only when `refresh` is called. */
export class RemoteSource<Config extends object = Document> {
  readonly #address: SectionAddress;
  readonly #limits: FetchLimits;
  readonly #cacheFile: string | undefined;
  readonly #schema: StandardSchema<Config> | undefined;
  readonly #listeners = new ChangeListeners();
  /** What the schema made of the kept document; the document itself without a schema. */
  #config: Config | undefined;
  #kept: Kept | undefined;
  #origin: 'server' | 'cache' | undefined;
  #cacheVisited = false;
  /** The last write failed: fetch the whole document next time, so that it can be written. */
  #cacheBehind = false;
  #waiting: Promise<RefreshResult> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** Throws when options are wrong, and names all of them. */
  constructor(options: RemoteSourceOptions<Config>) {
    if (typeof options !== 'object' || options === null) throw new RemoteSourceError('option', 'RemoteSource: options must be an object');
    const faults: string[] = [];
    refuseUnknown(options, KNOWN, faults);
    this.#address = parseSectionOptions(options, faults);
    this.#limits = {
      timeout: parseCount('timeout', options.timeout, TIMEOUT_MS, faults),
      maxBytes: parseCount('maxBytes', options.maxBytes, BYTES_MAX, faults),
    };
    if (options.cacheFile !== undefined && (typeof options.cacheFile !== 'string' || options.cacheFile === '')) {
      faults.push('cacheFile must be a path');
    }
    this.#cacheFile = options.cacheFile;
    if (options.schema !== undefined && typeof options.schema?.['~standard']?.validate !== 'function') {
      faults.push('schema must be a Standard Schema, such as one of Zod, Valibot or ArkType');
    }
    this.#schema = options.schema;
    throwFaults('RemoteSource', faults);
  }

  /** The last good document, frozen; with `schema`, its output. Undefined until a refresh brought one. */
  get current(): Config | undefined {
    return this.#config;
  }

  /** The server's number for `current`. It starts over when the server restarts: compare for difference, not for order. */
  get generation(): number | undefined {
    return this.#kept?.generation;
  }

  /** Where `current` came from: `cache` until the server has confirmed or replaced it. */
  get origin(): 'server' | 'cache' | undefined {
    return this.#origin;
  }

  /**
   * Fetches once and swaps the document whole. Resolves in every case but misuse; on failure the last good document stays.
   * Calls made while one is under way share the next one, because the running response may be older than the change.
   */
  refresh(): Promise<RefreshResult> {
    this.#waiting ??= this.#last.then(() => {
      const sent = this.#waiting;
      return this.#loadCache().then((cache) => {
        if (this.#waiting === sent) this.#waiting = undefined;
        return this.#exchange(cache);
      });
    });
    this.#last = this.#waiting;
    return this.#waiting;
  }

  /** The value at a key path such as `pool.maxSize`, or undefined. A dot inside a key is written `\.`; an array of segments works too. */
  get<Path extends KeyPath<Config>>(path: Path): ValueAt<Config, Path>;
  get(path: readonly string[]): unknown;
  get(path: string | readonly string[]): unknown {
    this.#loaded();
    return valueAt(this.#config as Document, parseKeyPath(path));
  }

  /**
   * Calls the listener when a refresh changed the value at a key path, after the whole document was swapped. A table changes when
   * anything in it does. Returns the function that removes the listener.
   */
  on<Path extends KeyPath<Config>>(
    path: Path,
    listener: (value: ValueAt<Config, Path>, previous: ValueAt<Config, Path> | undefined) => void,
  ): () => void;
  on(path: readonly string[], listener: (value: unknown, previous: unknown) => void): () => void;
  on(path: string | readonly string[], listener: (value: never, previous: never) => void): () => void {
    return this.#listeners.add(path, listener as (value: unknown, previous: unknown) => void);
  }

  /** The whole document as a schema's output type. Throws a `DocumentMismatch` that names paths, never values. */
  parse<Output>(schema: StandardSchema<Output>): Output {
    const result = schema['~standard'].validate(this.#loaded());
    if (result instanceof Promise) {
      result.catch(() => undefined);
      throw new RemoteSourceError('async-schema', 'parse needs a schema that validates synchronously');
    }
    if (result.issues !== undefined) throw new DocumentMismatch(`${this.#address.application}/${this.#address.profile}`, result.issues);
    return result.value;
  }

  toString(): string {
    return `RemoteSource(${this.#address.application}/${this.#address.profile} at ${this.#address.base})`;
  }

  toJSON(): { url: string; application: string; profile: string; generation: number | null } {
    const { base, application, profile } = this.#address;
    return { url: base, application, profile, generation: this.generation ?? null };
  }

  [inspect.custom](): string {
    return `${this.toString()} generation ${this.generation ?? 'none'}`;
  }

  #loaded(): Document {
    if (this.#kept === undefined)
      throw new RemoteSourceError('not-loaded', 'no document is loaded yet: await refresh() and look at its error');
    return this.#kept.document;
  }

  /** Reads the cache once, before the first request, which it makes conditional. */
  async #loadCache(): Promise<RefreshResult> {
    if (this.#cacheFile === undefined || this.#cacheVisited) return { changed: false };
    this.#cacheVisited = true;
    try {
      await removeAbandoned(this.#cacheFile, Date.now());
      const kept = await readCacheFile(this.#cacheFile, this.#address, this.#limits.maxBytes);
      if (kept === undefined) return { changed: false };
      const listenerErrors = this.#swap(kept, await this.#validated(kept.document));
      this.#origin = 'cache';
      return { changed: true, ...listenerErrors };
    } catch (error) {
      this.#cacheBehind = true;
      return { changed: false, cacheError: asCacheError(error, 'cache-read') };
    }
  }

  async #exchange(cache: RefreshResult): Promise<RefreshResult> {
    const before = this.#kept;
    try {
      const fetched = await fetchDocument(this.#address, this.#cacheBehind ? undefined : before?.etag, this.#limits);
      if (fetched.document === undefined) {
        this.#origin = 'server';
        if (before !== undefined) this.#kept = { ...before, generation: fetched.generation ?? before.generation };
        return cache;
      }
      const digest = digestOf(fetched.body);
      const changed = digest !== before?.digest;
      const document = changed ? fetched.document : (before?.document ?? fetched.document);
      const kept = { document, digest, etag: fetched.etag, generation: fetched.generation };
      const config = changed ? await this.#validated(document) : this.#config!;
      const listenerErrors = this.#swap(kept, config);
      this.#origin = 'server';
      const cached = changed || this.#cacheBehind ? await this.#keep(kept, fetched.body) : {};
      return { ...cache, ...cached, ...listenerErrors, changed: changed || cache.changed };
    } catch (error) {
      return { ...cache, error: error as RemoteSourceError };
    }
  }

  /** What the schema makes of a document; throws a `DocumentMismatch` when the document does not satisfy it. */
  async #validated(document: Document): Promise<Config> {
    if (this.#schema === undefined) return document as Config;
    const { application, profile } = this.#address;
    let result;
    try {
      result = await this.#schema['~standard'].validate(document);
    } catch {
      // Its message may quote the document.
      throw new RemoteSourceError('mismatch', `the schema threw an error for the document of ${application}/${profile}`);
    }
    if (result.issues !== undefined) throw new DocumentMismatch(`${application}/${profile}`, result.issues);
    if (!isDocument(result.value)) throw new RemoteSourceError('option', 'schema must have an object as its output');
    return freeze(result.value);
  }

  /** Puts a document into service in one step, then calls the listeners. */
  #swap(kept: Kept, config: Config): { listenerErrors?: readonly unknown[] } {
    const before = this.#config;
    this.#kept = kept;
    this.#config = config;
    const errors = this.#listeners.notify(before as Document | undefined, config as Document);
    return errors.length === 0 ? {} : { listenerErrors: errors };
  }

  async #keep(kept: Kept, body: Buffer): Promise<{ cacheError?: RemoteSourceError }> {
    if (this.#cacheFile === undefined) return {};
    try {
      await writeCacheFile(this.#cacheFile, this.#address, kept, body);
      this.#cacheBehind = false;
      return {};
    } catch (error) {
      this.#cacheBehind = true;
      return { cacheError: asCacheError(error, 'cache-write') };
    }
  }
}

function asCacheError(error: unknown, code: 'cache-read' | 'cache-write'): RemoteSourceError {
  return error instanceof RemoteSourceError ? error : new RemoteSourceError(code, 'cacheFile failed unexpectedly');
}
