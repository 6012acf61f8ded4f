import { Readable } from 'node:stream';
import type { CsvError } from 'csv-parse';
import { coreErrors } from '../../errors/core-errors.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { type JsonLimits, readJson } from '../../http/json/parse-json.ts';
import { isMembers } from '../../options/value-rule.ts';
import { limits as crudLimits } from '../declare/limits.ts';
import type { FileFormat } from '../options/file-options.ts';

/** One row of a file, with its number as an editor of the file counts: CSV rows from 2, below the header; lines from 1. */
export type FileRow =
  | {
      readonly number: number;
      readonly values: Readonly<Record<string, unknown>>;
      readonly fault?: undefined;
      /** By column, what is wrong with its cell. */
      readonly faults?: Readonly<Record<string, string>>;
    }
  | { readonly number: number; readonly fault: string; readonly path?: readonly (string | number)[] };

/** A CSV file's header comes first, then its rows. Cells are text; an empty one is null, `""` is the empty text. */
export interface ReadFile {
  /** Names of the columns; undefined for JSON Lines, where each row has its own. */
  readonly header: readonly string[] | undefined;
  /** As many at a time as were read together: a turn for each row costs more than the row. */
  readonly rows: AsyncIterable<readonly FileRow[]>;
}

/** `limits`: of a JSON line, as of a body. */
export async function readFile(body: Readable, format: FileFormat, limits: JsonLimits): Promise<ReadFile> {
  if (format === 'jsonl') return { header: undefined, rows: jsonRows(decoded(body), limits) };
  const records = csvRecords(decoded(body))[Symbol.asyncIterator]();
  const first = await records.next();
  if (first.done === true) throw coreErrors.validation_error({ errors: [NO_HEADER] });
  const { value } = first;
  if (!isRecord(value)) return broken(value);
  const header = value.cells.map((name) => name ?? '');
  return { header, rows: csvRows(records, header) };
}

const NO_HEADER: FieldError = {
  location: ['body', 1],
  code: 'required',
  message: 'The file is empty. The first line of a CSV file is its header, also where there are no rows.',
};

/** A file whose header cannot be read. */
function broken(row: FileRow): ReadFile {
  const rows = async function* only() {
    yield [row];
  };
  return { header: [], rows: rows() };
}

/** Text of valid UTF-8; a byte order mark at its start is left out. */
async function* decoded(body: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const text = (chunk?: Uint8Array) => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch (cause) {
      throw coreErrors.malformed_body({ detail: 'The file is not UTF-8.', cause });
    }
  };
  for await (const chunk of body as AsyncIterable<Buffer>) yield text(chunk);
  yield text();
}

/** Every name costs a comparison with those that are known: a file of 160 kB can have 40,000. */
export function refuseManyColumns(count: number): void {
  if (count > crudLimits.importColumns)
    throw coreErrors.body_too_large({
      detail: `A row of the file has more than ${crudLimits.importColumns} columns.`,
      extensions: { columns_max: crudLimits.importColumns },
    });
}

/** No row of a table is longer; a file with a quote that never ends is. */
const RECORD_LENGTH_MAX = 1_000_000;

interface CsvRecord {
  /** Empty lines are no rows, and are counted. */
  readonly number: number;
  readonly cells: readonly (string | null)[];
}

async function* csvRecords(text: AsyncIterable<string>): AsyncGenerator<CsvRecord | FileRow> {
  const csvParse = await import('csv-parse');
  const parser = Readable.from(text, { objectMode: true })
    .on('error', (error) => parser.destroy(error))
    .pipe(
      csvParse.parse({
        relax_column_count: true,
        skip_empty_lines: true,
        // Found by itself, it is what ends the header: in a file with both kinds, cells would keep the CR of the other.
        record_delimiter: ['\r\n', '\n', '\r'],
        max_record_size: RECORD_LENGTH_MAX,
        cast: (cell, { quoting, index }) => {
          // The size of a record does not count its delimiters: ten million empty cells took ten seconds.
          refuseManyColumns(index + 1);
          return cell === '' && !quoting ? null : cell;
        },
        // Its types know lists of cells only.
        on_record: (cells, info) => ({ number: numberAt(info), cells }) as unknown as string[],
      }),
    );
  try {
    yield* parser as AsyncIterable<CsvRecord>;
  } catch (error) {
    if (!(error instanceof csvParse.CsvError)) throw error;
    yield { number: numberAt(error as Partial<CsvPlace>) + 1, fault: csvFault(error) };
  }
}

interface CsvPlace {
  readonly records: number;
  readonly empty_lines: number;
}

function numberAt({ records = 0, empty_lines: blank = 0 }: Partial<CsvPlace>): number {
  return records + blank;
}

function csvFault({ code }: CsvError): string {
  if (code === 'CSV_MAX_RECORD_SIZE') return `is longer than ${RECORD_LENGTH_MAX} characters; a quote may be missing`;
  if (code === 'CSV_QUOTE_NOT_CLOSED') return 'has a quote that is not closed';
  return 'is not CSV; write a quote inside a quoted cell twice';
}

async function* csvRows(records: AsyncIterator<CsvRecord | FileRow>, header: readonly string[]): AsyncGenerator<FileRow[]> {
  for (;;) {
    const next = await records.next();
    if (next.done === true) return;
    const { value: record } = next;
    if (!isRecord(record)) yield [record];
    else yield [csvRow(record, header)];
  }
}

function csvRow({ number, cells }: CsvRecord, header: readonly string[]): FileRow {
  if (cells.length !== header.length) return { number, fault: `has ${cells.length} cells, the header has ${header.length}` };
  return { number, values: Object.fromEntries(header.map((name, index) => [name, cells[index]])) };
}

function isRecord(value: CsvRecord | FileRow): value is CsvRecord {
  return 'cells' in value;
}

/** A line that is no JSON costs 30 µs, and a chunk has 30,000 of them: the reader stops at its limits, and other requests get their turn. */
const BATCH_LINES = 100;

async function* jsonRows(text: AsyncIterable<string>, limits: JsonLimits): AsyncGenerator<FileRow[]> {
  let number = 0;
  let rest = '';
  const read = (lines: readonly string[]): FileRow[] => {
    const rows: FileRow[] = [];
    for (const line of lines) {
      number += 1;
      if (line.trim() !== '') rows.push(jsonRow(line, number, limits));
    }
    return rows;
  };
  for await (const chunk of text) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() as string;
    for (let at = 0; at < lines.length; at += BATCH_LINES) yield read(lines.slice(at, at + BATCH_LINES));
    if (rest.length > RECORD_LENGTH_MAX) {
      yield [{ number: number + 1, fault: `is longer than ${RECORD_LENGTH_MAX} characters` }];
      return;
    }
  }
  yield read([rest]);
}

/** A line is read as strictly as a body: what was given twice, or as a number too large, would be stored as something else. */
function jsonRow(line: string, number: number, limits: JsonLimits): FileRow {
  const { value, fault, isTooDeep } = readJson(line, limits);
  if (isTooDeep === true) return { number, fault: `is nested more than ${limits.jsonDepth} levels deep` };
  if (fault !== undefined) return { number, fault: `is not acceptable JSON: ${fault.message} at column ${fault.column}`, path: fault.path };
  if (isMembers(value)) return { number, values: value };
  return { number, fault: 'must be a JSON object' };
}
