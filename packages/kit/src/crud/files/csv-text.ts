import { toJson } from '../../db/declare/column-json.ts';
import type { ColumnSettings } from '../../db/declare/column.ts';
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
      return jsonCell;
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
  return typeof value === 'bigint' ? value.toString() : jsonCell(value);
}

/**
 * Where a spreadsheet would see the start of a formula: `=`, `+`, `-`, `@` and their full-width forms at the start of a cell, spaces before
 * them or not. Programs that divide a file at `;` or tabs do not respect our quotes, so a cell also starts after those and after line breaks.
 * `'` is our own mark: text that has it there gets another one. At the very start tabs and line breaks count, too: some programs drop them.
 */
const FORMULA = String.raw`[ \u00A0]*[=+\-@＝＋－＠']`;
const CELL_START = String.raw`(?<=^|[;\t\r\n])`;
const UNMARKED = new RegExp(`${CELL_START}(?=${FORMULA})|^(?=[\\t\\r\\n])`, 'gu');
const MARKED = new RegExp(`${CELL_START}'(?=${FORMULA})|^'(?=[\\t\\r\\n])`, 'gu');
const NEEDS_QUOTES = /[",\r\n]|^\s|\s$/;

/** Text of a user, as no formula. The empty text is `""`, so that it differs from NULL. */
function textCell(text: string): string {
  return text === '' ? '""' : quoted(text.replace(UNMARKED, "'"));
}

/** What {@link textCell} wrote, without the marks it added. */
export function unguarded(text: string): string {
  return text.replace(MARKED, '');
}

/** JSON can write any character in another way: a reader of JSON notices nothing. */
function jsonCell(value: unknown): string {
  return quoted(JSON.stringify(value).replaceAll(JSON_SEPARATOR, String.raw`\u003b`));
}

const JSON_SEPARATOR = new RegExp(`;(?=${FORMULA})`, 'gu');

function quoted(text: string): string {
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
