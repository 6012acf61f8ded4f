import type { Db } from '../../../db/db.ts';
import { generateSecret, signingKey } from '../signing/signature.ts';
import type { WebhookEndpoint } from '../store.ts';
import { webhooksOf } from '../webhooks.ts';

/** The raw signing secret of an endpoint; throws `SecretUnavailable` when no configured key decrypts it. */
export function signingSecret(db: Db, endpoint: Pick<WebhookEndpoint, 'secret'>): string {
  return webhooksOf(db).secrets.open(endpoint.secret);
}

/** Stores a raw secret in place of the current one, which stops signing at once. */
export async function setSecret(tx: Db, endpointId: string, raw: string): Promise<WebhookEndpoint | null> {
  signingKey(raw);
  return replaceSecret(tx, endpointId, raw, null);
}

export interface RotatedSecret {
  readonly endpoint: WebhookEndpoint;
  /** In full, this once. */
  readonly secret: string;
}

/** A new secret. For the rotation overlap, requests carry a signature of the old one too. */
export async function rotateSecret(tx: Db, endpointId: string, secret: string = generateSecret()): Promise<RotatedSecret | null> {
  const { clock, settings } = webhooksOf(tx);
  signingKey(secret);
  const until = settings.rotationOverlapMs === 0 ? null : new Date(clock.now().getTime() + settings.rotationOverlapMs);
  const endpoint = await replaceSecret(tx, endpointId, secret, until);
  return endpoint === null ? null : { endpoint, secret };
}

/** The old secret moves within the statement, so that rotations at the same time lose none of them halfway. */
async function replaceSecret(tx: Db, id: string, raw: string, previousUntil: Date | null): Promise<WebhookEndpoint | null> {
  const { clock, secrets } = webhooksOf(tx);
  const [row] = await tx.query<WebhookEndpoint>(
    `update webhook_endpoints set previous_secret = ${previousUntil === null ? 'null' : 'secret'}, secret = $2,
       previous_secret_expires_at = $3, updated_at = $4 where id = $1 returning *`,
    [id, secrets.seal(raw), previousUntil, clock.now()],
  );
  return row ?? null;
}
