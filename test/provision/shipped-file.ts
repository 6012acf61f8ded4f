import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../docs/pages.ts';

/** An address with a port, or a path of the machine that the file is for. */
const PLACE = /^(?:[\d.]*:\d+|\d+ ssl|\/(?:etc|run)\/[\w./-]+)$/;

/**
 * A file of `deploy`, as it is, with places of this machine: a test of a deployment runs what is shipped. Anything else that a test would like to
 * change must be changed in the file.
 */
export function shippedFile(path: string, places: Readonly<Record<string, string>>): string {
  let text = readFileSync(join(root, path), 'utf8');
  for (const [shipped, here] of Object.entries(places)) {
    if (!PLACE.test(shipped)) throw new Error(`${path}: ${shipped} is no address and no path: tests run the file as it is.`);
    if (!text.includes(shipped)) throw new Error(`${path} does not contain ${shipped}.`);
    text = text.replaceAll(shipped, here);
  }
  return text;
}
