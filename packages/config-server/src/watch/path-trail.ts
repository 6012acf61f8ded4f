import { lstatSync, readlinkSync } from 'node:fs';
import { basename, dirname, isAbsolute, parse, sep } from 'node:path';

/** A name in a directory that the resolution of a path passes through. */
export interface Step {
  readonly directory: string;
  readonly name: string;
}

const LINKS_MAX = 40;

/** In place of a name: every name in the directory. No file is called so. */
export const ANY_NAME = '';

/** Where a path leads. */
export interface Place {
  /** What the path depends on beyond the path above it. */
  readonly steps: readonly Step[];
  /** Where the next name is looked up; undefined when something on the way does not exist yet. */
  readonly directory: string | undefined;
  readonly links: number;
}

/** The path that a path is resolved from; undefined for a root. A path that ends with a slash is everything in its directory. */
export function pathAbove(path: string): string | undefined {
  const above = dirname(path);
  if (above === path) return undefined;
  return path.endsWith(sep) ? path.slice(0, -1) : above;
}

/**
 * Every name that a path depends on beyond the path above it: its own name and, for a symbolic link, what it points to. A file of a
 * ConfigMap depends on `..data` this way. Steps end where something does not exist yet. `watch` is called with a directory before a name
 * in it is looked at: a name that appears after the look is then reported.
 */
export function placeOf(path: string, above: Place | undefined, watch: (directory: string) => void): Place {
  if (above === undefined) return { steps: [], directory: path, links: 0 };
  const { directory, links } = above;
  if (!path.endsWith(sep)) return walk(path, above, watch);
  if (directory !== undefined) watch(directory);
  return { steps: directory === undefined ? [] : [{ directory, name: ANY_NAME }], directory, links };
}

function walk(path: string, from: Place, watch: (directory: string) => void): Place {
  const steps: Step[] = [];
  let { directory, links } = from;
  let pending: readonly string[] = [basename(path)];
  while (pending.length > 0 && directory !== undefined) {
    const [name = '', ...rest] = pending;
    pending = rest;
    if (name === '' || name === '.') continue;
    if (name === '..') {
      directory = dirname(directory);
      continue;
    }
    steps.push({ directory, name });
    watch(directory);
    const next: string = directory.endsWith(sep) ? directory + name : directory + sep + name;
    const target = linkTarget(next);
    if (target === 'not a link') directory = next;
    else if (target === 'missing' || ++links > LINKS_MAX) directory = undefined;
    else {
      if (isAbsolute(target.to)) directory = parse(path).root;
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
