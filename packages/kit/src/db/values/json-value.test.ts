import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonValue } from './json-value.ts';

test('an escaped key keeps its name after another object had a key with a backslash', () => {
  jsonValue(String.raw`{"after":1,"\\":2,"a\\":3}`);
  for (const key of ['\n', '"', '\u0001', '\\', 'é'])
    expect(Object.keys(jsonValue(`{"after":1,${escaped(key)}:3}`) as object)).toEqual(['after', key]);
  expect(jsonValue(String.raw`{"after":1,"\\":2,"a\"b":{"after":1,"\n":[{"after":1 , "\t" :2}]}}`)).toEqual({
    after: 1,
    '\\': 2,
    'a"b': { after: 1, '\n': [{ after: 1, '\t': 2 }] },
  });
});

test('reads what was written, whatever the keys, the spaces and the nesting', () => {
  const key = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('\\', '\\u', '\n', '"', '":', '__proto__', 'a', '1', ''),
  );
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
  fc.assert(
    fc.property(value, fc.constantFrom(undefined, 2, '\t'), (written, space) => {
      const text = JSON.stringify(written, null, space);
      expect(JSON.stringify(jsonValue(text), null, space)).toBe(text);
      const withEscapes = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, (string) =>
        string.replaceAll(/\\u....|\\.|[a-z]/g, (part) => (part.length === 1 ? unicode(part) : part)),
      );
      expect(JSON.stringify(jsonValue(withEscapes), null, space)).toBe(text);
    }),
    { numRuns: 100 },
  );
});

test('text that is no JSON is an error, with escaped keys too', () => {
  for (const text of [
    '',
    '{',
    String.raw`{"\n":}`,
    String.raw`{"\n":1,}`,
    String.raw`["\n" : 1]`,
    String.raw`{"\x":1}`,
    String.raw`{"\n":01}`,
  ])
    expect(() => jsonValue(text)).toThrow(SyntaxError);
});

const escaped = (key: string): string => (key === 'é' ? String.raw`"\u00e9"` : JSON.stringify(key));
const unicode = (letter: string): string => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
