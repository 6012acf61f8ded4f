import { idParams, jsonSchema, namedSchema } from '../../http/declare/json-schema.ts';
import type { ApiKeyRecord } from './key/api-key.ts';
import { apiKeyErrors } from './errors.ts';
import { GRACE_SECONDS_MAX, NAME_LENGTH_MAX, SCOPES_MAX } from './rows/field-rules.ts';
import { KEY_STATES, type KeyState } from './key/state.ts';

const name = { type: 'string', minLength: 1, maxLength: NAME_LENGTH_MAX, description: 'A label for people.' };
const scopes = {
  type: 'array',
  maxItems: SCOPES_MAX,
  items: { type: 'string', description: '`*`, `<resource>:*` or `<resource>:<action>`.' },
  description: 'What the key may do. Stored sorted and without repetition.',
  // Which can be granted depends on the application; none always can.
  examples: [[]],
};
const timestamp = { type: 'string', format: 'date-time' };
const timestampOrNull = { type: ['string', 'null'], format: 'date-time' };
const rateLimit = { type: ['string', 'null'], maxLength: 40, description: '`<count>/<period>`, for example `1000/hour` or `20/5min`.' };

const recordProperties = {
  id: { type: 'string', format: 'uuid' },
  name: { type: 'string' },
  prefix: { type: 'string', description: 'The part of the key that is not secret; use it to tell keys apart.' },
  scopes: { type: 'array', items: { type: 'string' } },
  rate_limit: { type: ['string', 'null'] },
  created_at: timestamp,
  last_used_at: { ...timestampOrNull, description: 'Exact to about a minute.' },
  expires_at: timestampOrNull,
  revoked_at: timestampOrNull,
  previous_expires_at: { ...timestampOrNull, description: 'Until when the secret from before the last rotation works.' },
  previous_last_used_at: { ...timestampOrNull, description: 'When that secret was last used.' },
  state: { type: 'string', enum: [...KEY_STATES] },
};

const record = { type: 'object', properties: recordProperties, required: Object.keys(recordProperties), additionalProperties: false };

const named = namedSchema('ApiKey', record);
export const KeyRecord = jsonSchema<ApiKeyRecord>(named);

export const IssuedKey = jsonSchema<ApiKeyRecord & { readonly key: string }>(
  {
    ...record,
    properties: { ...recordProperties, key: { type: 'string', 'x-sensitive': true, description: 'The whole key. Shown this once.' } },
    required: [...record.required, 'key'],
  },
  { name: 'IssuedApiKey' },
);

export const KeyPage = jsonSchema<{ readonly items: readonly ApiKeyRecord[]; readonly count: number }>({
  type: 'object',
  properties: { items: { type: 'array', items: named }, count: { type: 'integer', minimum: 0 } },
  required: ['items', 'count'],
  additionalProperties: false,
});

export const KeyId = idParams<{ readonly id: string }>({ id: { type: 'string', format: 'uuid' } }, () => apiKeyErrors.api_key_not_found());

/** Beyond it the offset is a number no database can take; no app has so many keys. */
const PAGE_MAX = 2_147_483_647;

export const ListQuery = jsonSchema<{ readonly page?: number; readonly page_size?: number; readonly state?: KeyState }>({
  type: 'object',
  properties: {
    page: { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: 1 },
    page_size: { type: 'integer', minimum: 1, default: 50, description: 'Values above 100 are treated as 100.' },
    state: { type: 'string', enum: [...KEY_STATES] },
  },
  additionalProperties: false,
});

export interface CreateFields {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expires_at?: string | null;
  readonly rate_limit?: string | null;
}

export const CreateBody = jsonSchema<CreateFields>(
  {
    type: 'object',
    properties: { name, scopes, expires_at: timestampOrNull, rate_limit: rateLimit },
    required: ['name', 'scopes'],
    additionalProperties: false,
  },
  { name: 'ApiKeyInput' },
);

export const EditBody = jsonSchema<Partial<CreateFields>>(
  {
    type: 'object',
    properties: { name, scopes, expires_at: timestampOrNull, rate_limit: rateLimit },
    additionalProperties: false,
  },
  { name: 'ApiKeyPatch' },
);

const rotation = jsonSchema<{ readonly grace_seconds?: number }>({
  type: 'object',
  properties: { grace_seconds: { type: 'integer', minimum: 0, maximum: GRACE_SECONDS_MAX, default: 0 } },
  additionalProperties: false,
});

/** Nothing needs to be said to rotate a key: no body is an empty one. */
export const RotateBody: typeof rotation = {
  '~standard': { ...rotation['~standard'], validate: (body) => rotation['~standard'].validate(body ?? {}) },
};
