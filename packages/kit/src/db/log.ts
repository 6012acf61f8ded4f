/** The part of a logger this layer needs; a pino logger fits. */
export interface DbLog {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silentLog: DbLog = Object.freeze({ warn: () => undefined, error: () => undefined });
