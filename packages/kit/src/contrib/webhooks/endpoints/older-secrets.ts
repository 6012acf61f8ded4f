// Secrets that were promised to sign until a time, besides the current and the previous one: rotations within one overlap.
import type { WebhookEndpoint } from './store.ts';

/** A stored secret, as `SecretBox.seal` returned it, and when it stops signing. */
export interface TimedSecret {
  readonly secret: string;
  readonly until: Date;
}

/** Secrets that may sign at the same time: a header holds so many signatures, and receivers read no more than 50. */
export const SECRETS_MAX = 10;

type StoredSecrets = Pick<WebhookEndpoint, 'previous_secret' | 'previous_secret_expires_at' | 'older_secrets'>;

/** Every earlier secret that signs at that time, the latest first. */
export function earlierSecrets(endpoint: StoredSecrets, now: Date): TimedSecret[] {
  const { previous_secret: secret, previous_secret_expires_at: until, older_secrets: older } = endpoint;
  if (secret === null && older === null) return [];
  const previous = secret === null || until === null ? [] : [{ secret, until }];
  return [...previous, ...parseOlderSecrets(older)].filter(({ until: end }) => end.getTime() > now.getTime());
}

export function parseOlderSecrets(stored: string | null): TimedSecret[] {
  if (stored === null) return [];
  const list = JSON.parse(stored) as { readonly secret: string; readonly until: string }[];
  return list.map(({ secret, until }) => ({ secret, until: new Date(until) }));
}

export function formatOlderSecrets(secrets: readonly TimedSecret[]): string | null {
  return secrets.length === 0 ? null : JSON.stringify(secrets);
}
