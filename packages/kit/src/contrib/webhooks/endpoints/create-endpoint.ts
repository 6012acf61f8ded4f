import type { Db } from '../../../db/engine/db.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { FaultCollector } from '../../../errors/fault-collector.ts';
import { webhookErrors } from '../errors.ts';
import { AUDIENCE_KEY_LENGTH_MAX } from '../models.ts';
import type { SignatureVersion } from '../signing/signature.ts';
import { countEndpoints, lockEndpointsOf, insertEndpoint, type WebhookEndpoint } from './store.ts';
import type { CustomHeaders } from './custom-headers.ts';
import { endpointColumns, invalidField, type EndpointColumns } from './endpoint-fields.ts';
import { newSecret, secretColumns, type SecretColumns } from './endpoint-secret.ts';
import { webhooksOf, type Webhooks } from '../webhooks.ts';
import { refuseUnknownNames } from '../../../options/read-options.ts';

export interface EndpointInput {
  /** The id of the user who receives the events. */
  readonly owner: string;
  /** Empty or absent for a personal endpoint. */
  readonly tenantKey?: string;
  /** Where events are sent. Must be allowed by the URL policy. */
  readonly url: string;
  /** Exact types, patterns such as `order.*`, or `*`. */
  readonly events: readonly string[];
  /** For people: what receives the events. */
  readonly description?: string;
  /** Default: `v1`, HMAC with a shared secret. `v1a` signs with a private key, and receivers get the public one. */
  readonly signature?: SignatureVersion;
  /** Default: a new random secret of the kind: `whsec_` for `v1`, `whsk_` for `v1a`. */
  readonly secret?: string;
  /** Delays in seconds instead of the module's schedule. */
  readonly schedule?: readonly number[] | null;
  /** Sent with every request besides our own; stored like secrets. */
  readonly headers?: CustomHeaders;
  /** Requests at most, such as `10/s` or `100/min`. Default: unlimited. */
  readonly rateLimit?: string | null;
  /** Sends `traceparent` with every request, so that the receiver can continue the trace; not sent unless true, or the module sends it to all. */
  readonly sendTraceparent?: boolean;
  /** What may be subscribed to. Default: everything. */
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
    signature: true,
    headers: true,
    rateLimit: true,
    sendTraceparent: true,
    schedule: true,
    availableEvents: true,
  } satisfies Record<keyof EndpointInput, true>),
);

/** Creates a webhook endpoint and returns it with its signing secret, which is shown only once. */
export async function createEndpoint(tx: Db, input: EndpointInput): Promise<CreatedEndpoint> {
  refuseUnknownNames('createEndpoint()', input, OPTIONS);
  const webhooks = webhooksOf(tx);
  const { owner, tenantKey = '', url, events, description = '', schedule = null, headers = {} } = input;
  const { rateLimit = null, sendTraceparent = false, availableEvents } = input;
  const faults = new FaultCollector();
  faults.check(() => checkAudience(owner, tenantKey));
  // What is missing is refused like any other value that is not one.
  const given = { url: url ?? null, events: events ?? null } as unknown as Pick<EndpointInput, 'url' | 'events'>;
  const fields = { ...given, description, schedule, headers, rateLimit, sendTraceparent, availableEvents };
  const columns = endpointColumns(webhooks, fields, faults);
  const secret = faults.check(() => checkedSecret(webhooks, input));
  faults.throwIfAny();
  const { raw, ...getOrCreateSecret } = secret as CheckedSecret;
  await checkQuota(tx, webhooks, owner, tenantKey);
  const endpoint = await insertEndpoint(tx, {
    id: uuidv7(webhooks.clock),
    owner_id: owner,
    tenant_key: tenantKey,
    // Every field was given, and none refused.
    ...(columns as EndpointColumns),
    ...getOrCreateSecret,
    created_at: webhooks.clock.now(),
  });
  return { endpoint, secret: raw };
}

function checkAudience(owner: unknown, tenantKey: unknown): void {
  const faults = new FaultCollector();
  if (owner === '' || !isAudienceKey(owner))
    faults.refuse(invalidField('owner', `owner is a string of 1 to ${AUDIENCE_KEY_LENGTH_MAX} characters.`));
  if (!isAudienceKey(tenantKey))
    faults.refuse(invalidField('tenant_key', `tenantKey is a string of at most ${AUDIENCE_KEY_LENGTH_MAX} characters.`));
  faults.throwIfAny();
}

function isAudienceKey(key: unknown): boolean {
  return typeof key === 'string' && key.length <= AUDIENCE_KEY_LENGTH_MAX;
}

type CheckedSecret = SecretColumns & { readonly raw: string };

function checkedSecret(webhooks: Webhooks, { signature, secret }: EndpointInput): CheckedSecret {
  if (signature !== undefined && signature !== 'v1' && signature !== 'v1a')
    throw invalidField('signature', 'The kind of signature is "v1" or "v1a".');
  const raw = secret ?? newSecret(signature ?? 'v1');
  const columns = secretColumns(webhooks, raw);
  if (signature !== undefined && signature !== columns.signature)
    throw invalidField('signature', `The secret signs ${columns.signature}, not ${signature}.`);
  return { ...columns, raw };
}

/** Endpoints of one owner are created one after the other, so that the limit is counted on settled rows. */
async function checkQuota(tx: Db, { settings }: Webhooks, owner: string, tenantKey: string): Promise<void> {
  await lockEndpointsOf(tx, owner, tenantKey);
  const limit = settings.endpointsPerOwnerMax;
  if ((await countEndpoints(tx, owner, tenantKey)) >= limit) throw webhookErrors.quota_exceeded({ extensions: { limit } });
}
