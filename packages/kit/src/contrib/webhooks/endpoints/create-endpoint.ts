import { hasHiddenCharacters } from '../../../auth/hidden-characters.ts';
import type { Db } from '../../../db/db.ts';
import { uuidv7 } from '../../../db/uuidv7.ts';
import { codePoints } from '../../../db/column-codec.ts';
import { webhookErrors } from '../errors.ts';
import { AUDIENCE_KEY_LENGTH_MAX, DESCRIPTION_LENGTH_MAX } from '../models.ts';
import { parseSchedule } from '../delivery/retry-schedule.ts';
import { rateFault } from '../../../throttle/rate.ts';
import type { SignatureVersion } from '../signing/signature.ts';
import { countEndpoints, lockEndpointsOf, insertEndpoint, type WebhookEndpoint } from '../store.ts';
import { editHeaders, type CustomHeaders, type HeaderEdit } from './custom-headers.ts';
import { newSecret, secretColumns } from './endpoint-secret.ts';
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
  /** `v1` (HMAC with a shared secret) unless given; `v1a` signs with a private key, and receivers get the public one. */
  readonly signature?: SignatureVersion;
  /** A new random secret of the kind unless given: `whsec_` for `v1`, `whsk_` for `v1a`. */
  readonly secret?: string;
  /** Delays in seconds instead of the module's schedule. */
  readonly schedule?: readonly number[] | null;
  /** Sent with every request besides our own; stored like secrets. */
  readonly headers?: CustomHeaders;
  /** Requests at most, such as `10/s` or `100/min`; unlimited unless given. */
  readonly rateLimit?: string | null;
  /** Sends `traceparent` with every request, so that the receiver can continue the trace; not sent unless true, or the module sends it to all. */
  readonly sendTraceparent?: boolean;
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
    signature: true,
    headers: true,
    rateLimit: true,
    sendTraceparent: true,
    schedule: true,
    availableEvents: true,
  } satisfies Record<keyof EndpointInput, true>),
);

export async function createEndpoint(tx: Db, input: EndpointInput): Promise<CreatedEndpoint> {
  refuseUnknownNames('createEndpoint()', input, OPTIONS);
  const webhooks = webhooksOf(tx);
  const { owner, tenantKey = '', description = '', schedule = null, rateLimit = null, sendTraceparent = false } = input;
  const secret = input.secret ?? newSecret(checkedSignature(input.signature));
  const url = checkedUrl(webhooks, input.url);
  const events = checkedEvents(input.events, input.availableEvents);
  if (owner === '' || !isAudienceKey(owner) || !isAudienceKey(tenantKey))
    throw webhookErrors.invalid_endpoint({
      detail: `owner and tenantKey are texts of at most ${AUDIENCE_KEY_LENGTH_MAX} characters, and owner has at least one.`,
    });
  checkDescription(description);
  const columns = secretColumns(webhooks, secret);
  if (input.signature !== undefined && input.signature !== columns.signature)
    throw invalidField('signature', `The secret signs ${columns.signature}, not ${input.signature}.`);
  await checkQuota(tx, webhooks, owner, tenantKey);
  const endpoint = await insertEndpoint(tx, {
    id: uuidv7(webhooks.clock),
    owner_id: owner,
    tenant_key: tenantKey,
    url,
    events: [...events],
    description,
    ...columns,
    schedule: checkedSchedule(schedule),
    ...checkedHeaders(webhooks, {}, input.headers ?? {}),
    rate_limit: checkedRateLimit(rateLimit),
    send_traceparent: checkedSendTraceparent(sendTraceparent),
    created_at: webhooks.clock.now(),
  });
  return { endpoint, secret };
}

function isAudienceKey(key: unknown): boolean {
  return typeof key === 'string' && key.length <= AUDIENCE_KEY_LENGTH_MAX;
}

/** Written by owners, read by staff. Line breaks are text, and some languages and emoji need joiners. */
export function checkDescription(description: unknown): void {
  if (typeof description !== 'string' || codePoints(description) > DESCRIPTION_LENGTH_MAX)
    throw webhookErrors.invalid_endpoint({ detail: `The description is a text of at most ${DESCRIPTION_LENGTH_MAX} characters.` });
  if (hasHiddenCharacters(description.replaceAll(/[\r\n\t\u200c\u200d]/g, '')))
    throw invalidField(
      'description',
      'The description must not contain control characters, or characters that change the direction of text.',
    );
}

function checkedSignature(signature: unknown): SignatureVersion {
  if (signature === undefined || signature === 'v1' || signature === 'v1a') return signature ?? 'v1';
  throw invalidField('signature', 'The kind of signature is "v1" or "v1a".');
}

export function checkedSchedule(schedule: readonly number[] | null): number[] | null {
  try {
    return schedule === null ? null : [...parseSchedule(schedule)];
  } catch (error) {
    throw invalidField('schedule', (error as Error).message);
  }
}

export function checkedRateLimit(rate: string | null): string | null {
  const fault = rate === null ? null : rateFault(rate);
  if (fault !== null) throw invalidField('rate_limit', fault);
  return rate;
}

export function checkedSendTraceparent(send: unknown): boolean {
  if (typeof send !== 'boolean') throw invalidField('send_traceparent', 'Whether the trace is sent is true or false.');
  return send;
}

/** The columns of the headers after the edit. */
export function checkedHeaders(
  { secrets }: Webhooks,
  current: CustomHeaders,
  edit: HeaderEdit,
): { readonly headers: string | null; readonly header_names: string[] | null } {
  const headers = editHeaders(current, edit);
  if (Array.isArray(headers))
    throw webhookErrors.invalid_endpoint({
      detail: headers.map(({ name, message }) => (name === '' ? message : `${name}: ${message}`)).join(' '),
      errors: headers.map(({ name, message }) => ({
        location: name === '' ? ['body', 'headers'] : ['body', 'headers', name],
        code: 'invalid_header',
        message,
      })),
    });
  const names = Object.keys(headers);
  return names.length === 0
    ? { headers: null, header_names: null }
    : { headers: secrets.seal(JSON.stringify(headers)), header_names: names };
}

function invalidField(field: string, message: string) {
  return webhookErrors.invalid_endpoint({ detail: message, errors: [{ location: ['body', field], code: `invalid_${field}`, message }] });
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
  await lockEndpointsOf(tx, owner, tenantKey);
  const limit = settings.endpointsPerOwnerMax;
  if ((await countEndpoints(tx, owner, tenantKey)) >= limit) throw webhookErrors.quota_exceeded({ extensions: { limit } });
}
