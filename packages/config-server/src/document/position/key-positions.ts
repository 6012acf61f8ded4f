import type { Document } from 'yaml';
import { jsonKeyOffset } from './json-key-offset.ts';
import { tomlKeyOffset } from './toml-key-offset.ts';
import { parseYamlPlaces, yamlKeyOffset } from './yaml-key-offset.ts';

/** Where a key is written. Both numbers start at 1; a column counts UTF-16 code units, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/**
 * The places of the keys of one file. It keeps the text and searches it when an explanation asks: a position is asked for once in a
 * while, and an index of every key would cost each load more than the parse.
 */
export class KeyPositions {
  readonly #extension: string;
  readonly #text: string;
  /** Keys above the served table: the application's name, or none for a whole document. */
  readonly #above: readonly string[];
  #yaml: Document.Parsed | undefined;

  constructor(extension: string, bytes: Uint8Array, above: readonly string[]) {
    this.#extension = extension;
    this.#text = new TextDecoder().decode(bytes);
    this.#above = above;
  }

  /** Where the file writes a key that it has. */
  at(keys: readonly string[]): Position | undefined {
    const offset = this.#offset([...this.#above, ...keys]);
    if (offset === undefined) return undefined;
    const before = this.#text.slice(0, offset);
    return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') };
  }

  #offset(path: readonly string[]): number | undefined {
    if (this.#extension === '.toml') return tomlKeyOffset(this.#text, path);
    if (this.#extension === '.json') return jsonKeyOffset(this.#text, path);
    return yamlKeyOffset((this.#yaml ??= parseYamlPlaces(this.#text)), path);
  }
}
