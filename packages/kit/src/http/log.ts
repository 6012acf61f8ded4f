/** The part of a pino logger that handlers and modules use. */
export interface Log {
  trace(details: object, message?: string): void;
  trace(message: string): void;
  debug(details: object, message?: string): void;
  debug(message: string): void;
  info(details: object, message?: string): void;
  info(message: string): void;
  warn(details: object, message?: string): void;
  warn(message: string): void;
  error(details: object, message?: string): void;
  error(message: string): void;
  fatal(details: object, message?: string): void;
  fatal(message: string): void;
}
