import { FAULTS_MAX } from '../../errors/fault-collector.ts';
import { isInexact } from './inexact-numbers.ts';

/** Why and where a text is not acceptable JSON. */
export interface JsonFault {
  readonly code:
    | 'invalid_json'
    | 'duplicate_key'
    | 'forbidden_key'
    | 'number_out_of_range'
    | 'too_many_members'
    | 'too_many_items'
    | 'invalid_text';
  readonly message: string;
  readonly path: readonly (string | number)[];
  readonly line: number;
  readonly column: number;
}

class FoundFault extends Error {
  readonly code: JsonFault['code'];
  readonly position: number;
  readonly path: readonly (string | number)[];

  constructor(code: JsonFault['code'], message: string, position: number, path: readonly (string | number)[]) {
    super(message);
    this.code = code;
    this.position = position;
    this.path = [...path];
  }
}

/** Reads a text that is known to have a fault and says where the first one is. Never quotes the text: bodies carry secrets. */
export function findJsonFault(text: string, forbiddenKeys: ReadonlySet<string>): JsonFault {
  try {
    new Reader(text, forbiddenKeys).document();
  } catch (error) {
    if (error instanceof FoundFault) return located(text, error);
    throw error;
  }
  return { code: 'invalid_json', message: 'unreadable JSON', path: [], line: 1, column: 1 };
}

/** Where the numbers of a text are that {@link isInexact}, at most {@link FAULTS_MAX} of them. The text is known to be acceptable. */
export function findInexactNumbers(text: string): (string | number)[][] {
  const found: (string | number)[][] = [];
  new Reader(text, NO_KEYS, found).document();
  return found;
}

const NO_KEYS: ReadonlySet<string> = new Set();

function located(text: string, { code, message, path, position }: FoundFault): JsonFault {
  const before = text.slice(0, position);
  const lineStart = before.lastIndexOf('\n') + 1;
  return { code, message, path, line: before.split('\n').length, column: position - lineStart + 1 };
}

const numberGrammar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const escapeGrammar = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const spaceGrammar = /[ \t\n\r]*/y;

/** A plain recursive reader. The caller has already bounded the nesting. */
class Reader {
  readonly #text: string;
  readonly #forbiddenKeys: ReadonlySet<string>;
  readonly #path: (string | number)[] = [];
  /** Collects the paths of numbers that are not read exactly. */
  readonly #inexact: (string | number)[][] | undefined;
  #at = 0;

  constructor(text: string, forbiddenKeys: ReadonlySet<string>, inexact?: (string | number)[][]) {
    this.#text = text;
    this.#forbiddenKeys = forbiddenKeys;
    this.#inexact = inexact;
  }

  document(): void {
    this.#value();
    this.#match(spaceGrammar);
    if (this.#at < this.#text.length) this.#stop('invalid_json', 'unexpected text after the value');
  }

  #value(): void {
    this.#match(spaceGrammar);
    const start = this.#text[this.#at];
    if (start === '{') this.#object();
    else if (start === '[') this.#array();
    else if (start === '"') this.#string();
    else if (start === '-' || (start !== undefined && start >= '0' && start <= '9')) this.#number();
    else this.#literal();
  }

  #object(): void {
    const seen = new Set<string>();
    this.#at += 1;
    if (this.#next() === '}') return void (this.#at += 1);
    for (;;) {
      this.#match(spaceGrammar);
      const keyAt = this.#at;
      if (this.#text[keyAt] !== '"') this.#stop('invalid_json', 'expected a key in double quotes');
      const key = this.#string();
      this.#path.push(key);
      if (seen.has(key)) this.#stop('duplicate_key', 'duplicate key', keyAt);
      if (this.#forbiddenKeys.has(key)) this.#stop('forbidden_key', 'forbidden key', keyAt);
      seen.add(key);
      if (this.#next() !== ':') this.#stop('invalid_json', 'expected ":"');
      this.#at += 1;
      this.#value();
      this.#path.pop();
      const end = this.#next();
      if (end !== ',' && end !== '}') this.#stop('invalid_json', 'expected "," or "}"');
      this.#at += 1;
      if (end === '}') return;
    }
  }

  #array(): void {
    this.#at += 1;
    if (this.#next() === ']') return void (this.#at += 1);
    for (let index = 0; ; index += 1) {
      this.#path.push(index);
      this.#value();
      this.#path.pop();
      const end = this.#next();
      if (end !== ',' && end !== ']') this.#stop('invalid_json', 'expected "," or "]"');
      this.#at += 1;
      if (end === ']') return;
    }
  }

  #string(): string {
    const start = this.#at;
    this.#skipString();
    const value = JSON.parse(this.#text.slice(start, this.#at)) as string;
    if (value.includes('\u0000') || !value.isWellFormed()) {
      this.#stop('invalid_text', 'text with U+0000 or half a surrogate pair', start);
    }
    return value;
  }

  /** Character by character: a pattern with alternatives runs out of stack on a string of some megabytes. */
  #skipString(): void {
    const start = this.#at;
    this.#at += 1;
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code === 0x22) break;
      // JSON strings may not contain raw control characters; NaN is the end of the text.
      if (!(code >= 0x20) || (code === 0x5c && this.#match(escapeGrammar) === undefined))
        this.#stop('invalid_json', 'unreadable string', start);
      if (code !== 0x5c) this.#at += 1;
    }
    this.#at += 1;
  }

  #number(): void {
    const start = this.#at;
    const literal = this.#match(numberGrammar);
    if (literal === undefined) this.#stop('invalid_json', 'unreadable number', start);
    if (!Number.isFinite(Number(literal))) this.#stop('number_out_of_range', 'a number too large to represent', start);
    if (this.#inexact !== undefined && this.#inexact.length < FAULTS_MAX && isInexact(literal)) this.#inexact.push([...this.#path]);
  }

  #literal(): void {
    for (const word of ['true', 'false', 'null']) {
      if (this.#text.startsWith(word, this.#at)) return void (this.#at += word.length);
    }
    this.#stop('invalid_json', this.#at >= this.#text.length ? 'unexpected end' : 'unexpected character');
  }

  #next(): string | undefined {
    this.#match(spaceGrammar);
    return this.#text[this.#at];
  }

  #match(grammar: RegExp): string | undefined {
    grammar.lastIndex = this.#at;
    const found = grammar.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #stop(code: JsonFault['code'], message: string, position = this.#at): never {
    throw new FoundFault(code, message, position, this.#path);
  }
}
