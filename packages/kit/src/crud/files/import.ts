import { Readable } from 'node:stream';
import { setImmediate as yieldLoop } from 'node:timers/promises';
import type { Db } from '../../db/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { type FieldError, hasCode, isKitError } from '../../errors/kit-error.ts';
import { jsonSchema } from '../../http/json-schema.ts';
import { filePart, type MultipartFile, readMultipart } from '../../http/multipart.ts';
import type { QueryValues } from '../../http/query-string.ts';
import type { JsonLimits } from '../../http/json/parse-json.ts';
import { inexactNumberFaults } from '../../http/json/inexact-numbers.ts';
import { compileUnknownFields } from '../../http/json/unknown-fields.ts';
import { type JsonSchema, jsonSchemaOf, type Schema } from '../../http/schema.ts';
import { exchangeOf } from '../../http/serve-route.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { INPUT_LIMITS } from '../../options/input-limits.ts';
import { absentValue } from '../write/absent-value.ts';
import type { Asked, Intent, RowIntent } from '../write/intent.ts';
import type { Pipeline } from '../write/pipeline.ts';
import { isSame } from '../write/change.ts';
import { type CrudRequest, forAction } from '../policy/crud-request.ts';
import { mediaTypes } from './export.ts';
import type { FileFormat } from '../declare/file-options.ts';
import { CellFault, cellValue } from './import-row.ts';
import { noteItems } from '../write/note-items.ts';
import type { ImportOptions } from '../declare/file-options.ts';
import { limits } from '../declare/limits.ts';
import type { Context, ListAccess } from '../read/list-access.ts';
import type { ListDeclaration } from '../read/list-query.ts';
import type { Policy, StoredColumn } from '../policy/policy.ts';
import { type FileRow, readFile } from './read-file.ts';
import { bodySchemas, leadsToOne } from '../mount/schemas.ts';
import type { FieldRule } from '../declare/field-rule.ts';
import type { Item } from '../declare/item.ts';
import { requiredPolicies, Views } from '../policy/make-view.ts';
import type { View } from '../policy/view.ts';
import { checkReferences, referencesOf, type SentRow } from '../write/steps.ts';

/** What rows of a file are made of, and how they are written. */
export interface ImportTarget {
  readonly policy: Policy;
  readonly list: Pick<ListDeclaration, 'expand' | 'limits'>;
  /** Columns that are taken from a file. */
  readonly input: readonly string[];
  /** What a row must be; the schema of a create with `input` unless given. */
  readonly schema?: Schema;
  readonly pipeline: Pipeline;
}

/** What the route of an import works with, besides what lists do. */
export interface ImportAccess extends ListAccess, Omit<ImportTarget, 'list'> {
  fixedIntent(context: Context): FixedIntent;
  /** Every row was authorized, also where there is none. */
  admitWithoutObject(context: Context): void;
}

/** What the address and the permission say of every row of a file. */
export interface FixedIntent extends Pick<Intent, 'fixed'> {
  readonly asked?: Pick<Asked, 'authorize'>;
}

export interface ImportResult {
  readonly created: number;
  readonly updated: number;
  readonly dry_run: boolean;
  /** Columns of the file that are known and not taken from clients. */
  readonly ignored: readonly string[];
}

interface ImportMode {
  readonly isDryRun: boolean;
  /** Rows with the same value of `by` are changed. */
  readonly isUpsert: boolean;
}

interface Parameters extends ImportMode {
  readonly format: FileFormat | undefined;
}

/** Rows that are written, or read, before others get their turn. Statements on SQLite run on this thread; on PostgreSQL a batch costs round trips. */
const BATCH_ROWS = 100;
const BATCH_ROWS_POSTGRES = 500;

/** `POST /import`. */
export class Importer {
  readonly #access: ImportAccess;
  readonly options: Required<Pick<ImportOptions, 'formats' | 'bytesMax' | 'rowsMax'>> & Pick<ImportOptions, 'by'>;

