import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { builtParts } from '../../../scripts/admin-site.ts';

const site = join(import.meta.dirname, '../../kit/src/admin/site');
const FIRST_LOAD_BYTES_MAX = 160_000;

const page = readFileSync(join(site, 'index.html'), 'utf8');
const linked = [...page.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map((match) => match[1] ?? '');

/** What the first script imports before it runs, and what it imports in turn. */
function firstLoad(): readonly { readonly name: string; readonly bytes: number }[] {
  const needed = new Set(['index.html', ...linked]);
  for (const name of needed) {
    if (!name.endsWith('.js')) continue;
    for (const [, imported = ''] of readFileSync(join(site, name), 'utf8').matchAll(/(?:from|import)"\.\/([^"]+\.js)"/g))
      needed.add(`assets/${imported}`);
  }
  return [...needed]
    .map((name) => ({ name, bytes: gzipSync(readFileSync(join(site, name)), { level: 9 }).length }))
    .sort((a, b) => b.bytes - a.bytes);
}

/** The largest parts of these scripts, before they are minified and compressed: what to load later, when it is too much. */
function largestParts(scripts: readonly string[]): string {
  const sums = new Map<string, number>();
  const built = builtParts();
  for (const name of scripts) for (const [part, bytes] of Object.entries(built[name] ?? {})) sums.set(part, (sums.get(part) ?? 0) + bytes);
  const largest = [...sums].sort(([, a], [, b]) => b - a).slice(0, 25);
  return largest.map(([part, bytes]) => `${part}: ${Math.round(bytes / 1000)} kB`).join('\n');
}

test('the page and all it asks for until the overview is there weigh at most 160 kB gzipped', () => {
  const files = firstLoad();
  const scripts = files.map(({ name }) => name).filter((name) => name.endsWith('.js'));
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const parts = largestParts(scripts);
  expect(parts, 'it is known what the scripts are made of').toContain('react-dom: ');
  const sizes = files.map(({ name, bytes }) => `${name}: ${bytes} bytes`).join('\n');
  expect(total, `the files, compressed:\n${sizes}\ntheir largest parts, before that:\n${parts}\n`).toBeLessThanOrEqual(
    FIRST_LOAD_BYTES_MAX,
  );
});

test('what is drawn over a page, and with it the library for positions, comes when it opens', () => {
  const scripts = firstLoad().map(({ name }) => name);
  const parts = scripts.flatMap((name) => Object.keys(builtParts()[name] ?? {}));
  const late = new Set([
    '@floating-ui/react',
    '@floating-ui/dom',
    '@mantine/core/Modal',
    '@mantine/core/Popover',
    '@mantine/core/Menu',
    '@mantine/notifications',
  ]);
  expect(parts.filter((part) => late.has(part))).toEqual([]);
});

test('the page runs no script of its own text and names no address but its own folder', () => {
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)/);
  expect(page).not.toMatch(/\bon\w+=/);
  expect(page).not.toMatch(/(?:src|href)="(?!\.\/)/);
});

test('the libraries are bundled without their development halves', () => {
  const scripts = globSync('assets/*.js', { cwd: site }).map((name) => readFileSync(join(site, name), 'utf8'));
  expect(scripts.join('\n')).not.toContain('Download the React DevTools');
});
