import type { Random } from '../../src/testing/sample/random.ts';

const LONG = 'x'.repeat(5000);

/** Values that break careless code, wherever a JSON value may stand. */
export const HOSTILE_VALUES: readonly unknown[] = [
  null, true, false, 0, -1, 1.5, -0, 1e308, 2 ** 53 + 2, -(2 ** 53) - 2, '', ' ', '0', 'null', 'true', 'NaN', LONG,
  '\u0000', 'a\u0000b', '\ud800', '\udfff\ud800', '\u202e', '💥', '﷽', "' or 1=1 --", '<script>alert(1)</script>', '${7*7}', '../../etc/passwd', '\r\nSet-Cookie: a=b',
  '2026-13-45T99:99:99Z', '0000-00-00', [], {}, [null], [[[[[]]]]], { a: { b: { c: {} } } }, { $ref: '#' }, { toJSON: 1 }, { length: -1 }, Array.from({ length: 300 }, () => 1),
]; // prettier-ignore

const EXTRA_NAMES = [
  'unknown',
  '',
  ' ',
  'id',
  'owner_id',
  'toString',
  'hasOwnProperty',
  '$where',
  'a.b',
  '__defineGetter__',
  'é'.repeat(50),
  'x'.repeat(500),
];

type Path = readonly (string | number)[];

function paths(value: unknown, path: Path = []): Path[] {
  const inner =
    typeof value === 'object' && value !== null ? Object.entries(value).flatMap(([key, child]) => paths(child, [...path, key])) : [];
  return [path, ...inner];
}

/** A copy of the value with one place replaced, removed or added. */
export function mutateValue(value: unknown, random: Random): unknown {
  const path = random.pick(paths(value));
  const copy = structuredClone(value);
  if (path.length === 0) return random.pick(HOSTILE_VALUES);
  let parent = copy as Record<string | number, unknown>;
  for (const key of path.slice(0, -1)) parent = parent[key] as Record<string | number, unknown>;
  const last = path.at(-1)!;
  const kind = random.int(0, 4);
  if (kind === 0) {
    if (Array.isArray(parent)) parent.splice(Number(last), 1);
    else delete parent[last];
  } else if (kind === 1 && !Array.isArray(parent)) parent[random.pick(EXTRA_NAMES)] = random.pick(HOSTILE_VALUES);
  else if (kind === 2 && Array.isArray(parent)) parent.push(structuredClone(parent[last]));
  else parent[last] = random.pick(HOSTILE_VALUES);
  return copy;
}

/** A body that may not even be JSON. */
export function mutateText(text: string, random: Random): Buffer {
  const at = random.int(0, text.length);
  const cut = (insert: string): string => text.slice(0, at) + insert + text.slice(at);
  switch (random.int(0, 10)) {
    case 0:
      return Buffer.from(text.slice(0, at));
    case 1:
      return Buffer.from(cut(random.pick(['\u0000', '}', ']', ',', '"', '\\', '\u2028', '/*', 'NaN', '1e999', '-', '0x1'])));
    case 2:
      return Buffer.concat([
        Buffer.from(text.slice(0, at)),
        Buffer.from(random.pick([[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80]])),
        Buffer.from(text.slice(at)),
      ]);
    case 3:
      return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)]);
    case 4:
      return Buffer.from(text.replace('{', '{"__proto__":{"admin":true},'));
    case 5:
      return Buffer.from(text.replace(/"(\w+)":/, '"$1":null,"$1":'));
    case 6:
      return Buffer.from('['.repeat(random.pick([33, 2000])) + ']'.repeat(random.pick([33, 2000])));
    case 7:
      return Buffer.from(
        text.replace(/\d+/, random.pick(['1e400', '-1e400', '123456789012345678901234567890', '0.1e-400', '01', '+1', '1.'])),
      );
    case 8:
      return Buffer.from(text + ' '.repeat(300 * 1024));
    case 9:
      return Buffer.from(`${text}${text}`);
    default:
      return Buffer.from(text.replace('{', '{"constructor":{"prototype":{"admin":true}},'));
  }
}

/** Text for a place in the URL or in a header that expects a value of its own kind. */
export const HOSTILE_TEXTS: readonly string[] = [
  '', ' ', '0', '-1', '1e3', '1.5', 'NaN', 'Infinity', 'true', 'null', '[]', '{}', '%', '%00', '%ff', '%c3%28', '%2e%2e%2f', '..', '.', '//', '\\', ';', '*', '💥',
  '00000000-0000-0000-0000-000000000000', '019b0c1e-8f00-7000-8000-000000000001', '99999999999999999999', 'x'.repeat(300), "'--", '__proto__', 'constructor',
]; // prettier-ignore

export const HOSTILE_QUERIES: readonly string[] = [
  'page=1&page=2', 'page[]=1', 'page[a]=1', '__proto__=1', 'constructor=1', '=1', '&&&', '%', '%ff=1', 'a=%c3%28', 'page=%00', 'unknown=1', 'page', 'page=', 'tag=&tag=', '?page=1', 'page=1#x',
  Array.from({ length: 1200 }, (_, index) => `p${index}=1`).join('&'), `search=${'x'.repeat(3000)}`, 'toString=1', 'page=1;drop', 'urgent=maybe', 'order=price', 'max_weight=1e999',
]; // prettier-ignore