  constructor(access: ImportAccess, given: ImportOptions) {
    this.#access = access;
    this.options = { ...given, bytesMax: given.bytesMax ?? limits.importBytes, rowsMax: given.rowsMax ?? limits.importRows };
  }

  readonly handle = async (context: Context): Promise<ImportResult> => {
    const access = this.#access;
    const { policy } = access;
    const request = await access.request(context, 'create');
    const parameters = this.#parameters(context.query as QueryValues);
    await access.parentRows(context, request, policy.database(request), true);
    const { body, format } = await this.#file(context, parameters.format);
    const rows = new RowImport(access, { ...this.options, json: exchangeOf(context.request).host.inputLimits });
    const result = await rows.run(request, body, format, parameters, access.fixedIntent(context));
    access.admitWithoutObject(context);
    if (parameters.isDryRun) context.reply.code(200);
    return result;
  };

  #parameters(given: QueryValues): Parameters {
    const { formats, by } = this.options;
    const faults: FieldError[] = [];
    const choices: Readonly<Record<string, readonly string[]>> = {
      format: formats,
      dry_run: ['true', 'false'],
      mode: by === undefined ? ['create'] : ['create', 'upsert'],
    };
    for (const [name, value] of Object.entries(given)) {
      const known = Object.hasOwn(choices, name) ? choices[name] : undefined;
      if (known === undefined)
        faults.push({
          location: ['query', name.slice(0, 100)],
          code: 'unknown_field',
          message: `Unknown parameter.${didYouMean(name, Object.keys(choices))}`,
        });
      else if (!known.includes(value as string))
        faults.push({ location: ['query', name], code: 'invalid', message: `Give one of ${known.join(', ')}.` });
    }
    if (faults.length > 0) throw coreErrors.validation_error({ errors: faults });
    return {
      format: given['format'] as FileFormat | undefined,
      isDryRun: given['dry_run'] === 'true',
      isUpsert: given['mode'] === 'upsert',
    };
  }

  get #usual(): FileFormat {
    return this.options.formats[0] as FileFormat;
  }

  /** The bytes of the file and its format: as the parameter says, else as the media type or the name does. */
  async #file(context: Context, wanted: FileFormat | undefined): Promise<{ readonly body: Readable; readonly format: FileFormat }> {
    const contentType = context.request.headers['content-type'] ?? '';
    const type = (contentType.split(';', 1)[0] as string).trim().toLowerCase();
    const { formats } = this.options;
    if (type !== 'multipart/form-data') {
      const format = wanted ?? formats.find((each) => mediaTypes[each] === type) ?? this.#usual;
      return { body: context.body as Readable, format };
    }
    const form = await readMultipart(context.body as Readable, contentType, { file: filePart() });
    if (form.issues !== undefined)
      throw coreErrors.validation_error({
        errors: form.issues.map(({ code = 'invalid', message, path = [] }) => ({ location: ['body', ...path.map(String)], code, message })),
      });
    const { name, mediaType, bytes } = form.value['file'] as MultipartFile;
    const named = formats.find((each) => mediaTypes[each] === mediaType) ?? (/\.(?:jsonl|ndjson)$/i.test(name) ? 'jsonl' : 'csv');
    const format = wanted ?? named;
    if (!formats.includes(format)) throw coreErrors.unsupported_media_type({ detail: `This operation takes ${formats.join(', ')}.` });
    return { body: Readable.from([bytes]), format };
  }
}

export interface RowImportOptions {
  readonly rowsMax: number;
  readonly by?: string | undefined;
  /** Limits of the JSON in a row, as of a body. Default: those of an app that sets none. */
  readonly json?: JsonLimits;
}

/**
 * All rows of a file or none. The first phase reads and checks every row without a transaction; the second writes them in one, through the
 * pipeline of every other write, and lets other requests run between its batches.
 */
