import { expect, test } from 'vitest';
import { acceptableRequestId } from './request-id.ts';

test.each([
  '019b0c1e-8f00-7000-8000-000000000001',
  '01J9ZC3M4N',
  '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  'Root=1-67891233-abcdef012345678912345678',
  'a',
  'x'.repeat(128),
])('an id of another system is taken over: %s', (id) => {
  expect(acceptableRequestId(id)).toBe(id);
});

test.each([
  undefined,
  '',
  ' ',
  'x'.repeat(129),
  'a b',
  'a\nb',
  'a\r\nSet-Cookie: x=1',
  '"quoted"',
  '<script>',
  'ünïcode',
  '${jndi}',
  '-leading',
  ['a', 'b'],
  `kit_${'p'.repeat(12)}_${'s'.repeat(49)}`,
])('an id that could break a log line or a header, or is a key, is not: %j', (id) => {
  expect(acceptableRequestId(id)).toBeUndefined();
});
