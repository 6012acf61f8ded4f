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
  expect(tableOf(...near).find(`Bearer ${TOKEN}`, {})).toBeUndefined();
  for (const place of [0, 100, 256]) {
    expect(tableOf(...near.slice(0, place), digest, ...near.slice(place)).find(`Bearer ${TOKEN}`, {})?.name).toBe(`client-${place}`);
  }
});

test('a header that is not a bearer credential finds no client', () => {
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
    expect([header, table.find(header, {})]).toEqual([header, undefined]);
  }
  expect(table.find(`Bearer   ${TOKEN}`, {})?.name).toBe('client-0');
});

test('a token outside ASCII is compared by the bytes that were sent', () => {
  const token = `ünïcode-${'x'.repeat(32)}`;
  const sent = Buffer.from(token).toString('latin1');
  expect(tableOf(createHash('sha256').update(token).digest()).find(`Bearer ${sent}`, {})?.name).toBe('client-0');
});

test('a table without clients finds none', () => {
  expect(tableOf().find(`Bearer ${TOKEN}`, {})).toBeUndefined();
});

test('an admitted connection with another token of the same length finds no client, and with the token of another client that one', () => {
  const [one, two] = [TOKEN, TOKEN.toUpperCase()];
  const table = tableOf(digest, createHash('sha256').update(two).digest());
  const connection = {};
  const nameOf = (authorization: string | undefined): string | undefined => table.find(authorization, connection)?.name;
  for (let round = 0; round < 2; round++) {
    expect([nameOf(`Bearer ${one}`), nameOf(`Bearer ${one}`), nameOf(`bearer  ${one}`)]).toEqual(['client-0', 'client-0', 'client-0']);
    for (const at of [0, 7, TOKEN.length + 6]) {
      const right = `Bearer ${one}`;
      const near = `${right.slice(0, at)}~${right.slice(at + 1)}`;
      expect([near, nameOf(near)]).toEqual([near, undefined]);
    }
    expect([nameOf(undefined), nameOf(''), nameOf('Bearer ')]).toEqual([undefined, undefined, undefined]);
    expect([nameOf(`Bearer ${two}`), nameOf(`Bearer ${one}`), nameOf(`Bearer ${two}`)]).toEqual(['client-1', 'client-0', 'client-1']);
  }
});

test('a connection that another table admitted is checked again', () => {
  const connection = {};
  expect(tableOf(digest).find(`Bearer ${TOKEN}`, connection)?.name).toBe('client-0');
  expect(tableOf(Buffer.alloc(32)).find(`Bearer ${TOKEN}`, connection)).toBeUndefined();
});
