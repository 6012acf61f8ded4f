import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { ApiKey } from '../key/api-key.ts';
import type { IssuedApiKey } from './create.ts';
import { secretDigest } from '../key/digest.ts';
import { apiKeyErrors } from '../errors.ts';
import { changesOf, checkFields } from '../rows/field-rules.ts';
import { refuseImpersonated } from './impersonation.ts';
import { formatKey, newSecret } from '../key/key.ts';
import { requireRoomToReturn } from './key-limit.ts';
import { keyringOf } from '../verify/keyring.ts';
import { changeContextNames, recordChange, type ChangeContext } from './record-change.ts';
import { lockKey, replaceSecret } from '../rows/store.ts';
import { requireCountedQuota } from './counted-quota.ts';
import { bindingChange } from './tenant-of-key.ts';
import { refuseUnknownNames } from '../../../options/read-options.ts';

/** Undefined keeps a value, null clears it. */
export interface Rotation extends ChangeContext {
  /** The id or slug of the tenant that a key from before there were tenants is bound to. Default: as `createApiKey()`. */
  readonly tenant?: string | null | undefined;
  /** Default: those of the replaced secret. */
  readonly scopes?: readonly string[] | undefined;
  /** Null: the key does not expire. Default: unchanged. */
  readonly expiresAt?: Date | null | undefined;
  /** `<count>/<period>`; null removes it. Default: unchanged. */
  readonly rateLimit?: string | null | undefined;
  /** Requests that the key may make in a calendar period (UTC): `10000/month`; null removes it. Default: unchanged. */
  readonly quota?: string | null | undefined;
  /** How long the replaced secret goes on working; 0, the default, ends it at once. */
  readonly graceSeconds?: number | undefined;
  /** Asked with the held row before anything is written; throws to refuse. */
  readonly check?: ((key: ApiKey) => void) | undefined;
}

/** A misspelt name (`expires_at`) would be a key that never expires. */
const OPTIONS: ReadonlySet<string> = new Set(
  Object.keys({
    ...changeContextNames,
    tenant: true,
    scopes: true,
    expiresAt: true,
    rateLimit: true,
    quota: true,
    graceSeconds: true,
    check: true,
  } satisfies Record<keyof Rotation, true>),
);

/**
 * A new secret for the same key: row, prefix, owner, name and creation time stay. The value it had before the one replaced now is dead in
 * every case. Refused with 409 `key_revoked` on a revoked key.
 */
export async function rotateApiKey(db: Db, key: Pick<ApiKey, 'id'> | string, rotation: Rotation = {}): Promise<IssuedApiKey> {
  refuseUnknownNames('rotateApiKey()', rotation, OPTIONS);
  refuseImpersonated(rotation);
  const keyring = keyringOf(db);
  const now = keyring.clock.now();
  const { scopes, expiresAt, rateLimit, quota, graceSeconds = 0 } = rotation;
  checkFields({ scopes, expiresAt, rateLimit, quota, graceSeconds }, now);
  requireCountedQuota(keyring, quota);
  const id = typeof key === 'string' ? key : key.id;
  const secret = newSecret();
  const graceUntil = graceSeconds === 0 ? null : new Date(now.getTime() + graceSeconds * 1000);
  const fields = changesOf({ scopes, expiresAt, rateLimit, quota });
  return db.transaction(async (tx) => {
    const before = await lockKey(tx, keyring.statements, id);
    if (before === null) throw apiKeyErrors.api_key_not_found();
    if (before.revoked_at !== null) throw apiKeyErrors.key_revoked();
    const changes = { ...fields, ...(await bindingChange(tx, before, rotation.tenant)) };
    rotation.check?.({ ...before, ...changes });
    await requireRoomToReturn(tx, before, { ...before, ...changes }, now);
    if (!(await replaceSecret(tx, before.id, secretDigest(secret, keyring.pepper), graceUntil, changes))) throw apiKeyErrors.key_revoked();
    const previous = { previous_expires_at: graceUntil, previous_last_used_at: graceUntil === null ? null : before.last_used_at };
    const after: ApiKey = { ...before, ...changes, ...previous };
    await recordChange(tx, 'rotated', { before, after }, rotation, { grace_seconds: graceSeconds });
    return { apiKey: after, raw: formatKey(keyring.tag, { prefix: before.prefix, secret }) };
  }, CONFLICT_RETRIES);
}
