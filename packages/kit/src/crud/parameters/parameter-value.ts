import { valueDefinition, type ColumnSettings } from '../../db/declare/column.ts';
import { isCalendarDate, valueFault } from '../../db/declare/column-codec.ts';
import type { ColumnDefinition } from '../../db/declare/table-definition.ts';
import { isTimestamp } from '../../db/values/timestamp.ts';

/** A value that was read, or what is wrong with its text. */
export type ReadValue = { readonly value: unknown; readonly fault?: undefined } | { readonly fault: string };

/** ISO 8601 with an offset: without one, two servers would read two moments. */
const TIMESTAMP = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.(\d{1,9}))?)?(?:Z|[+-]\d\d:?\d\d)$/i;

/** Reads the text of a query parameter as a value of the column. `settings` has its references resolved. */
export function readParameter(settings: ColumnSettings, text: string): ReadValue {
  const read = readText(settings, text);
  if (read.fault !== undefined) return read;
  return checked(settings, read.value);
}

/** Reads the text of a key, in an address or a body. One row has one address: `01` and `1.0` are not the key 1. */
export function readKey(settings: ColumnSettings, text: string): ReadValue {
  const isWhole = settings.kind === 'int' || settings.kind === 'bigint';
  return isWhole && !/^(?:0|-?[1-9]\d*)$/.test(text) ? { fault: 'must be an integer' } : readParameter(settings, text);
}

/** A key of a body as the text of an address; undefined when it cannot be one. Keys that are numbers may be JSON numbers. */
export function keyText({ kind }: ColumnSettings, json: unknown): string | undefined {
  if (typeof json === 'string') return json;
  if (typeof json !== 'number' || !['int', 'bigint', 'float'].includes(kind)) return undefined;
  // Beyond 2^53 JSON numbers are rounded: it would be the key of another row.
  return Number.isInteger(json) && !Number.isSafeInteger(json) ? undefined : String(json);
}

/** Reads a JSON value of a query body as a value of the column. */
export function readJsonValue(settings: ColumnSettings, json: unknown): ReadValue {
  switch (settings.kind) {
    case 'int':
    case 'float':
      return typeof json === 'number' ? checked(settings, json) : { fault: 'must be a number' };
    case 'bool':
      return typeof json === 'boolean' ? { value: json } : { fault: 'must be true or false' };
    default:
      return typeof json === 'string' ? readParameter(settings, json) : { fault: 'must be a string' };
  }
}

function checked(settings: ColumnSettings, value: unknown): ReadValue {
  const fault = valueFault(value, definitionOf(settings));
  return fault === undefined ? { value } : { fault };
}

const definitions = new WeakMap<ColumnSettings, ColumnDefinition>();

function definitionOf(settings: ColumnSettings): ColumnDefinition {
  let definition = definitions.get(settings);
  if (definition === undefined) definitions.set(settings, (definition = valueDefinition({ ...settings, nullable: false })));
  return definition;
}

function readText(settings: ColumnSettings, text: string): ReadValue {
  switch (settings.kind) {
    case 'int':
      return /^-?\d{1,10}$/.test(text) ? { value: Number(text) } : { fault: 'must be an integer' };
    case 'bigint':
      return /^-?\d{1,19}$/.test(text) ? { value: BigInt(text) } : { fault: 'must be an integer' };
    case 'float':
      return /^-?\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?$/i.test(text) ? { value: Number(text) } : { fault: 'must be a number' };
    case 'bool':
      return text === 'true' || text === 'false' ? { value: text === 'true' } : { fault: 'must be true or false' };
    case 'timestamp':
      return readTimestamp(text);
    case 'bytes':
      return /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)
        ? { value: new Uint8Array(Buffer.from(text, 'base64')) }
        : { fault: 'must be base64' };
    default:
      return { value: text };
  }
}

/** Columns hold milliseconds. A finer value would be compared as another moment than the caller sent: it is refused. */
function readTimestamp(text: string): ReadValue {
  const match = TIMESTAMP.exec(text);
  // JavaScript reads the 30th of February as a day in March.
  const date = match === null || !isCalendarDate(text.slice(0, 10)) ? undefined : new Date(text.replace(' ', 'T'));
  if (date === undefined || Number.isNaN(date.getTime()))
    return { fault: 'must be a timestamp with a UTC offset, such as 2026-02-28T12:00:00Z' };
  if (!isTimestamp(date)) return { fault: 'must be in the years 1 to 9999' };
  const isFiner = /[1-9]/.test(match?.[1]?.slice(3) ?? '');
  return isFiner ? { fault: 'must have millisecond precision or less, such as 2026-02-28T12:00:00.123Z' } : { value: date };
}
