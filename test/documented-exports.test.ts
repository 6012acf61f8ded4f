import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { root } from './architecture/module-graph.ts';

const pages = ['README.md', ...globSync('docs/{guide,reference}/*.md', { cwd: root })];
const words = new Set(pages.flatMap((page) => readFileSync(join(root, page), 'utf8').match(/[A-Za-z_$][\w$]*/g) ?? []));

/** What a package exports is a promise: a name that no page explains is not needed by users, or its page is missing. */
test.each(['kit', 'config-server'])(
  'every function, class and constant that %s exports is on a page of the documentation',
  async (folder) => {
    const { exports } = JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8')) as {
      exports: Record<string, { source: string } | string>;
    };
    const missing: string[] = [];
    for (const [subpath, target] of Object.entries(exports)) {
      if (typeof target === 'string') continue;
      const module = (await import(pathToFileURL(join(root, 'packages', folder, target.source)).href)) as object;
      missing.push(...Object.keys(module).flatMap((name) => (words.has(name) ? [] : [`${subpath} ${name}`])));
    }
    expect(missing).toEqual([]);
  },
);
