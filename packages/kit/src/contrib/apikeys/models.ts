import { model } from '../../db/declare/model.ts';
import { t } from '../../db/declare/column.ts';
import { PREFIX_LENGTH } from './key/key.ts';
import { NAME_LENGTH_MAX } from './rows/field-rules.ts';
import { IDENTITY_LENGTH_MAX } from '../../db/values/identity-length.ts';

export const apiKeys = model(
  'api_keys',
  {
    id: t.uuidv7().pk(),
    /** The owner's key in the app's user table, whatever its type there; not a foreign key, because that table may be anyone's. */
    owner_id: t.text(IDENTITY_LENGTH_MAX).person(),
    tenant_id: t
      .text(IDENTITY_LENGTH_MAX)
      .nullable()
      .tenant()
      .describe(
        'The tenant that the key acts in, and in no other. Empty: in none; `*`: in every tenant of its owner. Null: the same, because the key is from before there were tenants.',
      ),
    name: t.text({ min: 1, max: NAME_LENGTH_MAX }).describe('A label for people.'),
    prefix: t.text(PREFIX_LENGTH).unique().describe('The part of the key that is not secret; use it to tell keys apart.'),
    /** SHA-256, or HMAC-SHA-256 under the pepper, of the secret; in hexadecimal. */
    digest: t.text(64).sensitive(),
    scopes: t
      .array(t.text())
      .describe('What the key may do: `*`, `<resource>:*` or `<resource>:<action>`. Stored sorted and without repetition; at most 100.'),
    rate_limit: t.text(40).nullable().describe('`<count>/<period>`, for example `1000/hour` or `20/5min`.'),
    quota: t
      .text(40)
      .nullable()
      .describe(
        'How many requests the key may make in a calendar period (UTC), `<count>/<period>`: `10000/month`. `unlimited/month` only counts.',
      ),
    created_at: t.timestamp(),
    last_used_at: t.timestamp().nullable().describe('Exact to about a minute.'),
    expires_at: t.timestamp().nullable(),
    revoked_at: t.timestamp().nullable(),
    revoked_reason: t.text(200).nullable(),
    /** The secret before the last rotation, while its grace lasts. */
    previous_digest: t.text(64).nullable().sensitive(),
    previous_expires_at: t.timestamp().nullable().describe('Until when the secret from before the last rotation works.'),
    previous_last_used_at: t.timestamp().nullable().describe('When that secret was last used.'),
  },
  {
    guarded: true,
    indexes: [
      { columns: ['owner_id', 'created_at'] },
      // The page of a user in the admin site lists their newest keys.
      { columns: ['owner_id', 'id'] },
      // The keys of a tenant: its page, its export and its erasure.
      { columns: ['tenant_id', 'id'], where: 'tenant_id is not null', name: 'api_keys_tenant' },
      // For operators: the few that are expired or revoked among many.
      { columns: ['expires_at'], where: 'expires_at is not null', name: 'api_keys_expiring' },
      { columns: ['revoked_at'], where: 'revoked_at is not null', name: 'api_keys_revoked' },
    ],
  },
);

/** Users of a tenant that are no people: their keys stay when the people who made them leave. */
export const serviceUsers = model(
  'service_users',
  {
    id: t.uuidv7().pk(),
    /** The tenant that it is a member of, and of no other. */
    tenant_id: t.text(IDENTITY_LENGTH_MAX).readOnly().tenant(),
    /** The key in the app's user table. */
    user_id: t.text(IDENTITY_LENGTH_MAX).unique().readOnly().person(),
    name: t.text({ min: 1, max: NAME_LENGTH_MAX }).describe('What people call it: the program that has its keys.'),
    created_at: t.timestamp().readOnly(),
    /** The person who made it; null: a program. */
    created_by: t.text(IDENTITY_LENGTH_MAX).nullable().readOnly().person({ erase: 'unlink' }),
  },
  { guarded: true, indexes: [{ columns: ['tenant_id', 'id'] }] },
);

/** Requests of a key by the hour. Not a foreign key: counts are written behind the requests, and pruned by their age. */
export const apiKeyUsage = model(
  'api_key_usage',
  {
    key_id: t
      .uuid()
      .refersTo(() => apiKeys)
      .person()
      .tenant(),
    hour: t.timestamp(),
    requests: t.bigint(),
  },
  { guarded: true, primaryKey: ['key_id', 'hour'], indexes: [{ columns: ['hour'] }] },
);
