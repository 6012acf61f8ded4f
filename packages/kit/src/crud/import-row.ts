import type { ColumnSettings } from '../db/column.ts';
import { unguarded } from './csv-text.ts';

/** The text of a cell as the JSON that the input schema of its column reads; text that is not JSON stays text, so that the schema reports it. */
export function cellValue({ kind }: ColumnSettings, text: string): unknown {
  switch (kind) {
    case 'text':
      return unguarded(text);
    case 'int':
    case 'float':
      return /^-?\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?$/i.test(text) ? Number(text) : text;
    case 'bool':
      return text === 'true' ? true : text === 'false' ? false : text;
    case 'json':
    case 'array':
      try {
        return JSON.parse(text) as unknown;
      } catch {
        // Text is no array, and no JSON either: see `isBadJson`.
        return kind === 'array' ? text : NO_JSON;
      }
    default:
      return text;
  }
}

/** A cell of a JSON column that is not JSON. Text would be a valid value of it. */
export const NO_JSON: unique symbol = Symbol('no JSON');
