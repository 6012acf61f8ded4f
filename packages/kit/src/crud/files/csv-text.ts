import { toJson } from '../../db/column-json.ts';
import type { ColumnSettings } from '../../db/column.ts';
import type { Item } from '../declare/item.ts';
import type { Shape } from '../read/shape.ts';

/** One column of a CSV export: `total`, `customer.name`. */
export interface CsvColumn {
  readonly path: readonly string[];
  /** Undefined for computed fields. */
  readonly settings: ColumnSettings | undefined;
}

/** The columns of a shape in the order of the model, then computed fields, then those of to-one relations below their names. */
export function csvColumns(shape: Shape, above: readonly string[] = []): CsvColumn[] {
  return [
    ...shape.columns.map(({ name, settings }) => ({ path: [...above, name], settings })),
    ...shape.computed.map(({ name }) => ({ path: [...above, name], settings: undefined })),
    ...shape.edges.flatMap(({ edge, shape: below }) => csvColumns(below, [...above, edge.name])),
  ];
}

/** RFC 4180: lines end with CR LF. */
const LINE_END = '\r\n';

export function csvHeader(columns: readonly CsvColumn[]): string {
  return columns.map(({ path }) => quoted(path.join('.'))).join(',') + LINE_END;
}

/** Compiles how items become lines. `isWire`: values are in their JSON form already. */
export function csvWriter(columns: readonly CsvColumn[], isWire: boolean): (items: readonly Item[]) => string {
  const cells = columns.map(({ path, settings }) => {
    const format = cellFormat(settings, isWire);
    const [first = '', ...rest] = path;
    if (rest.length === 0) return (item: Item) => format(item[first]);
    return (item: Item) => format(path.reduce<unknown>((value, step) => (value as Item | null | undefined)?.[step], item));
  });
  return (items) => {
    let text = '';
    for (const item of items) {
      let line = '';
      for (let index = 0; index < cells.length; index += 1)
        line += (index === 0 ? '' : ',') + (cells[index] as (item: Item) => string)(item);
      text += line + LINE_END;
    }
    return text;
  };
}

type Format = (value: unknown) => string;

function cellFormat(settings: ColumnSettings | undefined, isWire: boolean): Format {
  if (settings === undefined) return computedCell;
  const plain = isWire ? (value: unknown) => value : (value: unknown) => toJson(settings, value);
  const format = kindFormat(settings);
  // In a JSON column that cannot be NULL, null is JSON's own.
  const absent = settings.kind === 'json' && !settings.nullable ? 'null' : '';
  return (value) => (value === null || value === undefined ? (value === null ? absent : '') : format(plain(value)));
}

function kindFormat({ kind }: ColumnSettings): Format {
  switch (kind) {
    case 'text':
      return (value) => textCell(value as string);
    case 'json':
    case 'array':
      return (value) => quoted(JSON.stringify(value));
    case 'enum':
      return (value) => quoted(String(value));
    default:
      return String;
  }
}

function computedCell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return textCell(value);
  if (value instanceof Date) return value.toISOString();
  // Numbers and booleans are their own JSON; a bigint has none.
  return typeof value === 'bigint' ? value.toString() : quoted(JSON.stringify(value));
}

/** Spreadsheets run text that starts with one of these as a formula. */
const FORMULA_START = /^[=+\-@'\t\r\n]/;
const NEEDS_QUOTES = /[",\r\n]|^\s|\s$/;

/** Text of a user, as no formula. The empty text is `""`, so that it differs from NULL. */
function textCell(text: string): string {
  return text === '' ? '""' : quoted(FORMULA_START.test(text) ? `'${text}` : text);
}

/** What {@link textCell} wrote, without the mark it added. */
export function unguarded(text: string): string {
  return text.startsWith("'") && FORMULA_START.test(text.slice(1)) ? text.slice(1) : text;
}

function quoted(text: string): string {
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
