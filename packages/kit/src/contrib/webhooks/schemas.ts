import { jsonSchema, namedSchema } from '../../http/declare/json-schema.ts';
import type { Page } from '../../http/declare/page.ts';
import type { JsonSchema, Schema } from '../../http/declare/schema.ts';
import type { DeliveryDetail, DeliveryRecord } from './endpoints/endpoint-record.ts';
import { HEADER_VALUE_LENGTH_MAX, HEADERS_MAX, type CustomHeaders, type HeaderEdit } from './endpoints/custom-headers.ts';
import {
  AUDIENCE_KEY_LENGTH_MAX,
  AUDIENCES,
  DELIVERY_STATUSES,
  DESCRIPTION_LENGTH_MAX,
  FAILURE_REASONS,
  RATE_LENGTH_MAX,
  SIGNATURES,
} from './models.ts';
import type { Audience } from './publishing/audience.ts';
import type { SignatureVersion } from './signing/signature.ts';
import type { Recovered } from './maintain/recover.ts';
import { EVENT_TYPE_LENGTH_MAX, PATTERNS_MAX } from './publishing/subscription.ts';

const uuid = { type: 'string', format: 'uuid' };
const timestamp = { type: 'string', format: 'date-time' };
const timestampOrNull = { type: ['string', 'null'], format: 'date-time' };
const textOrNull = { type: ['string', 'null'] };
const integerOrNull = { type: ['integer', 'null'] };
const failureReason = { type: ['string', 'null'], enum: [...FAILURE_REASONS, null] };

const url = {
  type: 'string',
  description: 'An https URL on a public host, at most 2048 characters.',
  examples: ['https://example.com/'],
};
const events = {
  type: 'array',
  minItems: 1,
  maxItems: PATTERNS_MAX,
  items: { type: 'string', maxLength: EVENT_TYPE_LENGTH_MAX },
  description: 'Exact types (`order.paid`), patterns (`order.*`) or `*`.',
  examples: [['*']],
};
const description = { type: 'string', maxLength: DESCRIPTION_LENGTH_MAX };
const signature = {
  type: 'string',
  enum: [...SIGNATURES],
  default: 'v1',
  description: '`v1`: HMAC with a shared secret. `v1a`: ed25519; receivers verify with `public_key`.',
};
const schedule = {
  type: ['array', 'null'],
  items: { type: 'number' },
  description: 'Delays between attempts, in seconds; null for the default.',
};
const headers = (value: object): object => ({
  type: 'object',
  maxProperties: HEADERS_MAX,
  additionalProperties: value,
  'x-sensitive': true,
  description: 'Sent with every request. Values are stored like secrets and never returned.',
});
const headerValue = { type: 'string', maxLength: HEADER_VALUE_LENGTH_MAX };
const rateLimit = {
  type: ['string', 'null'],
  maxLength: RATE_LENGTH_MAX,
  description: 'Such as `10/s` or `100/min`; null for no limit.',
};
const sendTraceparent = {
  type: 'boolean',
  description: 'Send `traceparent`, so that the receiver can continue the trace of the publisher.',
};
const isActive = {
  type: 'boolean',
  description: 'false disables the endpoint and fails its pending deliveries; true enables it.',
};

function closed(properties: Record<string, object>, required: readonly string[] = Object.keys(properties)): JsonSchema {
  return { type: 'object', properties, required, additionalProperties: false };
}

const deliveryProperties = {
  id: uuid,
  event_id: uuid,
  event_type: { type: 'string' },
  status: { type: 'string', enum: [...DELIVERY_STATUSES] },
  attempts: { type: 'integer', description: 'Attempts made in the current retry schedule.' },
  next_attempt_at: timestampOrNull,
  last_status_code: integerOrNull,
  last_error: textOrNull,
  failure_reason: failureReason,
  delivered_at: timestampOrNull,
  created_at: timestamp,
};

const attempt = namedSchema(
  'WebhookAttempt',
  closed({
    id: uuid,
    started_at: timestamp,
    duration_ms: { type: 'integer' },
    status_code: integerOrNull,
    failure_reason: failureReason,
    error: textOrNull,
    response_excerpt: { ...textOrNull, description: 'The first 4 KiB of the response body.' },
    worker: { type: 'string' },
  }),
);

/** The delivery of a ping. Lists have the schema of their resource. */
export const DeliveryOut = jsonSchema<DeliveryRecord>(namedSchema('WebhookPing', closed(deliveryProperties)));

