import { DAMAGED_FILE_REMEDY } from '../../db/errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { CliFailure } from './cli-failure.ts';

/** Modules of the kit that bring commands; without them in the config file the command is unknown. */
const MODULE_OF: Readonly<Record<string, string>> = {
  user: 'accounts() from kit/contrib/accounts',
  apikey: 'apiKeys() from kit/contrib/apikeys',
  webhooks: 'webhooks() from kit/contrib/webhooks',
  audit: 'audit() from kit/contrib/audit',
  group: 'accounts() from kit/contrib/accounts',
  grants: 'objectGrants() from kit/contrib/grants',
  jobs: 'jobs() from kit/contrib/jobs',
  mcp: 'mcp() from kit/contrib/mcp',
  uploads: 'uploads() from kit/contrib/uploads',
};

/** Where an unknown command comes from, when it is one of the kit's own modules. */
export function missingModule(command: string | undefined): string | undefined {
  const module = MODULE_OF[command ?? ''];
  return module && `"${command}" comes with ${module}: add it to \`modules\` of createApp.`;
}

/**
 * A sentence with the remedy for what is wrong around the program rather than in it: a port that is taken, a database that
 * does not answer, a setting. Undefined for everything else, whose stack is what helps.
 */
export function explainFailure(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, syscall, address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number };
  if (syscall === 'listen' && code !== undefined) return explainListen(code, address ?? '', port ?? 0);
  const ofDatabase = explainDatabaseFailure(error);
  if (ofDatabase !== undefined) return ofDatabase;
  // Of faulty input the faults themselves are the message, not that there are some.
  if (isKitError(error) && error.code === 'validation_error' && error.errors !== undefined)
    return [...new Set(error.errors.map(({ message }) => message))].join(' ');
  if (isKitError(error)) return error.detail;
  if (error instanceof CliFailure || EXPLAINED.has(code ?? '')) return error.message;
  return undefined;
}

/** A database that does not answer, rejects the login, does not exist, or cannot be written. */
export function explainDatabaseFailure(error: Error): string | undefined {
  const { code } = error as NodeJS.ErrnoException;
  if (isKitError(error) && error.code === 'database_unavailable')
    return `The database cannot be reached: ${reasonOf(error)}. Check that it is running and that DATABASE_URL or createApp({ database }) is correct.`;
  if (isKitError(error) && error.code === 'prepared_statement_lost') return error.message;
  if (isKitError(error) && error.code === 'storage_full')
    return `The disk of the database is full (${error.message}). Make room on it; what was saved before is still there.`;
  if (isKitError(error) && error.code === 'database_damaged')
    return `The database file is damaged (${error.message}). ${DAMAGED_FILE_REMEDY}`;
  // PostgreSQL's own sentences name the user or the database, and no password.
  if (code === '28P01' || code === '28000')
    return `The database rejected the login: ${error.message}. Correct the user or the password in its URL.`;
  if (code === '3D000') return `The database server answers, but ${error.message}. Create it, or correct the end of the URL.`;
  return undefined;
}

/** Codes of errors whose message is the whole explanation. */
const EXPLAINED: ReadonlySet<string> = new Set([
  'start_up_failed',
  'invalid_options',
  'migration_refused',
  'unusable_database_file',
  'file_not_written',
  'project_refused',
]);

function explainListen(code: string, address: string, port: number): string {
  if (code === 'EADDRINUSE')
    return `Another program already listens on ${address}:${port}. Stop it, or take another port: kit start --port ${port === 65_535 ? port - 1 : port + 1}`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `${address} is not an address of this machine. Set --host (or HOST) to 127.0.0.1 for local access or 0.0.0.0 for all interfaces.`;
  if (code === 'EACCES') return `This user may not listen on port ${port}. Take one from 1024 on: kit start --port 3000`;
  return `Cannot listen on ${address}:${port} (${code}).`;
}

/** The driver's own words; a name with several addresses fails with one error for each. */
function reasonOf(error: Error): string {
  const cause = error.cause instanceof AggregateError ? (error.cause.errors[0] as unknown) : undefined;
  return (cause instanceof Error ? cause.message : error.message).replace(/\.$/, '');
}
