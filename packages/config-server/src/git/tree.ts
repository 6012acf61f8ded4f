/** What a name in a tree leads to. */
export interface TreeEntry {
  readonly kind: 'file' | 'folder' | 'symbolic link' | 'submodule';
  readonly id: string;
}

/** Entries by name. Names are bytes; as Latin-1 text every name has one form, also one that is not UTF-8. */
export type Tree = ReadonlyMap<string, TreeEntry>;

/** By the bits of a mode that are not permissions. Some programs wrote other permissions than Git, or a zero in front. */
const KINDS: Readonly<Record<number, TreeEntry['kind']>> = {
  0o100000: 'file',
  0o040000: 'folder',
  0o120000: 'symbolic link',
  0o160000: 'submodule',
};
const KIND_BITS = 0o170000;

/** Parses a tree object: mode, blank, name, NUL, the bytes of the id. Undefined when it is not one. */
export function parseTree(content: Buffer, idBytes: 20 | 32): Tree | undefined {
  const tree = new Map<string, TreeEntry>();
  let at = 0;
  while (at < content.length) {
    const blank = content.indexOf(0x20, at);
    const end = content.indexOf(0, blank);
    if (blank === -1 || end === -1 || end + 1 + idBytes > content.length) return undefined;
    const kind = kindOf(content.toString('latin1', at, blank));
    const name = content.toString('latin1', blank + 1, end);
    at = end + 1 + idBytes;
    // Twice the same name: which of them counts would depend on the reader.
    if (kind === undefined || tree.has(name)) return undefined;
    tree.set(name, { kind, id: content.toString('hex', end + 1, at) });
  }
  return tree;
}

function kindOf(mode: string): TreeEntry['kind'] | undefined {
  return /^0?[0-7]{5,6}$/.test(mode) ? KINDS[Number.parseInt(mode, 8) & KIND_BITS] : undefined;
}

/** A name as it is in a tree. */
export function treeName(name: string): string {
  return Buffer.from(name).toString('latin1');
}
