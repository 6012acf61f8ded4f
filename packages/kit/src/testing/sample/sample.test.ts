import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { expect, expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import type { JsonSchema } from './json-schema.ts';
import { sample } from './sample.ts';

const check = (schema: object, value: unknown): boolean => (Compile(schema) as unknown as { Check(value: unknown): boolean }).Check(value);

const orNothing = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined });
const clean = (schema: Record<string, unknown>): JsonSchema =>
  Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));
const bounds = (low: number, high: number): fc.Arbitrary<[number, number]> =>
  fc
    .tuple(fc.integer({ min: low, max: high }), fc.integer({ min: low, max: high }))
    .map(([left, right]) => [Math.min(left, right), Math.max(left, right)]);

const PATTERNS = [
  '^[a-z]+$',
  '^[A-Z]{3}-\\d{4}$',
  '^(foo|bar)(-(\\w+))*$',
  '\\d{2}',
  '^\\+?[1-9]\\d{6,14}$',
  '^[^\\s@]+@[^\\s@]+\\.[a-z]{2,3}$',
  '^(?:a|b){2,}c?$',
  '^(?<q>[ab])x\\k<q>$',
  '^\\p{Lu}\\p{Ll}*$',
  '^[\\w.-]{1,20}$',
  '^(?=.*\\d)[a-z\\d]{8}$',
];
const FORMATS = [
  'date-time',
  'date',
  'time',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'uri',
  'uuid',
  'json-pointer',
  'uri-reference',
  'uri-template',
  'regex',
];

const texts = fc.oneof(
  bounds(0, 60).map(([minLength, maxLength]) => ({ type: 'string', minLength, maxLength })),
  fc.constantFrom(...PATTERNS).map((pattern) => ({ type: 'string', pattern })),
  fc.constantFrom(...FORMATS).map((format) => ({ type: 'string', format })),
  fc.constant({ type: 'string', pattern: '^[a-z]+$', minLength: 30, maxLength: 40 }),
);
const numbers = fc
  .record({
    type: fc.constantFrom('integer', 'number'),
    range: orNothing(bounds(-5000, 5000)),
    multipleOf: orNothing(fc.constantFrom(1, 3, 5)),
    exclusive: fc.boolean(),
  })
  .map(({ type, range, multipleOf, exclusive }) => {
    if (range === undefined) return clean({ type, multipleOf });
    const [low, high] = [range[0], Math.max(range[1], range[0] + 12)];
    return clean(
      exclusive ? { type, exclusiveMinimum: low, exclusiveMaximum: high, multipleOf } : { type, minimum: low, maximum: high, multipleOf },
    );
  });
const scalars = fc.oneof(
  texts, numbers,
  fc.constantFrom<JsonSchema>({ type: 'boolean' }, { type: 'null' }, { const: 'fixed' }, { enum: ['a', 1, null] }, { type: ['string', 'null'], minLength: 2 }, { type: 'number', multipleOf: 0.01, minimum: 0, maximum: 20 }, { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 0.001 }),
); // prettier-ignore

const { schema: schemas } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    scalars,
    fc.record({ items: tie('schema'), length: bounds(0, 4), contains: fc.boolean() })
      .map(({ items, length: [minItems, maxItems], contains }) => clean({ type: 'array', items: contains ? true : items, minItems: Math.max(minItems, contains ? 1 : 0), maxItems: maxItems + 1, contains: contains ? { const: 'here' } : undefined })),
    fc.record({ first: tie('schema'), second: tie('schema') }).map(({ first, second }) => ({ type: 'array', prefixItems: [first, second], items: false, minItems: 2 })),
    fc.record({ properties: fc.dictionary(fc.constantFrom('id', 'name', 'total', 'note', '__proto__', 'constructor'), tie('schema'), { maxKeys: 4 }), optional: fc.nat(4), closed: fc.boolean() })
      .map(({ properties, optional, closed }) => clean({ type: 'object', properties, required: Object.keys(properties).slice(optional), additionalProperties: closed ? false : undefined })),
    fc.record({ values: tie('schema'), minProperties: fc.integer({ min: 0, max: 3 }) })
      .map(({ values, minProperties }) => ({ type: 'object', propertyNames: { pattern: '^[a-z]{3,9}$' }, additionalProperties: values, minProperties })),
    fc.tuple(tie('schema'), tie('schema')).map((anyOf) => ({ anyOf })),
    fc.tuple(tie('schema'), tie('schema')).map(([left, right]) => ({ oneOf: [{ type: 'object', properties: { kind: { const: 'left' }, left }, required: ['kind', 'left'] }, { type: 'object', properties: { kind: { const: 'right' }, right }, required: ['kind', 'right'] }] })),
  ),
})); // prettier-ignore

