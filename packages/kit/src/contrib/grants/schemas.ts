import { jsonSchema, namedSchema } from '../../http/declare/json-schema.ts';
import type { GrantRow } from './rows/store.ts';
import { shownActions } from './declare/stored-actions.ts';
import { SUBJECT_LENGTH_MAX } from './declare/subject.ts';

const actions = { type: 'array', items: { type: 'string', maxLength: 40 }, minItems: 1, maxItems: 24 };
const given = {
  subject: {
    type: 'string',
    maxLength: SUBJECT_LENGTH_MAX,
    description: '`user:<id>`, `group:<id>`, or `tenant`, `authenticated`, `public` where allowed.',
  },
  set: { type: 'string', maxLength: 40, description: 'The name of a set. Give this or `actions`.' },
  actions: { ...actions, description: 'Single actions. Give this or `set`.' },
  expires_at: { type: ['string', 'null'], format: 'date-time', description: 'When the grant expires; null if it does not expire.' },
};

export interface GrantBody {
  readonly subject: string;
  readonly set?: string;
  readonly actions?: string[];
  readonly expires_at?: string | null;
}

const one = namedSchema('GrantInput', { type: 'object', properties: given, required: ['subject'], additionalProperties: false });

/** One grant, or several that are given together or not at all. */
export const ShareBody = jsonSchema<GrantBody | { readonly items: readonly GrantBody[] }>(
  {
    oneOf: [
      one,
      {
        type: 'object',
        properties: { items: { type: 'array', items: one, minItems: 1, maxItems: 100 } },
        required: ['items'],
        additionalProperties: false,
      },
    ],
  },
  { name: 'ShareInput' },
);

export interface ShownGrant {
  readonly id: string;
  readonly subject: string;
  readonly name: string | null;
  readonly set: string | null;
  readonly actions: readonly string[] | null;
  readonly granted_by: string | null;
  readonly created_at: string;
  readonly expires_at: string | null;
}

const time = { type: 'string', format: 'date-time' };
const shown = namedSchema('Grant', {
  type: 'object',
  properties: {
    id: { type: 'string', format: 'uuid' },
    subject: given.subject,
    name: { type: ['string', 'null'], description: 'The name of the user or group.' },
    set: { type: ['string', 'null'] },
    actions: { type: ['array', 'null'], items: { type: 'string' } },
    granted_by: { type: ['string', 'null'], description: 'The id of the user who granted it.' },
    created_at: time,
    expires_at: { ...time, type: ['string', 'null'] },
  },
  required: ['id', 'subject', 'name', 'set', 'actions', 'granted_by', 'created_at', 'expires_at'],
});

export const GrantList = jsonSchema<{ items: readonly ShownGrant[] }>(
  {
    type: 'object',
    properties: { items: { type: 'array', items: shown } },
    required: ['items'],
  },
  { name: 'GrantList' },
);

export function shownGrant(row: GrantRow, name: string | null): ShownGrant {
  return {
    id: row.id,
    subject: row.subject,
    name,
    ...shownActions(row.actions),
    granted_by: row.granted_by,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at?.toISOString() ?? null,
  };
}
