import type { App } from '../../../app/declare/module.ts';
import type { Db } from '../../../db/engine/db.ts';
import { parseFernetKey } from '../../../db/sealing/fernet.ts';
import { SecretUnavailable, splitSecretKeys } from '../../../db/sealing/secret-box.ts';
import type { Fault } from '../../../options/fault.ts';
import { accountsOf } from '../users/accounts.ts';
import { hasPlainSecret, readSealed, replaceSealed } from './factor-store.ts';

const BATCH = 200;
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

interface Resealed {
  readonly encrypted: number;
  readonly unchanged: number;
  /** Users whose secret no key decrypts. */
  readonly unavailable: readonly string[];
}

/** Encrypts what is stored with the first key. Repeatable, and safe while users log in: a secret that changed meanwhile is left alone. */
export async function encryptFactorSecrets(db: Db): Promise<Resealed> {
  const { secrets } = accountsOf(db);
  const unavailable = new Set<string>();
  let [encrypted, unchanged, after] = [0, 0, FIRST_ID];
  for (let batch = await readSealed(db, after, BATCH); batch.length > 0; batch = await readSealed(db, after, BATCH)) {
    for (const { user_id, ...stored } of batch) {
      for (const column of ['secret', 'pending_secret'] as const) {
        const from = stored[column];
        if (from === null) continue;
        try {
          const to = secrets.reseal(from);
          if (to === null) unchanged++;
          else if (await replaceSealed(db, user_id, column, from, to)) encrypted++;
        } catch (error) {
          if (!(error instanceof SecretUnavailable)) throw error;
          unavailable.add(user_id);
        }
      }
      after = user_id;
    }
  }
  return { encrypted, unchanged, unavailable: [...unavailable] };
}

/** A key that cannot be used; its text is never part of the sentence. */
export function accountSecretFault(setting: string | undefined): Fault | null {
  const keys = splitSecretKeys(setting);
  const index = keys.findIndex((key) => {
    try {
      parseFernetKey(key);
      return false;
    } catch {
      return true;
    }
  });
  if (index === -1) return null;
  return {
    id: 'E011',
    message: `Key ${index + 1} of ${keys.length} in ACCOUNT_SECRET_KEYS is not 32 bytes in padded base64url.`,
    hint: 'Create one with `kit user generate-key`.',
  };
}

/** Found by the checks of the module: codes can be computed from what is stored. */
export async function accountSecretFaults({ db, settings }: App): Promise<readonly Fault[]> {
  // Before the first migration there is no table, and nothing is stored; that migrations are pending is told elsewhere.
  const isPlain = () => hasPlainSecret(db).catch(() => false);
  if (splitSecretKeys(settings.accountSecretKeys).length > 0 || !(await isPlain())) return [];
  return [
    {
      id: 'W025',
      message: 'Secrets of one-time codes are stored without encryption.',
      hint: 'Set ACCOUNT_SECRET_KEYS to what `kit user generate-key` prints, then run `npx kit user encrypt-secrets`.',
    },
  ];
}
