import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { FieldError } from '../../errors/kit-error.ts';
import { jsonSchemaOf, type Schema } from '../declare/schema.ts';
import { compileUnknownFields } from './unknown-fields.ts';

function unknownIn(schema: Schema, value: unknown): string[] {
  const faults: FieldError[] = [];
  compileUnknownFields(jsonSchemaOf(schema, 'input'))?.(value, ['body'], faults);
  return faults.map(({ location, message }) => `${location.join('.')}: ${message}`);
}

describe('a member the schema does not know', () => {
  test('is found at any depth, with a hint where one is near', () => {
    const schema = z.object({
      name: z.string(),
      lines: z.array(z.object({ quantity: z.number() })),
      tuple: z.tuple([z.object({ a: z.string() })]),
    });
    expect(unknownIn(schema, { nmae: 1, lines: [{ quantity: 1 }, { quantitiy: 2, x: 3 }], tuple: [{ b: 1 }] })).toEqual([
      'body.nmae: Unknown field. Did you mean "name"?',
      'body.lines.1.quantitiy: Unknown field. Did you mean "quantity"?',
      'body.lines.1.x: Unknown field.',
      'body.tuple.0.b: Unknown field. Did you mean "a"?',
    ]);
  });

  test('is welcome where the author says so', () => {
    expect(unknownIn(z.looseObject({ a: z.string() }), { b: 1 })).toEqual([]);
    expect(unknownIn(z.object({ a: z.string() }).catchall(z.object({ x: z.number() })), { b: { y: 1 } })).toEqual([
      'body.b.y: Unknown field. Did you mean "x"?',
    ]);
    expect(unknownIn(z.record(z.string(), z.number()), { anything: 1 })).toEqual([]);
    expect(unknownIn(z.unknown(), { anything: 1 })).toEqual([]);
    expect(unknownIn(z.object({}), { anything: 1 })).toEqual(['body.anything: Unknown field.']);
  });

  test('in a union is judged by the alternative the discriminator names, else by the one with the fewest complaints', () => {
    const tagged = z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('card'), number: z.string() }),
      z.object({ kind: z.literal('cash') }),
    ]);
    expect(unknownIn(tagged, { kind: 'cash', number: '4' })).toEqual(['body.number: Unknown field.']);
    expect(unknownIn(tagged, { kind: 'card', number: '4' })).toEqual([]);
    const loose = z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]).nullable();
    expect(unknownIn(loose, { b: 'x' })).toEqual([]);
    expect(unknownIn(loose, { b: 'x', c: 1 })).toEqual(['body.c: Unknown field. Did you mean "b"?']);
    expect(unknownIn(loose, null)).toEqual([]);
  });

  test('in unions inside unions is looked for once, however deep the body', () => {
    type Wish = { kind: string; of?: Wish | undefined };
    const Wish: z.ZodType<Wish> = z.discriminatedUnion('kind', [
      z.object({
        kind: z.literal('not'),
        get of() {
          return Wish.optional();
        },
      }),
      z.object({
        kind: z.literal('maybe'),
        get of() {
          return Wish.optional();
        },
      }),
    ]);
    let looks = 0;
    let body: object = { kind: 'x', extra: 1 };
    for (let depth = 0; depth < 16; depth += 1) {
      const inner = body;
      body = Object.defineProperty({ kind: 'x' }, 'of', {
        enumerable: true,
        get: () => {
          looks += 1;
          return inner;
        },
      });
    }
    expect(unknownIn(Wish, body)).toEqual([`body${'.of'.repeat(16)}.extra: Unknown field.`]);
    expect(looks).toBeLessThan(100);
  });

  test('is found in intersections and recursive schemas', () => {
    const both = z.intersection(z.object({ a: z.string() }), z.object({ b: z.string() }));
    expect(unknownIn(both, { a: '', b: '', cccc: 1 })).toEqual(['body.cccc: Unknown field.']);
    const Node = z.object({
      name: z.string(),
      get children() {
        return z.array(Node);
      },
    });
    expect(unknownIn(Node, { name: '', children: [{ name: '', children: [{ name: '', children: [], extra: 1 }] }] })).toEqual([
      'body.children.0.children.0.extra: Unknown field.',
    ]);
  });
});
