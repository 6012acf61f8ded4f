import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { root } from './architecture/module-graph.ts';

const pages = ['README.md', ...globSync('docs/{guide,reference}/*.md', { cwd: root })];
const words = new Set(pages.flatMap((page) => readFileSync(join(root, page), 'utf8').match(/[A-Za-z_$][\w$]*/g) ?? []));

interface Manifest {
  readonly exports: Readonly<Record<string, { readonly source: string } | string>>;
}

/** The values that each public entry point of a package exports. */
async function exportedValues(folder: string): Promise<readonly { readonly subpath: string; readonly name: string }[]> {
  const { exports } = JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8')) as Manifest;
  const names: { subpath: string; name: string }[] = [];
  for (const [subpath, target] of Object.entries(exports)) {
    if (typeof target === 'string') continue;
    const module = (await import(pathToFileURL(join(root, 'packages', folder, target.source)).href)) as object;
    names.push(...Object.keys(module).map((name) => ({ subpath, name })));
  }
  return names;
}

/** What a package exports is a promise: a name that no page explains is not needed by users, or its page is missing. */
test.each(['kit', 'config-server'])(
  'every function, class and constant that %s exports is on a page of the documentation',
  async (folder) => {
    const values = await exportedValues(folder);
    const missing = values.filter(({ name }) => !words.has(name)).map(({ subpath, name }) => `${subpath} ${name}`);
    expect(missing).toEqual([]);
  },
);

/** Each name is a promise to users, types too. To add one above the limit, find one that users do not need. */
test('kit exports at most 600 names', () => {
  const listing = readFileSync(join(root, 'test/architecture/exports-kit.txt'), 'utf8');
  const names = new Set(listing.split('\n').filter((line) => line.startsWith('  ')));
  expect(names.size).toBeLessThanOrEqual(600);
});
