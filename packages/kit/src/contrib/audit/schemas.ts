import { CURSOR_LENGTH_MAX } from '../../db/sql/keyset/cursor.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { idParams, jsonSchema } from '../../http/declare/json-schema.ts';
import { page } from '../../http/declare/page.ts';
import { IDENTITY_LENGTH_MAX } from '../../db/values/identity-length.ts';

/** An entry on the wire. */
export interface EntryRecord {
  readonly id: string;
  readonly seq: string;
  readonly at: Date;
  readonly actor_id: string | null;
  readonly actor_name: string | null;
  readonly actor_scheme: string | null;
  readonly credential_id: string | null;
  readonly action: string;
  readonly target_type: string;
  readonly target_id: string;
  readonly before: unknown;
  readonly after: unknown;
  readonly metadata: unknown;
  readonly request_id: string | null;
  readonly hash: string;
  readonly values_hidden: boolean;
}

const text = { type: 'string' };
const textOrNull = { type: ['string', 'null'] };
const properties = {
  id: { type: 'string', format: 'uuid' },
  seq: { type: 'string', description: 'Position in the chain: an integer, from 1 without gaps.' },
  at: { type: 'string', format: 'date-time' },
  actor_id: textOrNull,
  actor_name: textOrNull,
  actor_scheme: { ...textOrNull, description: 'How the actor was authenticated: `session`, `api_key`, …; null for programs and commands.' },
  credential_id: { ...textOrNull, description: 'The API key or session that was used.' },
  action: text,
  target_type: text,
  target_id: text,
  before: { description: 'Null when there was nothing before. Sensitive members are masked.' },
  after: {},
  metadata: {},
  request_id: textOrNull,
  hash: { ...text, description: 'SHA-256 over this entry and every entry before it.' },
  values_hidden: {
    type: 'boolean',
    description: 'You cannot see the record, so `before`, `after` and `metadata` are null. Superusers see every record.',
  },
};
const entry = { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };

export const Entry = jsonSchema<EntryRecord>(entry, { name: 'AuditEntry' });

export const EntryPage = page(Entry);

export const EntryId = idParams<{ readonly id: string }>({ id: { type: 'string', format: 'uuid' } }, () => coreErrors.not_found());

const filter = { type: 'string', minLength: 1, maxLength: IDENTITY_LENGTH_MAX };

export interface EntryQuery {
  readonly limit?: number;
  readonly cursor?: string;
  readonly actor_id?: string;
  readonly credential_id?: string;
  readonly action?: string;
  readonly target_type?: string;
  readonly target_id?: string;
  readonly request_id?: string;
  readonly since?: string;
  readonly until?: string;
}

export const ListQuery = jsonSchema<EntryQuery>({
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 50, description: 'Entries per page.' },
    cursor: { type: 'string', maxLength: CURSOR_LENGTH_MAX, description: '`next` or `previous` of another page.' },
    actor_id: filter,
    credential_id: filter,
    action: { ...filter, description: 'For example `api_key.revoked`.' },
    target_type: filter,
    target_id: filter,
    request_id: filter,
    since: { type: 'string', format: 'date-time', description: 'At this time or later.' },
    until: { type: 'string', format: 'date-time', description: 'Before this time.' },
  },
  additionalProperties: false,
});
