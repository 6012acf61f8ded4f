import { expect, test } from 'vitest';
import type { RouteSchema } from '../http/exchange/compiled-route.ts';
import { declaredQueryNames, isSensitiveName, maskedPath } from './masking.ts';

const schema = (properties: object): RouteSchema => ({ schema: undefined as never, json: { type: 'object', properties } });

test.each([
  'password',
  'new_password',
  'client_secret',
  'access_token',
  'X-API-Key',
  'apikey',
  'authorization',
  'Cookie',
  'session_id',
  'signature',
  'code',
  'otp',
  'passphrase',
])('%s is a name that holds a credential', (name) => {
  expect(isSensitiveName(name)).toBe(true);
});

test.each(['id', 'page', 'country_code', 'keyboard', 'author', 'zip_code', 'monkey'])('%s is an ordinary name', (name) => {
  expect(isSensitiveName(name)).toBe(false);
});

test('a parameter that holds a credential is masked in the path, by its name or by its schema', () => {
  expect(maskedPath('/reset/s3cret/done', '/reset/:token/done', undefined)).toBe('/reset/[masked]/done');
  expect(maskedPath('/x/s3cret', '/x/:handle', schema({ handle: { 'x-sensitive': true } }))).toBe('/x/[masked]');
  expect(maskedPath('http://h.example/reset/s3cret/done', '/reset/:token/done', undefined)).toBe('/reset/[masked]/done');
  expect(maskedPath('/orders/7', '/orders/:id', schema({ id: {} }))).toBe('/orders/7');
});

test('of a query string only declared names are told, never values and never undeclared names', () => {
  const query = schema({ page: {}, search: {} });
  expect(declaredQueryNames('/orders?search=alice&page=2&sk_live_123=&page=3', query)).toEqual(['page', 'search']);
  expect(declaredQueryNames('/orders', query)).toEqual([]);
  expect(declaredQueryNames('/orders?token=abc', undefined)).toEqual([]);
  expect(declaredQueryNames('/orders?%ff%fe=1&constructor=2', query)).toEqual([]);
});
