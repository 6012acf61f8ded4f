import { judge } from '../../../auth/rights/standing.ts';

/** Why a key works or not. A key has one state at a time; the first that applies in this order: revoked, expired, owner_inactive, active. */
export const KEY_STATES = ['active', 'expired', 'revoked', 'owner_inactive'] as const;
export type KeyState = (typeof KEY_STATES)[number];

export interface StateFacts {
  readonly revoked_at: Date | null;
  readonly expires_at: Date | null;
  /** False also when the owner is gone. */
  readonly owner_is_active: boolean;
}

/** Expiry and the owner change without a write to the key, so the state is never stored. At `expires_at` itself the key is expired. */
export function keyState({ revoked_at, expires_at, owner_is_active }: StateFacts, now: Date): KeyState {
  if (revoked_at !== null) return 'revoked';
  if (expires_at !== null && expires_at.getTime() <= now.getTime()) return 'expired';
  const why = judge({ user: { is_active: owner_is_active }, wasDeleted: false, membership: undefined });
  return why === null ? 'active' : 'owner_inactive';
}
