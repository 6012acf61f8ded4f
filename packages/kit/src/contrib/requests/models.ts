import { t } from '../../db/declare/column.ts';
import { model } from '../../db/declare/model.ts';
import { IDENTITY_LENGTH_MAX } from '../../db/values/identity-length.ts';
import { QUOTA_PERIODS } from '../../throttle/quota.ts';
import { REQUEST_ID_LENGTH_MAX } from '../../http/exchange/acting-request.ts';

export const METHOD_LENGTH_MAX = 20;
export const ROUTE_LENGTH_MAX = 500;
export const PATH_LENGTH_MAX = 300;
export const CODE_LENGTH_MAX = 100;
export const SCHEME_LENGTH_MAX = 64;
export const VERSION_LENGTH_MAX = 40;

/** Whose requests a quota is about. */
export const QUOTA_KINDS = ['key', 'owner', 'tenant'] as const;

/** `mcp`: a call of a tool. The request around it is none of the API's operations. */
export const REQUEST_CHANNELS = ['http', 'mcp'] as const;

/** Finished requests. Their ids are in the order in which the responses ended, so that a period is a range of keys. */
export const requestLog = model(
  'request_log',
  {
    id: t.uuidv7().pk(),
    finished_at: t.timestamp().describe('When the response was complete.'),
    duration_ms: t.float().describe('From the arrival of the request to the end of the response; of a stream, as long as it was open.'),
    method: t.text(METHOD_LENGTH_MAX),
    route: t.text(ROUTE_LENGTH_MAX).nullable().describe('The path of the operation: `/v1/orders/:id`. Null where none has the address.'),
    path: t
      .text(PATH_LENGTH_MAX)
      .nullable()
      .describe('The address without sensitive parts, and the names of its query parameters without values.'),
    status: t.int().nullable().describe('Null where the connection ended before there was a response.'),
    failed: t.bool().describe('The status is 400 or above, or the connection ended before the response was complete.'),
    aborted: t.bool().describe('The connection ended before the response was complete. Streams end that way and are not marked.'),
    error_code: t.text(CODE_LENGTH_MAX).nullable().describe('The `code` of the error response.'),
    /** Empty: the caller was not known, or the request was refused before anybody asked. */
    owner_id: t.text(IDENTITY_LENGTH_MAX).person(),
    tenant_key: t.text(IDENTITY_LENGTH_MAX).tenant(),
    scheme: t.text(SCHEME_LENGTH_MAX).nullable().describe('How the caller was authenticated: `session`, `api_key`, …'),
    /** Not a foreign key: a key may be removed and its requests stay. */
    key_id: t.text(IDENTITY_LENGTH_MAX).nullable().describe('The id of the API key.'),
    request_id: t.text(REQUEST_ID_LENGTH_MAX).nullable().describe('The `X-Request-ID` of the response.'),
    version: t.text(VERSION_LENGTH_MAX).nullable().describe('The version of the response, where the app has versions.'),
    deprecated: t.bool().describe('The operation is deprecated.'),
    via: t.enum(REQUEST_CHANNELS).describe('`mcp`: a call of a tool.'),
  },
  {
    guarded: true,
    indexes: [
      { columns: ['owner_id', 'id'], where: "owner_id <> ''", name: 'request_log_of_owner' },
      { columns: ['tenant_key', 'id'], where: "tenant_key <> ''", name: 'request_log_of_tenant' },
      { columns: ['key_id', 'id'], where: 'key_id is not null', name: 'request_log_of_key' },
      { columns: ['request_id'], where: 'request_id is not null', name: 'request_log_by_request' },
      // Failures are few among many, and what people look for.
      { columns: ['owner_id', 'id'], where: "owner_id <> '' and failed", name: 'request_log_failed_of_owner' },
      { columns: ['tenant_key', 'id'], where: "tenant_key <> '' and failed", name: 'request_log_failed_of_tenant' },
      { columns: ['id'], where: 'failed', name: 'request_log_failed' },
    ],
  },
);

/** How many requests there were, by day (UTC), operation and caller. Every request is counted, also one that a sampled log leaves out. */
export const requestUsage = model(
  'request_usage',
  {
    /** Of the columns that tell it from others: an upsert needs one short key. */
    id: t.uuid().pk(),
    day: t.date().describe('In UTC.'),
    method: t.text(METHOD_LENGTH_MAX),
    route: t.text(ROUTE_LENGTH_MAX).describe('The path of the operation; empty where none has the address.'),
    version: t.text(VERSION_LENGTH_MAX).describe('The version of the response; empty where the app has none.'),
    deprecated: t.bool(),
    via: t.enum(REQUEST_CHANNELS),
    owner_id: t.text(IDENTITY_LENGTH_MAX).person({ erase: 'anonymise', erased: '' }),
    tenant_key: t.text(IDENTITY_LENGTH_MAX).tenant(),
    key_id: t.text(IDENTITY_LENGTH_MAX).describe('The API key; empty for other credentials.'),
    requests: t.bigint(),
    failures: t.bigint().describe('Those of them with a status of 400 or above, or without a complete response.'),
  },
  {
    guarded: true,
    indexes: [
      { columns: ['day', 'id'] },
      { columns: ['owner_id', 'day', 'id'], where: "owner_id <> ''", name: 'request_usage_of_owner' },
      { columns: ['tenant_key', 'day', 'id'], where: "tenant_key <> ''", name: 'request_usage_of_tenant' },
      { columns: ['key_id', 'day'], where: "key_id <> ''", name: 'request_usage_of_key' },
      { columns: ['day', 'id'], where: 'deprecated', name: 'request_usage_deprecated' },
    ],
  },
);

/** What was used of a quota in a calendar period. Written with the request, so it is exact: what is billed comes from here. */
export const requestQuotas = model(
  'request_quotas',
  {
    /** Of whose quota it is, and the period: an upsert needs one short key. */
    id: t.uuid().pk(),
    kind: t.enum(QUOTA_KINDS).describe('Whose quota: of an API key, of a user, of a tenant.'),
    /** Empty for a tenant. */
    owner_id: t.text(IDENTITY_LENGTH_MAX).person({ erase: 'anonymise', erased: '' }),
    /** Empty for a user, and for a key that belongs to no tenant. */
    tenant_key: t.text(IDENTITY_LENGTH_MAX).tenant(),
    key_id: t.text(IDENTITY_LENGTH_MAX).describe('The API key; empty for users and tenants.'),
    period: t.enum(QUOTA_PERIODS),
    starts_at: t.timestamp().describe('In UTC.'),
    ends_at: t.timestamp().describe('When the next period begins.'),
    used: t.bigint().describe('Requests that were admitted in the period.'),
    quota: t.bigint().nullable().describe('Requests that may be admitted in the period, at the last of them. Null: only counted.'),
    recorded_at: t.timestamp().nullable().describe('When `usage.recorded` was emitted.'),
    counted_in_redis: t.bigint().dbDefault(0n).describe('Those of `used` that Redis counted, as far as they were written here.'),
  },
  {
    guarded: true,
    indexes: [
      { columns: ['owner_id', 'ends_at'], where: "owner_id <> ''", name: 'request_quotas_of_owner' },
      { columns: ['tenant_key', 'ends_at'], where: "tenant_key <> ''", name: 'request_quotas_of_tenant' },
      { columns: ['key_id', 'ends_at'], where: "key_id <> ''", name: 'request_quotas_of_key' },
      { columns: ['ends_at', 'id'] },
      { columns: ['ends_at'], where: 'recorded_at is null', name: 'request_quotas_unrecorded' },
    ],
  },
);
