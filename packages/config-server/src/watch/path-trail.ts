import { lstatSync, readlinkSync } from 'node:fs';
import { dirname, isAbsolute, join, parse, sep } from 'node:path';

/** A name in a directory that the resolution of a path passes through. */
export interface Step {
  readonly directory: string;
  readonly name: string;
}

const LINKS_MAX = 40;

/**
 * Every name a path depends on: each directory on the way, each symbolic link, and what the links point to. A ConfigMap file
 * depends on `..data` this way, and any file on the directories above it. The trail ends where something does not exist yet.
 */
export function trailOf(path: string, known: LinkCache = new Map()): Step[] {
  const steps: Step[] = [];
  const { root } = parse(path);
  let directory = root;
  let pending = path.slice(root.length).split(sep);
  let links = 0;
  while (pending.length > 0) {
    const [name = '', ...rest] = pending;
    pending = rest;
    if (name === '' || name === '.') continue;
    if (name === '..') {
      directory = dirname(directory);
      continue;
    }
    steps.push({ directory, name });
    const target = cachedTarget(join(directory, name), known);
    if (target === 'missing') break;
    if (target === 'not a link') directory = join(directory, name);
    else {
      if (++links > LINKS_MAX) break;
      if (isAbsolute(target.to)) directory = root;
      pending = [...target.to.split(sep), ...rest];
    }
  }
  return steps;
}

type Target = 'missing' | 'not a link' | { readonly to: string };

/** What was found while tracing a batch of paths: they mostly pass through the same directories. */
export type LinkCache = Map<string, Target>;

function cachedTarget(path: string, known: LinkCache): Target {
  let target = known.get(path);
  if (target === undefined) known.set(path, (target = linkTarget(path)));
  return target;
}

function linkTarget(path: string): Target {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return 'missing';
    return stats.isSymbolicLink() ? { to: readlinkSync(path) } : 'not a link';
  } catch {
    return 'missing';
  }
}
