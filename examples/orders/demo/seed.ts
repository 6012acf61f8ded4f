import { randomBytes } from 'node:crypto';
import type { App } from 'kit';
import { accountsService, changePassword, createUser } from 'kit/contrib/accounts';
import { createApiKey, rotateApiKey } from 'kit/contrib/apikeys';
import { createEndpoint, rotateSecret } from 'kit/contrib/webhooks';
import { insert, type Db } from 'kit/db';
import { orders } from '../orders/models.ts';

export interface DemoAccess {
  readonly username: string;
  /** New at every start: the database keeps only its hash. */
  readonly password: string;
  readonly keyId: string;
  /** New at every start: the database keeps only the digest of its secret. */
  readonly key: string;
  readonly endpointId: string;
  /** What the demo's receiver verifies with. */
  readonly signingSecret: string;
}

const USERNAME = 'demo';
const KEY_NAME = 'npm start';

const SCOPES = ['orders:read', 'orders:write', 'webhooks:read'];

/** A staff user, an API key, a webhook endpoint and an order; what a previous start made is used again. */
export async function seed(app: App, receiverUrl: string): Promise<DemoAccess> {
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
        ? await createApiKey(tx, { user, name: KEY_NAME, scopes: SCOPES })
        : await rotateApiKey(tx, live.id, { scopes: SCOPES });
    return {
      username: USERNAME,
      password,
      keyId: issued.apiKey.id,
      key: issued.raw,
      ...(await receiverEndpoint(tx, user.id, receiverUrl)),
    };
  });
}

/** The receiver may listen elsewhere at every start, so its endpoint gets the new address and a new secret. */
async function receiverEndpoint(tx: Db, owner: string, url: string): Promise<Pick<DemoAccess, 'endpointId' | 'signingSecret'>> {
  const [known] = await tx.query<{ id: string }>('select id from webhook_endpoints where owner_id = $1 and description = $2', [
    owner,
    KEY_NAME,
  ]);
  if (known === undefined) {
    const { endpoint, secret } = await createEndpoint(tx, { owner, url, events: ['order.*'], description: KEY_NAME });
    return { endpointId: endpoint.id, signingSecret: secret };
  }
  await tx.query('update webhook_endpoints set url = $2 where id = $1', [known.id, url]);
  const rotated = await rotateSecret(tx, known.id);
  return { endpointId: known.id, signingSecret: rotated?.secret ?? '' };
}
