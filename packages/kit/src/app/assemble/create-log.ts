import { destination, levels, pino, stdSerializers, symbols, type DestinationStream, type Logger, type LoggerOptions } from 'pino';
import { loggedError } from '../../errors/logged-error.ts';
import { activeTracing } from '../../observe/tracing.ts';
import type { Settings } from '../declare/config.ts';
import { prettyLine } from './pretty-log.ts';
import { maskedRecord, type SensitiveShapes } from '../check/sensitive-shapes.ts';

type LogSettings = Pick<Settings, 'logLevel' | 'logDestination' | 'logFormat'>;

/** What records must not show. Asked when a record is written: by then all declarations are known. */
type Sensitive = () => SensitiveShapes;
const NONE: SensitiveShapes = new Map();

/** A pino logger from options, or the caller's own. Every record inside a trace has its `trace_id` and `span_id`. */
export function createLog(given: LoggerOptions | Logger | undefined, settings: LogSettings, sensitive: Sensitive = () => NONE): Logger {
  if (given !== undefined && typeof (given as Partial<Logger>).child === 'function') return withKitFields(given as Logger, sensitive);
  // An unknown level is reported with the other start-up faults, so it must not throw here.
  const level = settings.logLevel in levels.values || settings.logLevel === 'silent' ? settings.logLevel : 'info';
  const wanted = given as LoggerOptions | undefined;
  const options: LoggerOptions = {
    level,
    ...wanted,
    serializers: { err: (error: unknown) => loggedError(error), ...wanted?.serializers },
    mixin: withTraceIds(wanted?.mixin),
    formatters: { ...wanted?.formatters, log: masking(wanted?.formatters?.log, sensitive) },
  };
  // With a transport the caller decides where records go.
  return wanted?.transport === undefined ? pino(options, streamOf(settings)) : pino(options);
}

/** Synchronous, as pino's own default: a short-lived command must not lose its last records. */
function streamOf({ logDestination, logFormat }: LogSettings): DestinationStream {
  const [dest, stream] = logDestination === 'stderr' ? [2, process.stderr] : [1, process.stdout];
  const lines = destination({ dest, sync: true });
  return isPretty(logFormat, stream) ? { write: (record) => void lines.write(prettyLine(record)) } : lines;
}

/** `auto` is pretty where people read, and JSON where programs do. */
export function isPretty(format: string, { isTTY }: { readonly isTTY?: boolean }): boolean {
  return format === 'pretty' || (format === 'auto' && isTTY === true);
}

type LogFormatter = NonNullable<NonNullable<LoggerOptions['formatters']>['log']>;

function masking(own: LogFormatter | undefined, sensitive: Sensitive): LogFormatter {
  return (record) => maskedRecord(own === undefined ? record : own(record), sensitive());
}

type Mixin = NonNullable<LoggerOptions['mixin']>;

function withTraceIds(own: Mixin | undefined): Mixin {
  return (members, level, logger) => {
    const fields = own === undefined ? {} : own(members, level, logger);
    const ids = activeTracing()?.ids();
    return ids === undefined ? fields : { ...ids, ...fields };
  };
}

/**
 * Pino's default error serializer copies every member, including the row in PostgreSQL's `detail`. A logger with a serializer of its own keeps
 * it. Made from the given logger, not as its child, so that its owner can still change the level.
 */
function withKitFields(given: Logger, sensitive: Sensitive): Logger {
  const own = given as unknown as Readonly<Record<symbol, unknown>>;
  const serializers = own[symbols.serializersSym] as Readonly<Record<string, unknown>> | undefined;
  const logger = Object.create(given) as Logger & Record<symbol, unknown>;
  if (serializers !== undefined && serializers['err'] === stdSerializers.err)
    logger[symbols.serializersSym] = { ...serializers, err: (error: unknown) => loggedError(error) };
  const formatters = own[symbols.formattersSym] as { readonly log?: LogFormatter } | undefined;
  logger[symbols.formattersSym] = { ...formatters, log: masking(formatters?.log, sensitive) };
  logger[symbols.mixinSym] = withTraceIds(own[symbols.mixinSym] as Mixin | undefined);
  return logger;
}
