import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import { withoutKeys } from '../../../auth/people/without-keys.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { ApiKey } from '../key/api-key.ts';
import { apiKeyErrors } from '../errors.ts';
import { keyringOf } from '../verify/keyring.ts';
import { changeContextNames, recordChange, type ChangeContext } from './record-change.ts';
import { changeUnrevokedKey, lockKey } from '../rows/store.ts';
import { refuseUnknownNames } from '../../../options/read-options.ts';

export interface Revocation extends ChangeContext {
  /** Kept with the key and in the audit entry; at most 200 characters are stored, and never a key. */
  readonly reason?: string | null | undefined;
}

const REASON_LENGTH_MAX = 200;

/** A misspelt name (`expires_at`) would be a key that never expires. */
const OPTIONS: ReadonlySet<string> = new Set(Object.keys({ ...changeContextNames, reason: true } satisfies Record<keyof Revocation, true>));

/** Revokes a key permanently, its current and its previous secret. Repeatable: the first `revoked_at` and reason are kept. */
export async function revokeApiKey(db: Db, key: Pick<ApiKey, 'id'> | string, revocation: Revocation = {}): Promise<void> {
  refuseUnknownNames('revokeApiKey()', revocation, OPTIONS);
  const keyring = keyringOf(db);
  const id = typeof key === 'string' ? key : key.id;
  const reason = revocation.reason === undefined || revocation.reason === null ? null : cut(withoutKeys(revocation.reason.trim()));
  const changes = { revoked_at: keyring.clock.now(), revoked_reason: reason === '' ? null : reason };
  await db.transaction(async (tx) => {
    const before = await lockKey(tx, keyring.statements, id);
    if (before === null) throw apiKeyErrors.api_key_not_found();
    if (!(await changeUnrevokedKey(tx, before.id, changes))) return;
    const metadata = changes.revoked_reason === null ? {} : { reason: changes.revoked_reason };
    await recordChange(tx, 'revoked', { before, after: { ...before, ...changes } }, revocation, metadata);
  }, CONFLICT_RETRIES);
}

/** By code points, as the column counts: never half of a surrogate pair. */
function cut(text: string): string {
  return Array.from(text).slice(0, REASON_LENGTH_MAX).join('');
}
