import { describe, expect, test } from 'vitest';
import { type CursorContent, Cursors } from './cursor.ts';

const old = new Uint8Array(32).fill(1);
const current = new Uint8Array(32).fill(2);
const cursors = new Cursors([current, old]);
const content: CursorContent = {
  position: ['9223372036854775807', '12345678901234567890.0000000001', '2026-01-01T00:00:00.001Z', null, 0.1, 'a😀"\\', true],
  backwards: true,
  count: 123,
};

describe('a cursor', () => {
  test('gives back exactly what was written, for what it was bound to', () => {
    const cursor = cursors.write(content, 'user 1');
    // The one that wrote it, and one that never saw it: another process.
    for (const reader of [cursors, new Cursors([current])]) {
      expect(reader.read(cursor, 'user 1')).toEqual(content);
      expect(reader.read(cursor, 'user 2')).toBeUndefined();
      expect(reader.read(cursor, '')).toBeUndefined();
    }
  });

  test('is opaque, and the same for the same page', () => {
    const cursor = cursors.write(content, 'x');
    expect(Buffer.from(cursor, 'base64url').toString('latin1')).not.toContain('2026');
    expect(cursors.write(content, 'x')).toBe(cursor);
    expect(cursors.write({ ...content, count: 124 }, 'x')).not.toBe(cursor);
    expect(cursors.write(content, 'y').slice(0, 30)).not.toBe(cursor.slice(0, 30));
  });

  test('is refused when any one character is another', () => {
    const cursor = cursors.write(content, 'x');
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    for (let index = 0; index < cursor.length; index++) {
      for (const other of [alphabet[(alphabet.indexOf(cursor[index] ?? '') + 1) % 64], 'A', '_', '=']) {
        const changed = `${cursor.slice(0, index)}${other}${cursor.slice(index + 1)}`;
        if (changed === cursor) continue;
        const read = cursors.read(changed, 'x');
        if (read !== undefined) throw new Error(`Accepted with ${other} at ${index}.`);
      }
    }
    expect(cursors.read(cursor.slice(0, -1), 'x')).toBeUndefined();
    expect(cursors.read(`${cursor}A`, 'x')).toBeUndefined();
  });

  test.each([[''], ['x'], ['%00'], ['A'.repeat(10_000)], ['AQ'], [Buffer.alloc(60).toString('base64url')], ['{"id":1}']])(
    'is refused when it is something else: %s',
    (text) => {
      expect(cursors.read(text, 'x')).toBeUndefined();
    },
  );

  test('of an older key is read until the key is taken away; the first key writes', () => {
    const before = new Cursors([old]).write(content, 'x');
    expect(cursors.read(before, 'x')).toEqual(content);
    expect(new Cursors([current]).read(before, 'x')).toBeUndefined();
    expect(new Cursors([old]).read(cursors.write(content, 'x'), 'x')).toBeUndefined();
  });

  test('has at most 1,000 characters for three texts of 200 in ASCII, and at most 5,000 whatever the characters are', () => {
    const of = (character: string) => {
      const text = character.repeat(200);
      const written = cursors.write({ ...content, position: [text, text, text, '018f4a52-0000-7000-8000-00000000000a'] }, 'x');
      expect(new Cursors([current]).read(written, 'x')?.position[2]).toBe(text);
      return written.length;
    };
    expect(of('a')).toBeLessThanOrEqual(1_000);
    for (const character of ['é', '字', '😀', '"', '\u0001']) expect(of(character)).toBeLessThanOrEqual(5_000);
    expect(() => cursors.write({ ...content, position: ['a'.repeat(4_000)] }, 'x')).toThrow('order by shorter columns');
  });

  test('keys of another length are refused', () => {
    expect(() => new Cursors([new Uint8Array(16)])).toThrow('32 bytes');
    expect(() => new Cursors([])).toThrow('at least one key');
  });
});
