import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  isSensitiveAt,
  marksSensitive,
  maskedSentence,
  schemaWithoutSensitive,
  sensitiveNames,
  withoutSensitive,
} from './sensitive-members.ts';

const secret = z.string().meta({ 'x-sensitive': true });
interface Tree {
  readonly pin?: string | undefined;
  readonly children?: readonly Tree[] | undefined;
}
const tree: z.ZodType<Tree> = z.object({
  pin: secret.optional(),
  get children() {
    return z.array(tree).optional();
  },
});
const schema = z.toJSONSchema(
  z.object({
    name: z.string(),
    card: z.object({ number: secret, holder: z.string() }),
    keys: z.array(z.object({ label: z.string(), value: secret })),
    codes: z.array(secret),
    login: z.union([z.object({ kind: z.literal('a'), token: secret }), z.object({ kind: z.literal('b'), certificate: z.string() })]),
    byName: z.record(z.string(), secret),
    tree,
  }),
);
const value = {
  name: 'Ada',
  card: { number: '4111-1111', holder: 'Ada' },
  keys: [
    { label: 'x', value: 'key-one' },
    { label: 'y', value: 'key-two' },
  ],
  codes: ['code-1', 'code-2'],
  login: { kind: 'a', token: 'tok-123' },
  byName: { one: 'r-one' },
  tree: { pin: 'pin-1', children: [{ pin: 'pin-2', children: [] }] },
};
const secrets = ['4111-1111', 'key-one', 'key-two', 'code-1', 'code-2', 'tok-123', 'r-one', 'pin-1', 'pin-2'];

describe('sensitive members of a schema', () => {
  test('are found at any depth: in objects, lists, unions, records and recursive schemas', () => {
    expect(marksSensitive(schema)).toBe(true);
    expect(marksSensitive(z.toJSONSchema(z.object({ name: z.string() })))).toBe(false);
    expect(sensitiveNames(schema).toSorted()).toEqual(['number', 'pin', 'token', 'value']);
    for (const path of [
      ['card', 'number'],
      ['keys', 1, 'value'],
      ['codes', 0],
      ['login', 'token'],
      ['byName', 'any'],
      ['tree', 'children', 0, 'children', 3, 'pin'],
    ])
      expect([path, isSensitiveAt(schema, path)]).toEqual([path, true]);
    for (const path of [
      [],
      ['name'],
      ['card'],
      ['card', 'holder'],
      ['keys', 0, 'label'],
      ['login', 'certificate'],
      ['tree'],
      ['nowhere', 'number'],
    ])
      expect([path, isSensitiveAt(schema, path)]).toEqual([path, false]);
    expect(isSensitiveAt({ type: 'object', properties: { all: { 'x-sensitive': true, type: 'object' } } }, ['all', 'below'])).toBe(true);
  });

  test('are left out of a copy, or masked in it; the value itself stays as it is', () => {
    const before = structuredClone(value);
    const shown = JSON.stringify(withoutSensitive(schema, value));
    const masked = JSON.stringify(withoutSensitive(schema, value, '***'));
    for (const text of secrets) {
      expect(shown).not.toContain(text);
      expect(masked).not.toContain(text);
    }
    expect(JSON.parse(shown)).toEqual({
      name: 'Ada',
      card: { holder: 'Ada' },
      keys: [{ label: 'x' }, { label: 'y' }],
      codes: [],
      login: { kind: 'a' },
      byName: {},
      tree: { children: [{ children: [] }] },
    });
    expect(JSON.parse(masked)).toMatchObject({ card: { number: '***', holder: 'Ada' }, codes: ['***', '***'], byName: { one: '***' } });
    expect(value).toEqual(before);
    expect(withoutSensitive(schema, null)).toBeNull();
  });

  test('a member named __proto__ stays a plain member', () => {
    const given = JSON.parse('{"__proto__":{"number":"x"},"name":"Ada"}') as unknown;
    const shown = withoutSensitive(schema, given);
    expect(Object.getPrototypeOf(shown)).toBe(Object.prototype);
    expect(Object.keys(shown as object)).toEqual(['__proto__', 'name']);
  });

  test('are neither described nor required in the schema of what is shown', () => {
    const text = JSON.stringify(
      schemaWithoutSensitive(z.toJSONSchema(z.object({ card: z.object({ number: secret, holder: z.string() }) }))),
    );
    expect(text).not.toContain('number');
    expect(text).toContain('holder');
  });

  test('do not appear in a sentence about the value', () => {
    const sentence = `Not valid: ${secrets.join(', ')} of Ada.`;
    expect(maskedSentence(schema, value, sentence, '[masked]')).toBe(`Not valid: ${secrets.map(() => '[masked]').join(', ')} of Ada.`);
  });
});
