import { destination, levels, pino, type Logger, type LoggerOptions } from 'pino';
import { loggedError } from '../errors/logged-error.ts';
import type { Settings } from './config.ts';

/** A pino logger from options, or the caller's own. */
export function createLog(given: LoggerOptions | Logger | undefined, settings: Pick<Settings, 'logLevel' | 'logDestination'>): Logger {
  if (given !== undefined && typeof (given as Partial<Logger>).child === 'function') return given as Logger;
  // A level pino does not know is reported with the other faults of start-up; here it must not throw first.
  const level = settings.logLevel in levels.values || settings.logLevel === 'silent' ? settings.logLevel : 'info';
  const wanted = given as LoggerOptions | undefined;
  const options = { level, ...wanted, serializers: { err: (error: unknown) => loggedError(error), ...wanted?.serializers } };
  // Synchronous, as pino's own default: a short-lived command must not lose its last records.
  return settings.logDestination === 'stderr' ? pino(options, destination({ dest: 2, sync: true })) : pino(options);
}
