import { jsonSchema } from '../../http/declare/json-schema.ts';
import { GRACE_SECONDS_MAX, NAME_LENGTH_MAX } from './rows/field-rules.ts';

const rotation = jsonSchema<{ readonly grace_seconds?: number }>({
  type: 'object',
  properties: { grace_seconds: { type: 'integer', minimum: 0, maximum: GRACE_SECONDS_MAX, default: 0 } },
  additionalProperties: false,
});

/** Nothing needs to be said to rotate a key: no body is an empty one. */
export const RotateBody: typeof rotation = {
  '~standard': { ...rotation['~standard'], validate: (body) => rotation['~standard'].validate(body ?? {}) },
};

export const RevokeBody = jsonSchema<{ readonly reason?: string }>({
  type: 'object',
  properties: { reason: { type: 'string', maxLength: 200, description: 'Stored with the key and in the audit log.' } },
  additionalProperties: false,
});

const name = { type: 'string', minLength: 1, maxLength: NAME_LENGTH_MAX };

export const NewServiceUserBody = jsonSchema<{ readonly name: string; readonly role: string }>(
  {
    type: 'object',
    properties: {
      name: { ...name, description: 'What people call it: the program that has its keys.' },
      role: {
        type: 'string',
        minLength: 1,
        maxLength: 40,
        description: 'Its role in the tenant: one that you can give, and not that of owners.',
      },
    },
    required: ['name', 'role'],
    additionalProperties: false,
  },
  { name: 'NewServiceUser' },
);

/** Nothing of a service user changes. */
export const NoServiceUserPatch = jsonSchema<object>({ type: 'object', properties: {}, additionalProperties: false });

export interface IssuedKeyFields {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expires_at?: string | null;
}

export const NewServiceKeyBody = jsonSchema<IssuedKeyFields>(
  {
    type: 'object',
    properties: {
      name: { ...name, description: 'A label for people.' },
      scopes: {
        type: 'array',
        items: { type: 'string', maxLength: 129 },
        maxItems: 100,
        description: 'What the key may do: `orders:read`.',
      },
      expires_at: { type: ['string', 'null'], format: 'date-time', description: 'Default: the key does not expire.' },
    },
    required: ['name', 'scopes'],
    additionalProperties: false,
  },
  { name: 'NewServiceKey' },
);
