import { parse as parseToml } from 'smol-toml';

/**
 * The offset of the key that a path names in a TOML text. The text was parsed before, so it is valid. A table without a header of
 * its own (`[a.b]` alone also creates `a`) is found where it is first mentioned. Elements of arrays have no path, so keys below
 * `[[a]]` are never asked for.
 */
export function tomlKeyOffset(text: string, path: readonly string[]): number | undefined {
  return new Search(text, path).run();
}

interface Segment {
  readonly key: string;
  readonly at: number;
}

class Search {
  readonly #text: string;
  readonly #path: readonly string[];
  #at = 0;
  #defined: number | undefined;
  #mentioned: number | undefined;

  constructor(text: string, path: readonly string[]) {
    this.#text = text;
    this.#path = path;
  }

  run(): number | undefined {
    let table: readonly string[] = [];
    for (this.#skipVoid(); this.#at < this.#text.length && this.#defined === undefined; this.#skipVoid()) {
      if (this.#text[this.#at] === '[') {
        this.#at += this.#text[this.#at + 1] === '[' ? 2 : 1;
        table = this.#keyBelow([]);
        while (this.#text[this.#at] === ']') this.#at++;
      } else this.#pair(table);
    }
    return this.#defined ?? this.#mentioned;
  }

  /** `key = value` in a table. */
  #pair(table: readonly string[]): void {
    const keys = this.#keyBelow(table);
    this.#at++;
    this.#skipBlanks();
    // Only an inline table on the way to the path is looked into.
    if (this.#text[this.#at] === '{' && keys.length < this.#path.length && this.#isOnPath(keys)) this.#inlineTable(keys);
    else this.#skipValue();
  }

  #inlineTable(keys: readonly string[]): void {
    this.#at++;
    for (this.#skipVoid(); this.#at < this.#text.length && this.#text[this.#at] !== '}'; this.#skipVoid()) {
      if (this.#text[this.#at] === ',') this.#at++;
      else this.#pair(keys);
    }
    this.#at++;
  }

  /** Reads a dotted key up to its `=` or `]`, notes where it meets the path, and returns it with the keys above it. */
  #keyBelow(table: readonly string[]): string[] {
    const keys = [...table];
    for (let segment = this.#segment(); segment !== undefined; segment = this.#segment()) {
      keys.push(segment.key);
      if (keys.length !== this.#path.length || !this.#isOnPath(keys)) continue;
      if (this.#text[this.#at] === '.') this.#mentioned ??= segment.at;
      else this.#defined ??= segment.at;
    }
    return keys;
  }

  #segment(): Segment | undefined {
    this.#skipBlanks();
    if (this.#text[this.#at] === '.') this.#at++;
    this.#skipBlanks();
    const at = this.#at;
    const first = this.#text[at];
    if (first === undefined || first === '=' || first === ']') return undefined;
    if (first === '"' || first === "'") this.#skipString();
    else while (this.#at < this.#text.length && /[\w-]/.test(this.#text[this.#at]!)) this.#at++;
    const written = this.#text.slice(at, this.#at);
    this.#skipBlanks();
    return { key: first === '"' || first === "'" ? unquote(written) : written, at };
  }

  #isOnPath(keys: readonly string[]): boolean {
    return keys.every((key, index) => key === this.#path[index]);
  }

  #skipValue(): void {
    let depth = 0;
    for (; this.#at < this.#text.length; this.#at++) {
      const character = this.#text[this.#at]!;
      if (character === '"' || character === "'") {
        this.#skipString();
        this.#at--;
      } else if (character === '#') {
        // Behind a value the comment is left to skipVoid; inside an array it is skipped here, because it may contain brackets.
        if (depth === 0) return;
        this.#skipLine();
      } else if (character === '[' || character === '{') depth++;
      else if (character === ']' || character === '}') {
        if (depth === 0) return;
        depth--;
      } else if (depth === 0 && (character === '\n' || character === ',')) return;
    }
  }

  /** Any of the four kinds of string. The last three quotes of a multi-line string end it: `""""` is a quote and the end. */
  #skipString(): void {
    const quote = this.#text[this.#at]!;
    const fence = this.#text.startsWith(quote.repeat(3), this.#at) ? quote.repeat(3) : quote;
    this.#at += fence.length;
    while (this.#at < this.#text.length && !this.#text.startsWith(fence, this.#at)) {
      this.#at += quote === '"' && this.#text[this.#at] === '\\' ? 2 : 1;
    }
    this.#at += fence.length;
    if (fence.length === 3) while (this.#text[this.#at] === quote) this.#at++;
  }

  #skipBlanks(): void {
    while (this.#text[this.#at] === ' ' || this.#text[this.#at] === '\t') this.#at++;
  }

  #skipLine(): void {
    while (this.#at < this.#text.length && this.#text[this.#at] !== '\n') this.#at++;
  }

  /** Blanks, line ends and comments. */
  #skipVoid(): void {
    for (; this.#at < this.#text.length; this.#at++) {
      const character = this.#text[this.#at]!;
      if (character === '#') this.#skipLine();
      else if (character !== ' ' && character !== '\t' && character !== '\n' && character !== '\r') return;
    }
  }
}

function unquote(written: string): string {
  return written.startsWith("'") || !written.includes('\\') ? written.slice(1, -1) : Object.keys(parseToml(`${written} = 0`))[0]!;
}
