import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, watch, type FSWatcher } from 'node:fs';
import { extname, join, relative } from 'node:path';

/** Code and what code imports. */
const EXTENSIONS = new Set(['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs', '.json']);

/** Nothing that the app is made of is in these. */
const IGNORED_FOLDERS = new Set(['node_modules', 'dist', 'coverage', 'data']);

/** Editors write a file in several steps, and a checkout many files: one change for all of them. */
const SETTLE_MS = 40;

/** Says which files changed, relative to `folder`. A file that was saved without a change is not reported. */
export class FileWatch {
  readonly #folder: string;
  readonly #changed: (files: readonly string[]) => void;
  readonly #except: ReadonlySet<string>;
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #contents = new Map<string, string>();
  readonly #pending = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  /** `except`: files that each start writes itself. */
  constructor(folder: string, changed: (files: readonly string[]) => void, except: readonly string[] = []) {
    this.#except = new Set(except);
    this.#folder = folder;
    this.#changed = changed;
    this.#add(folder);
  }

  /** A watcher per folder: the recursive one of Node would read node_modules, too. */
  #add(folder: string): void {
    if (this.#watchers.has(folder)) return;
    const watcher = watch(folder, (_, name) => this.#noticed(folder, name));
    // A folder that was deleted.
    watcher.on('error', () => this.#drop(folder));
    this.#watchers.set(folder, watcher);
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && isWatchedFolder(entry.name)) this.#add(path);
      else if (entry.isFile() && isWatchedFile(entry.name)) this.#contents.set(path, contentOf(path));
    }
  }

  #drop(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }

  #noticed(folder: string, name: string | null): void {
    if (name === null) return;
    const path = join(folder, name);
    if (this.#except.has(path)) return;
    if (isWatchedFile(name)) this.#pending.add(path);
    else if (isWatchedFolder(name)) this.#noticedFolder(path);
    if (this.#pending.size === 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#report(), SETTLE_MS);
  }

  #noticedFolder(path: string): void {
    if (!existsSync(path)) return this.#drop(path);
    try {
      const before = new Set(this.#contents.keys());
      this.#add(path);
      for (const file of this.#contents.keys())
        if (!before.has(file)) {
          this.#contents.delete(file);
          this.#pending.add(file);
        }
    } catch {
      // Not a folder, or deleted since.
    }
  }

  #report(): void {
    const files = [...this.#pending].filter((path) => {
      const content = contentOf(path);
      const isSame = this.#contents.get(path) === content;
      this.#contents.set(path, content);
      return !isSame;
    });
    this.#pending.clear();
    if (files.length > 0) this.#changed(files.map((file) => relative(this.#folder, file)));
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const folder of this.#watchers.keys()) this.#drop(folder);
  }
}

function isWatchedFolder(name: string): boolean {
  return !name.startsWith('.') && !IGNORED_FOLDERS.has(name) && extname(name) === '';
}

function isWatchedFile(name: string): boolean {
  return name === '.env' || (EXTENSIONS.has(extname(name)) && !/\.test\.\w+$/.test(name));
}

/** A digest of the file; empty for one that is not there. */
function contentOf(path: string): string {
  try {
    return createHash('sha1').update(readFileSync(path)).digest('base64');
  } catch {
    return '';
  }
}
