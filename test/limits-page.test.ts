import { expect, test } from 'vitest';
import { INPUT_LIMITS } from '../packages/kit/src/options/input-limits.ts';
import { read } from './docs/pages.ts';

test('the page of HTTP lists every limit of a request with its number', () => {
  const [, section = ''] = /^## Limits$([^]*?)^## /m.exec(read('docs/reference/http.md')) ?? [];
  const shown = [...section.matchAll(/^\| [^|]+ \| ([\d,]+)/gm)].map(([, number = '']) => Number(number.replaceAll(',', '')));
  expect(shown).toEqual(Object.values(INPUT_LIMITS));
});
