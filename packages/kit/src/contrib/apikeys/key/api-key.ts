import { keyState, type KeyState } from './state.ts';

/** Of a key that acts in every tenant of its owner, because a program said so. Over HTTP nobody makes one. */
export const EVERY_TENANT = '*';

/** A key as programs see it. Neither the secret nor its digest is part of it. */
export interface ApiKey {
  readonly id: string;
  readonly owner_id: string;
  /** The tenant that the key acts in, and in no other. Empty: in none; `*`: in every tenant of its owner. Null: the same, not chosen. */
  readonly tenant_id: string | null;
  readonly name: string;
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly rate_limit: string | null;
  readonly quota: string | null;
  readonly created_at: Date;
  readonly last_used_at: Date | null;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly revoked_reason: string | null;
  /** Until when the secret from before the last rotation works; null when that rotation had no grace. */
  readonly previous_expires_at: Date | null;
  readonly previous_last_used_at: Date | null;
  /** False also when the owner is gone. */
  readonly owner_is_active: boolean;
}

/** A key on the wire: the answer of every management call. */
export interface ApiKeyRecord {
  readonly id: string;
  readonly tenant_id: string | null;
  readonly name: string;
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly rate_limit: string | null;
  readonly quota: string | null;
  readonly created_at: Date;
  readonly last_used_at: Date | null;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly previous_expires_at: Date | null;
  readonly previous_last_used_at: Date | null;
  readonly state: KeyState;
}

export function apiKeyRecord(key: ApiKey, now: Date): ApiKeyRecord {
  return {
    id: key.id,
    tenant_id: key.tenant_id,
    name: key.name,
    prefix: key.prefix,
    scopes: key.scopes,
    rate_limit: key.rate_limit,
    quota: key.quota,
    created_at: key.created_at,
    last_used_at: key.last_used_at,
    expires_at: key.expires_at,
    revoked_at: key.revoked_at,
    previous_expires_at: key.previous_expires_at,
    previous_last_used_at: key.previous_last_used_at,
    state: keyState(key, now),
  };
}

/** What audit entries and events say about a key: what it may do and when, not how often it was used. */
export function apiKeyFacts({
  name,
  prefix,
  scopes,
  rate_limit,
  quota,
  expires_at,
  revoked_at,
  tenant_id,
}: ApiKey): Record<string, unknown> {
  return {
    name,
    prefix,
    scopes,
    rate_limit,
    expires_at,
    revoked_at,
    ...(quota === null ? {} : { quota }),
    ...(tenant_id === null ? {} : { tenant_id }),
  };
}
