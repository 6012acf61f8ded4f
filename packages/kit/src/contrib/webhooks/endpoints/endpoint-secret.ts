import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { webhookErrors } from '../errors.ts';
import { generateKeyPair, generateSecret, publicKeyOf, signingKey, type SignatureVersion } from '../signing/signature.ts';
import { changeEndpoint, lockEndpoint, type WebhookEndpoint } from './store.ts';
import { webhooksOf, type Webhooks } from '../webhooks.ts';
import { earlierSecrets, formatOlderSecrets, SECRETS_MAX } from './older-secrets.ts';

/** The raw signing secret of an endpoint; throws `SecretUnavailable` when no configured key decrypts it. */
export function signingSecret(db: Db, endpoint: Pick<WebhookEndpoint, 'secret'>): string {
  return webhooksOf(db).secrets.open(endpoint.secret);
}

/** A secret as an endpoint stores it, with what is known of it without reading it. */
export interface SecretColumns {
  readonly secret: string;
  readonly signature: SignatureVersion;
  readonly public_key: string | null;
}

/** Throws `InvalidSecret` where the text cannot sign. */
export function secretColumns({ secrets }: Webhooks, raw: string): SecretColumns {
  const { version } = signingKey(raw);
  return { secret: secrets.seal(raw), signature: version, public_key: version === 'v1a' ? publicKeyOf(raw) : null };
}

/** A new secret of a kind: `whsec_` for `v1`, `whsk_` for `v1a`. */
export function newSecret(signature: SignatureVersion): string {
  return signature === 'v1a' ? generateKeyPair().privateKey : generateSecret();
}

/** The kind of signature and the public key, read from the secret where the row is from before they were stored. */
export function signatureOf(
  webhooks: Webhooks,
  endpoint: Pick<WebhookEndpoint, 'secret' | 'signature' | 'public_key'>,
): { readonly signature: SignatureVersion | null; readonly public_key: string | null } {
  const { signature, public_key } = endpoint;
  if (signature === 'v1' || public_key !== null) return { signature, public_key };
  try {
    const raw = webhooks.secrets.open(endpoint.secret);
    const { version } = signingKey(raw);
    return { signature: version, public_key: version === 'v1a' ? publicKeyOf(raw) : null };
  } catch {
    // It cannot be read, or cannot sign; deliveries say so.
    return { signature, public_key };
  }
}

/** Stores a raw secret in place of the current one, which stops signing at once, like every one before it. */
export async function setSecret(tx: Db, endpointId: string, raw: string): Promise<WebhookEndpoint | null> {
  const webhooks = webhooksOf(tx);
  const columns = secretColumns(webhooks, raw);
  return changeEndpoint(tx, endpointId, { ...columns, ...NO_EARLIER }, webhooks.clock.now());
}

const NO_EARLIER = { previous_secret: null, previous_secret_expires_at: null, older_secrets: null } as const;

export interface RotatedSecret {
  readonly endpoint: WebhookEndpoint;
  /** In full, this once. */
  readonly secret: string;
}

/**
 * A new secret of the same kind, unless one is given. For the rotation overlap, requests carry a signature of the old one too; so does every secret
 * before it whose time has not come. Rotations of one endpoint follow one another.
 */
export function rotateSecret(tx: Db, endpointId: string, given?: string): Promise<RotatedSecret | null> {
  const webhooks = webhooksOf(tx);
  const { clock, settings } = webhooks;
  if (given !== undefined) signingKey(given);
  return tx.transaction(async (held) => {
    const before = await lockEndpoint(held, endpointId);
    if (before === null) return null;
    const secret = given ?? newSecret(signatureOf(webhooks, before).signature ?? 'v1');
    const now = clock.now();
    const older = earlierSecrets(before, now);
    if (settings.rotationOverlapMs > 0 && older.length + 2 > SECRETS_MAX)
      throw webhookErrors.too_many_secrets({ extensions: { retry_at: older.map(({ until }) => until.toISOString()).sort()[0] ?? null } });
    const earlier =
      settings.rotationOverlapMs === 0
        ? NO_EARLIER
        : {
            previous_secret: before.secret,
            previous_secret_expires_at: new Date(now.getTime() + settings.rotationOverlapMs),
            older_secrets: formatOlderSecrets(older),
          };
    const endpoint = await changeEndpoint(held, endpointId, { ...secretColumns(webhooks, secret), ...earlier }, now);
    return endpoint === null ? null : { endpoint, secret };
  }, CONFLICT_RETRIES);
}
