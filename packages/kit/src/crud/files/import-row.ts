import type { ColumnSettings } from '../../db/declare/column.ts';
import { isInexact, NUMBER_NOT_EXACT, NUMBER_NOT_EXACT_MESSAGE } from '../../http/json/inexact-numbers.ts';
import { type JsonLimits, readJson } from '../../http/json/parse-json.ts';
import { unguarded } from './csv-text.ts';

/**
 * The text of a cell as the JSON that the input schema of its column reads; text that is not JSON stays text, so that the schema reports it.
 * `limits`: of the JSON in a row.
 */
export function cellValue({ kind }: ColumnSettings, text: string, limits: JsonLimits): unknown {
  switch (kind) {
    case 'text':
      return unguarded(text);
    case 'int':
    case 'float':
      if (!isDecimal(text)) return text;
      return kind === 'float' && isInexact(text) ? new CellFault(NUMBER_NOT_EXACT_MESSAGE, NUMBER_NOT_EXACT) : Number(text);
    case 'bool':
      return text === 'true' ? true : text === 'false' ? false : text;
    case 'json':
    case 'array':
      return jsonValue(kind, text, { ...limits, jsonDepth: limits.jsonDepth - 1 });
    default:
      return text;
  }
}

function isDecimal(text: string): boolean {
  return /^-?\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?$/i.test(text);
}

/** A cell that its column cannot read. Text would be a valid value of a JSON column. */
export class CellFault {
  readonly message: string;
  readonly code: string;

  constructor(message: string, code = 'invalid') {
    this.message = message;
    this.code = code;
  }
}

function jsonValue(kind: 'json' | 'array', text: string, limits: JsonLimits): unknown {
  const { value, fault, isTooDeep, inexact = [] } = readJson(text, limits);
  if (isTooDeep === true) return new CellFault(`Must not be nested more than ${limits.jsonDepth} levels deep.`);
  if (inexact.length > 0) return new CellFault(NUMBER_NOT_EXACT_MESSAGE, NUMBER_NOT_EXACT);
  if (fault === undefined) return value;
  if (fault.code !== 'invalid_json') return new CellFault(`Must be acceptable JSON: ${fault.message} at column ${fault.column}.`);
  return kind === 'array' ? text : new CellFault('Must be JSON.');
}
