import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonValue, readJson } from './json-value.ts';

const key = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('\\', '\\u', '\n', '"', '":', '__proto__', 'a', '1', ''));
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    key,
    fc.double({ noDefaultInfinity: true, noNaN: true }),
    fc.constantFrom(null, true, -0, 1e21),
    fc.array(tie('value')),
    fc.dictionary(key, tie('value')),
  ),
}));

test('reads what was written, whatever the keys, the spaces and the nesting', () => {
  fc.assert(
    fc.property(value, fc.constantFrom(undefined, 2, '\t'), (written, space) => {
      const text = JSON.stringify(written, null, space);
      const withEscapes = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, (string) =>
        string.replaceAll(/\\u....|\\.|[a-z]/g, (part) => (part.length === 1 ? unicode(part) : part)),
      );
      for (const written of [text, withEscapes]) {
        expect(JSON.stringify(jsonValue(written), null, space)).toBe(text);
        expect(JSON.stringify(readJson(written), null, space)).toBe(text);
      }
    }),
    { numRuns: 100 },
  );
});

test('numbers are made from their text, objects from their members in the order of the text', () => {
  const shapes = { number: (source: string) => `<${source}>`, object: (members: readonly (readonly [string, unknown])[]) => members };
  expect(readJson('{"b": [1e400, -0.50, "1", true], "1": {}, "b": null}', shapes)).toEqual([
    ['b', ['<1e400>', '<-0.50>', '1', true]],
    ['1', []],
    ['b', null],
  ]);
  expect(readJson('{"a": 1, "b": 2, "a": 3}')).toEqual({ a: 3, b: 2 });
});

test('text that is not JSON is an error, with escaped keys too', () => {
  for (const text of ['', '{', '"', String.raw`{"\n":}`, String.raw`{"\n":1,}`, String.raw`["\n" : 1]`, String.raw`{"\x":1}`]) {
    expect(() => jsonValue(text)).toThrow(SyntaxError);
    expect(() => readJson(text)).toThrow(SyntaxError);
  }
});

test('a hundred thousand levels below an escaped key are data', () => {
  let inner = (jsonValue(String.raw`{"\n":${'['.repeat(100_000)}1${']'.repeat(100_000)}}`) as Record<string, unknown>)['\n'];
  for (; Array.isArray(inner); [inner] = inner);
  expect(inner).toBe(1);
});

const unicode = (letter: string): string => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
