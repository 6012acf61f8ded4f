import { inflateRawSync } from 'node:zlib';

/** The files of a small archive, read by its directory. */
export function unzip(archive: Buffer): Map<string, string> {
  const end = archive.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  const count = archive.readUInt16LE(end + 10);
  let at = archive.readUInt32LE(end + 16);
  const files = new Map<string, string>();
  for (let index = 0; index < count; index++) {
    const [nameLength, extraLength] = [archive.readUInt16LE(at + 28), archive.readUInt16LE(at + 30)];
    const name = archive.toString('utf8', at + 46, at + 46 + nameLength);
    const [packed, offset] = [archive.readUInt32LE(at + 20), archive.readUInt32LE(at + 42)];
    const start = offset + 30 + archive.readUInt16LE(offset + 26) + archive.readUInt16LE(offset + 28);
    files.set(name, inflateRawSync(archive.subarray(start, start + packed)).toString());
    at += 46 + nameLength + extraLength;
  }
  return files;
}