test('a sample satisfies every constraint of its schema, for any seed and any choice of optional fields', () => {
  fc.assert(
    fc.property(schemas, fc.nat(1000), fc.constantFrom('all', 'none', 'some'), (schema, seed, optional) => {
      const value = sample(schema, { seed, optional });
      expect({ schema, value, valid: check(schema, value) }).toMatchObject({ valid: true });
      // A payload is sent as JSON: it must survive the trip.
      expect(JSON.parse(JSON.stringify(value))).toEqual(value);
    }),
    { numRuns: 300 },
  );
});

test('the same seed gives the same sample, another seed another one', () => {
  const schema: JsonSchema = {
    type: 'object',
    properties: { id: { type: 'string', format: 'uuid' }, n: { type: 'integer' } },
    required: ['id', 'n'],
  };
  expect(sample(schema)).toEqual(sample(schema));
  expect(sample(schema, { seed: 2 })).not.toEqual(sample(schema, { seed: 3 }));
});

test('allOf, references, dependent fields, conditions, unique items and negations are honored', () => {
  const cases: JsonSchema[] = [
    { allOf: [{ type: 'object', properties: { a: { type: 'integer', minimum: 5 } }, required: ['a'] }, { properties: { a: { maximum: 6 } }, required: ['b'] }] },
    { $defs: { money: { type: 'string', pattern: '^\\d+\\.\\d{2}$' } }, type: 'array', items: { $ref: '#/$defs/money' }, minItems: 3 },
    { $defs: { tree: { type: 'object', properties: { left: { $ref: '#/$defs/tree' }, value: { type: 'integer' } }, required: ['value'] } }, $ref: '#/$defs/tree' },
    { $defs: { list: { anyOf: [{ type: 'object', properties: { next: { $ref: '#/$defs/list' } }, required: ['next'] }, { type: 'null' }] } }, $ref: '#/$defs/list' },
    { type: 'object', properties: { card: { type: 'string' }, name: { type: 'string' } }, required: ['card'], dependentRequired: { card: ['name'] } },
    // oxlint-disable-next-line unicorn/no-thenable -- `then` is a keyword of JSON Schema
    { type: 'object', properties: { a: { enum: [1, 2] } }, required: ['a'], if: { properties: { a: { const: 1 } } }, then: { required: ['b'] }, else: { required: ['c'] } },
    { type: 'array', items: { enum: ['x', 'y', 'z'] }, uniqueItems: true, minItems: 3, maxItems: 3 },
    { type: 'integer', minimum: 1, maximum: 3, not: { enum: [1, 3] } },
    { type: 'object', patternProperties: { '^x-': { type: 'integer' } }, additionalProperties: false, minProperties: 2 },
    { type: 'string', minLength: 5000 },
  ]; // prettier-ignore
  for (const schema of cases)
    for (const seed of [1, 2, 3, 4, 5]) expect({ schema, valid: check(schema, sample(schema, { seed })) }).toMatchObject({ valid: true });
});

test('a Zod schema is sampled by its own description, typed as its input', () => {
  const Order = z.strictObject({ email: z.email(), id: z.uuidv7(), at: z.iso.datetime(), total: z.string().regex(/^\d{1,10}\.\d{2}$/), tags: z.array(z.string().min(2)).min(1), kind: z.enum(['a', 'b']), note: z.string().optional(), link: z.url(), ip: z.ipv4(), price: z.number().positive().multipleOf(0.01) }); // prettier-ignore
  for (let seed = 0; seed < 200; seed += 1) {
    const order = sample(Order, { seed, optional: 'some' });
    expectTypeOf(order).toEqualTypeOf<z.input<typeof Order>>();
    expect({ order, error: Order.safeParse(order).error }).toEqual({ order, error: undefined });
  }
  expect(sample(Order, { optional: 'none' })).not.toHaveProperty('note');
});

test('a schema nothing satisfies, or that requires itself without end, is an error that says so', () => {
  expect(() => sample({ type: 'integer', minimum: 3, maximum: 2 })).toThrow('No integer lies between 3 and 2');
  expect(() => sample({ enum: ['a'], not: { const: 'a' } })).toThrow('No sample was found');
  expect(() =>
    sample({ $defs: { a: { type: 'object', properties: { a: { $ref: '#/$defs/a' } }, required: ['a'] } }, $ref: '#/$defs/a' }),
  ).toThrow('without an end');
  expect(() => sample(false)).toThrow('allows no value');
});
