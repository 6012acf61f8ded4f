import { expect, test } from 'vitest';
import { keyState } from './state.ts';

const now = new Date('2030-01-01T12:00:00.000Z');
const at = (ms: number) => new Date(now.getTime() + ms);

test.each([
  [{ revoked_at: null, expires_at: null, owner_is_active: true }, 'active'],
  [{ revoked_at: null, expires_at: at(1), owner_is_active: true }, 'active'],
  [{ revoked_at: null, expires_at: at(0), owner_is_active: true }, 'expired'],
  [{ revoked_at: null, expires_at: at(-1), owner_is_active: false }, 'expired'],
  [{ revoked_at: at(-1), expires_at: at(-1), owner_is_active: false }, 'revoked'],
  [{ revoked_at: null, expires_at: null, owner_is_active: false }, 'owner_inactive'],
] as const)('%o is %s', (facts, state) => {
  expect(keyState(facts, now)).toBe(state);
});
