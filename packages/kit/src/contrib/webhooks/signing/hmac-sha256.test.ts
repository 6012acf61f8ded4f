import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hmacSha256 } from './hmac-sha256.ts';

const reference = (key: Uint8Array, prefix: string, body: string | Uint8Array): string =>
  createHmac('sha256', key).update(prefix).update(body).digest('base64');

test('the case of RFC 4231 with a short key', () => {
  const mac = hmacSha256(Buffer.from('Jefe'))('what do ya want ', 'for nothing?');
  expect(Buffer.from(mac, 'base64').toString('hex')).toBe('5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843');
});

test('any key and message give what OpenSSL gives', () => {
  const bytes = fc.uint8Array({ maxLength: 200 });
  fc.assert(
    fc.property(bytes, fc.string({ unit: 'grapheme' }), fc.oneof(bytes, fc.string({ unit: 'grapheme' })), (key, prefix, body) => {
      expect(hmacSha256(key)(prefix, body)).toBe(reference(key, prefix, body));
    }),
  );
});

test.each([63, 64, 65, 131])('a key of %d bytes is used as the standard says', (length) => {
  const key = Buffer.alloc(length, 0xaa);
  expect(hmacSha256(key)('a.', 'b')).toBe(reference(key, 'a.', 'b'));
});

test('messages of one key after another, long and short, do not leave anything in each other', () => {
  const [one, two] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const macs = [hmacSha256(one), hmacSha256(two)] as const;
  for (const length of [70_000, 3, 65_536 - 64 - 2, 65_536 - 64 - 1, 1000, 0]) {
    const body = Buffer.alloc(length, length);
    expect([macs[0]('é', body), macs[1]('é', body)]).toEqual([reference(one, 'é', body), reference(two, 'é', body)]);
  }
});
