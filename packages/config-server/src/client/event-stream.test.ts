import { expect, test } from 'vitest';
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { EventStreamReader, type StreamEvent } from './event-stream.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const read = (text: string): StreamEvent[] => new EventStreamReader().push(bytes(text));

test.each([['\n'], ['\r\n'], ['\r']])('an event is read with line ends %j', (end) => {
  const text = ['retry: 3000', 'id: 7', 'event: generation', 'data: {"generation":7}', '', ': heartbeat', '', ''].join(end);
  const reader = new EventStreamReader();
  expect(reader.push(bytes(text))).toEqual([{ id: '7', event: 'generation', data: '{"generation":7}' }]);
  expect(reader.retryMs).toBe(3_000);
});

test('comments, unknown fields and events without data are ignored', () => {
  expect(read(': hello\n\nfoo: bar\nevent: generation\n\nid: 4\n\n')).toEqual([]);
});

test('data lines are joined, one leading space is dropped, the type defaults to message', () => {
  expect(read('data:a\ndata:  b\ndata\n\n')).toEqual([{ id: undefined, event: 'message', data: 'a\n b\n' }]);
});

test('retry is taken only when it is a number', () => {
  const reader = new EventStreamReader();
  reader.push(bytes('retry: soon\nretry: -1\nretry: 9999999999\n\n'));
  expect(reader.retryMs).toBeUndefined();
});

test('an event is the same however its bytes are cut into chunks', () => {
  const text = 'id: 1\r\nevent: generation\r\ndata: {"name":"ünïcödé ✓"}\r\n\r\n: heartbeat\n\nid: 2\nevent: generation\ndata: x\n\n';
  const whole = read(text);
  expect(whole).toHaveLength(2);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (sizes) => {
      const reader = new EventStreamReader();
      const events: StreamEvent[] = [];
      const all = bytes(text);
      for (let at = 0, turn = 0; at < all.length; turn += 1) {
        const size = sizes[turn % sizes.length]!;
        events.push(...reader.push(all.subarray(at, at + size)));
        at += size;
      }
      expect(events).toEqual(whole);
    }),
  );
});

test('a line without end and an event without end are refused instead of kept in memory', () => {
  expect(() => read(`data: ${'x'.repeat(20_000)}`)).toThrow(/overlong line/);
  expect(() => read('data: x\n'.repeat(100))).toThrow(/overlong event/);
});

const lines = fc.oneof(
  fc.constantFrom('', 'data', 'id', 'event', 'retry', ': comment', ':', 'data:', 'data: ', 'id:', 'event:', 'unknown: field', 'Data: x', ' data: x'),
  fc.tuple(fc.constantFrom('data', 'event', 'id', 'other'), fc.constantFrom(':', ': ', ':  '), fc.string({ unit: fc.constantFrom('a', 'é', '✓', ':', ' ', '\0') })).map((parts) => parts.join('')),
  fc.nat(999_999).map((ms) => `retry: ${ms}`),
  fc.constantFrom('retry: soon', 'retry: -1', 'retry: 1e3'),
); // prettier-ignore

test('any stream gives the events, the last id and the retry time that eventsource-parser reads from it', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(lines, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 40 }), fc.integer({ min: 1, max: 20 }), (parts, size) => {
      const text = parts.flat().join('');
      const expected: StreamEvent[] = [];
      let id: string | undefined;
      let retryMs: number | undefined;
      const oracle = createParser({
        onId: (value) => (id = value),
        onRetry: (value) => (retryMs = value),
        onEvent: ({ event = 'message', data }) => expected.push({ event, data, id }),
      });
      oracle.feed(text);
      const reader = new EventStreamReader();
      const events: StreamEvent[] = [];
      const all = bytes(text);
      for (let at = 0; at < all.length; at += size) events.push(...reader.push(all.subarray(at, at + size)));
      expect(events).toEqual(expected);
      expect(reader.retryMs).toBe(retryMs);
    }),
    { numRuns: 500 },
  ); // prettier-ignore
});
