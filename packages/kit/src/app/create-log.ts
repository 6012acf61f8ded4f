import { destination, levels, pino, stdSerializers, symbols, type Logger, type LoggerOptions } from 'pino';
import { loggedError } from '../errors/logged-error.ts';
import type { Settings } from './config.ts';

/** A pino logger from options, or the caller's own. */
export function createLog(given: LoggerOptions | Logger | undefined, settings: Pick<Settings, 'logLevel' | 'logDestination'>): Logger {
  if (given !== undefined && typeof (given as Partial<Logger>).child === 'function') return withLoggedErrors(given as Logger);
  // A level pino does not know is reported with the other faults of start-up; here it must not throw first.
  const level = settings.logLevel in levels.values || settings.logLevel === 'silent' ? settings.logLevel : 'info';
  const wanted = given as LoggerOptions | undefined;
  const options = { level, ...wanted, serializers: { err: (error: unknown) => loggedError(error), ...wanted?.serializers } };
  // Synchronous, as pino's own default: a short-lived command must not lose its last records.
  return settings.logDestination === 'stderr' ? pino(options, destination({ dest: 2, sync: true })) : pino(options);
}

/**
 * Pino's own way with errors copies every member, the row in PostgreSQL's `detail` included. A logger whose owner chose another way keeps it.
 * Made from the given one, not its child: the level stays the owner's to change.
 */
function withLoggedErrors(given: Logger): Logger {
  const serializers = (given as unknown as Readonly<Record<symbol, Readonly<Record<string, unknown>> | undefined>>)[symbols.serializersSym];
  if (serializers === undefined || serializers['err'] !== stdSerializers.err) return given;
  const logger = Object.create(given) as Logger & Record<symbol, unknown>;
  logger[symbols.serializersSym] = { ...serializers, err: (error: unknown) => loggedError(error) };
  return logger;
}
