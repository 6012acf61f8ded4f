import { expect, test } from 'vitest';
import type { Principal } from '../auth/people/principal.ts';
import { parseRate } from './rate.ts';
import { budgetKey, throttleFaults, type ThrottleContext } from './throttle.ts';
import { anonymousThrottle, clientThrottle, scopedThrottle, tenantThrottle, userThrottle } from './throttles.ts';

const principal: Principal = {
  user: { id: 'u1', username: 'ada', email: null, is_active: true, is_staff: false, is_superuser: false },
  scheme: 'session',
  scopes: null,
};
const anonymous: ThrottleContext = { clientAddress: '2001:db8::1', principal: null, tenant: null, rates: {} };
const known: ThrottleContext = { ...anonymous, principal, tenant: 'acme' };

test('the user throttle measures users and lets anonymous requests pass', () => {
  expect(userThrottle('10/min').key(known)).toBe('u1');
  expect(userThrottle('10/min').key(anonymous)).toBeNull();
});

test('the anonymous throttle measures client addresses and lets users pass', () => {
  expect(anonymousThrottle('10/min').key(anonymous)).toBe('2001:db8:0:0::/64');
  expect(anonymousThrottle('10/min').key(known)).toBeNull();
});

test('the client throttle measures everyone, before authentication', () => {
  expect(clientThrottle('10/min').phase).toBe('client');
  expect(clientThrottle('10/min').key(known)).toBe('2001:db8:0:0::/64');
});

test('the tenant throttle shares one budget in a tenant and lets others pass', () => {
  expect(tenantThrottle('10/min').key(known)).toBe('acme');
  expect(tenantThrottle('10/min').key(anonymous)).toBeNull();
  expect(tenantThrottle('10/min', { tenant: ({ principal }) => principal?.user.username ?? null }).key(known)).toBe('ada');
});

test('the scoped throttle takes its rate from THROTTLE_RATES, per user or client', () => {
  const rates = { exports: parseRate('5/hour') };
  const throttle = scopedThrottle('exports');
  expect(throttle.rate({ ...known, rates })).toEqual(parseRate('5/hour'));
  expect(throttle.key(known)).toBe('user:u1');
  expect(throttle.key(anonymous)).toBe('client:2001:db8:0:0::/64');
});

test('a scope without a rate is found at start-up, and the fault names the known ones', () => {
  expect(throttleFaults([scopedThrottle('exports')], { imports: parseRate('1/s') })).toEqual([
    'THROTTLE_RATES has no rate named "exports"; it has imports. Add "exports": "<count>/<period>".',
  ]);
  expect(throttleFaults([scopedThrottle('constructor')], {})).toHaveLength(1);
  expect(throttleFaults([scopedThrottle('exports')], { exports: parseRate('1/s') })).toEqual([]);
});

test('two throttles of one name on a route are found at start-up', () => {
  expect(throttleFaults([userThrottle('10/s'), userThrottle('1000/day')], {})[0]).toContain('Two throttles are named "user"');
  expect(throttleFaults([userThrottle('10/s', { name: 'burst' }), userThrottle('1000/day', { name: 'sustained' })], {})).toEqual([]);
});

test('a bad rate or name fails where the throttle is written', () => {
  expect(() => userThrottle(['10', 'fortnight'].join('/'))).toThrow('use one of s, sec');
  expect(() => userThrottle({ count: 0, periodMs: 1000 })).toThrow('admits no request');
  expect(() => userThrottle('10/s', { name: 'a"b' })).toThrow("A throttle's name");
});

test('a budget belongs to its throttle and rate, and a hostile subject cannot make its key long', () => {
  const rate = parseRate('10/min');
  expect(budgetKey('user', 'u1', rate)).toBe('user:10/60000:u1');
  expect(budgetKey('user', 'u1', rate)).not.toBe(budgetKey('user', 'u1', parseRate('20/min')));
  expect(budgetKey('login', 'x'.repeat(10_000), rate).length).toBeLessThan(100);
  expect(budgetKey('login', 'x'.repeat(10_000), rate)).not.toBe(budgetKey('login', 'x'.repeat(10_001), rate));
});
