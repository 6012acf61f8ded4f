import type { Log } from '../../../http/log.ts';

type Level = keyof Log;

/** The application's log, with the job in every line. */
export function runLog(log: Log, fields: Readonly<Record<string, unknown>>): Log {
  const at =
    (level: Level) =>
    (details: object | string, message?: string): void =>
      typeof details === 'string' ? log[level](fields, details) : log[level]({ ...fields, ...details }, message);
  return { trace: at('trace'), debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), fatal: at('fatal') };
}
