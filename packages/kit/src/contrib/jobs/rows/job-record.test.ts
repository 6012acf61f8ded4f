import { expect, test } from 'vitest';
import { masked } from './job-record.ts';

test('sensitive members are masked at any depth; escaped keys keep their names, and null is shown', () => {
  const sensitive = new Set(['token', '0']);
  expect(masked('{"a":[{"token":{"b":1}},{"token":null}],"token":0}', sensitive)).toEqual({
    a: [{ token: '***' }, { token: null }],
    token: '***',
  });
  // After it, JSON.parse would give the key \n of the next one the name \.
  masked(String.raw`{"x":1,"\\":2}`, sensitive);
  expect(masked(String.raw`{"x":1,"\n":{"token":3}}`, sensitive)).toEqual({ x: 1, '\n': { token: '***' } });
  expect(Object.keys(masked('{"__proto__":{"token":1}}', sensitive) as object)).toEqual(['__proto__']);
});

test('nothing of a job that this code does not know is shown, and an input that was undefined is null', () => {
  expect(masked('{"a":1}', null)).toBe('***');
  expect(masked('', new Set())).toBeNull();
});
