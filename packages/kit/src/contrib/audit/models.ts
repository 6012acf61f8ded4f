import { t } from '../../db/declare/column.ts';
import { model } from '../../db/declare/model.ts';
import { IDENTITY_LENGTH_MAX } from '../../db/values/identity-length.ts';

/** What an entry says. */
const content = () => ({
  at: t.timestamp(),
  actor_id: t.text(IDENTITY_LENGTH_MAX).nullable(),
  actor_name: t.text(255).nullable(),
  /** How the actor was authenticated: `session`, `api_key`, …; null for commands and programs. */
  actor_scheme: t.text(64).nullable(),
  /** The API key or session that was used. */
  credential_id: t.text(IDENTITY_LENGTH_MAX).nullable(),
  action: t.text(100),
  target_type: t.text(100),
  target_id: t.text(IDENTITY_LENGTH_MAX),
  before: t.json().nullable(),
  after: t.json().nullable(),
  metadata: t.json().nullable(),
  request_id: t.text(200).nullable(),
  tenant_id: t
    .text(IDENTITY_LENGTH_MAX)
    .dbDefault('')
    .tenant({ erase: 'keep' })
    .describe('The tenant that the change belongs to; empty: none.'),
  /** Without it nobody can find out what the values were; null once they are erased, and in entries of format 1. */
  salt: t.text(36).nullable(),
  /** SHA-256 over the salt and the values; null in entries of format 1. */
  values_hash: t.text(64).nullable(),
  content_hash: t.text(64),
});

/** Entries that are recorded and not sealed yet. No index but the key: this is what a change waits for. */
export const auditInbox = model('audit_inbox', { id: t.uuidv7().pk(), ...content() }, { guarded: true });

const INDEXES = [
  { columns: ['at'] },
  { columns: ['target_type', 'target_id', 'seq'] },
  { columns: ['actor_id', 'seq'] },
  { columns: ['action', 'seq'] },
  { columns: ['request_id'] },
  { columns: ['tenant_id', 'seq'], where: "tenant_id <> ''", name: 'audit_entries_of_tenant' },
];

/** Entries in the chain. */
export const auditEntries = model(
  'audit_entries',
  {
    id: t.uuidv7().pk(),
    /** The place in the chain, from 1 without gaps. */
    seq: t.bigint().nullable().unique(),
    ...content(),
    previous_hash: t.text(64).nullable(),
    hash: t.text(64).nullable(),
  },
  {
    guarded: true,
    indexes: INDEXES,
  },
);

/**
 * The same table as lists read it: by the place in the chain, which the indexes of the filters end with. Lists seal before they read, so that every
 * entry has its place.
 */
export const sealedEntries = model(
  'audit_entries',
  {
    id: t.uuidv7().unique(),
    seq: t.bigint().pk().describe('Position in the chain: an integer, from 1 without gaps.'),
    ...content(),
    previous_hash: t.text(64),
    hash: t.text(64).describe('SHA-256 over this entry and every entry before it.'),
  },
  { guarded: true, indexes: INDEXES },
);

/** One row: where the chain ends, and where it starts after pruning. */
export const auditChain = model(
  'audit_chain',
  {
    id: t.int().pk(),
    length: t.bigint(),
    hash: t.text(64),
    /** Entries up to here were pruned; the next one links to `pruned_hash`. */
    pruned_through: t.bigint(),
    pruned_hash: t.text(64),
  },
  { guarded: true },
);
