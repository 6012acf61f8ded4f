import { extname } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { parseDocument } from 'yaml';
import { readJson } from '../client/json-value.ts';
import { DEPTH_MAX } from '../document/value.ts';

/**
 * A parsed file whose tables keep the order of the file. The MAC of a SOPS document covers values in that order, and a JavaScript object
 * puts keys that look like integers first.
 */
export type OrderedTable = Map<string, unknown>;

/** Parses a file that is known to be valid. Aliases are refused: a SOPS document has none, and each could repeat a large value. */
export function parseOrdered(path: string, text: string): OrderedTable {
  const tree = parse(extname(path).toLowerCase(), text);
  return tree instanceof Map ? (tree as OrderedTable) : new Map();
}

function parse(extension: string, text: string): unknown {
  if (extension === '.json') return ordered(readJson(text, { object: (members) => new Map(members) }), 0);
  if (extension === '.toml') return ordered(parseToml(text, { integersAsBigInt: 'asNeeded', maxDepth: DEPTH_MAX }), 0);
  const document = parseDocument(text, { intAsBigInt: true, merge: true, logLevel: 'error', uniqueKeys: false });
  return ordered(document.toJS({ mapAsMap: true, maxAliasCount: 0 }), 0);
}

function ordered(value: unknown, depth: number): unknown {
  if (depth > DEPTH_MAX) throw new RangeError('nested too deep');
  if (Array.isArray(value)) return value.map((item) => ordered(item, depth + 1));
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [keyText(key), ordered(item, depth + 1)]));
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  return new Map(Object.keys(value).map((key) => [key, ordered((value as Record<string, unknown>)[key], depth + 1)]));
}

function keyText(key: unknown): string {
  return typeof key === 'string' ? key : String((key as bigint | boolean | null) ?? '');
}