export class RowImport {
  readonly #access: ImportTarget;
  readonly #options: RowImportOptions;

  constructor(target: ImportTarget, options: RowImportOptions) {
    this.#access = target;
    this.#options = options;
  }

  async run(
    request: CrudRequest,
    body: Readable,
    format: FileFormat,
    { isDryRun, isUpsert }: ImportMode,
    fixed: FixedIntent = {},
  ): Promise<ImportResult> {
    const { policy } = this.#access;
    const db = policy.database(request);
    await policy.rows.visible(request);
    const view = await new Views(policy, requiredPolicies(policy)).of(request);
    const reader = new RowReader(this.#access, view, request, this.#options);
    let items: readonly ImportItem[];
    try {
      items = await reader.read(body, format);
    } finally {
      body.destroy();
    }
    const keys = isUpsert ? reader.keys(items, this.#by) : undefined;
    if (keys === undefined) for (const item of items) this.#refuseChanged(item, undefined, request.clock.now());
    reader.finish();
    noteItems(request, items.length);
    await this.#checkReferences(db, request, items, keys, fixed);
    const write = () => this.#write(db, request, { items, keys, reader }, fixed, isDryRun);
    // Of two upserts of a new value at once one makes the row. The other could not see it yet: now it can, and changes it.
    const written = await write().catch((error: unknown) => {
      if (keys === undefined || !hasCode(error, 'conflict')) throw error;
      return write();
    });
    return { ...written, dry_run: isDryRun, ignored: reader.ignored };
  }

  get #by(): StoredColumn {
    return this.#access.policy.findColumn(this.#options.by as string) as StoredColumn;
  }

  async #checkReferences(
    db: Db,
    request: CrudRequest,
    items: readonly ImportItem[],
    keys: ImportKeys | undefined,
    fixed: FixedIntent,
  ): Promise<void> {
    const { policy } = this.#access;
    let checks = await referencesOf(policy, request, items);
    if (checks.length > 0 && keys !== undefined) {
      // A reference that a row has already is not asked again: the caller may see the row and not what it refers to.
      const rows = items.map((item): SentRow => ({ values: item.values, at: item.at, before: null }));
      for (let start = 0; start < items.length; start += BATCH_ROWS_POSTGRES) {
        const batch = items.slice(start, start + BATCH_ROWS_POSTGRES);
        const existing = await this.#existing(db, request, batch, keys, fixed);
        for (const [index, item] of batch.entries())
          rows[start + index] = { values: item.values, at: item.at, before: existing.get(this.#keyText(keys, item)) ?? null };
      }
      checks = await referencesOf(policy, request, rows);
    }
    try {
      await checkReferences(db, checks);
    } catch (error) {
      if (!isKitError(error) || error.errors === undefined) throw error;
      throw coreErrors.validation_error({ errors: error.errors.slice(0, this.#access.list.limits.importErrors) });
    }
  }

  async #write(
    db: Db,
    request: CrudRequest,
    { items, keys, reader }: { readonly items: readonly ImportItem[]; readonly keys: ImportKeys | undefined; readonly reader: RowReader },
    given: FixedIntent,
    isDryRun: boolean,
  ): Promise<Pick<ImportResult, 'created' | 'updated'>> {
    const now = request.clock.now();
    const { pipeline } = this.#access;
    let created = 0;
    let updated = 0;
    try {
      await pipeline.together(db, async (tx, changes) => {
        [created, updated] = [0, 0];
        const intent = { ...given, via: 'import' as const, changes };
        const size = tx.dialect === 'postgres' ? BATCH_ROWS_POSTGRES : BATCH_ROWS;
        for (let start = 0; start < items.length; start += size) {
          const batch = items.slice(start, start + size);
          const existing = keys === undefined ? new Map<string, Item>() : await this.#existing(tx, request, batch, keys, given);
          const found = (item: ImportItem) => (keys === undefined ? undefined : existing.get(this.#keyText(keys, item)));
          const fresh = batch.filter((item) => found(item) === undefined);
          const known: RowIntent[] = [];
          for (const item of batch) {
            const row = found(item);
            if (row === undefined) continue;
            const { key } = this.#access.policy;
            this.#refuseChanged(item, row, now);
            const written = await reader.withoutUnchanged(item, row);
            known.push({ ...written, at: item.at, key: { column: key, value: row[key.name] } });
          }
          if (keys !== undefined) for (const item of fresh) this.#refuseChanged(item, undefined, now);
          if (fresh.length > 0) created += (await pipeline.run(tx, request, { ...intent, verb: 'create', rows: fresh })).length;
          if (known.length > 0) updated += (await pipeline.run(tx, request, { ...intent, verb: 'update', rows: known })).length;
          // Statements on SQLite run on this thread: others get their turn between batches.
          await yieldLoop();
        }
        if (isDryRun) throw new Undone();
      });
    } catch (error) {
      if (!(error instanceof Undone)) throw error;
    }
    return { created, updated };
  }

  /** 403 where a row would get another value of a column that the caller may not write. Without a row: another one than a new row gets. */
  #refuseChanged({ kept }: ImportItem, row: Item | undefined, now: Date): void {
    const { policy } = this.#access;
    const changed = Object.keys(kept).filter((name) => {
      const column = policy.findColumn(name) as StoredColumn;
      return !isSameValue(column, row === undefined ? absentValue(column.settings, now) : row[name], kept[name]);
    });
    if (changed.length > 0) throw unwritable(changed);
  }

  #keyText(keys: ImportKeys, item: ImportItem): string {
    return String(this.#by.encode(keys.get(item)));
  }

  /** Rows of the batch that are there already, among those the caller sees. */
  async #existing(
    tx: Db,
    request: CrudRequest,
    batch: readonly ImportItem[],
    keys: ImportKeys,
    { fixed }: FixedIntent,
  ): Promise<Map<string, Item>> {
    const { policy, pipeline } = this.#access;
    const column = this.#by;
    const scope = await policy.rows.forWrite(forAction(request, 'update'));
    const values = batch.map((item) => keys.get(item));
    const rows = await pipeline.lockRows(tx, scope, column, values, fixed);
    return new Map(rows.map((row) => [String(column.encode(row[column.name])), row]));
  }
}

/** A row of a file. */
interface ImportItem extends RowIntent {
  readonly at: FieldError['location'];
  /** Values of columns that the caller may not write: an export has them. They must be what the row has without them. */
  readonly kept: Item;
}

/** What each row of a file is found by. */
type ImportKeys = ReadonlyMap<ImportItem, unknown>;

/** What the schema of a row says about it. */
interface RowResult {
  readonly value?: Item;
  readonly issues?: readonly { readonly message: string; readonly code?: string; readonly path?: readonly unknown[] }[];
}

/** A dry run did everything; nothing of it stays. */
class Undone extends Error {}

/** The first phase: reads and checks rows, and notes what is wrong with them. */
class RowReader {
  readonly #access: ImportTarget;
  readonly #request: CrudRequest;
  readonly #view: View;
  readonly #rowsMax: number;
  readonly #faultsMax: number;
  readonly #json: JsonLimits;
  readonly #faults: FieldError[] = [];
  readonly #ignored = new Set<string>();
  readonly #input: ReadonlySet<string>;
  /** Input columns that this request may not write, whatever the row is. */
  readonly #unwritable = new Set<string>();
  /** Those of them that the caller gets as null, whatever they are: comparing them would tell. */
  readonly #shownAsNull = new Set<string>();
  /** Input columns that a rule about the row decides. */
  readonly #ruled = new Set<string>();

  constructor(access: ImportTarget, view: View, request: CrudRequest, { rowsMax, json = INPUT_LIMITS }: RowImportOptions) {
    this.#access = access;
    this.#request = request;
    this.#view = view;
    this.#rowsMax = rowsMax;
    this.#faultsMax = access.list.limits.importErrors;
    this.#json = json;
    this.#input = new Set(access.input);
  }

  async #decideUnwritable(): Promise<void> {
    const { policy, input } = this.#access;
    for (const name of input) {
      const verdict = (await policy.ruleOf(name)?.writableBy?.evaluate(this.#request.context)) ?? true;
      if (verdict === 'unknown') this.#ruled.add(name);
      if (verdict !== false) continue;
      this.#unwritable.add(name);
      if (this.#view.knows(name) !== 'always') this.#shownAsNull.add(name);
    }
  }

  /**
   * What a row that is there gets: without the values of columns that a rule about the row does not let the caller write, where they are as the
   * caller's export has them. Another value is 403; so is any value of a column that the caller does not see on this row, because comparing
   * it would tell.
   */
  async withoutUnchanged({ values, sent }: ImportItem, row: Item): Promise<Pick<RowIntent, 'values' | 'sent'>> {
    const unchanged = new Set<string>();
    const refused: string[] = [];
    const { context } = this.#request;
    for (const name of sent) {
      if (!this.#ruled.has(name)) continue;
      const { visibleTo, writableBy } = this.#access.policy.ruleOf(name) as FieldRule;
      if ((await writableBy?.evaluate(context, row)) === true) continue;
      const isSeen = visibleTo === undefined || (await visibleTo.evaluate(context, row)) === true;
      const value = values[name] ?? null;
      if (isSeen ? isSameValue(this.#column(name), row[name], value) : value === null) unchanged.add(name);
      else refused.push(name);
    }
    if (refused.length > 0) throw unwritable(refused);
    for (const name of unchanged) this.#ignored.add(name);
    return {
      values: Object.fromEntries(Object.entries(values).filter(([name]) => !unchanged.has(name))),
      sent: sent.filter((name) => !unchanged.has(name)),
    };
  }

  get ignored(): string[] {
    return [...this.#ignored];
  }

  async read(body: Readable, format: FileFormat): Promise<ImportItem[]> {
    const { policy } = this.#access;
    await this.#decideUnwritable();
    const file = await readFile(body, format, this.#json);
    if (file.header !== undefined) this.#header(file.header);
    const declared = this.#access.schema ?? bodySchemas(policy, this.#access.input).create;
    const schema = declared['~standard'];
    const findUnknown = compileUnknownFields(jsonSchemaOf(declared, 'input'));
    const items: ImportItem[] = [];
    let count = 0;
    const isCsv = file.header !== undefined;
    for await (const rows of file.rows) {
      for (const row of rows) {
        count += 1;
        if (count > this.#rowsMax)
          throw coreErrors.body_too_large({
            detail: `The file has more than ${this.#rowsMax} rows.`,
            extensions: { rows_max: this.#rowsMax },
          });
        if (this.#faults.length >= this.#faultsMax) break;
        const given = this.#given(row, isCsv);
        if (given !== undefined) {
          const at: FieldError['location'] = ['body', row.number];
          const known = this.#faults.length;
          // As in a body, members of a JSON column that its schema does not know are errors, not dropped.
          findUnknown?.(given, [...at], this.#faults);
          const result = schema.validate(given) as RowResult | Promise<RowResult>;
          const hasUnknown = this.#faults.length > known;
          const item = this.#item(row.number, given, result instanceof Promise ? await result : result, hasUnknown);
          if (row.fault === undefined) this.#refuseInexact(row.values, given, at, this.#faults.slice(known));
          if (item !== undefined) items.push(item);
        }
        if (count % BATCH_ROWS === 0) await yieldLoop();
      }
      if (this.#faults.length >= this.#faultsMax) break;
    }
    return items;
  }

  #header(header: readonly string[]): void {
    this.#refuseManyColumns(header.length);
    const seen = new Set<string>();
    for (const name of header) {
      if (this.#faults.length >= this.#faultsMax) return;
      if (seen.has(name)) this.#refuse(['body', 1, name.slice(0, 100)], 'duplicate', 'The header has this column twice.');
      else this.#takes(name, 1);
      seen.add(name);
    }
  }

  /** Every name costs a comparison with those that are known: a file of 160 kB can have 40,000. */
  #refuseManyColumns(count: number): void {
    if (count > limits.importColumns)
      throw coreErrors.body_too_large({
        detail: `A row of the file has more than ${limits.importColumns} columns.`,
        extensions: { columns_max: limits.importColumns },
      });
  }

  /** Whether the column is taken. Known ones that are not are listed, unknown ones are faults. */
  #takes(name: string, row: number): boolean {
    if (this.#unwritable.has(name)) {
      // What the caller does not see cannot come from its export.
      if (!this.#view.fields.has(name)) throw unwritable([name]);
      this.#ignored.add(name);
      return true;
    }
    if (this.#input.has(name)) return true;
    if (this.#view.fields.has(name) || this.#isRelated(name)) this.#ignored.add(name);
    else this.#refuse(['body', row, name.slice(0, 100)], 'unknown_field', `Unknown column.${didYouMean(name, [...this.#input])}`);
    return false;
  }

  /** `customer.name`, or the relation of a JSON line: an export with `expand` has them. No export has rows of a to-many relation. */
  #isRelated(name: string): boolean {
    const { policy, list } = this.#access;
    const path = name.includes('.') ? name.slice(0, name.lastIndexOf('.')) : name;
    return list.expand.has(path) && leadsToOne(policy, path);
  }

  /** The members that are taken of a row. Undefined when it cannot be read. */
  #given(row: FileRow, isCsv: boolean): Record<string, unknown> | undefined {
    if (row.fault === undefined) return isCsv ? this.#cells(row.values, row.number) : this.#members(row.values, row.number);
    this.#refuse(['body', row.number, ...(row.path ?? [])], 'invalid', `This row ${row.fault}.`);
    return undefined;
  }

  /** `hasUnknown`: it has members that are unknown, which were reported. */
  #item(number: number, given: Record<string, unknown>, result: RowResult, hasUnknown: boolean): ImportItem | undefined {
    if (result.issues !== undefined) {
      for (const { message, code = 'invalid', path = [] } of result.issues) {
        // A strict schema complains once more about what was already found, without saying where.
        if (hasUnknown && code === 'unrecognized_keys') continue;
        const isMissing = path.length > 0 && given[String(path[0])] === undefined;
        this.#refuse(
          ['body', number, ...path.map(String)],
          isMissing ? 'required' : code,
          isMissing ? 'Required.' : `${message.charAt(0).toUpperCase()}${message.slice(1)}${message.endsWith('.') ? '' : '.'}`,
        );
      }
      return undefined;
    }
    // The schema lets the database fill a default where null was given; a file that says NULL means it where the column may be.
    const values = { ...(result.value as Item) };
    const sent = Object.keys(given);
    for (const name of sent) {
      if (given[name] !== null || values[name] !== undefined) continue;
      const { nullable, settings } = this.#column(name);
      if (nullable || settings.kind === 'json') values[name] = null;
    }
    const kept: Item = {};
    for (const name of this.#unwritable) {
      const value = values[name];
      delete values[name];
      if (this.#shownAsNull.has(name)) {
        if (value !== null && value !== undefined) throw unwritable([name]);
      } else if (value !== undefined) kept[name] = value;
    }
    return { values, sent: sent.filter((name) => !this.#unwritable.has(name)), kept, at: ['body', number] };
  }

  /** Numbers of a JSON line, of the columns that are taken from it. */
  #refuseInexact(line: object, given: Item, at: FieldError['location'], known: readonly FieldError[]): void {
    for (const { location, code, message } of inexactNumberFaults(line, at, known))
      if (Object.hasOwn(given, String(location[2]))) this.#refuse(location, code, message);
  }

  #column(name: string): StoredColumn {
    return this.#access.policy.findColumn(name) as StoredColumn;
  }

  #cells(cells: Readonly<Record<string, unknown>>, number: number): Record<string, unknown> {
    const given: Record<string, unknown> = {};
    for (const name of this.#input) {
      if (!Object.hasOwn(cells, name)) continue;
      const text = cells[name] as string | null;
      const column = this.#column(name);
      if (text === null) {
        if (column.nullable) given[name] = null;
        continue;
      }
      const value = cellValue(this.#access.policy.settingsOf(name), text, this.#json);
      if (value instanceof CellFault) this.#refuse(['body', number, name], value.code, value.message);
      else given[name] = value;
    }
    return given;
  }

  #members(members: Readonly<Record<string, unknown>>, number: number): Record<string, unknown> {
    this.#refuseManyColumns(Object.keys(members).length);
    const given: Record<string, unknown> = {};
    // A member called __proto__ is no column: it is refused before it could be set.
    for (const name of Object.keys(members)) if (this.#takes(name, number)) given[name] = members[name];
    return given;
  }

  /** What each row is found by; every row needs one, and no two the same. */
  keys(items: readonly ImportItem[], by: StoredColumn): ImportKeys {
    const keys = new Map<ImportItem, unknown>();
    const seen = new Map<string, number>();
    for (const item of items) {
      const value = item.values[by.name] ?? item.kept[by.name];
      const number = item.at[1] as number;
      if (value === null || value === undefined) this.#refuse(['body', number, by.name], 'required', 'Required: rows are found by it.');
      else {
        const text = String(by.encode(value));
        const first = seen.get(text);
        if (first !== undefined) this.#refuse(['body', number, by.name], 'duplicate', `Row ${first} has the same value.`);
        seen.set(text, first ?? number);
        keys.set(item, value);
      }
    }
    return keys;
  }

  #refuse(location: readonly (string | number)[], code: string, message: string): void {
    if (this.#faults.length < this.#faultsMax) this.#faults.push({ location, code, message });
  }

  finish(): void {
    if (this.#faults.length > 0) throw coreErrors.validation_error({ errors: this.#faults.slice(0, this.#faultsMax) });
  }
}

/** Whether two values of a column are one, however they are spelled: `5.0` is `5.00`. */
function isSameValue(column: StoredColumn, stored: unknown, given: unknown): boolean {
  if (isSame(column, stored, given)) return true;
  return stored !== null && stored !== undefined && given !== null && Object.is(column.encode(stored), column.encode(given));
}

function unwritable(fields: readonly string[]): Error {
  return coreErrors.permission_denied({
    detail: `You may not write ${fields.join(', ')}. Leave the column out, or as it is.`,
    extensions: { fields },
  });
}

export function importParameters({ formats, by }: ImportOptions): Record<string, JsonSchema> {
  return {
    format: { type: 'string', enum: [...formats], description: 'As the media type says unless given.' },
    dry_run: { type: 'boolean', default: false, description: 'Does everything, hooks included, and undoes it.' },
    mode: {
      type: 'string',
      enum: by === undefined ? ['create'] : ['create', 'upsert'],
      default: 'create',
      description: by === undefined ? 'Makes rows.' : `\`upsert\` changes the row with the same \`${by}\`, where there is one.`,
    },
  };
}

const count = { type: 'integer', minimum: 0 };
export const ImportSchema: Schema<ImportResult> = jsonSchema<ImportResult>({
  type: 'object',
  properties: {
    created: count,
    updated: count,
    dry_run: { type: 'boolean' },
    ignored: { type: 'array', items: { type: 'string' }, description: 'Columns of the file that are not taken from clients.' },
  },
  required: ['created', 'updated', 'dry_run', 'ignored'],
});
