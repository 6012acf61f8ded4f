import { joinKeyPath } from '../../document/key-path.ts';
import type { Place } from './place.ts';

const SPACE = /[ \t]*/y;
const SPACE_AND_COMMENTS = /(?:[ \t\r\n]|#[^\n]*)*/y;
const BARE_KEY = /[A-Za-z0-9_-]+/y;
const STRING = /"""(?:[^\\]|\\[\s\S])*?"{3,5}(?!")|'''[\s\S]*?'{3,5}(?!')|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/y;
const SCALAR = /[^,\]}\r\n#]*/y;

/** The places of a TOML file that is known to be valid. Tables with a header have none: their values do. */
export function tomlPlaces(text: string): Place[] {
  return new TomlPlaces(text).read();
}

/** The header of a table, such as `[billing.pool]`. */
export interface TomlHeader {
  readonly keys: readonly string[];
  readonly start: number;
}

/** The headers of a TOML file that is known to be valid, in order. */
export function tomlHeaders(text: string): readonly TomlHeader[] {
  const places = new TomlPlaces(text);
  places.read();
  return places.headers;
}

class TomlPlaces {
  readonly headers: TomlHeader[] = [];
  readonly #text: string;
  readonly #places: Place[] = [];
  /** How many tables each array of tables has so far. */
  readonly #tables = new Map<string, number>();
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): Place[] {
    let table: readonly string[] = [];
    for (this.#take(SPACE_AND_COMMENTS); this.#at < this.#text.length; this.#take(SPACE_AND_COMMENTS)) {
      if (this.#text[this.#at] === '[') table = this.#header();
      else this.#pair(table);
    }
    return this.#places;
  }

  #header(): readonly string[] {
    const isArray = this.#text.startsWith('[[', this.#at);
    const start = this.#at;
    this.#at += isArray ? 2 : 1;
    const keys = this.#keys();
    this.headers.push({ keys, start });
    this.#at += isArray ? 2 : 1;
    if (!isArray) return this.#inArrays(keys);
    const path = [...this.#inArrays(keys.slice(0, -1)), keys.at(-1)!];
    const count = this.#tables.get(joinKeyPath(path)) ?? 0;
    this.#tables.set(joinKeyPath(path), count + 1);
    return [...path, String(count)];
  }

  /** A header below an array of tables continues its last table. */
  #inArrays(keys: readonly string[]): readonly string[] {
    const path: string[] = [];
    for (const key of keys) {
      path.push(key);
      const count = this.#tables.get(joinKeyPath(path));
      if (count !== undefined) path.push(String(count - 1));
    }
    return path;
  }

  #keys(): string[] {
    const keys: string[] = [];
    do {
      if (keys.length > 0) this.#at++;
      this.#take(SPACE);
      const quoted = this.#take(STRING);
      keys.push(quoted === '' ? this.#take(BARE_KEY) : unquoteKey(quoted));
      this.#take(SPACE);
    } while (this.#text[this.#at] === '.');
    return keys;
  }

  #pair(table: readonly string[]): void {
    const keys = this.#keys();
    this.#at++;
    this.#take(SPACE);
    this.#value([...table, ...keys], false);
  }

  #value(path: readonly string[], flow: boolean): void {
    const start = this.#at;
    const first = this.#text[start];
    const container = first === '[' || first === '{';
    if (container) this.#items(first === '[' ? ']' : '}', path);
    else if (this.#take(STRING) === '') {
      const scalar = this.#take(SCALAR);
      this.#at -= trailingSpace(scalar);
    }
    this.#places.push({ path, start, end: this.#at, flow, container });
  }

  #items(close: string, path: readonly string[]): void {
    this.#at++;
    this.#take(SPACE_AND_COMMENTS);
    for (let index = 0; this.#text[this.#at] !== close && this.#at < this.#text.length; index++) {
      if (close === ']') this.#value([...path, String(index)], true);
      else this.#pair(path);
      this.#take(SPACE_AND_COMMENTS);
      if (this.#text[this.#at] === ',') this.#at++;
      this.#take(SPACE_AND_COMMENTS);
    }
    this.#at++;
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [found = ''] = pattern.exec(this.#text) ?? [];
    this.#at += found.length;
    return found;
  }
}

function trailingSpace(text: string): number {
  return text.length - text.trimEnd().length;
}

function unquoteKey(text: string): string {
  if (text.startsWith("'")) return text.slice(1, -1);
  const long = text.replaceAll(/\\(?:U([0-9A-Fa-f]{8})|e|x([0-9A-Fa-f]{2}))/g, (escape, wide?: string, short?: string) =>
    escape === String.raw`\e`
      ? String.raw`\u001b`
      : JSON.stringify(String.fromCodePoint(Number.parseInt(wide ?? short ?? '', 16))).slice(1, -1),
  );
  return JSON.parse(long) as string;
}
