import type { Readable } from 'node:stream';
import { setImmediate as yieldLoop } from 'node:timers/promises';
import { coreErrors } from '../../errors/core-errors.ts';
import { type FieldError } from '../../errors/kit-error.ts';
import { marksSensitive } from '../../db/declare/sensitive-members.ts';
import { type SchemaResult, stepsOf } from '../../db/values/standard-schema.ts';
import { fieldError } from '../../http/input/read-input.ts';
import type { JsonLimits } from '../../http/json/parse-json.ts';
import { inexactNumberFaults } from '../../http/json/inexact-numbers.ts';
import { compileUnknownFields } from '../../http/json/unknown-fields.ts';
import { type JsonSchema, jsonSchemaOf } from '../../http/declare/schema.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { INPUT_LIMITS } from '../../options/input-limits.ts';
import type { RowIntent } from '../write/intent.ts';
import { type CrudRequest } from '../policy/crud-request.ts';
import type { FileFormat } from '../options/file-options.ts';
import { CellFault, cellValue } from './import-row.ts';
import type { StoredColumn } from '../policy/policy.ts';
import { type FileRow, type ReadFile, readFile, refuseManyColumns } from './read-file.ts';
import { bodySchemas, leadsToOne } from '../mount/schemas.ts';
import type { FieldRule } from '../declare/field-rule.ts';
import type { Item } from '../declare/item.ts';
import type { View } from '../policy/view.ts';
import {
  type ImportTarget,
  type RowImportOptions,
  type ImportItem,
  type ImportKeys,
  BATCH_ROWS,
  unwritable,
  isSameValue,
} from './import-item.ts';
import { unwritableColumns } from '../policy/unwritable-columns.ts';

/** What the schema of a row says about it. */
type RowResult = SchemaResult<unknown>;

/** The first phase: reads and checks rows, and notes what is wrong with them. */
export class RowReader {
  readonly #access: ImportTarget;
  readonly #request: CrudRequest;
  readonly #view: View;
  readonly #rowsMax: number;
  readonly #faultsMax: number;
  readonly #json: JsonLimits;
  readonly #translate: (file: ReadFile) => ReadFile;
  readonly #faults: FieldError[] = [];
  readonly #ignored = new Set<string>();
  readonly #input: ReadonlySet<string>;
  /** Input columns that this request may not write, whatever the row is. */
  readonly #unwritable = new Set<string>();
  /** Those of them that the caller gets as null, whatever they are: comparing them would tell. */
  readonly #shownAsNull = new Set<string>();
  /** Input columns that a rule about the row decides. */
  readonly #ruled = new Set<string>();

  constructor(
    access: ImportTarget,
    view: View,
    request: CrudRequest,
    { rowsMax, json = INPUT_LIMITS, translate = (file) => file }: RowImportOptions,
  ) {
    this.#access = access;
    this.#request = request;
    this.#view = view;
    this.#rowsMax = rowsMax;
    this.#faultsMax = access.list.limits.importErrors;
    this.#json = json;
    this.#translate = translate;
    this.#input = new Set(access.input);
  }

  async #decideUnwritable(): Promise<void> {
    const { policy, input } = this.#access;
    for (const [name, { verdict }] of await unwritableColumns(policy, this.#request.context, input)) {
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
    const { policy } = this.#access;
    const ruled = sent.filter((name) => this.#ruled.has(name));
    for (const name of (await unwritableColumns(policy, context, ruled, row)).keys()) {
      const { visibleTo } = policy.ruleOf(name) as FieldRule;
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
    const file = this.#translate(await readFile(body, format, this.#json));
    if (file.header !== undefined) this.#header(file.header);
    const declared = this.#access.schema ?? bodySchemas(policy, this.#access.input, undefined, this.#access.address).create;
    const schema = declared['~standard'];
    const json = jsonSchemaOf(declared, 'input');
    const findUnknown = compileUnknownFields(json);
    const sensitive = marksSensitive(json) ? json : undefined;
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
          const result = schema.validate(given);
          const hasUnknown = this.#faults.length > known;
          const faults = row.fault === undefined ? (row.faults ?? {}) : {};
          for (const [name, message] of Object.entries(faults)) this.refuse([...at, name], 'invalid', message);
          const item = this.#item(
            row.number,
            given,
            withoutIssuesOf(faults, result instanceof Promise ? await result : result),
            hasUnknown,
            sensitive,
          );
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
    refuseManyColumns(header.length);
    const seen = new Set<string>();
    for (const name of header) {
      if (this.#faults.length >= this.#faultsMax) return;
      if (seen.has(name)) this.refuse(['body', 1, name.slice(0, 100)], 'duplicate', 'The header has this column twice.');
      else this.#takes(name, 1);
      seen.add(name);
    }
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
    else this.refuse(['body', row, name.slice(0, 100)], 'unknown_field', `Unknown column.${didYouMean(name, [...this.#input])}`);
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
    this.refuse(['body', row.number, ...(row.path ?? [])], 'invalid', `This row ${row.fault}.`);
    return undefined;
  }

  /** `hasUnknown`: it has members that are unknown, which were reported. */
  #item(
    number: number,
    given: Record<string, unknown>,
    result: RowResult,
    hasUnknown: boolean,
    sensitive: JsonSchema | undefined,
  ): ImportItem | undefined {
    if (result.issues !== undefined) {
      for (const issue of result.issues) {
        const { location, code, message } = fieldError(['body', number], given, issue, sensitive);
        // A strict schema complains once more about what was already found, without saying where.
        if (hasUnknown && code === 'unknown_field') continue;
        this.refuse(location, code, `${message.charAt(0).toUpperCase()}${message.slice(1)}${message.endsWith('.') ? '' : '.'}`);
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
      if (Object.hasOwn(given, String(location[2]))) this.refuse(location, code, message);
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
      if (value instanceof CellFault) this.refuse(['body', number, name], value.code, value.message);
      else given[name] = value;
    }
    return given;
  }

  #members(members: Readonly<Record<string, unknown>>, number: number): Record<string, unknown> {
    refuseManyColumns(Object.keys(members).length);
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
      if (value === null || value === undefined) this.refuse(['body', number, by.name], 'required', 'Required: rows are found by it.');
      else {
        const text = String(by.encode(value));
        const first = seen.get(text);
        if (first !== undefined) this.refuse(['body', number, by.name], 'duplicate', `Row ${first} has the same value.`);
        seen.set(text, first ?? number);
        keys.set(item, value);
      }
    }
    return keys;
  }

  refuse(location: readonly (string | number)[], code: string, message: string): void {
    if (this.#faults.length < this.#faultsMax) this.#faults.push({ location, code, message });
  }

  finish(): void {
    if (this.#faults.length > 0) throw coreErrors.validation_error({ errors: this.#faults.slice(0, this.#faultsMax) });
  }
}

/** What is wrong with a cell is said once. */
function withoutIssuesOf(faults: Readonly<Record<string, string>>, result: RowResult): RowResult {
  if (result.issues === undefined) return result;
  return {
    issues: result.issues.filter((issue) => {
      const [name] = stepsOf(issue);
      return name === undefined || !Object.hasOwn(faults, name);
    }),
  };
}
