import { pino, type Logger, type LoggerOptions } from 'pino';

/** A pino logger from options, or the caller's own. */
export function createLog(given: LoggerOptions | Logger | undefined, level: string): Logger {
  if (given !== undefined && typeof (given as Partial<Logger>).child === 'function') return given as Logger;
  return pino({ level, ...(given as LoggerOptions | undefined) });
}
