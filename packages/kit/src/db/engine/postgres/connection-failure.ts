import { isKitError } from '../../../errors/kit-error.ts';
import { dbErrors } from '../../errors.ts';

const NETWORK = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EAI_AGAIN',
]);
/** Class 08 is connection exceptions; 57P0x the server shutting down or starting; 53300 too many connections. */
const SERVER = /^(08...|57P0[1-5]|53300)$/;
const DRIVER = /connection terminated|not queryable|timeout expired|client was closed|Cannot use a pool/i;

/** A host that answers and is another kind of server than `target_session_attrs` asks for. */
export class WrongServer extends Error {
  override readonly name = 'WrongServer';
}

/** A connection whose server does not answer any more. */
export class ServerSilent extends Error {
  override readonly name = 'ServerSilent';
}

export function isConnectionFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof WrongServer || error instanceof ServerSilent) return true;
  if (isKitError(error)) return error.code === 'database_unavailable';
  const code = (error as { code?: unknown }).code;
  // What the server says has a code, and may quote a caller's text: only the driver's own errors are known by their words.
  if (typeof code === 'string') return NETWORK.has(code) || SERVER.test(code);
  return DRIVER.test(error.message);
}

/** No server was reached, or it did not answer: not even with a refusal. */
export function isUnreachable(error: unknown): boolean {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return error instanceof ServerSilent || (typeof code === 'string' ? NETWORK.has(code) : DRIVER.test((error as Error).message));
}

/** The driver did not send the statement: the connection was lost before. */
export function isUnsent(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === undefined && error.message.endsWith('is not queryable');
}

/** The server takes no changes: a replica, or a primary that has become one. Another connection may lead to one that does. */
export function isReadOnlyServer(error: unknown): boolean {
  return (error as { code?: unknown } | null | undefined)?.code === '25006';
}

/** A deadlock, or a serialization failure: this transaction lost, and the same may succeed when it is run again. */
const CONFLICTS: ReadonlySet<unknown> = new Set(['40P01', '40001']);

export function isConflict(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return CONFLICTS.has(code) || code === dbErrors.write_conflict.code;
}

/** A statement_timeout, of the request or set on the server, an administrator's pg_cancel_backend(), and a transaction_timeout. */
const TIME_IS_OVER: ReadonlySet<unknown> = new Set(['57014', '25P04']);

/** A lost or refused connection, a server that takes no changes and a full disk are the caller's "try again", everything else stays what it is. */
export function translateFailure(error: unknown): unknown {
  if (isConnectionFailure(error) && !isKitError(error))
    return dbErrors.database_unavailable({ cause: error, message: (error as Error).message });
  const code = (error as { code?: unknown } | null)?.code;
  if (code === '26000' || code === '42P05')
    return dbErrors.prepared_statement_lost({
      cause: error,
      message: `${(error as Error).message}: a pooler between the app and PostgreSQL does not keep prepared statements. Set DATABASE_PREPARE=off, or openDatabase(url, { prepare: false }).`,
    });
  if (CONFLICTS.has(code)) return dbErrors.write_conflict({ cause: error, message: (error as Error).message });
  if (isReadOnlyServer(error)) return dbErrors.database_read_only({ cause: error, message: (error as Error).message });
  if (TIME_IS_OVER.has(code)) return dbErrors.statement_timeout({ cause: error, message: (error as Error).message });
  if (code === '53100') return dbErrors.storage_full({ cause: error, message: (error as Error).message });
  if (code === '25P02') {
    return dbErrors.transaction_aborted({
      cause: error,
      message: 'A statement failed earlier in this transaction: wrap statements that may fail in a savepoint, tx.transaction(…).',
    });
  }
  return error;
}
