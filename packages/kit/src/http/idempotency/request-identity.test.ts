import { describe, expect, test } from 'vitest';
import type { Principal } from '../../auth/people/principal.ts';
import { fingerprintOf, type IdentifiedRequest, scopeHash } from './request-identity.ts';

const user = { id: 'ann', username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
const principal = (more: Partial<Principal> = {}): Principal => ({ user, scheme: 'session', scopes: null, ...more });
const request = (more: Partial<IdentifiedRequest> = {}): IdentifiedRequest => ({
  principal: principal(),
  anonymous: undefined,
  tenant: 'north',
  operationId: 'order_create',
  method: 'POST',
  url: '/v1/orders?b=2&a=1',
  body: { item: 'x', nested: { a: 1, b: [1, 2] } },
  declared: [['north'], [['dark']]],
  ...more,
});

describe('whose key it is', () => {
  const own = scopeHash(request(), 'key');

  test.each<[string, Partial<IdentifiedRequest>]>([
    ['user', { principal: principal({ user: { ...user, id: 'bob' } }) }],
    ['kind of credential', { principal: principal({ scheme: 'api_key', credentialId: 'k1' }) }],
    ['tenant', { tenant: 'south' }],
    ['no tenant', { tenant: null }],
    ['operation', { operationId: 'order_bulk_create' }],
    ['path', { url: '/v2/orders?b=2&a=1' }],
    ['anonymous caller', { principal: null, anonymous: '127.0.0.1' }],
  ])('another %s has a key of its own', (_, more) => {
    expect(scopeHash(request(more), 'key')).not.toBe(own);
  });

  test('two API keys of one user are two callers; two sessions of one user are one', () => {
    const by = (scheme: string, credentialId: string) => scopeHash(request({ principal: principal({ scheme, credentialId }) }), 'key');
    expect(by('api_key', 'k1')).not.toBe(by('api_key', 'k2'));
    expect(by('session', 's1')).toBe(by('session', 's2'));
  });

  test('two anonymous callers that are told apart are two; parameters of the query do not matter', () => {
    const of = (anonymous: string) => scopeHash(request({ principal: null, anonymous }), 'key');
    expect(of('a')).not.toBe(of('b'));
    expect(scopeHash(request({ url: '/v1/orders?c=3' }), 'key')).toBe(own);
    // The server takes both for one address: a repetition with a slash must not be done again.
    expect(scopeHash(request({ url: '/v1/orders/?c=3' }), 'key')).toBe(own);
    expect(scopeHash(request(), 'another')).not.toBe(own);
  });
});

describe('whether it is the same request', () => {
  const own = fingerprintOf(request());

  test('the order of parameters and members does not matter', () => {
    expect(fingerprintOf(request({ url: '/v1/orders?a=1&b=2' }))).toBe(own);
    expect(fingerprintOf(request({ url: '/v1/orders/?a=1&b=2' }))).toBe(own);
    expect(fingerprintOf(request({ body: { nested: { b: [1, 2], a: 1 }, item: 'x' } }))).toBe(own);
  });

  test.each<[string, Partial<IdentifiedRequest>]>([
    ['method', { method: 'DELETE' }],
    ['path', { url: '/v1/order?b=2&a=1' }],
    ['declared header', { declared: [['south'], [['dark']]] }],
    ['declared cookie', { declared: [['north'], [['light']]] }],
    ['declared cookie, absent', { declared: [['north'], [undefined]] }],
    ['parameter', { url: '/v1/orders?b=2&a=2' }],
    ['body', { body: { item: 'y', nested: { a: 1, b: [1, 2] } } }],
    ['order of a list', { body: { item: 'x', nested: { a: 1, b: [2, 1] } } }],
    ['kind of value', { body: { item: 'x', nested: { a: '1', b: [1, 2] } } }],
    ['body without JSON', { body: Buffer.from('{}') }],
  ])('another %s is another request', (_, more) => {
    expect(fingerprintOf(request(more))).not.toBe(own);
  });

  test('bytes are compared as bytes', () => {
    const of = (text: string) => fingerprintOf(request({ body: Buffer.from(text) }));
    expect(of('a,b')).toBe(of('a,b'));
    expect(of('a,b')).not.toBe(of('a,c'));
  });
});
