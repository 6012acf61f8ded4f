import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';

const site = join(import.meta.dirname, '../../kit/src/admin/site');
const FIRST_LOAD_BYTES_MAX = 250_000;

const page = readFileSync(join(site, 'index.html'), 'utf8');
const linked = [...page.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map((match) => match[1] ?? '');

test('the page and all it asks for until the overview is there weigh at most 250 kB gzipped', () => {
  const script = linked.find((name) => name.endsWith('.js')) ?? '';
  // What the first script imports before it runs, and what it imports in turn.
  const needed = new Set(linked);
  for (const name of needed) {
    if (!name.endsWith('.js')) continue;
    for (const [, imported = ''] of readFileSync(join(site, name), 'utf8').matchAll(/(?:from|import)"\.\/([^"]+\.js)"/g))
      needed.add(`assets/${imported}`);
  }
  const bytes = [...needed].map((name) => gzipSync(readFileSync(join(site, name)), { level: 9 }).length);
  expect(script).not.toBe('');
  expect(bytes.reduce((sum, size) => sum + size, gzipSync(page).length)).toBeLessThanOrEqual(FIRST_LOAD_BYTES_MAX);
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
