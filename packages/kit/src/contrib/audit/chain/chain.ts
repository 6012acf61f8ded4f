import { hash } from 'node:crypto';
import { canonicalJson } from '../../../db/values/canonical-json.ts';

// Every entry carries the digest of its own content and a link over the entry before it:
//   values_hash  = SHA-256(salt, and the values: what was there before and after, names, the request id)
//   content_hash = SHA-256(canonical content, with values_hash in place of the values)
//   hash         = SHA-256(previous hash, then content_hash, both in hexadecimal)
// Changing, removing or inserting an entry changes every hash after it. The second formula is simple on purpose: PostgreSQL computes it
// in a trigger at commit (see migrations), and both sides must agree.
// The values can be erased, and the chain stays whole: without the salt nobody can find out from values_hash what they were. Entries of format 1 have no
// values_hash: their content_hash covers the values themselves.

/** The hash before the first entry. */
export const GENESIS = '0'.repeat(64);

/** What an entry says: everything that is hashed. */
export interface EntryContent {
  readonly id: string;
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
  /** The tenant that the change belongs to; empty: none, or an entry of format 1. */
  readonly tenant_id: string;
  /** Null in entries of format 1, and in those whose values were erased. */
  readonly salt: string | null;
  /** Null in entries of format 1. */
  readonly values_hash: string | null;
}

/** The values and names of an entry: what can be erased. */
export const ERASABLE = ['actor_name', 'before', 'after', 'metadata', 'request_id'] as const;

export function valuesHash({ salt, actor_name, before, after, metadata, request_id }: Omit<EntryContent, 'values_hash'>): string {
  return hash('sha256', canonicalJson([salt, actor_name, before, after, metadata, request_id]));
}

export function contentHash(content: EntryContent): string {
  return content.values_hash === null ? firstFormat(content) : secondFormat(content, content.values_hash);
}

function secondFormat(content: EntryContent, values: string): string {
  const { id, at, actor_id, actor_scheme, credential_id, action, target_type, target_id, tenant_id } = content;
  return hash(
    'sha256',
    canonicalJson([2, id, at, actor_id, actor_scheme, credential_id, action, target_type, target_id, tenant_id, values]),
  );
}

/** What an entry says is what was recorded, or its values are gone: `isErased` tells which. */
export function isAsRecorded(entry: EntryContent & { readonly content_hash: string }): boolean {
  if (contentHash(entry) !== entry.content_hash) return false;
  if (entry.values_hash === null) return entry.salt === null && entry.tenant_id === '';
  return isErased(entry) ? ERASABLE.every((name) => entry[name] === null) : valuesHash(entry) === entry.values_hash;
}

export function isErased({ salt, values_hash }: Pick<EntryContent, 'salt' | 'values_hash'>): boolean {
  return values_hash !== null && salt === null;
}

function firstFormat(content: EntryContent): string {
  const { id, at, actor_id, actor_name, actor_scheme, credential_id, action, target_type, target_id, request_id } = content;
  const { before, after, metadata } = content;
  const text = canonicalJson([
    id,
    at,
    actor_id,
    actor_name,
    actor_scheme,
    credential_id,
    action,
    target_type,
    target_id,
    before,
    after,
    metadata,
    request_id,
  ]);
  return hash('sha256', text);
}

export function linkHash(previousHash: string, content: string): string {
  return hash('sha256', previousHash + content);
}
