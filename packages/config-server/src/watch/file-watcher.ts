import { statSync, watch, type FSWatcher } from 'node:fs';
import { basename } from 'node:path';
import { ANY_NAME, trailOf, type Step, type TrailCache } from './path-trail.ts';

/** A watched directory and, for each name in it that matters, the watched paths that pass through it. */
interface WatchedDirectory {
  readonly dependants: Map<string, Set<string>>;
  watcher: FSWatcher | undefined;
  /** Device and inode of what is watched: a directory put in its place has the same path and needs a new watch. */
  identity: string;
}

export interface FileWatcherEvents {
  readonly onChange: (path: string) => void;
  readonly onProblem: (directory: string, code: string) => void;
}

/**
 * Watches files by watching the directories their paths pass through. A file's own watch would be lost with every save that
 * renames a new file into place; a directory's is not. All directory watches of a process share one inotify instance, and
 * 1,000 files in one folder need one watch.
 */
export class FileWatcher {
  readonly #events: FileWatcherEvents;
  readonly #directories = new Map<string, WatchedDirectory>();
  readonly #trails = new Map<string, readonly Step[]>();
  readonly #stale = new Set<string>();
  #refresh: NodeJS.Immediate | undefined;

  constructor(events: FileWatcherEvents) {
    this.#events = events;
  }

  /** Watches exactly these paths from now on. They need not exist. A path that ends with a slash is a directory with all its names. */
  watch(paths: Iterable<string>): void {
    const wanted = new Set(paths);
    const pass = new Pass();
    for (const path of wanted) if (!this.#trails.has(path)) this.#follow(path, pass);
    for (const path of this.#trails.keys()) if (!wanted.has(path)) this.#forget(path);
    this.#closeUnused();
  }

  /** Watches these paths beside the others. */
  add(paths: Iterable<string>): void {
    const pass = new Pass();
    for (const path of paths) if (!this.#trails.has(path)) this.#follow(path, pass);
  }

  close(): void {
    clearImmediate(this.#refresh);
    for (const { watcher } of this.#directories.values()) watcher?.close();
    this.#directories.clear();
    this.#trails.clear();
  }

  /** How many directories are watched. */
  get directories(): number {
    return this.#directories.size;
  }

  #follow(path: string, pass: Pass): void {
    const trail = trailOf(path, pass.trails);
    this.#trails.set(path, trail);
    for (const { directory, name } of trail) {
      let watched = this.#directories.get(directory);
      if (watched === undefined) {
        watched = { dependants: new Map(), watcher: undefined, identity: '' };
        this.#directories.set(directory, watched);
      }
      const paths = watched.dependants.get(name);
      if (paths === undefined) watched.dependants.set(name, new Set([path]));
      else paths.add(path);
      if (!pass.watched.has(directory)) this.#ensureWatch(directory, watched, directory === trail.at(-1)!.directory);
      pass.watched.add(directory);
    }
  }

  #forget(path: string): void {
    for (const { directory, name } of this.#trails.get(path) ?? []) {
      const dependants = this.#directories.get(directory)?.dependants;
      const paths = dependants?.get(name);
      paths?.delete(path);
      if (paths?.size === 0) dependants?.delete(name);
    }
    this.#trails.delete(path);
  }

  #closeUnused(): void {
    for (const [directory, { dependants, watcher }] of this.#directories) {
      if (dependants.size > 0) continue;
      watcher?.close();
      this.#directories.delete(directory);
    }
  }

  #ensureWatch(directory: string, watched: WatchedDirectory, holdsFile: boolean): void {
    const identity = identityOf(directory);
    if (watched.watcher !== undefined && watched.identity === identity) return;
    watched.identity = identity;
    try {
      const watcher = watch(directory, { persistent: false }, (_kind, name) => this.#changed(directory, name));
      watcher.on('error', () => this.#changed(directory, null));
      // The old watch is closed only now: if the directory is no longer readable, there will be no other.
      watched.watcher?.close();
      watched.watcher = watcher;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
      // Gone again: its parent is watched and reports when it is back.
      if (code === 'ENOENT' || code === 'ENOTDIR') return;
      // A parent directory that is not readable is common, and only its replacement would be missed.
      if (code !== 'EACCES' || holdsFile) this.#events.onProblem(directory, code);
    }
  }

  #changed(directory: string, name: string | null): void {
    const watched = this.#directories.get(directory);
    if (watched === undefined) return;
    // A directory that is moved or deleted reports its own name.
    const everything = name === null || name === basename(directory);
    // A new directory in its place may have the same inode, so this watch is never reused.
    if (everything) watched.identity = '';
    const sets = everything
      ? [...watched.dependants.values()]
      : [watched.dependants.get(name) ?? [], watched.dependants.get(ANY_NAME) ?? []];
    for (const paths of sets) {
      for (const path of paths) {
        this.#stale.add(path);
        this.#events.onChange(path);
      }
    }
    if (this.#stale.size > 0) this.#refresh ??= setImmediate(() => this.#retrace());
  }

  /** Resolves the changed paths again. A path that now leads elsewhere may have changed before its new watch was set up. */
  #retrace(): void {
    this.#refresh = undefined;
    const stale = [...this.#stale];
    this.#stale.clear();
    const pass = new Pass();
    for (const path of stale) {
      const before = this.#trails.get(path);
      if (before === undefined) continue;
      this.#forget(path);
      this.#follow(path, pass);
      if (!sameTrail(before, this.#trails.get(path)!)) this.#events.onChange(path);
    }
    this.#closeUnused();
  }
}

/** What one round has already resolved: 1,000 files in a folder share all but their last step. */
class Pass {
  readonly trails: TrailCache = new Map();
  readonly watched = new Set<string>();
}

function identityOf(directory: string): string {
  try {
    const { dev, ino } = statSync(directory);
    return `${dev}:${ino}`;
  } catch {
    return '';
  }
}

function sameTrail(a: readonly Step[], b: readonly Step[]): boolean {
  return a.length === b.length && a.every((step, index) => step.directory === b[index]!.directory && step.name === b[index]!.name);
}
