import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { TOKEN } from '../../test/running-server.ts';
import { TokenTable } from './token-table.ts';

function tableOf(...digests: Buffer[]): TokenTable {
  return new TokenTable(digests.map((digest, index) => ({ name: `client-${index}`, digests: [digest], applications: new Set<string>() })));
}

const digest = createHash('sha256').update(TOKEN).digest();

test('a digest that differs in a single bit, anywhere, is another token', () => {
  const near = Array.from({ length: 256 }, (_, bit) => {
    const flipped = Buffer.from(digest);
    flipped[bit >> 3]! ^= 1 << (bit & 7);
    return flipped;
  });
  expect(tableOf(...near).find(`Bearer ${TOKEN}`)).toBeUndefined();
  for (const place of [0, 100, 256]) {
    expect(tableOf(...near.slice(0, place), digest, ...near.slice(place)).find(`Bearer ${TOKEN}`)?.name).toBe(`client-${place}`);
  }
});

test('what is no bearer credential finds nobody', () => {
  const table = tableOf(digest);
  for (const header of [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    TOKEN,
    `Basic ${TOKEN}`,
    `Bearer${TOKEN}`,
    `Bearer ${TOKEN}x`,
    `Bearer "${TOKEN}"`,
  ]) {
    expect([header, table.find(header)]).toEqual([header, undefined]);
  }
  expect(table.find(`Bearer   ${TOKEN}`)?.name).toBe('client-0');
});

test('a token outside ASCII is compared by the bytes that were sent', () => {
  const token = `ünïcode-${'x'.repeat(32)}`;
  const sent = Buffer.from(token).toString('latin1');
  expect(tableOf(createHash('sha256').update(token).digest()).find(`Bearer ${sent}`)?.name).toBe('client-0');
});

test('a table without clients finds nobody', () => {
  expect(tableOf().find(`Bearer ${TOKEN}`)).toBeUndefined();
});
