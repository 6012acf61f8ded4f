import { expect, test } from 'vitest';
import fc from 'fast-check';
import { EventStreamReader, type StreamEvent } from './event-stream.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const read = (text: string): StreamEvent[] => new EventStreamReader().push(bytes(text));

test.each([['\n'], ['\r\n'], ['\r']])('an event is read with line ends %j', (end) => {
  const text = ['retry: 3000', 'id: 7', 'event: generation', 'data: {"generation":7}', '', ': beat', '', ''].join(end);
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
  const text = 'id: 1\r\nevent: generation\r\ndata: {"name":"ünïcödé ✓"}\r\n\r\n: beat\n\nid: 2\nevent: generation\ndata: x\n\n';
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
