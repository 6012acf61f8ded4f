import { inflateRawSync } from 'node:zlib';

/** The files of an archive, read by its directory. */
export function unzip(archive: Buffer): Map<string, string> {
  const end = archive.lastIndexOf(Buffer.from([0x50, 0x4b, 0x06, 0x06]));
  const count = Number(archive.readBigUInt64LE(end + 32));
  let at = Number(archive.readBigUInt64LE(end + 48));
  const files = new Map<string, string>();
  for (let index = 0; index < count; index++) {
    const nameLength = archive.readUInt16LE(at + 28);
    const name = archive.toString('utf8', at + 46, at + 46 + nameLength);
    const extra = at + 46 + nameLength + 4;
    const packed = Number(archive.readBigUInt64LE(extra + 8));
    const offset = Number(archive.readBigUInt64LE(extra + 16));
    const start = offset + 30 + archive.readUInt16LE(offset + 26) + archive.readUInt16LE(offset + 28);
    files.set(name, inflateRawSync(archive.subarray(start, start + packed)).toString());
    at = extra - 4 + archive.readUInt16LE(at + 30);
  }
  return files;
}
