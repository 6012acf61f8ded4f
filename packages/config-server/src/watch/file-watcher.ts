import { readFileSync, statSync, watch, type FSWatcher } from 'node:fs';
import { basename } from 'node:path';
import { ANY_NAME, pathAbove, placeOf, type Place, type Step } from './path-trail.ts';

/** A watched path, or a directory above one. 10,000 files in a folder share all of their trail but the last step. */
interface PathNode {
  readonly path: string;
  readonly above: PathNode | undefined;
  readonly place: Place;
  below: Set<PathNode> | undefined;
  /** False for a directory that is there for what is below it. */
  wanted: boolean;
}

/** A watched directory and, for each name in it that matters, the paths that pass through it. */
interface WatchedDirectory {
  readonly dependants: Map<string, Set<PathNode>>;
  watcher: FSWatcher | undefined;
  /** Device and inode of what is watched: a directory put in its place has the same path and needs a new watch. */
  identity: string;
}

/** The default of Linux. */
const QUEUED_EVENTS_MAX = 16_384;

/** The directories whose watches were checked in this round. One that cannot be watched has a code until that is reported. */
type Round = Map<string, string | undefined>;

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
  readonly #nodes = new Map<string, PathNode>();
  readonly #changedNodes = new Set<PathNode>();
  readonly #queueMax = queuedEventsMax();
  /** Events since the last turn of the event loop. */
  #received = 0;
  #refresh: NodeJS.Immediate | undefined;

  constructor(events: FileWatcherEvents) {
    this.#events = events;
  }

  /** Watches exactly these paths from now on. They need not exist. A path that ends with a slash is a directory with all its names. */
  watch(paths: Iterable<string>): void {
    const wanted = new Set(paths);
    this.add(wanted);
    for (const node of this.#nodes.values()) if (node.wanted && !wanted.has(node.path)) this.#forget(node);
    this.#closeUnused();
  }

  /** Watches these paths beside the others. */
  add(paths: Iterable<string>): void {
    const round: Round = new Map();
    for (const path of paths) this.#follow(path, round, true);
  }

  /** Looks up every path again. A file system that is mounted over a directory is not reported, but is found here. */
  recheck(): void {
    for (const node of this.#nodes.values()) this.#changedNodes.add(node);
    this.#retrace();
  }

  close(): void {
    clearImmediate(this.#refresh);
    for (const { watcher } of this.#directories.values()) watcher?.close();
    this.#directories.clear();
    this.#nodes.clear();
  }

  #follow(path: string, round: Round, wanted: boolean): PathNode {
    const known = this.#nodes.get(path);
    if (known !== undefined) {
      known.wanted ||= wanted;
      return known;
    }
    const pathOfAbove = pathAbove(path);
    const above = pathOfAbove === undefined ? undefined : this.#follow(pathOfAbove, round, false);
    const place = placeOf(path, above?.place, (directory) => this.#ensureWatch(directory, round));
    const node = { path, above, place, below: undefined, wanted };
    this.#nodes.set(path, node);
    if (above !== undefined) (above.below ??= new Set()).add(node);
    for (const { directory, name } of node.place.steps) {
      const { dependants } = this.#directory(directory);
      const nodes = dependants.get(name);
      if (nodes === undefined) dependants.set(name, new Set([node]));
      else nodes.add(node);
    }
    this.#reportUnwatched(node, round);
    return node;
  }

  #directory(path: string): WatchedDirectory {
    let directory = this.#directories.get(path);
    if (directory === undefined) {
      directory = { dependants: new Map(), watcher: undefined, identity: '' };
      this.#directories.set(path, directory);
    }
    return directory;
  }

  /** A path that is no longer wanted, and the directories above it that nothing else needs. */
  #forget(node: PathNode): void {
    node.wanted = false;
    for (let unused: PathNode | undefined = node; unused !== undefined; unused = unused.above) {
      if (unused.wanted || (unused.below?.size ?? 0) > 0) return;
      this.#remove(unused);
    }
  }

  #remove(node: PathNode): void {
    for (const { directory, name } of node.place.steps) {
      const dependants = this.#directories.get(directory)?.dependants;
      const nodes = dependants?.get(name);
      nodes?.delete(node);
      if (nodes?.size === 0) dependants?.delete(name);
    }
    node.above?.below?.delete(node);
    this.#nodes.delete(node.path);
  }

  #closeUnused(): void {
    for (const [path, { dependants, watcher }] of this.#directories) {
      if (dependants.size > 0) continue;
      watcher?.close();
      this.#directories.delete(path);
    }
  }

  /** An unreadable directory above a file is common, and only its replacement would be missed. */
  #reportUnwatched({ place: { steps }, wanted }: PathNode, round: Round): void {
    const holdsFile = wanted ? steps.at(-1)?.directory : undefined;
    for (const { directory } of steps) {
      const code = round.get(directory);
      if (code === undefined || (code === 'EACCES' && directory !== holdsFile)) continue;
      round.set(directory, undefined);
      this.#events.onProblem(directory, code);
    }
  }

  #ensureWatches(node: PathNode, round: Round): void {
    for (const { directory } of node.place.steps) this.#ensureWatch(directory, round);
    this.#reportUnwatched(node, round);
  }

  #ensureWatch(path: string, round: Round): void {
    if (!round.has(path)) round.set(path, this.#tryWatch(path));
  }

  /** Returns why the directory cannot be watched. */
  #tryWatch(path: string): string | undefined {
    const directory = this.#directory(path);
    const identity = identityOf(path);
    if (directory.watcher !== undefined && directory.identity === identity) return undefined;
    directory.identity = identity;
    try {
      const watcher = watch(path, { persistent: false }, (_kind, name) => this.#changed(path, name));
      watcher.on('error', () => this.#changed(path, null));
      // The old watch is closed only now: if the directory is no longer readable, there will be no other.
      directory.watcher?.close();
      directory.watcher = watcher;
      return undefined;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
      // Gone again: its parent is watched and reports when it is back.
      return code === 'ENOENT' || code === 'ENOTDIR' ? undefined : code;
    }
  }

  #changed(path: string, name: string | null): void {
    this.#received++;
    this.#refresh ??= setImmediate(() => this.#endOfTurn());
    const directory = this.#directories.get(path);
    if (directory === undefined) return;
    // A directory that is moved or deleted reports its own name.
    const everything = name === null || name === basename(path);
    // A new directory in its place may have the same inode, so this watch is never reused.
    if (everything) directory.identity = '';
    const { dependants } = directory;
    const sets = everything ? [...dependants.values()] : [dependants.get(name) ?? [], dependants.get(ANY_NAME) ?? []];
    for (const node of withAllBelow(...sets)) {
      this.#changedNodes.add(node);
      if (node.wanted) this.#events.onChange(node.path);
    }
  }

  #endOfTurn(): void {
    // The kernel drops events when its queue is full, and nobody hears of it. The whole queue is read in one turn.
    const isQueueFull = this.#received >= this.#queueMax / 2;
    this.#refresh = undefined;
    this.#received = 0;
    if (isQueueFull) this.#suspectEverything();
    if (this.#changedNodes.size > 0) this.#retrace();
  }

  #suspectEverything(): void {
    for (const directory of this.#directories.values()) directory.identity = '';
    for (const node of this.#nodes.values()) {
      this.#changedNodes.add(node);
      if (node.wanted) this.#events.onChange(node.path);
    }
  }

  /** Resolves the changed paths again. A path that now leads elsewhere may have changed before its new watch was set up. */
  #retrace(): void {
    const stale = [...withAllBelow(this.#changedNodes)].filter((node) => this.#nodes.get(node.path) === node);
    this.#changedNodes.clear();
    const before = new Map(stale.filter((node) => node.wanted).map((node) => [node.path, trailOf(node)]));
    for (const node of stale) this.#remove(node);
    const round: Round = new Map();
    for (const [path, trail] of before) {
      const node = this.#follow(path, round, true);
      for (let above = node.above; above !== undefined; above = above.above) this.#ensureWatches(above, round);
      if (!sameTrail(trail, trailOf(node))) this.#events.onChange(path);
    }
    this.#closeUnused();
  }
}

function withAllBelow(...sets: readonly Iterable<PathNode>[]): Set<PathNode> {
  const all = new Set<PathNode>();
  for (const nodes of sets) for (const node of nodes) all.add(node);
  // A set that grows while it is walked is walked to its new end.
  for (const { below } of all) for (const node of below ?? []) all.add(node);
  return all;
}

function trailOf({ above, place }: PathNode): readonly Step[] {
  return above === undefined ? place.steps : [...trailOf(above), ...place.steps];
}

/** How many events Linux keeps for a process that is busy. Half of them count as all: other watches of the process share the queue. */
function queuedEventsMax(): number {
  try {
    return Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8')) || QUEUED_EVENTS_MAX;
  } catch {
    return QUEUED_EVENTS_MAX;
  }
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
