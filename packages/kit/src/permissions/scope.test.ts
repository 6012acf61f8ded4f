import { expect, test } from 'vitest';
import { isConcreteScope, isScope, normaliseScopes, scopeCovers } from './scope.ts';

test.each(['*', 'orders:*', 'orders:read', 'a.b-c_1:x.y-z_2', `${'r'.repeat(64)}:${'a'.repeat(64)}`])('%s is a scope', (scope) => {
  expect(isScope(scope)).toBe(true);
});

test.each([
  '',
  'orders',
  ':read',
  'orders:',
  '*:read',
  '*:*',
  'Orders:read',
  'orders:read:all',
  'orders: read',
  'orders:*x',
  `${'r'.repeat(65)}:read`,
  'orders:read\n',
  7,
  null,
])('%j is not a scope', (scope) => {
  expect(isScope(scope)).toBe(false);
});

test('a wildcard is covered only by an equal or wider wildcard', () => {
  expect(scopeCovers(['orders:*'], 'orders:*')).toBe(true);
  expect(scopeCovers(['*'], 'orders:*')).toBe(true);
  expect(scopeCovers(['orders:read', 'orders:write'], 'orders:*')).toBe(false);
  expect(scopeCovers(['orders:*', 'invoices:*'], '*')).toBe(false);
  expect(scopeCovers(['*'], '*')).toBe(true);
});

test('a resource that begins like another is another', () => {
  expect(scopeCovers(['order:*'], 'orders:read')).toBe(false);
  expect(scopeCovers(['orders:rea'], 'orders:read')).toBe(false);
});

test('an operation requires a concrete scope', () => {
  expect([isConcreteScope('orders:read'), isConcreteScope('orders:*'), isConcreteScope('*')]).toEqual([true, false, false]);
});

test('the stored form is sorted and without repeats', () => {
  expect(normaliseScopes(['b:x', 'a:x', 'b:x'])).toEqual(['a:x', 'b:x']);
});
