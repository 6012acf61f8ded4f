import type { Random } from './random.ts';

/**
 * Text that matches a regular expression. Lookarounds and word boundaries are passed over here; the caller tests the
 * result against the real expression and draws again, so an answer is right or there is none.
 */
type Node =
  | { readonly kind: 'characters'; readonly codes: readonly number[] }
  | { readonly kind: 'sequence'; readonly nodes: readonly Node[] }
  | { readonly kind: 'choice'; readonly nodes: readonly Node[] }
  | { readonly kind: 'repeat'; readonly node: Node; readonly low: number; readonly high: number }
  | { readonly kind: 'group'; readonly node: Node; readonly names: readonly (number | string)[] }
  | { readonly kind: 'reference'; readonly name: number | string };

const range = (low: number, high: number): number[] => Array.from({ length: high - low + 1 }, (_, index) => low + index);
const code = (character: string): number => character.codePointAt(0)!;
const PRINTABLE = range(0x20, 0x7e);
const DIGITS = range(0x30, 0x39);
const UPPER = range(0x41, 0x5a);
const LOWER = range(0x61, 0x7a);
const WORD = [...DIGITS, ...UPPER, code('_'), ...LOWER];
const SPACE = [0x20];
const CLASSES: Readonly<Record<string, readonly number[]>> = { d: DIGITS, w: WORD, s: SPACE };
const CONTROLS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, 0: 0 };
const PROPERTIES: Readonly<Record<string, readonly number[]>> = {
  L: [...UPPER, ...LOWER], Letter: [...UPPER, ...LOWER], Alphabetic: [...UPPER, ...LOWER], Lu: UPPER, Ll: LOWER, N: DIGITS, Nd: DIGITS, Zs: SPACE,
}; // prettier-ignore
const without = (codes: readonly number[]): number[] => PRINTABLE.filter((candidate) => !codes.includes(candidate));

class Parser {
  readonly #source: string;
  #at = 0;
  #groups = 0;

  constructor(source: string) {
    this.#source = source;
  }

  parse(): Node {
    const node = this.#choice();
    if (this.#at < this.#source.length) throw this.#unsupported();
    return node;
  }

  #unsupported(): Error {
    return new Error(`The pattern /${this.#source}/ has something at character ${this.#at} that samples cannot be drawn from.`);
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #match(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.#source);
    if (found !== null) this.#at += found[0].length;
    return found;
  }

