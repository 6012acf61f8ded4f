import { expect, test } from 'vitest';
import { installationPrefix, newObjectKey } from './object-key.ts';

const place = { prefix: 'app/files', installationId: 'abc123' };

test('prefix / installation / area / owner / 32 hex / safe name', () => {
  expect(newObjectKey(place, 'pending', '0190-aa', 'Rücken.png')).toMatch(
    /^app\/files\/abc123\/pending\/0190-aa\/[0-9a-f]{32}\/Rucken\.png$/,
  );
  expect(installationPrefix({ prefix: '', installationId: 'abc123' })).toBe('abc123/');
});

test('owners that are not plain words are replaced by their hash', () => {
  for (const owner of ['../x', 'a/b', 'x'.repeat(65), '', 'ü', 'a\u0000'])
    expect(newObjectKey(place, 'final', owner, 'x')).toMatch(/^app\/files\/abc123\/final\/h-[0-9a-f]{32}\/[0-9a-f]{32}\/x$/);
});

test('two keys never meet', () => {
  const keys = new Set(Array.from({ length: 1000 }, () => newObjectKey(place, 'pending', 'o', 'same.txt')));
  expect(keys.size).toBe(1000);
});
