import { expect, test } from 'vitest';
import { withoutKeys } from './without-keys.ts';

const keyOf = (tag: string) => `${tag}_a1B2c3D4e5F6_${'S'.repeat(43)}${'C'.repeat(6)}`;

test('of every key in a text only tag and prefix are left', () => {
  const [kit, acme] = [keyOf('kit'), keyOf('acme')];
  expect(withoutKeys(`/keys/${kit}/x?${acme}`)).toBe('/keys/kit_a1B2c3D4e5F6_…/x?acme_a1B2c3D4e5F6_…');
  expect(withoutKeys(`my${kit}9`)).toBe('mykit_a1B2c3D4e5F6_…9');
});

test.each(['', 'a_b', '/v1/orders/01890000-0000-7000-8000-000000000000', `kit_a1B2c3D4e5F6_${'S'.repeat(48)}`])('%j stays', (text) => {
  expect(withoutKeys(text)).toBe(text);
});
