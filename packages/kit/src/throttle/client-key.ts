import { ipBytes } from './ip-bytes.ts';

/**
 * The budget a client address belongs to. One IPv6 subscriber holds a whole /64 and can change address with every
 * request, so addresses of a /64 share; an IPv4 address written as IPv6 is its IPv4 address.
 */
export function clientKey(address: string): string {
  if (!address.includes(':')) return address;
  const plain = address.replace(/%.*$/, '');
  const bytes = ipBytes(plain);
  if (bytes?.length !== 16) return plain;
  if (isMappedIPv4(bytes)) return bytes.slice(12).join('.');
  const groups = [0, 2, 4, 6].map((at) => ((bytes[at]! << 8) | bytes[at + 1]!).toString(16));
  return `${groups.join(':')}::/64`;
}

function isMappedIPv4(bytes: readonly number[]): boolean {
  return bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff;
}
