import { extname } from 'node:path';
import { parse as parseToml, TomlDate, TomlError } from 'smol-toml';
import { isScalar, LineCounter, parseDocument as parseYaml, visit, type Document, type YAMLParseError } from 'yaml';
import { hasEscapedKey, readJson } from '../client/json-value.ts';
import { LoadFailure } from './load-failure.ts';
import { joinKeyPath } from './key-path.ts';
import { DEPTH_MAX, type Table, type Value } from './value.ts';

export const FILE_EXTENSIONS: readonly string[] = ['.toml', '.yaml', '.yml', '.json'];

export function isSupportedExtension(path: string): boolean {
  return FILE_EXTENSIONS.includes(extname(path).toLowerCase());
}

/** A parsed file before conversion to JSON values: an integer may be a bigint, a date a TomlDate. */
export type RawTable = Record<string, unknown>;

export function parseFile(path: string, bytes: Uint8Array, origin: string): RawTable {
  const text = decodeUtf8(bytes, origin);
  const extension = extname(path).toLowerCase();
  const raw = parseText(extension, text, origin);
  // An empty YAML file is null. JSON has to write it, and then means something else than a table.
  if (raw === undefined || (raw === null && extension !== '.json')) return {};
  if (typeof raw !== 'object' || raw === null || !isPlain(raw)) {
    throw new LoadFailure('parse', origin, 'the top level of the file must be a table');
  }
  return raw as RawTable;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decodeUtf8(bytes: Uint8Array, origin: string): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new LoadFailure('parse', origin, 'the file is not valid UTF-8');
  }
}

function parseText(extension: string, text: string, origin: string): unknown {
  try {
    if (extension === '.toml') return parseToml(text, { integersAsBigInt: 'asNeeded', maxDepth: DEPTH_MAX });
    if (extension === '.json') return parseJson(text);
    return parseYamlText(text, origin);
  } catch (error) {
    if (error instanceof LoadFailure) throw error;
    throw new LoadFailure(
      'parse',
      origin,
      `the file is not valid ${extension === '.toml' ? 'TOML' : extension === '.json' ? 'JSON' : 'YAML'}${place(error, text)}`,
    );
  }
}

function parseYamlText(text: string, origin: string): unknown {
  const lineCounter = new LineCounter();
  // The parser's own check compares every key with every other, 20 s for 20,000 keys; `repeatedKey` is linear.
  const document = parseYaml(text, { intAsBigInt: true, merge: true, logLevel: 'error', uniqueKeys: false, lineCounter });
  const [problem] = document.errors;
  if (problem !== undefined) throw new LoadFailure('parse', origin, `the file is not valid YAML${yamlPlace(problem)}`);
  const repeated = repeatedKey(document);
  if (repeated !== undefined) {
    const { line, col } = lineCounter.linePos(repeated);
    throw new LoadFailure('parse', origin, `the file gives a key twice in one table (line ${line}, column ${col})`);
  }
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    throw new LoadFailure('parse', origin, 'the file has an alias without an anchor, or aliases that expand too far; write the values out');
  }
}

/** The offset where a table repeats a key. Keys that become the same text are the same key. */
function repeatedKey(document: Document.Parsed): number | undefined {
  let offset: number | undefined;
  visit(document, {
    Map(_, map) {
      const seen = new Set<unknown>();
      for (const { key } of map.items) {
        // A merge key is a symbol, and any number of them is allowed.
        if (!isScalar(key)) continue;
        const value = key.value as string | number | bigint | boolean | symbol | null;
        const name = typeof value === 'symbol' ? value : String(value ?? '');
        if (seen.has(name)) {
          offset = key.range?.[0] ?? 0;
          return visit.BREAK;
        }
        seen.add(name);
      }
      return undefined;
    },
  });
  return offset;
}

function yamlPlace({ linePos }: YAMLParseError): string {
  return linePos === undefined ? '' : ` (line ${linePos[0].line}, column ${linePos[0].col})`;
}

/** Integers that a double cannot hold come back as bigint, so that the key that holds one can be named. */
function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return hasLongNumber(text) || hasEscapedKey(text) ? readJson(text, { number: exactInteger }) : value;
}

