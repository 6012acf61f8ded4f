import { expect, test } from 'vitest';
import { parseTraceparent } from './traceparent.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

test.each([
  ['00', '01', true],
  ['00', '00', false],
  ['00', 'fe', false],
  ['00', 'ff', true],
  ['cc', '01', true],
])('version %s with flags %s is valid, sampled: %s', (version, flags, sampled) => {
  expect(parseTraceparent(`${version}-${TRACE}-${SPAN}-${flags}`)).toEqual({ traceId: TRACE, spanId: SPAN, sampled });
});

test('a later version may have more fields behind a dash', () => {
  expect(parseTraceparent(`01-${TRACE}-${SPAN}-01-more`)?.traceId).toBe(TRACE);
  expect(parseTraceparent(`01-${TRACE}-${SPAN}-01more`)).toBeUndefined();
});

const invalid: readonly [string, unknown][] = [
  ['nothing', undefined],
  ['an empty text', ''],
  ['several headers', [`00-${TRACE}-${SPAN}-01`]],
  ['several headers joined', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
  ['the forbidden version', `ff-${TRACE}-${SPAN}-01`],
  ['version 00 with more fields', `00-${TRACE}-${SPAN}-01-more`],
  ['upper case', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ['a trace id of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['a parent id of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['a short trace id', `00-${TRACE.slice(1)}-${SPAN}-01`],
  ['a long trace id', `00-${TRACE}0-${SPAN}-01`],
  ['a letter that is no digit', `00-${TRACE.slice(1)}g-${SPAN}-01`],
  ['whitespace around it', ` 00-${TRACE}-${SPAN}-01`],
  ['a line feed behind it', `00-${TRACE}-${SPAN}-01\n`],
  ['a line feed inside', `00-${TRACE.slice(0, 16)}\n${TRACE.slice(17)}-${SPAN}-01`],
  ['a quote that would end a JSON string', `00-${TRACE.slice(1)}"-${SPAN}-01`],
  ['digits of another script', `00-${'٤'.repeat(32)}-${SPAN}-01`],
  ['a very long text', `01-${TRACE}-${SPAN}-01-${'x'.repeat(100_000)}`],
];

test.each(invalid)('invalid: %s', (_what, header) => {
  expect(parseTraceparent(header)).toBeUndefined();
});