  #choice(): Node {
    const nodes = [this.#sequence()];
    while (this.#take('|')) nodes.push(this.#sequence());
    return { kind: 'choice', nodes };
  }

  #sequence(): Node {
    const nodes: Node[] = [];
    while (this.#at < this.#source.length && !/[|)]/.test(this.#source[this.#at]!)) {
      if (this.#match(/\^|\$|\\[bB]/y) !== null) continue;
      const atom = this.#atom();
      if (atom !== undefined) nodes.push(this.#quantified(atom));
    }
    return { kind: 'sequence', nodes };
  }

  #quantified(node: Node): Node {
    const found = this.#match(/(?:[*+?]|\{(\d+)(,(\d*))?\})\??/y);
    if (found === null) return node;
    const [text, low, more, high] = found;
    if (low !== undefined) {
      return {
        kind: 'repeat',
        node,
        low: Number(low),
        high: more === undefined ? Number(low) : high === '' || high === undefined ? Infinity : Number(high),
      };
    }
    return { kind: 'repeat', node, low: text.startsWith('+') ? 1 : 0, high: text.startsWith('?') ? 1 : Infinity };
  }

  #atom(): Node | undefined {
    if (this.#take('(')) return this.#group();
    if (this.#take('[')) return { kind: 'characters', codes: this.#set() };
    if (this.#take('.')) return { kind: 'characters', codes: PRINTABLE };
    const reference = this.#match(/\\(?:([1-9]\d?)|k<(\w+)>)/y);
    if (reference !== null) return { kind: 'reference', name: reference[2] ?? Number(reference[1]) };
    if (this.#take('\\')) return { kind: 'characters', codes: this.#escape() };
    return { kind: 'characters', codes: [this.#character()] };
  }

  #character(): number {
    const point = this.#source.codePointAt(this.#at);
    if (point === undefined) throw this.#unsupported();
    this.#at += point > 0xff_ff ? 2 : 1;
    return point;
  }

  #group(): Node | undefined {
    const lookaround = this.#match(/\?<?[=!]/y) !== null;
    const named = lookaround ? null : this.#match(/\?<(\w+)>/y);
    const capturing = !lookaround && (named !== null || !this.#take('?:'));
    const names = capturing ? [++this.#groups, ...(named === null ? [] : [named[1]!])] : [];
    const node = this.#choice();
    if (!this.#take(')')) throw this.#unsupported();
    return lookaround ? undefined : { kind: 'group', node, names };
  }

  #escape(): readonly number[] {
    const property = this.#match(/([pP])\{(?:\w+=)?(\w+)\}/y);
    if (property !== null) {
      const codes = PROPERTIES[property[2]!];
      if (codes === undefined) throw this.#unsupported();
      return property[1] === 'p' ? codes : without(codes);
    }
    const numbered = this.#match(/x([\da-f]{2})|u([\da-f]{4})|u\{([\da-f]+)\}/iy);
    if (numbered !== null) return [Number.parseInt(numbered[1] ?? numbered[2] ?? numbered[3]!, 16)];
    const point = this.#character();
    const character = String.fromCodePoint(point);
    const known = CLASSES[character.toLowerCase()];
    if (known !== undefined) return character === character.toLowerCase() ? known : without(known);
    return [CONTROLS[character] ?? point];
  }

  #set(): readonly number[] {
    const negated = this.#take('^');
    const codes: number[] = [];
    while (!this.#take(']')) {
      if (this.#at >= this.#source.length) throw this.#unsupported();
      const low = this.#take('\\') ? this.#setEscape() : [this.#character()];
      const ranged = low.length === 1 && /^-[^\]]/.test(this.#source.slice(this.#at, this.#at + 2));
      if (!ranged) {
        codes.push(...low);
        continue;
      }
      this.#at += 1;
      const high = this.#take('\\') ? this.#setEscape() : [this.#character()];
      // A range may span most of Unicode; a few hundred characters are enough to draw from.
      codes.push(...range(low[0]!, Math.min(high[0]!, low[0]! + 512)));
    }
    return negated ? without(codes) : codes;
  }

  #setEscape(): readonly number[] {
    return this.#take('b') ? [8] : this.#escape();
  }
}

/** Readable characters first: letters and digits where the class allows any. */
function drawCharacter(codes: readonly number[], random: Random): string {
  if (codes.length === 0) throw new Error('The pattern has a class of characters that is empty.');
  const readable = codes.filter((candidate) => WORD.includes(candidate));
  return String.fromCodePoint(random.pick(readable.length > 0 && random.chance(0.9) ? readable : codes));
}

/** `extra` is how many repetitions beyond the least an unbounded quantifier may take. */
export function patternSampler(source: string): (random: Random, extra: number) => string {
  const root = new Parser(source).parse();
  return (random, extra) => {
    const captured = new Map<number | string, string>();
    const draw = (node: Node): string => {
      switch (node.kind) {
        case 'sequence':
          return node.nodes.map(draw).join('');
        case 'choice':
          return draw(random.pick(node.nodes));
        case 'reference':
          return captured.get(node.name) ?? '';
        case 'group': {
          const text = draw(node.node);
          for (const name of node.names) captured.set(name, text);
          return text;
        }
        case 'repeat': {
          const count = random.int(node.low, Math.min(node.high, node.low + extra));
          return Array.from({ length: count }, () => draw(node.node)).join('');
        }
        default:
          return drawCharacter(node.codes, random);
      }
    };
    return draw(root);
  };
}
