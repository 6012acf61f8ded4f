import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { anchors, codeBlocks, links, pages, read, root } from './docs/pages.ts';

test('every relative link of every page leads to a file, and its fragment to a heading', () => {
  const broken = pages().flatMap((page) => {
    const text = read(page);
    return links(text).flatMap(({ target, fragment }) => {
      const path = target === '' ? page : normalize(join(dirname(page), target));
      if (!existsSync(join(root, path))) return [`${page}: ${target}`];
      if (fragment !== '' && path.endsWith('.md') && !anchors(read(path)).has(fragment)) return [`${page}: ${target}#${fragment}`];
      return [];
    });
  });
  expect(broken).toEqual([]);
});

test('every JSON block of every page is JSON', () => {
  const broken = pages().flatMap((page) =>
    codeBlocks(page)
      .filter((block) => block.language === 'json')
      .flatMap((block) => {
        try {
          JSON.parse(block.text);
          return [];
        } catch (error) {
          return [`${page}:${block.line}: ${(error as Error).message}`];
        }
      }),
  );
  expect(broken).toEqual([]);
});

test('the README gives the two commands, each doing all set-up', () => {
  const shell = codeBlocks('README.md')
    .filter((block) => block.language === 'sh')
    .map((block) => block.text.trim());
  expect(shell.slice(0, 2)).toEqual(['npm ci && npm start', 'npm ci && npm test']);
});
