import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { User } from '../../../auth/people/principal.ts';
import type { Db } from '../../../db/engine/db.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { normaliseScopes } from '../../../permissions/scope.ts';
import type { ApiKey } from '../key/api-key.ts';
import { secretDigest } from '../key/digest.ts';
import { apiKeyErrors } from '../errors.ts';
import { checkFields } from '../rows/field-rules.ts';
import { refuseImpersonated } from './impersonation.ts';
import { formatKey, newPrefix, newSecret } from '../key/key.ts';
import { requireRoomForKey } from './key-limit.ts';
import { keyringOf } from '../verify/keyring.ts';
import { changeContextNames, recordChange, type ChangeContext } from './record-change.ts';
import { insertKey } from '../rows/store.ts';
import { requireCountedQuota } from './counted-quota.ts';
import { tenantOfKey } from './tenant-of-key.ts';
import { refuseUnknownNames } from '../../../options/read-options.ts';

export interface NewApiKey extends ChangeContext {
  /** The owner, or its id. */
  readonly user: Pick<User, 'id'> | string;
  /**
   * The id or slug of the tenant that the key acts in, and in no other. `*`: it acts in every tenant of the user. Null: it acts in none.
   * Default: the only tenant that the user is a member of; an error where there are several. Apps with a `tenant` function of their own: the key is not bound.
   */
  readonly tenant?: string | null | undefined;
  /** For people: what the key is used for. */
  readonly name: string;
  /** What the key may do, such as `orders:read`. */
  readonly scopes: readonly string[];
  /** Default: the key does not expire. */
  readonly expiresAt?: Date | null | undefined;
  /** `<count>/<period>`; overrides the throttle's default for this key. */
  readonly rateLimit?: string | null | undefined;
  /** Requests that the key may make in a calendar period (UTC): `10000/month`. Needs requests(), which counts them. Default: no quota of its own. */
  readonly quota?: string | null | undefined;
}

export interface IssuedApiKey {
  readonly apiKey: ApiKey;
  /** The whole key. Shown now and never again: only a digest of it is stored. */
  readonly raw: string;
}

/** A misspelt name (`expires_at`) would be a key that never expires. */
const OPTIONS: ReadonlySet<string> = new Set(
  Object.keys({
    ...changeContextNames,
    user: true,
    tenant: true,
    name: true,
    scopes: true,
    expiresAt: true,
    rateLimit: true,
    quota: true,
  } satisfies Record<keyof NewApiKey, true>),
);

/**
 * Issues a key. In the caller's transaction, if given one: then the key works once that commits.
 *
 * @example
 * ```ts
 * const { raw } = await createApiKey(db, { user, name: 'reporting', scopes: ['orders:read'] });
 * console.log(raw); // shown once, never stored
 * ```
 */
export async function createApiKey(db: Db, input: NewApiKey): Promise<IssuedApiKey> {
  refuseUnknownNames('createApiKey()', input, OPTIONS);
  refuseImpersonated(input);
  const keyring = keyringOf(db);
  const now = keyring.clock.now();
  const { expiresAt, rateLimit, quota } = input;
  checkFields({ name: input.name ?? null, scopes: input.scopes ?? null, expiresAt, rateLimit, quota }, now);
  requireCountedQuota(keyring, quota);
  const ownerId = typeof input.user === 'string' ? input.user : input.user.id;
  const [prefix, secret] = [newPrefix(), newSecret()];
  const key = {
    id: uuidv7(keyring.clock),
    name: input.name.trim(),
    prefix,
    scopes: normaliseScopes(input.scopes),
    rate_limit: rateLimit ?? null,
    quota: quota ?? null,
    created_at: now,
    expires_at: expiresAt ?? null,
  };
  return db.transaction(async (tx) => {
    const owner = await requireRoomForKey(tx, ownerId, now);
    if (owner === null) throw apiKeyErrors.owner_not_found();
    const owned = { ...key, owner_id: owner.id, tenant_id: await tenantOfKey(tx, owner.id, input.tenant) };
    await insertKey(tx, { ...owned, digest: secretDigest(secret, keyring.pepper) });
    const apiKey: ApiKey = {
      ...owned,
      last_used_at: null,
      revoked_at: null,
      revoked_reason: null,
      previous_expires_at: null,
      previous_last_used_at: null,
      owner_is_active: owner.is_active,
    };
    await recordChange(tx, 'created', { before: null, after: apiKey }, input);
    return { apiKey, raw: formatKey(keyring.tag, { prefix, secret }) };
  }, CONFLICT_RETRIES);
}
