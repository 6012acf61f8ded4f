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
/** ZIP64, which every reader of the last twenty years knows: sizes are not known before the content. */
const VERSION = 45;
/** Sizes follow the content; names are UTF-8. */
const FLAGS = 0x0808;
const DEFLATE = 8;
const FULL = 0xffffffff;
/** 1980-01-01: an archive of the same rows has the same bytes. */
const DATE = 0x0021;

/** A ZIP archive, a piece after the other (APPNOTE 6.3.10, with ZIP64). `onEntry` hears of each entry when its content is complete. */
export async function* zip(
  entries: AsyncIterable<ZipEntry>,
  onEntry: (entry: WrittenEntry) => void = () => {},
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
    const descriptor = descriptorOf(entry);
    offset += packed + descriptor.length;
    yield descriptor;
    placed.push(entry);
    onEntry(entry);
  }
  const directory = Buffer.concat(placed.map(centralHeader));
  yield directory;
  yield endOf(placed.length, directory.length, offset);
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
  const header = Buffer.alloc(30 + 20);
  header.writeUInt32LE(LOCAL, 0);
  header.writeUInt16LE(VERSION, 4);
  header.writeUInt16LE(FLAGS, 6);
  header.writeUInt16LE(DEFLATE, 8);
  header.writeUInt16LE(DATE, 12);
  header.writeUInt32LE(FULL, 18);
  header.writeUInt32LE(FULL, 22);
  header.writeUInt16LE(bytes.length, 26);
  header.writeUInt16LE(20, 28);
  // The sizes of the extra field follow the content, in eight bytes each.
  header.writeUInt16LE(1, 30);
  header.writeUInt16LE(16, 32);
  return Buffer.concat([header.subarray(0, 30), bytes, header.subarray(30)]);
}

function descriptorOf({ crc, packed, bytes }: Placed): Buffer {
  const descriptor = Buffer.alloc(24);
  descriptor.writeUInt32LE(DESCRIPTOR, 0);
  descriptor.writeUInt32LE(crc, 4);
  descriptor.writeBigUInt64LE(BigInt(packed), 8);
  descriptor.writeBigUInt64LE(BigInt(bytes), 16);
  return descriptor;
}

function centralHeader({ name, crc, packed, bytes, offset }: Placed): Buffer {
  const text = Buffer.from(name);
  const header = Buffer.alloc(46);
  header.writeUInt32LE(CENTRAL, 0);
  header.writeUInt16LE(VERSION, 4);
  header.writeUInt16LE(VERSION, 6);
  header.writeUInt16LE(FLAGS, 8);
  header.writeUInt16LE(DEFLATE, 10);
  header.writeUInt16LE(DATE, 14);
  header.writeUInt32LE(crc, 16);
  header.writeUInt32LE(FULL, 20);
  header.writeUInt32LE(FULL, 24);
  header.writeUInt16LE(text.length, 28);
  header.writeUInt16LE(28, 30);
  header.writeUInt32LE(FULL, 42);
  const extra = Buffer.alloc(28);
  extra.writeUInt16LE(1, 0);
  extra.writeUInt16LE(24, 2);
  extra.writeBigUInt64LE(BigInt(bytes), 4);
  extra.writeBigUInt64LE(BigInt(packed), 12);
  extra.writeBigUInt64LE(BigInt(offset), 20);
  return Buffer.concat([header, text, extra]);
}

function endOf(count: number, size: number, offset: number): Buffer {
  const end = Buffer.alloc(56 + 20 + 22);
  end.writeUInt32LE(END_64, 0);
  end.writeBigUInt64LE(44n, 4);
  end.writeUInt16LE(VERSION, 12);
  end.writeUInt16LE(VERSION, 14);
  end.writeBigUInt64LE(BigInt(count), 24);
  end.writeBigUInt64LE(BigInt(count), 32);
  end.writeBigUInt64LE(BigInt(size), 40);
  end.writeBigUInt64LE(BigInt(offset), 48);
  end.writeUInt32LE(LOCATOR_64, 56);
  end.writeBigUInt64LE(BigInt(offset + size), 64);
  end.writeUInt32LE(1, 72);
  end.writeUInt32LE(END, 76);
  end.writeUInt16LE(0xffff, 84);
  end.writeUInt16LE(0xffff, 86);
  end.writeUInt32LE(FULL, 88);
  end.writeUInt32LE(FULL, 92);
  return end;
}
