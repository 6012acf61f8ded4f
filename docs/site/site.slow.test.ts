import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';

const dist = join(import.meta.dirname, 'dist');

beforeAll(() => {
  const built = spawnSync(process.execPath, ['build.ts'], { cwd: import.meta.dirname, encoding: 'utf8', env: withoutVitest() });
  if (built.status !== 0) throw new Error(`the site did not build:\n${built.stdout}${built.stderr}`);
}, 180_000);

/** Astro behaves differently where it believes to be inside a test. */
function withoutVitest(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(VITEST|VITE_|NODE_ENV|TEST$)/.test(name)));
}

const pages = () => globSync('**/*.html', { cwd: dist });
const html = (path: string) => readFileSync(join(dist, path), 'utf8');

/** The file a path of the site is served from. */
function served(path: string): string | undefined {
  const file = join(dist, path);
  if (existsSync(file) && statSync(file).isFile()) return path;
  return existsSync(join(file, 'index.html')) ? join(path, 'index.html') : undefined;
}

test('every internal link of every built page leads to a file, and its fragment to an element', () => {
  const broken = pages().flatMap((page) =>
    [...html(page).matchAll(/\s(?:href|src)="([^"]+)"/g)].flatMap(([, address = '']) => {
      const url = new URL(address.replaceAll('&amp;', '&').replaceAll('&#38;', '&'), `http://site/${page.replace(/index\.html$/, '')}`);
      if (url.host !== 'site') return [];
      const target = served(decodeURIComponent(url.pathname));
      if (target === undefined) return [`${page}: ${address}`];
      const id = decodeURIComponent(url.hash.slice(1));
      return id === '' || html(target).includes(` id="${id}"`) ? [] : [`${page}: ${address}`];
    }),
  );
  expect(pages().length).toBeGreaterThan(30);
  expect(broken).toEqual([]);
});

test('no page loads anything from elsewhere', () => {
  const foreign = pages().flatMap((page) =>
    [...html(page).matchAll(/<(?:script|img|iframe|link)\b[^>]*?\s(?:src|href)="(https?:[^"]+)"/g)].map(
      ([, address]) => `${page}: ${address}`,
    ),
  );
  expect(foreign).toEqual([]);
});

test('search works offline: its index is part of the site', () => {
  expect(served('pagefind/pagefind.js')).toBeDefined();
  const entry = JSON.parse(html('pagefind/pagefind-entry.json')) as { languages: { en: { page_count: number } } };
  expect(entry.languages.en.page_count).toBeGreaterThan(30);
});

test('every page has a title and a description of its own', () => {
  const titles = pages()
    .filter((page) => page !== '404.html')
    .map((page) => /<title>([^<]+)<\/title>/.exec(html(page))?.[1]);
  expect(new Set(titles).size).toBe(titles.length);
  const bare = pages().filter((page) => page !== '404.html' && !/<meta name="description" content="[^"]{20,}/.test(html(page)));
  expect(bare).toEqual([]);
});
