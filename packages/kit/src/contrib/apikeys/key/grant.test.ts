import { expect, test } from 'vitest';
import { defaultGrantable, grantFaults } from './grant.ts';

test.each([
  [['orders:read'], ['orders:read'], []],
  [['orders:read'], ['orders:*'], []],
  [['orders:*'], ['orders:*'], []],
  [['orders:*'], ['orders:read', 'orders:write'], [0]],
  [['*'], ['orders:*'], [0]],
  [['*'], ['*'], []],
  [['orders:read', 'invoices:read', 'users:*'], ['orders:*'], [1, 2]],
  [['orders:read'], [], [0]],
])('granting %j from %j has faults at %j', (scopes, grantable, faults) => {
  expect(grantFaults(scopes, grantable).map(({ location }) => location)).toEqual(faults.map((index) => ['body', 'scopes', index]));
});

test('by default a user grants what routes ask for, and only staff grants wildcards', () => {
  const routes = ['invoices:read', 'orders:read'];
  expect(grantFaults(['orders:read'], defaultGrantable(routes, { is_staff: false }))).toEqual([]);
  expect(grantFaults(['orders:*', '*', 'users:read'], defaultGrantable(routes, { is_staff: false }))).toHaveLength(3);
  expect(grantFaults(['orders:*', '*'], defaultGrantable(routes, { is_staff: true }))).toEqual([]);
});
