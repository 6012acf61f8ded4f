// IP addresses as numbers, and whether a table of blocks holds them.
import { ipBytes } from '../../../throttle/ip-bytes.ts';
import { EMBEDDED_V4, METADATA, SPECIAL_V4, SPECIAL_V6 } from './address-table.ts';

export interface Address {
  readonly family: 4 | 6;
  readonly bits: bigint;
}

/** Strict text forms only, as a resolver or a socket reports them. No zone ids: they exist for link-local addresses alone. */
export function parseAddress(text: string): Address | null {
  const bytes = ipBytes(text);
  if (bytes === null) return null;
  return { family: bytes.length === 4 ? 4 : 6, bits: bytes.reduce((bits, byte) => (bits << 8n) | BigInt(byte), 0n) };
}

export interface Cidr {
  readonly family: 4 | 6;
  readonly bits: bigint;
  readonly prefix: number;
}

export function parseCidr(text: string): Cidr {
  const [base = '', length, ...rest] = text.split('/');
  const address = parseAddress(base);
  const width = address?.family === 4 ? 32 : 128;
  const prefix = length === undefined ? width : Number(length);
  if (address === null || rest.length > 0 || length === '' || !Number.isInteger(prefix) || prefix < 0 || prefix > width) {
    throw new TypeError(`"${text}" is not an address block such as "10.1.0.0/16" or "fd00::/8".`);
  }
  return { ...address, prefix };
}

export function contains(cidr: Cidr, address: Address): boolean {
  if (cidr.family !== address.family) return false;
  const shift = BigInt((cidr.family === 4 ? 32 : 128) - cidr.prefix);
  return cidr.bits >> shift === address.bits >> shift;
}

interface NamedCidr extends Cidr {
  readonly name: string;
}

const named = (blocks: readonly { cidr: string; name: string }[]): NamedCidr[] =>
  blocks.map(({ cidr, name }) => ({ ...parseCidr(cidr), name }));

const SPECIAL = named([...SPECIAL_V4, ...SPECIAL_V6]);
const METADATA_BLOCKS = named(METADATA);
const EMBEDDED = EMBEDDED_V4.map((form) => ({ form, block: parseCidr(form.cidr) }));

/** The special block an address lies in, or null when it is an ordinary public address. */
export function specialBlock(address: Address): string | null {
  return metadataBlock(address) ?? embeddedIn(address)?.name ?? SPECIAL.find((cidr) => contains(cidr, address))?.name ?? null;
}

export function metadataBlock(address: Address): string | null {
  return METADATA_BLOCKS.find((cidr) => contains(cidr, address))?.name ?? null;
}

export interface Embedded {
  readonly name: string;
  /** Every IPv4 address that can be read from it. */
  readonly addresses: readonly Address[];
}

/** What an IPv6 address that carries IPv4 addresses stands for; null for every other address. */
export function embeddedIn(address: Address): Embedded | null {
  if (address.family === 4) return null;
  const isatap = (address.bits >> 32n) & 0xfdffffffn;
  if (isatap === 0x5efen) return { name: 'ISATAP (RFC 5214)', addresses: [v4At(address.bits, 96)] };
  const form = EMBEDDED.find(({ block }) => contains(block, address))?.form;
  if (form === undefined) return null;
  const addresses = form.v4Bits.map((bit) => v4At(address.bits, bit));
  if (form.inverted !== undefined) addresses.push(v4At(address.bits ^ ((1n << 128n) - 1n), form.inverted));
  return { name: form.name, addresses };
}

function v4At(bits: bigint, firstBit: number): Address {
  return { family: 4, bits: (bits >> BigInt(128 - firstBit - 32)) & 0xffffffffn };
}
