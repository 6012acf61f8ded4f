import fc from 'fast-check';
import { stringify as stringifyToml } from 'smol-toml';
import { expect, test } from 'vitest';
import { stringify as stringifyYaml } from 'yaml';
import { parseFile, toDocumentTable } from '../formats.ts';
import { leafPaths, splitKeyPath, valueAt } from '../key-path.ts';
import { memberOf, type Table } from '../value.ts';
import { KeyPositions, type Position } from './key-positions.ts';

const table = (extension: string, text: string): Table =>
  toDocumentTable(parseFile(`x${extension}`, Buffer.from(text), 'file x'), 'file x');

function at(extension: string, text: string, path: string): string | undefined {
  const position = new KeyPositions(extension, Buffer.from(text), []).at(splitKeyPath(path));
  return position && `${position.line}:${position.column}`;
}

function offsetOf(text: string, { line, column }: Position): number {
  const lines = text.split('\n');
  return lines.slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0) + column - 1;
}

test('TOML: keys, headers, dotted and quoted keys, inline tables, strings and comments that look like keys', () => {
  const text = [
    '# a = 1', // 1
    'a = 1 # b = 2',
    'b.c = "c = [\\"" # x', // 3
    "'lit.eral' = 1",
    '"esc\\u0061ped" = 1',
    'text = """', // 6
    'fake = 1',
    '[fake]""""',
    "raw = '''", // 9
    "[fake]\\'''''",
    'list = [ # ] fake = 1',
    '  "]", # another',
    '  { fake = 1 },',
    ']', // 14
    'inline = { x = 1, y.z = "}", "q" = { deep = true } }',
    'when = 1979-05-27 07:32:00Z',
    '[ t . "u" ]', // 17
    '\tindented\t= 1',
    '[t.v.w]',
    'last = 1',
    '[[rows]]', // 21
    'a = 1',
    '[rows.fake]',
    '[[rows]]',
    '[t.v]', // 25
    'end = 1',
  ].join('\r\n');
  const places = {
    a: '2:1',
    b: '3:1',
    'b.c': '3:3',
    'lit\\.eral': '4:1',
    escaped: '5:1',
    text: '6:1',
    raw: '9:1',
    list: '11:1',
    inline: '15:1',
    'inline.x': '15:12',
    'inline.y': '15:19',
    'inline.y.z': '15:21',
    'inline.q.deep': '15:38',
    when: '16:1',
    t: '17:3',
    't.u': '17:7',
    't.u.indented': '18:2',
    't.v.w': '19:6',
    't.v.w.last': '20:1',
    rows: '21:3',
    't.v': '25:4',
    't.v.end': '26:1',
  };
  const document = table('.toml', text);
  const paths = Object.keys(places);
  expect(paths.filter((path) => valueAt(document, splitKeyPath(path)) === undefined)).toEqual([]);
  expect(Object.fromEntries(paths.map((path) => [path, at('.toml', text, path)]))).toEqual(places);
  expect(at('.toml', text, 'fake')).toBeUndefined();
});

test('JSON: nested, escaped and repeated keys', () => {
  const text = '\uFEFF{\n  "a": [{"b": 1}, "}\\"{", null],\n\t"b": {"a\\u0062": -1e5, "c":{}},"d":true, "d": {"x": "y"}\n}\n';
  expect([at('.json', text, 'a'), at('.json', text, 'b'), at('.json', text, 'b.ab'), at('.json', text, 'b.c')]).toEqual([
    '2:3',
    '3:2',
    '3:8',
    '3:25',
  ]);
  // JSON.parse keeps the last of repeated keys.
  expect([at('.json', text, 'd'), at('.json', text, 'd.x'), at('.json', text, 'e')]).toEqual(['3:43', '3:49', undefined]);
});

