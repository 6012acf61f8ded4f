/**
 * The value of a JSON text; throws as JSON.parse does. Texts of callers and of the database are read by it.
 *
 * JSON.parse of V8 12 to 14 gives an escaped key another name once an object with a backslash in a key was read: after `{"x":1,"\\":2}`,
 * `{"x":1,"\n":3}` has the key `\` (nodejs/node#63785). Any caller could change what others send and store. Keys with an escape are rare,
 * so a text that has one is read a second time, by the reader below.
 */
export function jsonValue(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return hasEscapedKey(text) ? new Reader(text).value() : value;
}

/** Reads a text that is known to be valid JSON. */
function hasEscapedKey(text: string): boolean {
  for (let at = text.indexOf('\\'); at >= 0; at = text.indexOf('\\', at)) {
    at = endOfString(text, at);
    SPACE.lastIndex = at;
    if (text[at + (SPACE.exec(text)?.[0].length ?? 0)] === ':') return true;
  }
  return false;
}

/** Where the string ends that the position is in. */
function endOfString(text: string, from: number): number {
  let at = from;
  for (; text[at] !== '"'; at += 1) if (text[at] === '\\') at += 1;
  return at + 1;
}

const SPACE = /[ \t\n\r]*/y;
const LITERAL = /[^ \t\n\r,\]}]+/y;

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): unknown {
    this.#take(SPACE);
    const start = this.#text[this.#at];
    if (start === '{') return this.#object();
    if (start === '[') return this.#array();
    return JSON.parse(start === '"' ? this.#string() : this.#take(LITERAL));
  }

  #object(): object {
    const object = {};
    this.#each('}', () => {
      // A string alone has no key.
      const key = JSON.parse(this.#string()) as string;
      this.#take(SPACE);
      this.#at += 1;
      // As JSON.parse does it, `__proto__` too: a member of the object's own.
      Object.defineProperty(object, key, { value: this.value(), writable: true, enumerable: true, configurable: true });
    });
    return object;
  }

  #array(): unknown[] {
    const items: unknown[] = [];
    this.#each(']', () => items.push(this.value()));
    return items;
  }

  #each(end: string, read: () => void): void {
    this.#at += 1;
    for (this.#take(SPACE); this.#text[this.#at] !== end; this.#take(SPACE)) {
      if (this.#text[this.#at] === ',') this.#at += 1;
      this.#take(SPACE);
      read();
    }
    this.#at += 1;
  }

  #string(): string {
    const start = this.#at;
    this.#at = endOfString(this.#text, start + 1);
    return this.#text.slice(start, this.#at);
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [found = ''] = pattern.exec(this.#text) ?? [];
    this.#at += found.length;
    return found;
  }
}
