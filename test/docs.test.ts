import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
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

test('a decision has its number once', () => {
  const numbers = pages()
    .filter((page) => page.startsWith('docs/decisions/'))
    .flatMap((page) => [...read(page).matchAll(/^## (\d{3}): /gm)].map(([, number]) => number));
  expect(numbers.length).toBeGreaterThan(20);
  expect(numbers.filter((number, at) => numbers.indexOf(number) !== at)).toEqual([]);
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

test('every TOML and YAML block of every page can be read', () => {
  const readers: Readonly<Record<string, (text: string) => unknown>> = { toml: parseToml, yaml: parseAllDocuments };
  const broken = pages().flatMap((page) =>
    codeBlocks(page).flatMap(({ language, text, line }) => {
      try {
        const documents = [readers[language]?.(text)].flat() as ({ errors?: Error[] } | undefined)[];
        return documents.flatMap((document) => document?.errors ?? []).map(({ message }) => `${page}:${line}: ${message}`);
      } catch (error) {
        return [`${page}:${line}: ${(error as Error).message}`];
      }
    }),
  );
  expect(broken).toEqual([]);
});

test('the README gives the two commands, each doing all setup', () => {
  const shell = codeBlocks('README.md')
    .filter((block) => block.language === 'sh')
    .map((block) => block.text.trim());
  expect(shell.slice(0, 2)).toEqual(['npm ci && npm start', 'npm ci && npm test']);
});
