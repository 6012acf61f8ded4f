import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatKey, keyPattern, keyPatternFor, newPrefix, newSecret, parseKey, tagFault } from './key.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const make = (tag = 'kit') => {
  const parts = { prefix: newPrefix(), secret: newSecret() };
  return { ...parts, raw: formatKey(tag, parts) };
};

test('a key is tag, 12 characters of prefix, 43 of secret and 6 of checksum, all base62', () => {
  const { raw, prefix, secret } = make();
  expect(raw).toMatch(/^kit_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/);
  expect(prefix).toHaveLength(12);
  expect(secret).toHaveLength(43);
  expect(43 * Math.log2(62)).toBeGreaterThanOrEqual(256);
});

test('the checksum is the CRC32 of everything before it, in base62', () => {
  const { raw } = make();
  const value = raw
    .slice(-6)
    .split('')
    .reduce((sum, digit) => sum * 62 + BASE62.indexOf(digit), 0);
  expect(value).toBe(crc32(raw.slice(0, -6)));
});

test('what is formatted parses back to its parts, for every tag', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z]{2,8}$/), (tag) => {
      const { raw, prefix, secret } = make(tag);
      expect(parseKey(raw, tag)).toEqual({ prefix, secret });
    }),
  );
});

test('any single changed character makes a key unreadable', () => {
  const { raw } = make();
  fc.assert(
    fc.property(fc.nat(raw.length - 1), fc.string({ minLength: 1, maxLength: 1, unit: 'binary' }), (at, character) => {
      fc.pre(raw[at] !== character);
      expect(parseKey(raw.slice(0, at) + character + raw.slice(at + 1), 'kit')).toBeNull();
    }),
    { numRuns: 500 },
  );
});

test('a typing error that leaves the form of a key is told by the checksum, wherever it is', () => {
  const { raw } = make();
  const accepted = Array.from({ length: raw.length }, (_, at) => at)
    .filter((at) => at >= 'kit_'.length && raw[at] !== '_')
    .flatMap((at) => Array.from(BASE62, (character) => raw.slice(0, at) + character + raw.slice(at + 1)))
    .filter((typed) => parseKey(typed, 'kit') !== null);
  // Of the 62 characters that were tried in each place one is the right one.
  expect(accepted).toEqual(Array.from({ length: 12 + 43 + 6 }, () => raw));
});

test('a checksum that fits does not make up for characters that no key has', () => {
  const { prefix, secret } = make();
  for (const odd of ['-', '_', ' ', '\0', '+', '/', ':', '@', '[', '`', '{', '\x7f']) {
    expect(parseKey(formatKey('kit', { prefix: prefix.slice(0, 11) + odd, secret }), 'kit')).toBeNull();
    expect(parseKey(formatKey('kit', { prefix, secret: odd + secret.slice(1) }), 'kit')).toBeNull();
  }
});

test('no key has a second spelling of its checksum', () => {
  // A character that is no digit must not count as one, whatever value it would have had.
  const spelled = (value: number) => Array.from({ length: 5 }, (_, place) => BASE62[Math.floor(value / 62 ** (4 - place)) % 62]).join('');
  for (let found = 0; found < 20;) {
    const { raw } = make();
    const rest = crc32(raw.slice(0, -6)) - 255;
    if (rest < 0 || rest % 62 !== 0) continue;
    found += 1;
    expect(parseKey(`${raw.slice(0, -6)}${spelled(rest / 62)}-`, 'kit')).toBeNull();
  }
});

test('another tag, a cut or longer key, surrounding space and things that are no text are unreadable', () => {
  const { raw } = make();
  expect(parseKey(raw, 'acme')).toBeNull();
  expect(parseKey(make('acme').raw, 'kit')).toBeNull();
  for (const bad of [raw.slice(0, -1), `${raw}0`, ` ${raw}`, `${raw}\n`, raw.toUpperCase(), '', 'kit_', null, undefined, 7, {}, [raw]]) {
    expect(parseKey(bad, 'kit')).toBeNull();
  }
});

test('a character that only looks like one of a key, or ends in the same byte, makes it unreadable', () => {
  const { raw } = make();
  for (let index = 0; index < raw.length; index += 1) {
    for (const offset of [0x100, 0x0400, 0xff00]) {
      const changed = raw.slice(0, index) + String.fromCharCode(raw.charCodeAt(index) + offset) + raw.slice(index + 1);
      expect(parseKey(changed, 'kit')).toBeNull();
    }
  }
});

test('arbitrary text never parses', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => parseKey(text, 'kit') === null));
});

test('the scanner pattern finds a key in the middle of a text, whole', () => {
  const { raw } = make();
  const found = keyPattern.exec(`curl -H "X-API-Key: ${raw}" https://api.test`);
  expect(found?.[0]).toBe(raw);
  expect(keyPatternFor('acme').test(raw)).toBe(false);
  expect(keyPatternFor('acme').test(make('acme').raw)).toBe(true);
  expect(keyPattern.test('kit_short_secret')).toBe(false);
  for (const longer of [`${raw}x`, `x${raw}`]) expect(keyPattern.exec(longer), 'part of a longer word is no key').toBeNull();
});

test('every character of the alphabet is equally likely', () => {
  const counts = new Map<string, number>();
  for (let byte = 0; byte < 256; byte += 1) {
    // A source that gives this byte first, then zeros: bytes without a bias come out as the first character, others are drawn again.
    let drawn = 0;
    const [first = ''] = newPrefix((size) => Uint8Array.from({ length: size }, () => (drawn++ === 0 ? byte : 0)));
    const character = byte < 248 ? first : `drawn again: ${first}`;
    counts.set(character, (counts.get(character) ?? 0) + 1);
  }
  expect(counts.get('drawn again: 0')).toBe(8);
  counts.delete('drawn again: 0');
  expect(counts.size).toBe(62);
  expect(new Set(counts.values())).toEqual(new Set([4]));
});

test('a tag is 2 to 8 lowercase letters', () => {
  for (const good of ['kit', 'ab', 'acmecorp']) expect(tagFault(good)).toBeNull();
  for (const bad of ['', 'a', 'toolonger', 'Kit', 'k1t', 'a_b', null]) expect(tagFault(bad)).toMatch(/2 to 8/);
});