test('YAML: block and flow maps, anchors and merge keys', () => {
  const text = [
    'base: &base',
    '  pool: { size: 5 }',
    '  name: base',
    'other: &other',
    '  name: other',
    '  extra: 1',
    'app:',
    '  <<: [*base, *other]',
    '  1: integer key',
    '  ? long',
    '  : value',
    'alias: *base',
    '"quoted key": {a: {b: 1}}',
  ].join('\n');
  expect(memberOf(table('.yaml', text), 'app')).toMatchObject({ name: 'base', extra: 1 });
  const places = {
    'base.pool.size': '2:11',
    'app.name': '3:3',
    'app.pool.size': '2:11',
    'app.extra': '6:3',
    'app.1': '9:3',
    'app.long': '10:5',
    'alias.pool': '2:3',
    'quoted key.a.b': '13:20',
  };
  expect(Object.fromEntries(Object.keys(places).map((path) => [path, at('.yml', text, path)]))).toEqual(places);
});

test('YAML: keys that are aliases, long integers or tables', () => {
  const text = [
    'base: &base { x: 1 }',
    'name: &name port',
    '*name : 1',
    '123456789012345678901234567890: 1',
    '? { a: 1 }',
    ': { x: 5 }',
    '<<: *base',
  ];
  const document = table('.yaml', text.join('\n'));
  const places = { x: '1:15', port: '3:1', '123456789012345678901234567890': '4:1' };
  for (const path of Object.keys(places)) expect(valueAt(document, [path])).toBe(1);
  expect(Object.fromEntries(Object.keys(places).map((path) => [path, at('.yaml', text.join('\n'), path)]))).toEqual(places);
});

// No key is a single escaped character: V8 13.6 parses the JSON key "\"" as "\\" after an object whose first key was a backslash.
const key = fc
  .oneof(
    fc.string({ minLength: 1, maxLength: 6 }),
    fc.constantFrom('a', 'b', 'a.b', '"q"', "'", '\\q', '=', '#', '[', '__proto__', 'constructor', '1', 'ä', '😀', 'a\nb', 'a\tb'),
  )
  .filter((name) => name !== '"' && name !== '\\');
const scalar = fc.oneof(fc.integer(), fc.boolean(), fc.string(), fc.constantFrom('"""', "'''", '{', '}', '\n[a]\n', '#', ' = ', '\\'));
const tables = fc.letrec<{ node: unknown; table: Record<string, unknown> }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4 },
    scalar,
    fc.array(scalar, { maxLength: 3 }),
    fc.array(fc.dictionary(key, scalar, { maxKeys: 2, minKeys: 1, noNullPrototype: true }), { minLength: 1, maxLength: 2 }),
    tie('table'),
  ),
  table: fc.dictionary(key, tie('node'), { minKeys: 1, maxKeys: 4, noNullPrototype: true }),
})).table;

const WRITERS: Readonly<Record<string, (document: Record<string, unknown>) => string>> = {
  '.toml': (document) => stringifyToml(document),
  '.yaml': (document) => stringifyYaml(document),
  '.json': (document) => JSON.stringify(document, null, 2),
};

// The oracle is the parser: a key that is renamed at the position found must disappear from the parsed document, and its value must be
// under the new name.
test.each(Object.keys(WRITERS))('%s: renaming a key at its position renames that key and no other', (extension) => {
  fc.assert(
    fc.property(tables, (generated) => {
      const text = WRITERS[extension]!(generated);
      const document = table(extension, text);
      const positions = new KeyPositions(extension, Buffer.from(text), []);
      for (const path of leafPaths(document)) {
        const position = positions.at(path);
        expect(position).toBeDefined();
        const offset = offsetOf(text, position!);
        const insert = /["']/.test(text[offset]!) ? offset + 1 : offset;
        // A block key of YAML with line feeds is written as `? |-`; there the position is that of the indicator.
        if (/[|>]/.test(text[offset]!)) continue;
        // An array of tables has a header for each element, so one renamed header leaves the others.
        if (text.slice(Math.max(0, text.lastIndexOf('\n', offset)), offset).includes('[[')) continue;
        const renamed = table(extension, `${text.slice(0, insert)}zq${text.slice(insert)}`);
        const parent = path.slice(0, -1);
        expect(valueAt(renamed, path)).toBeUndefined();
        expect(valueAt(renamed, [...parent, `zq${path.at(-1)!}`])).toEqual(valueAt(document, path));
      }
    }),
    { numRuns: 100 },
  );
});

test('a YAML map that merges itself ends the search', () => {
  expect(at('.yaml', 'a: &a\n  <<: *a\n  b: 1\n', 'a.c')).toBeUndefined();
});
