import type { Db } from '../../../db/db.ts';
import { uuidv7 } from '../../../db/uuidv7.ts';
import { codePoints } from '../../../db/column-codec.ts';
import { webhookErrors } from '../errors.ts';
import { AUDIENCE_KEY_LENGTH_MAX, DESCRIPTION_LENGTH_MAX } from '../models.ts';
import { parseSchedule } from '../delivery/retry-schedule.ts';
import { generateSecret, signingKey } from '../signing/signature.ts';
import { countEndpoints, holdEndpointsOf, insertEndpoint, type WebhookEndpoint } from '../store.ts';
import { parsePatterns } from './subscription.ts';
import { webhooksOf, type Webhooks } from '../webhooks.ts';
import { refuseUnknownNames } from '../../../options/read-options.ts';

export interface EndpointInput {
  readonly owner: string;
  /** Empty or absent for a personal endpoint. */
  readonly tenantKey?: string;
  readonly url: string;
  /** Exact types, patterns such as `order.*`, or `*`. */
  readonly events: readonly string[];
  readonly description?: string;
  /** A new random `whsec_` secret unless given; a `whsk_` key signs with ed25519. */
  readonly secret?: string;
  /** Delays in seconds instead of the module's schedule. */
  readonly schedule?: readonly number[] | null;
  /** What may be subscribed to; everything unless given. */
  readonly availableEvents?: readonly string[];
}

export interface CreatedEndpoint {
  readonly endpoint: WebhookEndpoint;
  /** In full, this once. */
  readonly secret: string;
}

const OPTIONS: ReadonlySet<string> = new Set(
  Object.keys({
    owner: true,
    tenantKey: true,
    url: true,
    events: true,
    description: true,
    secret: true,
    schedule: true,
    availableEvents: true,
  } satisfies Record<keyof EndpointInput, true>),
);

export async function createEndpoint(tx: Db, input: EndpointInput): Promise<CreatedEndpoint> {
  refuseUnknownNames('createEndpoint()', input, OPTIONS);
  const webhooks = webhooksOf(tx);
  const { owner, tenantKey = '', description = '', schedule = null, secret = generateSecret() } = input;
  const url = checkedUrl(webhooks, input.url);
  const events = checkedEvents(input.events, input.availableEvents);
  if (owner === '' || !isAudienceKey(owner) || !isAudienceKey(tenantKey))
    throw webhookErrors.invalid_endpoint({
      detail: `owner and tenantKey are texts of at most ${AUDIENCE_KEY_LENGTH_MAX} characters, and owner has at least one.`,
    });
  checkDescription(description);
  signingKey(secret);
  await checkQuota(tx, webhooks, owner, tenantKey);
  const endpoint = await insertEndpoint(tx, {
    id: uuidv7(webhooks.clock),
    owner_id: owner,
    tenant_key: tenantKey,
    url,
    events: [...events],
    description,
    secret: webhooks.secrets.seal(secret),
    schedule: checkedSchedule(schedule),
    created_at: webhooks.clock.now(),
  });
  return { endpoint, secret };
}

function isAudienceKey(key: unknown): boolean {
  return typeof key === 'string' && key.length <= AUDIENCE_KEY_LENGTH_MAX;
}

export function checkDescription(description: unknown): void {
  if (typeof description !== 'string' || codePoints(description) > DESCRIPTION_LENGTH_MAX)
    throw webhookErrors.invalid_endpoint({ detail: `The description is a text of at most ${DESCRIPTION_LENGTH_MAX} characters.` });
}

function checkedSchedule(schedule: readonly number[] | null): number[] | null {
  try {
    return schedule === null ? null : [...parseSchedule(schedule)];
  } catch (error) {
    throw webhookErrors.invalid_endpoint({ detail: (error as Error).message });
  }
}

/** The URL, if the policy allows it; every refusal reads the same. */
export function checkedUrl({ settings, log }: Webhooks, url: unknown): string {
  const checked = settings.urlPolicy.checkUrl(url);
  if (checked.ok) return url as string;
  log.warn({ detail: checked.detail }, 'the URL of a webhook endpoint was refused');
  throw webhookErrors.url_not_allowed({ message: checked.detail });
}

export function checkedEvents(events: unknown, availableEvents?: readonly string[]): readonly string[] {
  const patterns = parsePatterns(events, availableEvents);
  if (!('code' in patterns)) return patterns;
  const details = { detail: patterns.message, errors: [{ location: ['body', 'events'], code: patterns.code, message: patterns.message }] };
  throw webhookErrors[patterns.code](details);
}

/** Endpoints of one owner are created one after the other, so that the limit is counted on settled rows. */
async function checkQuota(tx: Db, { settings }: Webhooks, owner: string, tenantKey: string): Promise<void> {
  await holdEndpointsOf(tx, owner, tenantKey);
  const limit = settings.endpointsPerOwnerMax;
  if ((await countEndpoints(tx, owner, tenantKey)) >= limit) throw webhookErrors.quota_exceeded({ extensions: { limit } });
}
