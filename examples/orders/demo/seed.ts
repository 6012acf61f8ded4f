import { randomBytes } from 'node:crypto';
import type { App } from 'kit';
import { accountsService, changePassword, createUser } from 'kit/contrib/accounts';
import { createApiKey, rotateApiKey } from 'kit/contrib/apikeys';
import { insert } from 'kit/db';
import { orders } from '../orders/models.ts';

export interface DemoAccess {
  readonly username: string;
  /** New at every start: the database keeps only its hash. */
  readonly password: string;
  readonly keyId: string;
  /** New at every start: the database keeps only the digest of its secret. */
  readonly key: string;
}

const USERNAME = 'demo';
const KEY_NAME = 'npm start';

/** A staff user, an API key and a few orders; what a previous start made is used again. */
export async function seed(app: App): Promise<DemoAccess> {
  const password = randomBytes(12).toString('base64url');
  const management = (await app.services.get(accountsService)).management('npm start');
  return app.db.transaction(async (tx) => {
    const known = await app.users?.findByLogin(tx, USERNAME);
    const user = known ?? (await createUser(tx, { username: USERNAME, password, is_staff: true }, management));
    if (known) await changePassword(tx, user, password, management);
    if (!known) await insert(tx, orders, { owner_id: user.id, item: 'Espresso beans', quantity: 2, total: '25.00', currency: 'EUR' });

    const [live] = await tx.query<{ id: string }>('select id from api_keys where owner_id = $1 and name = $2 and revoked_at is null', [
      user.id,
      KEY_NAME,
    ]);
    const issued =
      live === undefined
        ? await createApiKey(tx, { user, name: KEY_NAME, scopes: ['orders:read', 'orders:write'] })
        : await rotateApiKey(tx, live.id);
    return { username: USERNAME, password, keyId: issued.apiKey.id, key: issued.raw };
  });
}
