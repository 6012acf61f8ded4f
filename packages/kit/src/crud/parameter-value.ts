import { columnDefinition, type ColumnSettings } from '../db/column.ts';
import { valueFault } from '../db/column-codec.ts';
import type { ColumnDefinition } from '../db/table-definition.ts';

/** A value that was read, or what is wrong with its text. */
export type ReadValue = { readonly value: unknown; readonly fault?: undefined } | { readonly fault: string };

/** ISO 8601 with an offset: without one, two servers would read two moments. */
const TIMESTAMP = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)$/i;

/** Reads the text of a query parameter as a value of the column. `settings` has its references resolved. */
export function readParameter(settings: ColumnSettings, text: string): ReadValue {
  const read = readText(settings, text);
  if (read.fault !== undefined) return read;
  return checked(settings, read.value);
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
      return typeof json === 'string' ? readParameter(settings, json) : { fault: 'must be text' };
  }
}

function checked(settings: ColumnSettings, value: unknown): ReadValue {
  const fault = valueFault(value, definitionOf(settings));
  return fault === undefined ? { value } : { fault };
}

const definitions = new WeakMap<ColumnSettings, ColumnDefinition>();

function definitionOf(settings: ColumnSettings): ColumnDefinition {
  let definition = definitions.get(settings);
  if (definition === undefined) definitions.set(settings, (definition = columnDefinition({ ...settings, nullable: false })));
  return definition;
}

function readText(settings: ColumnSettings, text: string): ReadValue {
  switch (settings.kind) {
    case 'int':
      return /^-?\d{1,10}$/.test(text) ? { value: Number(text) } : { fault: 'must be a whole number' };
    case 'bigint':
      return /^-?\d{1,19}$/.test(text) ? { value: BigInt(text) } : { fault: 'must be a whole number' };
    case 'float':
      return /^-?\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?$/i.test(text) ? { value: Number(text) } : { fault: 'must be a number' };
    case 'bool':
      return text === 'true' || text === 'false' ? { value: text === 'true' } : { fault: 'must be true or false' };
    case 'timestamp': {
      const date = TIMESTAMP.test(text) ? new Date(text.replace(' ', 'T')) : undefined;
      return date === undefined || Number.isNaN(date.getTime())
        ? { fault: 'must be a moment with an offset, such as 2026-02-28T12:00:00Z' }
        : { value: date };
    }
    case 'bytes':
      return /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)
        ? { value: new Uint8Array(Buffer.from(text, 'base64')) }
        : { fault: 'must be base64' };
    default:
      return { value: text };
  }
}
