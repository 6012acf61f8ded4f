import { IDENTITY_LENGTH_MAX } from '../../values/identity-length.ts';
import { t } from '../../declare/column.ts';
import { model } from '../../declare/model.ts';

/** Secrets that an installation makes for itself, once: keys of cursors and the like. */
export const secrets = model(
  'kit_secrets',
  {
    name: t.text(64).pk(),
    value: t.bytes().sensitive(),
    created_at: t.timestamp(),
  },
  { guarded: true },
);

/**
 * One row per idempotency key: claimed before the work, completed in the transaction of the change. PostgreSQL has an index on `expires_at`
 * besides; on SQLite records are removed in the order of their `rowid`, which is the order of their claims.
 */
export const idempotency = model(
  'kit_idempotency',
  {
    /** SHA-256 over credential, tenant, operation, path and key, in hex. */
    scope_hash: t.text(64).pk(),
    key: t.text(255),
    /** Who sent the request: for `kit idempotency list`. */
    caller: t.text(400),
    operation: t.text(200),
    /** SHA-256 over the request, in hex: another request with the same key is refused. */
    fingerprint: t.text(64),
    /** Changes with every claim: a worker that lost its lease cannot complete. */
    token: t.uuid(),
    state: t.enum(['running', 'complete']),
    lease_until: t.timestamp(),
    status: t.int().nullable(),
    headers: t.json<Readonly<Record<string, string | string[]>>>().nullable(),
    /** The response as it was sent; NULL when it was too large or must not be stored. */
    body: t.bytes().nullable(),
    /** SHA-256 over the rights that decided what the response shows, in hex: a caller with others does not get it again. */
    audience: t.text(64).nullable(),
    created_at: t.timestamp(),
    expires_at: t.timestamp(),
  },
  { guarded: true },
);

/**
 * Ids of users who were deleted: what they owned elsewhere (a job that waits, an endpoint created while they were deleted) must not act for them.
 * Written in the transaction that deletes the user, and never deleted: an id is not used again.
 */
export const deletedUsers = model(
  'kit_deleted_users',
  { user_id: t.text(IDENTITY_LENGTH_MAX).pk(), deleted_at: t.timestamp() },
  { guarded: true },
);

/**
 * Changes of the rows of resources with live lists, for a day. Written in the transaction of the change; see `crud/write/change-log.ts`. PostgreSQL has an
 * index on `xid` and the sequence `kit_change_order` besides.
 */
export const changes = model(
  'kit_changes',
  {
    /** Of the changes of one row, the later one has the greater number; on SQLite, of all changes. */
    position: t.bigint().pk(),
    /** PostgreSQL: the transaction, as snapshots name it. SQLite: 0. */
    xid: t.bigint(),
    /** Random: a restored copy of a SQLite database continues with the same positions and other tokens. */
    token: t.int(),
    /** The table. */
    resource: t.text(200),
    /** Of the row, as JSON. */
    key: t.text(1000),
    /** `touched`: a program announced the row, and its prior values are unknown. */
    kind: t.enum(['created', 'changed', 'touched']),
    /** The row before the change, as JSON. Of columns that are sensitive, JSON, arrays or bytes only whether they changed: `~name`. */
    prior: t.json<Readonly<Record<string, unknown>>>().nullable(),
    at: t.timestamp(),
  },
  { guarded: true },
);
