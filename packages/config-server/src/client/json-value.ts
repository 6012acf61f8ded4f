// JSON.parse of V8 12 to 14 gives an escaped key another name once an object with a backslash in a key was read: after `{"x":1,"\\":2}`,
// `{"x":1,"\n":3}` has the key `\` (nodejs/node#63785). One section could change the keys of another. Keys with an escape are rare, so
// a text that has one is read a second time, by `readJson`. The server reads its JSON files by this file too.

/** The value of a JSON text; throws as JSON.parse does. */
export function jsonValue(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return hasEscapedKey(text) ? readJson(text) : value;
}

/** What numbers and objects become. */
export interface JsonShapes {
  /** Default: a number. */
  readonly number?: (source: string) => unknown;
  /** Gets the members in the order of the text. Default: an object. */
  readonly object?: (members: readonly (readonly [key: string, value: unknown])[]) => unknown;
}

/** Whether a text that is known to be valid JSON writes a key with an escape. */
export function hasEscapedKey(text: string): boolean {
  for (let at = text.indexOf('\\'); at >= 0; at = text.indexOf('\\', at)) {
    at = endOfString(text, at);
    if (text[at + take(SPACE, text, at).length] === ':') return true;
  }
  return false;
}

interface Container {
  /** Undefined for an array. There is one more key than values while a member is read. */
  readonly keys: string[] | undefined;
  readonly values: unknown[];
}

/** The same with other shapes. Without recursion: a deeply nested document must not overflow the stack. */
export function readJson(text: string, { number = Number, object = plainObject }: JsonShapes = {}): unknown {
  // Throws for a text that is not JSON; what follows relies on that.
  JSON.parse(text);
  const open: Container[] = [];
  for (let at = 0; ;) {
    at += take(SEPARATORS, text, at).length;
    const start = text[at]!;
    let value: unknown;
    if (start === '{' || start === '[') {
      open.push({ keys: start === '{' ? [] : undefined, values: [] });
      at += 1;
      continue;
    } else if (start === '}' || start === ']') {
      const { keys, values } = open.pop()!;
      value = keys === undefined ? values : object(keys.map((key, index) => [key, values[index]]));
      at += 1;
    } else {
      const source = start === '"' ? text.slice(at, endOfString(text, at + 1)) : take(LITERAL, text, at);
      at += source.length;
      value = /[-\d]/.test(start) ? number(source) : JSON.parse(source);
    }
    const container = open.at(-1);
    if (container === undefined) return value;
    if (container.keys?.length === container.values.length) container.keys.push(value as string);
    else container.values.push(value);
  }
}

const SPACE = /[ \t\n\r]*/y;
const SEPARATORS = /[ \t\n\r,:]*/y;
const LITERAL = /[^ \t\n\r,\]}]+/y;

function take(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}

/** Where the string ends that the position is in. */
function endOfString(text: string, from: number): number {
  let at = from;
  for (; text[at] !== '"'; at += 1) if (text[at] === '\\') at += 1;
  return at + 1;
}

/** As JSON.parse makes it: `__proto__` is a member of its own, and of repeated keys the last one counts. */
function plainObject(members: readonly (readonly [string, unknown])[]): object {
  const object = {};
  for (const [key, value] of members) Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  return object;
}
