import { expect, test } from 'vitest';
import { fieldFaults, type KeyFields } from './field-rules.ts';

const now = new Date('2030-01-01T00:00:00.000Z');
const places = (fields: KeyFields) => fieldFaults(fields, now).map(({ location, code }) => `${location.join('.')} ${code}`);

test.each<[KeyFields, string[]]>([
  [{ name: 'CI', scopes: ['orders:read', 'orders:*', '*'], expiresAt: null, rateLimit: null }, []],
  [{ name: 'x'.repeat(100), scopes: [], expiresAt: new Date(now.getTime() + 1), rateLimit: '20/5min' }, []],
  [{ name: '' }, ['body.name invalid_name']],
  [{ name: '   ' }, ['body.name invalid_name']],
  [{ name: 'x'.repeat(101) }, ['body.name invalid_name']],
  [{ name: 'a\nb' }, ['body.name invalid_name']],
  [{ name: 'CI \u202egnp.exe' }, ['body.name invalid_name']],
  [{ name: 'CI\u200b' }, ['body.name invalid_name']],
  [{ name: 'CI\u2028x' }, ['body.name invalid_name']],
  [{ name: `CI kit_${'p'.repeat(12)}_${'s'.repeat(49)}` }, ['body.name invalid_name']],
  [{ name: 7 }, ['body.name invalid_name']],
  [{ scopes: 'orders:read' }, ['body.scopes invalid_scopes']],
  [
    { scopes: ['ok:read', 'Orders:read', 'orders', 'orders:', ':read', '*:read', 'a:b:c', 'ü:x', `${'x'.repeat(65)}:a`, 3] },
    [1, 2, 3, 4, 5, 6, 7, 8, 9].map((index) => `body.scopes.${index} invalid_scope`),
  ],
  [{ scopes: Array.from({ length: 101 }, () => 'a:b') }, ['body.scopes too_many']],
  [{ expiresAt: now }, ['body.expires_at in_the_past']],
  [{ expiresAt: new Date('nonsense') }, ['body.expires_at invalid_date']],
  [{ expiresAt: new Date('9999-12-31T23:59:59.999Z') }, []],
  [{ expiresAt: new Date('9999-12-31T23:59:59.999-00:01') }, ['body.expires_at invalid_date']],
  [{ expiresAt: 'tomorrow' as unknown as Date }, ['body.expires_at invalid_date']],
  [{ rateLimit: '10/fortnight' }, ['body.rate_limit invalid_rate']],
  [{ graceSeconds: -1 }, ['body.grace_seconds out_of_range']],
  [{ graceSeconds: 1.5 }, ['body.grace_seconds out_of_range']],
  [
    { name: '', scopes: ['!'], expiresAt: new Date(0), rateLimit: 'x' },
    ['body.name invalid_name', 'body.scopes.0 invalid_scope', 'body.expires_at in_the_past', 'body.rate_limit invalid_rate'],
  ],
])('%o has the faults %j, all at once', (fields, faults) => {
  expect(places(fields)).toEqual(faults);
});
