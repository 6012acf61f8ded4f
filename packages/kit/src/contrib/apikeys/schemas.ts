import { jsonSchema } from '../../http/declare/json-schema.ts';
import { GRACE_SECONDS_MAX } from './rows/field-rules.ts';

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
