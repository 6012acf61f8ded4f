import { BoundedMap } from '../values/bounded-map.ts';

/** SQL split into code and what must be left alone: quoted text, quoted names and comments. */
const TOKENS = /'(?:[^']|'')*'|"(?:[^"]|"")*"|\[[^\]]*\]|`(?:[^`]|``)*`|--[^\n]*|\/\*[\s\S]*?\*\/|\$(\d+)|[A-Za-z_][A-Za-z_0-9]*/g;

const WRITES = new Set([
  'insert',
  'update',
  'delete',
  'replace',
  'create',
  'drop',
  'alter',
  'pragma',
  'attach',
  'detach',
  'vacuum',
  'reindex',
  'analyze',
  'begin',
  'commit',
  'rollback',
  'savepoint',
  'release',
]);

const TEXTS_MAX = 2000;

/** Without, GET of one record costs 30 % more (crud-retrieve on SQLite): to classify and to translate a statement takes 19 µs each. */
class Memo<V> {
  readonly #known = new BoundedMap<string, V>(TEXTS_MAX);

  get(text: string, compute: (text: string) => V): V {
    let value = this.#known.get(text);
    if (value === undefined) {
      value = compute(text);
      this.#known.set(text, value);
    }
    return value;
  }
}

const kinds = new Memo<{ readonly reads: boolean }>();
const positional = new Memo<PositionalText>();

/** Whether a statement only reads and may go to the reader connection. Anything doubtful counts as a write. */
export function isReadOnly(text: string): boolean {
  return kinds.get(text, classify).reads;
}

function classify(text: string): { readonly reads: boolean } {
  const words = [...text.matchAll(TOKENS)].map(([token]) => token.toLowerCase()).filter((token) => /^[a-z_]/.test(token));
  const first = words[0];
  if (first === 'select' || first === 'values' || first === 'explain') return { reads: true };
  return { reads: first === 'with' && !words.some((word) => WRITES.has(word)) };
}

export interface PositionalText {
  readonly text: string;
  /** For each `?`, which of the caller's parameters it takes. Undefined: in the caller's order. */
  readonly order: readonly number[] | undefined;
}

/** `$1` is the placeholder of visible SQL on both databases; node:sqlite binds by position only to `?`. */
export function toPositional(text: string): PositionalText {
  return positional.get(text, translate);
}

function translate(text: string): PositionalText {
  const order: number[] = [];
  const translated = text.replaceAll(TOKENS, (token: string, number: string | undefined) => {
    if (number === undefined) return token;
    order.push(Number(number) - 1);
    return '?';
  });
  return { text: translated, order: order.every((parameter, index) => parameter === index) ? undefined : order };
}

export function reorder(parameters: readonly unknown[], order: readonly number[] | undefined): readonly unknown[] {
  return order === undefined ? parameters : order.map((index) => parameters[index]);
}