export const DeliveryDetailOut = jsonSchema<DeliveryDetail>(
  {
    ...closed({
      ...deliveryProperties,
      payload: closed({
        type: { type: 'string' },
        timestamp,
        data: { type: ['object', 'null'], description: 'null if the stored payload is not valid JSON.' },
      }),
      attempt_history: { type: 'array', items: attempt, description: 'Oldest first.' },
    }),
  },
  { name: 'WebhookDeliveryDetail' },
);

export const RecoveredOut = jsonSchema<Recovered>(
  {
    ...closed({
      requeued: { type: 'integer', description: 'Failed deliveries that are due again.' },
      added: { type: 'integer', description: 'Deliveries of events that came while the endpoint was disabled.' },
      complete: { type: 'boolean', description: 'false: there may be more; repeat the call.' },
    }),
  },
  { name: 'WebhookRecovery' },
);

export interface EventTypeRecord {
  readonly name: string;
  readonly description: string;
  readonly version: number;
  readonly versions: readonly string[];
  readonly deprecated: string | null;
  readonly schema: object;
  readonly example: object | null;
}

const eventType = namedSchema(
  'WebhookEventType',
  closed({
    name: { type: 'string' },
    description: { type: 'string' },
    version: { type: 'integer', minimum: 1, description: '2 for `order.paid.v2`; 1 for a name without a version.' },
    versions: { type: 'array', items: { type: 'string' }, description: 'The names of all versions, this one included.' },
    deprecated: { ...textOrNull, description: 'What to use instead, and until when it is sent; null: it is not deprecated.' },
    schema: { type: 'object', additionalProperties: true, description: 'The JSON Schema of `data`.' },
    example: { type: ['object', 'null'], additionalProperties: true },
  }),
);

/** All of them: there is no next page. */
export const EventTypePage = jsonSchema<Page<EventTypeRecord>>({
  ...closed({
    items: { type: 'array', items: eventType },
    count: { type: 'integer', minimum: 0 },
    next: textOrNull,
    previous: textOrNull,
  }),
});

interface SharedFields {
  readonly description?: string;
  readonly schedule?: readonly number[] | null;
  readonly rate_limit?: string | null;
  readonly send_traceparent?: boolean;
}

export interface CreateFields extends SharedFields {
  readonly url: string;
  readonly events: readonly string[];
  readonly signature?: SignatureVersion;
  readonly headers?: CustomHeaders;
}

export const CreateBody = jsonSchema<CreateFields>(
  {
    ...closed(
      {
        url,
        events,
        description,
        signature,
        schedule,
        headers: headers(headerValue),
        rate_limit: rateLimit,
        send_traceparent: sendTraceparent,
      },
      ['url', 'events'],
    ),
  },
  { name: 'WebhookEndpointInput' },
);

export interface UpdateFields extends SharedFields {
  readonly url?: string;
  readonly events?: readonly string[];
  readonly headers?: HeaderEdit;
  readonly is_active?: boolean;
}

const headerEdit = { ...headerValue, type: ['string', 'null'], description: 'null removes the header; headers that are not named stay.' };

export const UpdateBody = jsonSchema<UpdateFields>(
  {
    ...closed(
      {
        url,
        events,
        description,
        schedule,
        headers: headers(headerEdit),
        rate_limit: rateLimit,
        send_traceparent: sendTraceparent,
        is_active: isActive,
      },
      [],
    ),
  },
  { name: 'WebhookEndpointPatch' },
);

/** Nothing needs to be said to send a failed delivery again: no body is an empty one. */
export const RetryBody = optional(
  jsonSchema<{ readonly force?: boolean }>({
    ...closed({ force: { type: 'boolean', default: false, description: 'Send again what has succeeded already.' } }, []),
  }),
);

/** Nothing needs to be said for a ping. */
export const PingBody = optional(
  jsonSchema<{ readonly event_type?: string }>({
    ...closed(
      {
        event_type: {
          type: 'string',
          maxLength: EVENT_TYPE_LENGTH_MAX,
          description: 'Sends the example of this declared type instead of a ping.',
        },
      },
      [],
    ),
  }),
);

export const RecoverBody = jsonSchema<{ readonly since: string }>({ ...closed({ since: timestamp }) });

export interface AudienceFields {
  readonly audience: Audience['kind'];
  readonly owner?: string | null;
  readonly tenant_key?: string | null;
}

const audienceKey = { type: ['string', 'null'], maxLength: AUDIENCE_KEY_LENGTH_MAX };

export const AudienceBody = jsonSchema<AudienceFields>({
  ...closed({ audience: { type: 'string', enum: [...AUDIENCES] }, owner: audienceKey, tenant_key: audienceKey }, ['audience']),
});

function optional<T>(schema: Schema<T>): Schema<T> {
  return { '~standard': { ...schema['~standard'], validate: (body) => schema['~standard'].validate(body ?? {}) } };
}
