import { expect, test } from 'vitest';
import { read } from './docs/pages.ts';

test('the page of settings names every variable the toolkit reads, and no other', () => {
  const source = read('packages/kit/src/app/declare/config.ts');
  const known = new Set([...source.matchAll(/\b(?:text|secret)\('([A-Z_]+)'\)/g)].map(([, name]) => name));
  const shown = new Set([...read('docs/reference/settings.md').matchAll(/^\| `([A-Z_]+)`/gm)].map(([, name]) => name));
  expect(known.size).toBeGreaterThan(8);
  expect(shown).toEqual(known);
});
