import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { page } from '../declare/page.ts';
import { jsonSchemaOf, type Schema } from '../declare/schema.ts';
import { compileSerializer } from './project.ts';

function sent(schema: Schema, value: unknown): unknown {
  return JSON.parse(compileSerializer(jsonSchemaOf(schema, 'output'))(value));
}

const hash = { password_hash: 'scrypt$secret' };

describe('only declared members leave', () => {
  const User = z.object({ id: z.string(), profile: z.object({ city: z.string() }).nullable().optional() });

  test('from rows, nested rows, lists and pages', () => {
    const row = { id: '1', ...hash, profile: { city: 'Rome', ...hash } };
    const out = { id: '1', profile: { city: 'Rome' } };
    expect(sent(User, row)).toEqual(out);
    expect(sent(z.array(User), [row, { id: '2', profile: null, ...hash }])).toEqual([out, { id: '2', profile: null }]);
    expect(sent(page(User), { items: [row], count: 1, total_secret: 1 })).toEqual({ items: [out], count: 1 });
    expect(sent(z.tuple([User, z.string()]), [row, 'x'])).toEqual([out, 'x']);
  });

  test('from unions: the alternative the discriminator names, else the declared members of all', () => {
    const tagged = z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('a'), x: z.number() }),
      z.object({ kind: z.literal('b'), y: z.number() }),
    ]);
    expect(sent(tagged, { kind: 'a', x: 1, y: 2, ...hash })).toEqual({ kind: 'a', x: 1 });
    expect(sent(tagged, { kind: 'b', x: 1, y: 2, ...hash })).toEqual({ kind: 'b', y: 2 });
    expect(sent(tagged, { kind: 'undeclared', x: 1, ...hash })).toEqual({ kind: 'undeclared', x: 1 });
    expect(sent(z.union([z.object({ a: z.number() }), z.object({ b: z.number() })]), { b: 1, ...hash })).toEqual({ b: 1 });
    expect(sent(z.union([z.string(), z.array(User)]), [{ id: '1', ...hash }])).toEqual([{ id: '1' }]);
  });

  test('from lists of several kinds, unions inside unions and members that alternatives share', () => {
    const Named = z.object({ name: z.string() });
    const lists = z.union([z.array(User), z.array(Named)]);
    expect(sent(lists, [{ id: '1', ...hash }])).toEqual([{ id: '1' }]);
    expect(sent(lists, [{ name: 'x', ...hash }])).toEqual([{ name: 'x' }]);
    expect(sent(z.union([z.tuple([z.string()]), z.array(Named)]), ['x', { name: 'y', ...hash }])).toEqual(['x', { name: 'y' }]);
    const nested = z.union([z.string(), z.union([z.array(User), Named])]);
    expect(sent(nested, [{ id: '1', ...hash }])).toEqual([{ id: '1' }]);
    expect(sent(nested, { name: 'x', ...hash })).toEqual({ name: 'x' });
    const shared = z.union([z.object({ data: z.object({ a: z.number() }) }), z.object({ data: z.object({ b: z.number() }) })]);
    expect(sent(shared, { data: { a: 1, ...hash } })).toEqual({ data: { a: 1 } });
    expect(sent(shared, { data: { b: 1, ...hash } })).toEqual({ data: { b: 1 } });
    expect(sent(z.union([z.string(), z.unknown()]), { any: [1] })).toEqual({ any: [1] });
  });

  test('from a recursive union whose alternatives share members', () => {
    const Tree = z.union([
      z.object({
        get left() {
          return Tree.nullable();
        },
      }),
      z.object({
        get left() {
          return Tree;
        },
        leaf: z.number(),
      }),
    ]) as z.ZodType;
    expect(sent(Tree, { left: { left: null, ...hash, leaf: 1 }, ...hash })).toEqual({ left: { left: null, leaf: 1 } });
  });

  test('from values of another shape than declared', () => {
    const Flat = z.object({ text: z.string(), count: z.number().nullable(), at: z.iso.datetime(), kind: z.enum(['a']), is: z.boolean() });
    expect(sent(Flat, { text: hash, count: hash, at: hash, kind: [hash], is: { toJSON: () => hash } })).toEqual({});
    expect(sent(User.nullable(), [{ id: '1', ...hash }])).toBeNull();
    expect(sent(User.nullable(), { toJSON: () => hash })).toBeNull();
    expect(sent(z.object({ link: z.string() }), { link: new URL('https://example.org/a') })).toEqual({ link: 'https://example.org/a' });
    expect(sent(z.object({ user: User }), { user: [hash] })).toEqual({});
    expect(sent(z.object({ name: z.string() }), { name: 'x' })).toEqual({ name: 'x' });
    expect(sent(User, null)).toBeNull();
  });

  test('from recursive schemas', () => {
    const Node = z.object({
      name: z.string(),
      get children() {
        return z.array(Node);
      },
    });
    const tree = { name: 'a', ...hash, children: [{ name: 'b', ...hash, children: [] }] };
    expect(sent(Node, tree)).toEqual({ name: 'a', children: [{ name: 'b', children: [] }] });
  });

  test('and a schema that is open stays open', () => {
    expect(sent(z.looseObject({ a: z.object({ b: z.number() }) }), { a: { b: 1, ...hash }, c: 2 })).toEqual({ a: { b: 1 }, c: 2 });
    expect(sent(z.record(z.string(), User), { k: { id: '1', ...hash } })).toEqual({ k: { id: '1' } });
    expect(sent(z.unknown(), { any: [1] })).toEqual({ any: [1] });
  });
});

test('what JSON has no word for is written as text: dates, bigints, bytes', () => {
  const schema = z.object({ at: z.iso.datetime(), big: z.string(), bytes: z.string(), open: z.unknown() });
  const value = { at: new Date('2026-01-02T03:04:05.678Z'), big: 12345678901234567890n, bytes: Buffer.from('hi'), open: { big: 7n } };
  expect(sent(schema, value)).toEqual({ at: '2026-01-02T03:04:05.678Z', big: '12345678901234567890', bytes: 'aGk=', open: { big: '7' } });
});

test('member names are quoted into the generated source, never executed', () => {
  const name = '"];globalThis.hacked=true;//';
  expect(sent(z.object({ [name]: z.string(), __proto__: z.string() }), { [name]: 'x' })).toEqual({ [name]: 'x' });
  expect(globalThis).not.toHaveProperty('hacked');
});
