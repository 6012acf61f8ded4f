import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('the client of the example is ten lines', () => {
  expect(
    readFileSync(join(import.meta.dirname, 'main.ts'), 'utf8')
      .trimEnd()
      .split('\n'),
  ).toHaveLength(10);
});
