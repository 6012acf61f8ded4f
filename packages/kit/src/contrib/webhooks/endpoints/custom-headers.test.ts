import fc from 'fast-check';
import { expect, test } from 'vitest';
import { editHeaders, HEADERS_MAX } from './custom-headers.ts';

test('names are stored in lower case and in order', () => {
  expect(editHeaders({}, { 'X-B': '2', 'x-a': '1' })).toEqual({ 'x-a': '1', 'x-b': '2' });
});

test('a text sets a header, null removes it, and headers that are not named stay', () => {
  expect(editHeaders({ 'x-a': '1', 'x-b': '2' }, { 'X-A': null, 'x-c': '3' })).toEqual({ 'x-b': '2', 'x-c': '3' });
});

const reserved = ['Host', 'content-type', 'Content-Length', 'user-agent', 'webhook-id', 'Webhook-Signature', 'webhook-anything'];

test.each([...reserved, 'transfer-encoding', 'connection', 'Proxy-Authorization', 'expect', ':path'])('%s is reserved', (name) => {
  expect(editHeaders({}, { [name]: 'x' })).toEqual([expect.objectContaining({ name })]);
});

test.each(['', 'x y', 'x:y', 'x\r\ny', 'ä', 'x'.repeat(101)])('the name %j is refused', (name) => {
  expect(editHeaders({}, { [name]: 'x' })).toHaveLength(1);
});

test.each(['', ' x', 'x ', 'a\r\nb', 'a\nb', 'a\0b', 'ä', 'x'.repeat(2001), 7, {}, true])(
  'the value %j is refused and not repeated',
  (value) => {
    const faults = editHeaders({}, { 'x-a': value });
    expect(faults).toHaveLength(1);
    expect(JSON.stringify(faults)).not.toContain('a\\r');
  },
);

test('a header that is given twice in different case is refused, and so are too many', () => {
  expect(editHeaders({}, { 'X-A': '1', 'x-a': '2' })).toHaveLength(1);
  const many = Object.fromEntries(Array.from({ length: HEADERS_MAX + 1 }, (_, n) => [`x-${n}`, 'v']));
  expect(editHeaders({}, many)).toHaveLength(1);
  expect(editHeaders({}, null)).toHaveLength(1);
});

test('whatever is accepted can be sent as a header', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.string()), (edit) => {
      const headers = editHeaders({}, edit);
      fc.pre(!Array.isArray(headers));
      expect(() => new Headers(headers as Record<string, string>)).not.toThrow();
    }),
  );
});
