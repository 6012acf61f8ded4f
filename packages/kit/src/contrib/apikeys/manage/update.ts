import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { ApiKey } from '../key/api-key.ts';
import { apiKeyErrors } from '../errors.ts';
import { changesOf, checkFields } from '../rows/field-rules.ts';
import { requireRoomToReturn } from './key-limit.ts';
import { keyringOf } from '../verify/keyring.ts';
import { changeContextNames, recordChange, type ChangeContext } from './record-change.ts';
import { changeUnrevokedKey, lockKey } from '../rows/store.ts';
import { requireCountedQuota } from './counted-quota.ts';
import { bindingChange } from './tenant-of-key.ts';
import { refuseUnknownNames } from '../../../options/read-options.ts';

/** Undefined keeps a value, null clears it. */
export interface KeyEdit extends ChangeContext {
  /** The id or slug of the tenant that a key is bound to, which is not bound yet; `*`: in every tenant of its owner. Null: it acts in none. Default: unchanged. */
  readonly tenant?: string | null | undefined;
  /** Default: unchanged. */
  readonly name?: string | undefined;
  /** Replaces all scopes. Default: unchanged. */
  readonly scopes?: readonly string[] | undefined;
  /** Null: the key does not expire. Default: unchanged. */
  readonly expiresAt?: Date | null | undefined;
  /** `<count>/<period>`; null removes it. Default: unchanged. */
  readonly rateLimit?: string | null | undefined;
  /** Requests that the key may make in a calendar period (UTC): `10000/month`; null removes it. Default: unchanged. */
  readonly quota?: string | null | undefined;
}

/** A misspelt name (`expires_at`) would be a key that never expires. */
const OPTIONS: ReadonlySet<string> = new Set(
  Object.keys({
    ...changeContextNames,
    tenant: true,
    name: true,
    scopes: true,
    expiresAt: true,
    rateLimit: true,
    quota: true,
  } satisfies Record<keyof KeyEdit, true>),
);

/** Changes what a key is called or may do; the secret stays. Refused with 409 `key_revoked` on a revoked key. */
export async function updateApiKey(db: Db, key: Pick<ApiKey, 'id'> | string, edit: KeyEdit): Promise<ApiKey> {
  refuseUnknownNames('updateApiKey()', edit, OPTIONS);
  const keyring = keyringOf(db);
  const { name, scopes, expiresAt, rateLimit, quota } = edit;
  const now = keyring.clock.now();
  checkFields({ name, scopes, expiresAt, rateLimit, quota }, now);
  requireCountedQuota(keyring, quota);
  const id = typeof key === 'string' ? key : key.id;
  const fields = changesOf(edit);
  return db.transaction(async (tx) => {
    const before = await lockKey(tx, keyring.statements, id);
    if (before === null) throw apiKeyErrors.api_key_not_found();
    if (before.revoked_at !== null) throw apiKeyErrors.key_revoked();
    const changes = { ...fields, ...(edit.tenant === undefined ? {} : await bindingChange(tx, before, edit.tenant)) };
    if (Object.keys(changes).length === 0) return before;
    const after = { ...before, ...changes };
    await requireRoomToReturn(tx, before, after, now);
    if (!(await changeUnrevokedKey(tx, before.id, changes))) throw apiKeyErrors.key_revoked();
    await recordChange(tx, 'updated', { before, after }, edit);
    return after;
  }, CONFLICT_RETRIES);
}
