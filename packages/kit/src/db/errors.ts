import { defineErrors } from '../errors/catalog.ts';

/** What to do about a damaged SQLite file. */
export const DAMAGED_FILE_REMEDY = 'Stop the app, keep a copy of the file with its -wal and -shm files, and put a backup in its place.';

export const dbErrors = defineErrors('db', {
  database_busy: {
    status: 503,
    detail: 'The database is busy. Try again shortly.',
    remedy: 'Another writer held the database longer than the deadline. Retry; if it persists, look for long transactions.',
    retryAfterSeconds: 1,
  },
  database_unavailable: {
    status: 503,
    detail: 'The database cannot be reached. Try again shortly.',
    remedy: 'The connection was refused, lost or not free in time. Retry; check the server and the pool size.',
    retryAfterSeconds: 5,
  },
  too_many_cursors: {
    status: 503,
    detail: 'Too many exports are running. Try again shortly.',
    remedy:
      'Exports and other streamed queries use at most half of the connections (`cursors_max`). Retry after the seconds in `Retry-After`; if it persists, raise `poolMax`, or look for clients that read slowly.',
    retryAfterSeconds: 10,
    members: { cursors_max: { type: 'integer', description: 'The limit of streamed queries per process.' } },
  },
  statement_timeout: {
    status: 503,
    detail: 'The database took too long to read the data, and the read was stopped. Ask for less.',
    remedy:
      'Send a narrower request: more filters, fewer search words, a smaller page. The same request would take as long again, so clients do not repeat it. The log names the operation and, where it is known, the missing index. Reads have 10 seconds by default; `timeoutMs` of the route or the app changes that.',
  },
  too_busy: {
    status: 503,
    detail: 'Too many of your long requests are running. Try again shortly.',
    remedy:
      'One caller uses at most half of the connections for reads that can take long; its other such reads wait, and there are too many of them. Retry after the seconds in `Retry-After`, and send fewer at the same time.',
    retryAfterSeconds: 2,
  },
  write_conflict: {
    status: 409,
    detail: 'Another request changed the same records at the same time. Nothing was saved.',
    remedy:
      'The database ended this transaction because of a deadlock or a serialization failure, also after it was run again. Send the request again.',
    retryAfterSeconds: 1,
  },
  database_read_only: {
    status: 503,
    detail: 'The database does not take changes right now. Try again shortly.',
    remedy:
      'The server is a replica, or was made read-only: point the app at the server that takes writes. Code that writes in a transaction with `readOnly` gets it too.',
    retryAfterSeconds: 5,
  },
  prepared_statement_lost: {
    status: 500,
    detail: 'An internal error occurred.',
    remedy:
      'A pooler between the app and PostgreSQL does not keep prepared statements. Set `DATABASE_PREPARE=off` (`openDatabase(url, { prepare: false })`), or use PgBouncer 1.21 or newer with `max_prepared_statements`.',
  },
  storage_full: {
    status: 503,
    detail: 'Nothing can be saved right now. Try again later.',
    remedy: 'The disk of the database is full: make room on it. Reading still works, and no change was saved in part.',
    retryAfterSeconds: 60,
  },
  database_damaged: {
    status: 503,
    detail: 'The data cannot be read or saved right now.',
    remedy: `SQLite found its file damaged. ${DAMAGED_FILE_REMEDY}`,
  },
  commit_unknown: {
    status: 503,
    detail: 'The connection was lost while the change was being saved. It may or may not have been saved.',
    remedy: 'Read the state back before repeating the request, or send an idempotency key.',
  },
  value_not_storable: {
    status: 422,
    detail: 'A value cannot be stored in its column.',
    remedy: 'The detail names the column and the rule: range, scale, length, characters or form.',
  },
  still_referenced: {
    status: 409,
    detail: 'Other records refer to this one.',
    remedy: 'Remove or change those first.',
  },
  invalid_where: {
    status: 500,
    detail: 'An internal error occurred.',
    remedy:
      'A condition names an unknown column or operator, or holds a value its column cannot have. The log says where; nothing was read.',
  },
  outer_handle_in_transaction: {
    status: 500,
    detail: 'An internal error occurred.',
    remedy: 'Use the handle that the transaction passed to its callback, not the database handle around it.',
  },
  transaction_finished: {
    status: 500,
    detail: 'An internal error occurred.',
    remedy: 'A transaction handle was used after its callback ended. Await everything inside the callback.',
  },
  transaction_aborted: {
    status: 500,
    detail: 'An internal error occurred.',
    remedy:
      'A statement failed earlier in this transaction, or ran beside a savepoint that was rolled back. Wrap statements that may fail in a savepoint, tx.transaction(…), and await it before the next statement.',
  },
});
