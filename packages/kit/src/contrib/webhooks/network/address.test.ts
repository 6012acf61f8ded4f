import { BlockList } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EMBEDDED_V4, METADATA, SPECIAL_V4, SPECIAL_V6 } from './address-table.ts';
import { contains, embeddedIn, parseAddress, parseCidr, specialBlock } from './address.ts';
import type { Address } from './address.ts';

const address = (text: string): Address => {
  const parsed = parseAddress(text);
  if (parsed === null) throw new Error(`${text} is not an address`);
  return parsed;
};
const format = (bits: bigint): string =>
  Array.from({ length: 8 }, (_, index) => ((bits >> BigInt(112 - index * 16)) & 0xffffn).toString(16)).join(':');
const dotted = (bits: bigint): string => [24n, 16n, 8n, 0n].map((shift) => String((bits >> shift) & 255n)).join('.');

test.each([
  ['0.0.0.0', 4, 0n],
  ['255.255.255.255', 4, 0xffffffffn],
  ['::', 6, 0n],
  ['::1', 6, 1n],
  ['1::', 6, 1n << 112n],
  ['::ffff:1.2.3.4', 6, 0xffff01020304n],
  ['1:2:3:4:5:6:1.2.3.4', 6, 0x00010002000300040005000601020304n],
  ['2001:DB8::A', 6, 0x20010db800000000000000000000000an],
  ['1:2:3:4:5:6:7:8', 6, 0x00010002000300040005000600070008n],
  ['1:2:3:4:5:6:7::', 6, 0x00010002000300040005000600070000n],
] as const)('%s is read as a number', (text, family, bits) => {
  expect(parseAddress(text)).toEqual({ family, bits });
});

test.each([
  '',
  '1',
  '1.2.3',
  '1.2.3.4.5',
  '01.2.3.4',
  '256.1.1.1',
  '0x7f.0.0.1',
  ' 1.2.3.4',
  '::1%lo',
  'fe80::1%eth0',
  ':::',
  '1::2::3',
  '12345::',
  '[::1]',
  'localhost',
])('%j is no address', (text) => {
  expect(parseAddress(text)).toBeNull();
});

const blocks = [...SPECIAL_V4, ...SPECIAL_V6, ...METADATA, ...EMBEDDED_V4];

test('membership agrees with Node’s own block list, block by block', () => {
  const v4 = fc.oneof(fc.bigInt({ min: 0n, max: 0xffffffffn }), nearEdges(4));
  const v6 = fc.oneof(fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }), nearEdges(6));
  for (const { cidr } of blocks) {
    const parsed = parseCidr(cidr);
    const [base = '', prefix = ''] = cidr.split('/');
    const list = new BlockList();
    list.addSubnet(base, Number(prefix), parsed.family === 4 ? 'ipv4' : 'ipv6');
    fc.assert(
      fc.property(parsed.family === 4 ? v4 : v6, (bits) => {
        const text = parsed.family === 4 ? dotted(bits) : format(bits);
        expect(contains(parsed, address(text))).toBe(list.check(text, parsed.family === 4 ? 'ipv4' : 'ipv6'));
      }),
      { numRuns: 60 },
    );
  }
});

/** Addresses just inside and just outside some block: where an off-by-one would show. */
function nearEdges(family: 4 | 6): fc.Arbitrary<bigint> {
  const width = family === 4 ? 32 : 128;
  const max = (1n << BigInt(width)) - 1n;
  const edges = blocks
    .map(({ cidr }) => parseCidr(cidr))
    .filter((cidr) => cidr.family === family)
    .flatMap(({ bits, prefix }) => [bits - 1n, bits, bits + (1n << BigInt(width - prefix)) - 1n, bits + (1n << BigInt(width - prefix))])
    .filter((bits) => bits >= 0n && bits <= max);
  return fc.constantFrom(...edges);
}

test('every IPv4 address is refused in every form IPv6 can carry it in', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 0xffffffffn }), (v4) => {
      const hex = `${(v4 >> 16n).toString(16)}:${(v4 & 0xffffn).toString(16)}`;
      const inverted = v4 ^ 0xffffffffn;
      const carriers = [
        `::ffff:${hex}`,
        `::ffff:${dotted(v4)}`,
        `::ffff:0:${hex}`,
        `::${hex}`,
        `64:ff9b::${hex}`,
        `64:ff9b:1::${hex}`,
        `2002:${hex}::1`,
        `2001:0:${hex}::`,
        `2001:0:808:808::${(inverted >> 16n).toString(16)}:${(inverted & 0xffffn).toString(16)}`,
        `2a00:1450:4001:829:0:5efe:${hex}`,
        `2a00:1450:4001:829:200:5efe:${hex}`,
      ];
      for (const text of carriers) {
        const parsed = address(text);
        expect(specialBlock(parsed)).not.toBeNull();
        expect(embeddedIn(parsed)?.addresses.some((inner) => inner.bits === v4)).toBe(true);
      }
    }),
  );
});

test('nothing outside 2000::/3 is an ordinary address', () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }).filter((bits) => bits >> 125n !== 1n),
      (bits) => {
        expect(specialBlock(address(format(bits)))).not.toBeNull();
      },
    ),
  );
});

test('an address is the same number however it is spelt', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV6(), fc.ipV4()), (text) => {
      const canonical = new URL(`http://${text.includes(':') ? `[${text}]` : text}/`).hostname.replaceAll(/[[\]]/g, '');
      expect(parseAddress(text)).toEqual(parseAddress(canonical));
      expect(parseAddress(text.toUpperCase())).toEqual(parseAddress(canonical));
      const { family, bits } = address(text);
      expect(new URL(`http://${family === 4 ? dotted(bits) : `[${format(bits)}]`}/`).hostname.replaceAll(/[[\]]/g, '')).toBe(canonical);
    }),
    { numRuns: 2000 },
  );
});
