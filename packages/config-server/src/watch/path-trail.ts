import { lstatSync, readlinkSync } from 'node:fs';
import { basename, dirname, isAbsolute, parse, sep } from 'node:path';

/** A name in a directory that the resolution of a path passes through. */
export interface Step {
  readonly directory: string;
  readonly name: string;
}

const LINKS_MAX = 40;

/** How far a path could be resolved. */
interface Place {
  readonly steps: readonly Step[];
  /** Where the next name is looked up; undefined when something on the way does not exist yet. */
  readonly directory: string | undefined;
  readonly links: number;
}

/** Where paths lead, found while tracing a batch of them: 1,000 files in a folder share all but their last step. */
export type TrailCache = Map<string, Place>;

/** In place of a name: every name in the directory. No file is called so. */
export const ANY_NAME = '';

/**
 * Every name a path depends on: each directory on the way, each symbolic link, and what the links point to. A ConfigMap file
 * depends on `..data` this way, and any file on the directories above it. The trail ends where something does not exist yet.
 * A path that ends with a slash is a directory and depends on everything in it.
 */
export function trailOf(path: string, known: TrailCache = new Map()): readonly Step[] {
  const { steps, directory } = placeOf(path, parse(path).root, known);
  return path.endsWith(sep) && directory !== undefined ? [...steps, { directory, name: ANY_NAME }] : steps;
}

/** One name further than the place of the directory above, which is mostly known already. */
function placeOf(path: string, root: string, known: TrailCache): Place {
  if (path === root) return { steps: [], directory: root, links: 0 };
  let place = known.get(path);
  if (place === undefined) {
    place = walk(placeOf(dirname(path), root, known), [basename(path)], root);
    known.set(path, place);
  }
  return place;
}

function walk(from: Place, names: readonly string[], root: string): Place {
  const steps = [...from.steps];
  let { directory, links } = from;
  let pending = names;
  while (pending.length > 0 && directory !== undefined) {
    const [name = '', ...rest] = pending;
    pending = rest;
    if (name === '' || name === '.') continue;
    if (name === '..') {
      directory = dirname(directory);
      continue;
    }
    steps.push({ directory, name });
    const path: string = directory.endsWith(sep) ? directory + name : directory + sep + name;
    const target = linkTarget(path);
    if (target === 'not a link') directory = path;
    else if (target === 'missing' || ++links > LINKS_MAX) directory = undefined;
    else {
      if (isAbsolute(target.to)) directory = root;
      pending = [...target.to.split(sep), ...rest];
    }
  }
  return { steps, directory, links };
}

type Target = 'missing' | 'not a link' | { readonly to: string };

function linkTarget(path: string): Target {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return 'missing';
    return stats.isSymbolicLink() ? { to: readlinkSync(path) } : 'not a link';
  } catch {
    return 'missing';
  }
}
