import { isAlias, isMap, isScalar, isSeq, parseDocument, type Document, type Pair, type ParsedNode } from 'yaml';

type Node = ParsedNode | null | undefined;
type KeyPair = Pair<ParsedNode, ParsedNode | null>;

/** A map that merges itself would be followed forever. */
const MERGES_MAX = 100;

/** A YAML text, parsed again for the places of its keys. The text was parsed before, so it is valid. */
export function parseYamlPlaces(text: string): Document.Parsed {
  return parseDocument(text, { intAsBigInt: true, merge: true, logLevel: 'error', uniqueKeys: false });
}

/** The offset of the key that a path names. A key that comes from an anchor is found where the anchor is. */
export function yamlKeyOffset(document: Document.Parsed, path: readonly string[]): number | undefined {
  let node: Node = document.contents;
  let found: number | undefined;
  for (const key of path) {
    const pair: KeyPair | undefined = pairOf(document, node, key);
    if (pair === undefined) return undefined;
    found = pair.key.range[0];
    node = pair.value;
  }
  return found;
}

/** Keys of the map itself win over merged ones; of several merged maps the first one that has the key wins. */
function pairOf(document: Document.Parsed, node: Node, key: string, mergesLeft = MERGES_MAX): KeyPair | undefined {
  const map = resolved(document, node);
  if (!isMap(map) || mergesLeft === 0) return undefined;
  const pairs = map.items as KeyPair[];
  const own = pairs.find((pair) => keyOf(document, pair) === key);
  if (own !== undefined) return own;
  for (const pair of pairs) {
    if (!isMerge(pair)) continue;
    const merged = resolved(document, pair.value);
    for (const source of isSeq(merged) ? merged.items : [merged]) {
      const inherited = pairOf(document, source, key, mergesLeft - 1);
      if (inherited !== undefined) return inherited;
    }
  }
  return undefined;
}

/** A key as the document has it; undefined for a merge key and for keys that are not scalars. */
function keyOf(document: Document.Parsed, pair: KeyPair): string | undefined {
  const key = resolved(document, pair.key);
  if (!isScalar(key) || isMerge(pair)) return undefined;
  return String((key.value as string | number | bigint | boolean | null) ?? '');
}

function isMerge({ key }: KeyPair): boolean {
  return isScalar(key) && typeof key.value === 'symbol';
}

function resolved(document: Document.Parsed, node: Node): Node {
  return isAlias(node) ? (node.resolve(document) as Node) : node;
}
