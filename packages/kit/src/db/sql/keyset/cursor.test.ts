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

const ends = { first: ['2026-01-02T00:00:00.000Z', null], last: ['2026-01-01T00:00:00.000Z', 'a😀"'], count: 123 };
const both = { previous: { position: ends.first, backwards: true }, next: { position: ends.last, backwards: false } };

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
    // Asked again, and in another process: nothing but the content and the keys decides.
    for (const writer of [cursors, new Cursors([current])]) expect(writer.write(content, 'x')).toBe(cursor);
    expect(cursors.write({ ...content, count: 124 }, 'x')).not.toBe(cursor);
    expect(cursors.write(content, 'y').slice(0, 30)).not.toBe(cursor.slice(0, 30));
  });

  test('is refused when any one character is another', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const { previous, next } = cursors.writeAround(both, ends.count, 'x');
    for (const cursor of [cursors.write(content, 'x'), previous as string, next as string]) {
      for (let index = 0; index < cursor.length; index++) {
        for (const other of [
          alphabet[(alphabet.indexOf(cursor[index] ?? '') + 1) % 64],
          'A',
          '_',
          '=',
          '.',
          previous?.[index],
          next?.[index],
        ]) {
          const changed = `${cursor.slice(0, index)}${other ?? ''}${cursor.slice(index + 1)}`;
          if (changed === cursor) continue;
          const read = cursors.read(changed, 'x');
          if (read !== undefined) throw new Error(`Accepted with ${other} at ${index}.`);
        }
      }
      expect(cursors.read(cursor.slice(0, -1), 'x')).toBeUndefined();
      expect(cursors.read(`${cursor}A`, 'x')).toBeUndefined();
      // Neither kind is read as the other.
      expect(cursors.read(cursor.replace(/\.\w+$/, ''), 'x') === undefined).toBe(cursor.includes('.'));
      expect(cursors.read(`${cursor}.next`, 'x')).toBeUndefined();
    }
  });

  test('to each neighbour of a page continues from the end that is next to it', () => {
    const { first, last, count } = ends;
    const around = cursors.writeAround(both, count, 'user 1');
    for (const writer of [cursors, new Cursors([current])]) expect(writer.writeAround(both, count, 'user 1')).toEqual(around);
    for (const reader of [cursors, new Cursors([current])]) {
      expect(reader.read(around.previous as string, 'user 1')).toEqual({ position: first, backwards: true, count });
      expect(reader.read(around.next as string, 'user 1')).toEqual({ position: last, backwards: false, count });
      for (const cursor of [around.previous, around.next]) expect(reader.read(cursor as string, 'user 2')).toBeUndefined();
    }
    expect(new Cursors([old]).read(around.next as string, 'user 1'), 'another key').toBeUndefined();
    expect(Buffer.from(around.next as string, 'base64url').toString('latin1')).not.toContain('2026');
  });

  test('is written for the neighbours that a page has, and alone where both ends would be too long for one', () => {
    const { first, last, count } = ends;
    expect(cursors.writeAround({ previous: undefined, next: undefined }, count, 'x')).toEqual({ previous: null, next: null });
    expect(cursors.writeAround({ ...both, previous: undefined }, count, 'x')).toEqual({
      previous: null,
      next: cursors.write({ position: last, backwards: false, count }, 'x'),
    });
    expect(cursors.writeAround({ ...both, next: undefined }, count, 'x')).toEqual({
      previous: cursors.write({ position: first, backwards: true, count }, 'x'),
      next: null,
    });
    for (const backwards of [true, false]) {
      const only = { position: first, backwards, inclusive: true };
      const around = cursors.writeAround({ previous: backwards ? only : undefined, next: backwards ? undefined : only }, count, 'x');
      expect(new Cursors([current]).read((around.previous ?? around.next) as string, 'x')).toEqual({ ...only, count });
    }
    const long = ['a'.repeat(200), 'a'.repeat(200), 'a'.repeat(200)];
    for (const length of [1, 2, 3]) {
      const position = long.slice(0, length);
      const around = cursors.writeAround({ previous: { position, backwards: true }, next: { position, backwards: false } }, count, 'x');
      for (const cursor of [around.previous, around.next]) {
        expect(cursor?.length).toBeLessThanOrEqual(1_000);
        expect(new Cursors([current]).read(cursor as string, 'x')?.position).toEqual(position);
      }
    }
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

  test('of an earlier release is read', () => {
    const given = 'AXrD8SyW9wuv7FOox6IA8HVPzDS5wmXOAvZJVMXXct7udoiT9iOam_FVFKQF8YrccsbwJP92sfk5u3bkLtrOx5bkJBTDo-A';
    expect(cursors.read(given, 'user 1')).toEqual({ position: ['2026-01-01T00:00:00.001Z', 7], backwards: true, count: 123 });
    expect(cursors.read(given, 'user 2')).toBeUndefined();
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
