import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseFile, toDocumentTable } from './formats.ts';
import { LoadFailure } from './load-failure.ts';
import { memberOf, type Table } from './value.ts';

function load(name: string, text: string | Uint8Array): Table {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  return toDocumentTable(parseFile(name, bytes, `file ${name}`), `file ${name}`);
}

function failureOf(name: string, text: string | Uint8Array): LoadFailure {
  try {
    load(name, text);
  } catch (error) {
    if (error instanceof LoadFailure) return error;
    throw error;
  }
  throw new Error('it did not fail');
}

test('the same document in three formats', () => {
  const expected = '{"a":1,"b":{"c":[1,"x",true],"d":1.5}}';
  expect(JSON.stringify(load('x.toml', 'a = 1\n[b]\nc = [1, "x", true]\nd = 1.5\n'))).toBe(expected);
  expect(JSON.stringify(load('x.yaml', 'a: 1\nb:\n  c: [1, x, true]\n  d: 1.5\n'))).toBe(expected);
  expect(JSON.stringify(load('x.yml', '\uFEFFa: 1\nb: {c: [1, x, true], d: 1.5}\n'))).toBe(expected);
  expect(JSON.stringify(load('x.json', expected))).toBe(expected);
  expect(JSON.stringify(load('x.JSON', `\uFEFF${expected}`))).toBe(expected);
});

test('TOML dates are RFC 3339 strings', () => {
  const table = load(
    'x.toml',
    'a = 1979-05-27T07:32:00Z\nb = 1979-05-27T00:32:00.5-07:00\nc = 1979-05-27\nd = 07:32:00\ne = 1979-05-27T07:32:00\n',
  );
  expect(JSON.parse(JSON.stringify(table))).toEqual({
    a: '1979-05-27T07:32:00.000Z',
    b: '1979-05-27T00:32:00.500-07:00',
    c: '1979-05-27',
    d: '07:32:00.000',
    e: '1979-05-27T07:32:00.000',
  });
});

test('YAML anchors, merge keys and an empty file', () => {
  expect(JSON.stringify(load('x.yaml', 'base: &base {a: 1}\nother:\n  <<: *base\n  b: 2\n'))).toBe(
    '{"base":{"a":1},"other":{"a":1,"b":2}}',
  );
  expect(JSON.stringify(load('x.yaml', ''))).toBe('{}');
});

test.each([
  ['x.toml', 'pool = { max = 9007199254740992 }'],
  ['x.toml', 'pool = { max = -9007199254740992 }'],
  ['x.toml', 'pool = { max = nan }'],
  ['x.toml', 'pool = { max = -inf }'],
  ['x.yaml', 'pool: {max: 9007199254740993}'],
  ['x.yaml', 'pool: {max: .nan}'],
  ['x.yaml', 'pool: {max: .inf}'],
  ['x.json', '{"pool":{"max":9007199254740993}}'],
  ['x.json', '{"pool":{"max":-123456789012345678901234567890}}'],
  ['x.json', '{"pool":{"max":1e999}}'],
])('%s: %s is a failure that names the key', (name, text) => {
  const failure = failureOf(name, text);
  expect(failure.kind).toBe('parse');
  expect(failure.message).toContain('key pool.max ');
  expect(failure.message).not.toMatch(/900719|123456/);
});

test('the largest integers JSON can carry are carried', () => {
  for (const [name, text] of [
    ['x.toml', 'a = 9007199254740991\nb = -9007199254740991'],
    ['x.yaml', 'a: 9007199254740991\nb: -9007199254740991'],
    ['x.json', '{"a":9007199254740991,"b":-9007199254740991}'],
  ] as const) {
    expect(JSON.stringify(load(name, text))).toBe('{"a":9007199254740991,"b":-9007199254740991}');
  }
});

test('a number in exponent form stays what it is', () => {
  expect(load('x.json', '{"a":1e300,"b":1234567890123456.5}')).toMatchObject({ a: 1e300 });
});

test('__proto__, constructor and similar keys are data', () => {
  for (const [name, text] of [
    ['x.toml', '[__proto__]\npolluted = true\n[constructor]\nprototype = 1\n'],
    ['x.yaml', '__proto__:\n  polluted: true\nconstructor:\n  prototype: 1\n'],
    ['x.json', '{"__proto__":{"polluted":true},"constructor":{"prototype":1}}'],
  ] as const) {
    const table = load(name, text);
    expect(JSON.stringify(table)).toBe('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}');
    expect(['toString', 'hasOwnProperty', 'valueOf'].map((key) => memberOf(table, key))).toEqual([undefined, undefined, undefined]);
  }
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});

test.each([
  ['x.toml', 'a = "canary'],
  ['x.toml', 'canary'],
  ['x.toml', 'a = "canary"\na = "canary"'],
  ['x.yaml', 'a: "canary\n'],
  ['x.yaml', 'a: canary\na: canary'],
  ['x.yaml', 'a: *canary'],
  ['x.yaml', '---\na: canary\n---\nb: canary\n'],
  ['x.json', '{"a":"canary"'],
  ['x.json', '{"a":canary}'],
  ['x.json', ''],
  ['x.json', '["canary"]'],
  ['x.json', '"canary"'],
  ['x.yaml', '- canary'],
])('%s: %j is refused by place and never by content', (name, text) => {
  const failure = failureOf(name, text);
  expect([failure.kind, failure.origin]).toEqual(['parse', `file ${name}`]);
  expect(failure.message).not.toContain('canary');
});

