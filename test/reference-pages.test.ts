import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { referencePages, root } from '../scripts/reference-pages.ts';

test('pages made from the sources are up to date: npm run docs:reference', async () => {
  const stale = (await referencePages()).filter(
    ({ path, text }) => !existsSync(join(root, path)) || readFileSync(join(root, path), 'utf8') !== text,
  );
  expect(stale.map(({ path }) => path)).toEqual([]);
});
