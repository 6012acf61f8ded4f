import { createHash } from 'node:crypto';
import { crc32, createDeflateRaw } from 'node:zlib';
import { Readable } from 'node:stream';

/** A file of an archive. Its name has no `..` and no leading slash: whoever unpacks it writes below one folder. */
export interface ZipEntry {
  readonly name: string;
  readonly content: AsyncIterable<Uint8Array>;
}

/** An entry as it was written. */
export interface WrittenEntry {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
}

interface Placed extends WrittenEntry {
  readonly crc: number;
  readonly packed: number;
  readonly offset: number;
}

const LOCAL = 0x04034b50;
const DESCRIPTOR = 0x08074b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const END_64 = 0x06064b50;
const LOCATOR_64 = 0x07064b50;
const VERSION = 20;
/** ZIP64. Only where something is too large for the older form: the archive program of macOS does not read the other one. */
const VERSION_64 = 45;
/** Sizes follow the content; names are UTF-8. */
const FLAGS = 0x0808;
const DEFLATE = 8;
const FULL = 0xffffffff;
const FULL_COUNT = 0xffff;
/** 1980-01-01: an archive of the same rows has the same bytes. */
const DATE = 0x0021;

/**
 * A ZIP archive, a piece after the other (APPNOTE 6.3.10). `onEntry` hears of each entry when its content is complete. `full`: sizes and places from here on
 * are written as ZIP64; tests have no 4 GiB.
 */
export async function* zip(
  entries: AsyncIterable<ZipEntry>,
  onEntry: (entry: WrittenEntry) => void = () => {},
  full = FULL,
): AsyncGenerator<Uint8Array> {
  const placed: Placed[] = [];
  let offset = 0;
  for await (const { name, content } of entries) {
    const start = offset;
    const header = localHeader(name);
    offset += header.length;
    yield header;
    const seen = { crc: 0, bytes: 0, hash: createHash('sha256') };
    let packed = 0;
    for await (const piece of Readable.from(counted(content, seen)).pipe(createDeflateRaw()) as AsyncIterable<Buffer>) {
      packed += piece.length;
      yield piece;
    }
    const entry = { name, bytes: seen.bytes, sha256: seen.hash.digest('hex'), crc: seen.crc, packed, offset: start };
    const descriptor = descriptorOf(entry, full);
    offset += packed + descriptor.length;
    yield descriptor;
    placed.push(entry);
    onEntry(entry);
  }
  const directory = Buffer.concat(placed.map((entry) => centralHeader(entry, full)));
  yield directory;
  yield endOf(placed.length, directory.length, offset, full);
}

async function* counted(
  content: AsyncIterable<Uint8Array>,
  seen: { crc: number; bytes: number; readonly hash: ReturnType<typeof createHash> },
): AsyncGenerator<Uint8Array> {
  for await (const piece of content) {
    seen.crc = crc32(piece, seen.crc);
    seen.bytes += piece.length;
    seen.hash.update(piece);
    yield piece;
  }
}

function localHeader(name: string): Buffer {
  const bytes = Buffer.from(name);
  const header = Buffer.alloc(30);
  header.writeUInt32LE(LOCAL, 0);
  header.writeUInt16LE(VERSION, 4);
  header.writeUInt16LE(FLAGS, 6);
  header.writeUInt16LE(DEFLATE, 8);
  header.writeUInt16LE(DATE, 12);
  header.writeUInt16LE(bytes.length, 26);
  return Buffer.concat([header, bytes]);
}

function isLarge({ packed, bytes }: Placed, full: number): boolean {
  return packed >= full || bytes >= full;
}

function descriptorOf(entry: Placed, full: number): Buffer {
  const { crc, packed, bytes } = entry;
  const descriptor = Buffer.alloc(isLarge(entry, full) ? 24 : 16);
  descriptor.writeUInt32LE(DESCRIPTOR, 0);
  descriptor.writeUInt32LE(crc, 4);
  if (descriptor.length === 24) {
    descriptor.writeBigUInt64LE(BigInt(packed), 8);
    descriptor.writeBigUInt64LE(BigInt(bytes), 16);
  } else {
    descriptor.writeUInt32LE(packed, 8);
    descriptor.writeUInt32LE(bytes, 12);
  }
  return descriptor;
}

function centralHeader(entry: Placed, full: number): Buffer {
  const { name, crc, packed, bytes, offset } = entry;
  const text = Buffer.from(name);
  // In this order, and only those that do not fit into their fields.
  const large = [...(isLarge(entry, full) ? [bytes, packed] : []), ...(offset >= full ? [offset] : [])];
  const version = large.length === 0 ? VERSION : VERSION_64;
  const header = Buffer.alloc(46);
  header.writeUInt32LE(CENTRAL, 0);
  header.writeUInt16LE(version, 4);
  header.writeUInt16LE(version, 6);
  header.writeUInt16LE(FLAGS, 8);
  header.writeUInt16LE(DEFLATE, 10);
  header.writeUInt16LE(DATE, 14);
  header.writeUInt32LE(crc, 16);
  header.writeUInt32LE(isLarge(entry, full) ? FULL : packed, 20);
  header.writeUInt32LE(isLarge(entry, full) ? FULL : bytes, 24);
  header.writeUInt16LE(text.length, 28);
  header.writeUInt16LE(large.length === 0 ? 0 : 4 + large.length * 8, 30);
  header.writeUInt32LE(offset >= full ? FULL : offset, 42);
  if (large.length === 0) return Buffer.concat([header, text]);
  const extra = Buffer.alloc(4 + large.length * 8);
  extra.writeUInt16LE(1, 0);
  extra.writeUInt16LE(large.length * 8, 2);
  for (const [index, value] of large.entries()) extra.writeBigUInt64LE(BigInt(value), 4 + index * 8);
  return Buffer.concat([header, text, extra]);
}

function endOf(count: number, size: number, offset: number, full: number): Buffer {
  const isLargeArchive = count >= FULL_COUNT || size >= full || offset >= full;
  const end = Buffer.alloc(22);
  end.writeUInt32LE(END, 0);
  end.writeUInt16LE(isLargeArchive ? FULL_COUNT : count, 8);
  end.writeUInt16LE(isLargeArchive ? FULL_COUNT : count, 10);
  end.writeUInt32LE(isLargeArchive ? FULL : size, 12);
  end.writeUInt32LE(isLargeArchive ? FULL : offset, 16);
  return isLargeArchive ? Buffer.concat([largeEndOf(count, size, offset), end]) : end;
}

function largeEndOf(count: number, size: number, offset: number): Buffer {
  const end = Buffer.alloc(56 + 20);
  end.writeUInt32LE(END_64, 0);
  end.writeBigUInt64LE(44n, 4);
  end.writeUInt16LE(VERSION_64, 12);
  end.writeUInt16LE(VERSION_64, 14);
  end.writeBigUInt64LE(BigInt(count), 24);
  end.writeBigUInt64LE(BigInt(count), 32);
  end.writeBigUInt64LE(BigInt(size), 40);
  end.writeBigUInt64LE(BigInt(offset), 48);
  end.writeUInt32LE(LOCATOR_64, 56);
  end.writeBigUInt64LE(BigInt(offset + size), 64);
  end.writeUInt32LE(1, 72);
  return end;
}