test.each(['!!set {canary}', '!!omap [canary: 1]', '!!binary Y2FuYXJ5'])(
  'YAML: %s, which JSON does not have, is a failure that names the key',
  (value) => {
    expect(failureOf('x.yaml', `pool: {max: ${value}}`)).toMatchObject({
      kind: 'parse',
      message: expect.stringMatching(/^key pool\.max is a YAML set, ordered map or binary/) as string,
    });
    expect(failureOf('x.yaml', value).message).toMatch(/the top level of the file must be a table|not valid YAML/);
  },
);

test('a key given twice in a YAML table is refused by its place, also when the two are only written alike in JSON', () => {
  for (const text of ['a:\n  canary: 1\n  canary: 2\n', 'a:\n  1: 1\n  "1": 2\n', 'a:\n  x: {b: 1}\n  x: {c: 2}\n']) {
    expect(failureOf('x.yaml', text).message).toBe('the file gives a key twice in one table (line 3, column 3)');
  }
  expect(JSON.stringify(load('x.yaml', 'a: &a {x: 1}\nb: &b {y: 2}\nc:\n  <<: *a\n  <<: *b\n'))).toContain('"c":{"x":1,"y":2}');
});

test.each([
  ['x.yaml', (count: number) => Array.from({ length: count }, (_, index) => `key${index}: 1`).join('\n')],
  ['x.json', (count: number) => `{${Array.from({ length: count }, (_, index) => `"key${index}":1`).join()}`],
  ['x.toml', (count: number) => Array.from({ length: count }, (_, index) => `key${index} = 1`).join('\n')],
] as const)('%s: a table of 20,000 keys, whole or torn, takes no more than its length', (name, text) => {
  // Processor time: a busy machine does not add to it. Comparing every key with every other takes twenty seconds of it.
  const started = process.cpuUsage();
  outcomeOf(name, text(20_000));
  const { user, system } = process.cpuUsage(started);
  expect((user + system) / 1000).toBeLessThan(6_000);
});

test('lines are named', () => {
  expect(failureOf('x.toml', 'a = 1\nb = = 2\n').message).toMatch(/line 2, column \d+/);
  expect(failureOf('x.yaml', 'a: 1\nb: "x\n').message).toMatch(/line \d+, column \d+/);
  expect(failureOf('x.json', '{\n"a": x}').message).toMatch(/line 2, column 6/);
  expect(failureOf('x.json', '{\n"a": 1,\n}').message).toBe('the file is not valid JSON (line 3, column 1)');
  expect(failureOf('x.json', '{"a": "(line 7 column 7)').message).toMatch(/^the file is not valid JSON \(line 1, column \d+\)$/);
});

test('what is not UTF-8, nests without end or expands without end is refused', () => {
  expect(failureOf('x.toml', Buffer.from([0x61, 0xff, 0xfe])).message).toContain('UTF-8');
  expect(failureOf('x.json', `${'['.repeat(100_000)}${']'.repeat(100_000)}`).kind).toBe('parse');
  expect(failureOf('x.json', `{"a":${'{"a":'.repeat(300)}1${'}'.repeat(300)}}`).message).toContain('deeper than 128');
  expect(failureOf('x.toml', `a = ${'['.repeat(5000)}`).kind).toBe('parse');
  const laughs = [
    'a: &a [x, x, x, x, x, x, x, x, x, x]',
    ...'bcdefghi'.split('').map((name, index) => `${name}: &${name} [${`*${'abcdefgh'[index]!}, `.repeat(9)}1]`),
  ];
  expect(failureOf('x.yaml', laughs.join('\n')).kind).toBe('parse');
});

test('any bytes give a document or a LoadFailure', () => {
  const name = fc.constantFrom('x.toml', 'x.yaml', 'x.json');
  const fragments = fc.array(
    fc.constantFrom('{', '}', '[', ']', '"', ':', '=', '\n', '  ', '- ', '&a', '*a', '<<', 'a', '1', '.', '!!', '|', '\0', 'é'),
    { maxLength: 40 },
  );
  const content = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.string({ unit: 'binary' }),
    fragments.map((parts) => parts.join('')),
    fc.json(),
  );
  fc.assert(
    fc.property(name, content, (file, text) => {
      expect(['a document', 'LoadFailure']).toContain(outcomeOf(file, text));
    }),
    { numRuns: 3000 },
  );
});

function outcomeOf(name: string, text: string | Uint8Array): string {
  try {
    return typeof JSON.stringify(load(name, text)) === 'string' ? 'a document' : 'nothing';
  } catch (error) {
    return (error as Error).name;
  }
}

test('a JSON file with null is not an empty document; an empty YAML file is', () => {
  expect(failureOf('x.json', 'null').message).toBe('the top level of the file must be a table');
  expect(parseFile('x.yaml', Buffer.from('# nothing yet\n'), '')).toEqual({});
});

test.each([
  'a: *missing\n',
  'a: &a [x, x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: [*b, *b, *b, *b, *b, *b, *b, *b]\n',
])('aliases that cannot be expanded are named as the cause: %j', (text) => {
  expect(failureOf('x.yaml', text).message).toMatch(/^the file has an alias without an anchor, or aliases that expand too far/);
});