/** Only a run of sixteen digits can be beyond 2^53 - 1, and every such run has a character at a multiple of sixteen. */
function hasLongNumber(text: string): boolean {
  for (let at = 0; at < text.length; at += 16) {
    if (!isDigit(text, at)) continue;
    let [first, last] = [at, at];
    while (isDigit(text, first - 1)) first--;
    while (isDigit(text, last + 1)) last++;
    if (last - first >= 15) return true;
  }
  return false;
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0x30 && code <= 0x39;
}

function exactInteger(source: string): number | bigint {
  const value = Number(source);
  return Number.isSafeInteger(value) || !/^-?\d+$/.test(source) ? value : BigInt(source);
}

function place(error: unknown, text: string): string {
  if (error instanceof TomlError) return ` (line ${error.line}, column ${error.column})`;
  if (!(error instanceof SyntaxError)) return '';
  const reported = / \(line (\d+) column (\d+)\)$/.exec(error.message);
  if (reported !== null) return ` (line ${reported[1]}, column ${reported[2]})`;
  try {
    // Messages that quote the text do not say where; YAML's parser does, and JSON that is broken is YAML that is broken at the same place.
    const [problem] = parseYaml(text, { schema: 'json', logLevel: 'error', uniqueKeys: false }).errors;
    return problem === undefined ? '' : yamlPlace(problem);
  } catch {
    return '';
  }
}

/**
 * Reduces a parsed table to JSON values, refusing what JSON cannot carry and naming the key that holds it. It does so in place: nearly
 * every value stays, and copying 10,000 documents of 200 keys took 0.4 times as long as parsing them.
 */
export function toDocumentTable(raw: RawTable, origin: string): Table {
  return reduceTable(raw, [], origin);
}

/** `path` has the keys that lead to the table; it is the same array throughout the walk. */
function reduceTable(raw: RawTable, path: string[], origin: string): Table {
  if (path.length > DEPTH_MAX) throw tooDeep(origin);
  // `in` reads members by their position, which Object.keys() does not: 0.3 times parsing was saved. What a table inherits is not copied.
  for (const key in raw) {
    const held = raw[key];
    const value = reduce(held, key, path, origin);
    if (value !== held) raw[key] = value;
  }
  return raw as unknown as Table;
}

function reduce(raw: unknown, key: string, path: string[], origin: string): Value {
  switch (typeof raw) {
    case 'string':
    case 'boolean':
      return raw;
    case 'number':
      if (Number.isFinite(raw)) return raw;
      throw unrepresentable(key, path, origin, 'is not a finite number');
    case 'bigint':
      if (raw >= BigInt(Number.MIN_SAFE_INTEGER) && raw <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(raw);
      throw unrepresentable(key, path, origin, 'is an integer beyond ±(2^53−1), which JSON cannot carry exactly; write it as a string');
    case 'undefined':
      return null;
    default:
  }
  if (raw === null) return null;
  if (raw instanceof Date) return raw instanceof TomlDate || !Number.isNaN(raw.getTime()) ? raw.toISOString() : null;
  if (!Array.isArray(raw) && !isPlain(raw!)) {
    // Without a refusal, `!!set` and `!!omap` would be served as empty tables.
    const what = 'is a YAML set, ordered map or binary, which JSON does not have; write a list, a table or a string';
    throw unrepresentable(key, path, origin, what);
  }
  path.push(key);
  const value = Array.isArray(raw) ? reduceArray(raw, path, origin) : reduceTable(raw as RawTable, path, origin);
  path.pop();
  return value;
}

function reduceArray(raw: readonly unknown[], path: string[], origin: string): Value[] {
  if (path.length > DEPTH_MAX) throw tooDeep(origin);
  return raw.map((item, index) => reduce(item, String(index), path, origin));
}

/** A table of a parser, or one of ours: what it inherits from inherits nothing. A Map or a Date inherits from Object.prototype. */
function isPlain(raw: object): boolean {
  const prototype = Object.getPrototypeOf(raw) as object | null;
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function tooDeep(origin: string): LoadFailure {
  return new LoadFailure('parse', origin, `tables and arrays nest deeper than ${DEPTH_MAX} levels`);
}

function unrepresentable(key: string, parent: readonly string[], origin: string, what: string): LoadFailure {
  return new LoadFailure('parse', origin, `key ${joinKeyPath([...parent, key])} ${what}`);
}
