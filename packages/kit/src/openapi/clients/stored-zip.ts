import { crc32 } from 'node:zlib';

export interface StoredFile {
  readonly name: string;
  readonly data: Buffer;
}

/** 1 January 1980, the first day that the format has: the same files give the same bytes. */
const DOS_DATE = 0x21;

/** A ZIP archive without compression, whose output differs between versions of zlib. */
export function storedZip(files: readonly StoredFile[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, data } of files) {
    const path = Buffer.from(name);
    const facts = factsOf(path, data);
    const local = Buffer.concat([words(0x04034b50), facts, path, data]);
    const attributes = Buffer.alloc(14);
    // A plain file that everyone can read, in the upper half as on Unix.
    attributes.writeUInt32LE((0o100644 << 16) >>> 0, 6);
    attributes.writeUInt32LE(offset, 10);
    const madeOnUnix = Buffer.from([20, 3]);
    directory.push(Buffer.concat([words(0x02014b50), madeOnUnix, facts, attributes, path]));
    parts.push(local);
    offset += local.length;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.length, 4);
  end.writeUInt16LE(files.length, 6);
  end.writeUInt32LE(entries.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, entries, words(0x06054b50), end]);
}

/** What both headers of a file have in common, from the version to the lengths. */
function factsOf(path: Buffer, data: Buffer): Buffer {
  const facts = Buffer.alloc(26);
  facts.writeUInt16LE(20, 0);
  facts.writeUInt16LE(DOS_DATE, 8);
  facts.writeUInt32LE(crc32(data), 10);
  facts.writeUInt32LE(data.length, 14);
  facts.writeUInt32LE(data.length, 18);
  facts.writeUInt16LE(path.length, 22);
  return facts;
}

function words(signature: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(signature);
  return bytes;
}
