import { expect, test } from 'vitest';
import { asDefinition, withRootDefinitions } from './root-definitions.ts';

const money = { type: 'object', properties: { amount: { type: 'string' } } };
const part = (name: string, schema: object) => ({ $ref: `#/$defs/${name}`, $defs: { [name]: schema } });

test('definitions of parts are found from the root; the same one is there once', () => {
  const json = { type: 'object', properties: { price: part('Money', money), parts: { type: 'array', items: part('Money', money) } } };
  expect(withRootDefinitions(json)).toEqual({
    type: 'object',
    properties: { price: { $ref: '#/$defs/Money' }, parts: { type: 'array', items: { $ref: '#/$defs/Money' } } },
    $defs: { Money: money },
  });
});

test('two definitions of one name get two names, also where only what they refer to differs', () => {
  const row = { type: 'object', properties: { money: { $ref: '#/$defs/Money' } } };
  const inRow = (each: object) => ({ $ref: '#/$defs/Row', $defs: { Row: row, Money: each } });
  const json = { anyOf: [inRow(money), inRow({ type: 'string' })] };
  expect(withRootDefinitions(json)).toEqual({
    anyOf: [{ $ref: '#/$defs/Row' }, { $ref: '#/$defs/Row_2' }],
    $defs: {
      Row: row,
      Money: money,
      Row_2: { type: 'object', properties: { money: { $ref: '#/$defs/Money_2' } } },
      Money_2: { type: 'string' },
    },
  });
});

test('definitions inside of definitions, and references to those around them, are followed', () => {
  const json = {
    $ref: '#/$defs/Card',
    $defs: {
      Card: { type: 'object', properties: { price: part('Money', money), owner: { $ref: '#/$defs/Owner' } } },
      Owner: { type: 'object' },
    },
  };
  expect(withRootDefinitions(json)).toEqual({
    $ref: '#/$defs/Card',
    $defs: {
      Card: { type: 'object', properties: { price: { $ref: '#/$defs/Money' }, owner: { $ref: '#/$defs/Owner' } } },
      Owner: { type: 'object' },
      Money: money,
    },
  });
});

test('a schema without any of this is the same object; values and members that are called like keywords stay', () => {
  const json = {
    type: 'object',
    properties: { $ref: { type: 'string' }, $defs: { type: 'object' }, kind: { const: { $ref: '#', $defs: {} } } },
    $defs: { Money: money },
  };
  expect(withRootDefinitions(json)).toBe(json);
  expect(asDefinition(json)).toBe(json);
});

test('a schema that refers to its root becomes a definition', () => {
  const tree = (reference: string) => ({ type: 'object', properties: { children: { type: 'array', items: { $ref: reference } } } });
  const self = tree('#/$defs/__schema');
  expect(asDefinition({ ...tree('#'), $defs: { Leaf: tree('#') } })).toEqual({
    $ref: '#/$defs/__schema',
    $defs: { Leaf: self, __schema: self },
  });
});
