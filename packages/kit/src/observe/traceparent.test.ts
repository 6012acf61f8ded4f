import { expect, test } from 'vitest';
import { formatTraceParent, parseTraceParent } from './traceparent.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

test('a valid traceparent is read and written back unchanged', () => {
  const value = `00-${TRACE}-${SPAN}-01`;
  const parsed = parseTraceParent(value);
  expect(parsed).toEqual({ traceId: TRACE, spanId: SPAN, isSampled: true });
  expect(formatTraceParent(parsed!)).toBe(value);
  expect(parseTraceParent(`00-${TRACE}-${SPAN}-00`)?.isSampled).toBe(false);
});

test('only the sampled flag counts, and a later version may go on after the flags', () => {
  expect(parseTraceParent(`00-${TRACE}-${SPAN}-02`)?.isSampled).toBe(false);
  expect(parseTraceParent(`00-${TRACE}-${SPAN}-ff`)?.isSampled).toBe(true);
  expect(parseTraceParent(`cc-${TRACE}-${SPAN}-01-what-comes-later`)?.traceId).toBe(TRACE);
});

test.each([
  undefined,
  ['a', 'b'],
  '',
  'garbage',
  `ff-${TRACE}-${SPAN}-01`,
  `00-${'0'.repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-01-more`,
  `00-${TRACE}-${SPAN}-1`,
  `00-${TRACE}-${SPAN}`,
  `00-${TRACE}x-${SPAN}-01`,
  ` 00-${TRACE}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-01\n`,
  // Two headers, as Node joins them.
  `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
  `cc-${TRACE}-${SPAN}-01-${'x'.repeat(1000)}`,
])('anything else is no traceparent: %j', (value) => {
  expect(parseTraceParent(value)).toBeUndefined();
});
