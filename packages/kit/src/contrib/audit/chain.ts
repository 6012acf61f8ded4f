import { hash } from 'node:crypto';
import { canonicalJson } from '../../db/values/canonical-json.ts';

// Every entry carries the digest of its own content and a link over the entry before it:
//   content_hash = SHA-256(canonical content)
//   hash         = SHA-256(previous hash, then content_hash, both in hexadecimal)
// Changing, removing or inserting an entry changes every hash after it. The second formula is simple on purpose: PostgreSQL computes it
// in a trigger at commit (see migrations), and both sides must agree.

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
}

export function contentHash(content: EntryContent): string {
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
