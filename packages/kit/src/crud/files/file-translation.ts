import { unguarded } from './csv-text.ts';
import type { FileRow, ReadFile } from './read-file.ts';

/** A field that a file may have, with what people call it. */
export interface FileField {
  readonly name: string;
  readonly label: string;
}

/** What a text of a cell names: the key of a record, or what is wrong with it. A text that is not in the answer stays as it is. */
export type NamedRecords = ReadonlyMap<string, { readonly key: string | number } | { readonly fault: string }>;

export interface FileWords {
  readonly fields: readonly FileField[];
  /** By the name of a column of the file: the field that it is; an empty text: it is left out. The others are found by name and label. */
  readonly chosen: Readonly<Record<string, string>>;
  /** By field that refers to other records: which of them these texts name. */
  readonly references: ReadonlyMap<string, (texts: readonly string[]) => Promise<NamedRecords>>;
}

/** Rows whose names are looked up together. */
const BATCH_ROWS = 500;

/** A file in other words than the table's: its columns have labels for names, its references have names for keys. */
export class FileTranslation {
  readonly #words: FileWords;
  readonly #keepsRows: boolean;
  readonly #found = new Map<string, readonly (string | null)[]>();
  /** By the name of a column of the file: what it is read as; null: it is left out. */
  readonly columns = new Map<string, string | null>();
  /** The rows, in the words of the file. Empty unless they are kept. */
  readonly rows: FileRow[] = [];

  constructor(words: FileWords, keepsRows: boolean) {
    this.#words = words;
    this.#keepsRows = keepsRows;
  }

  readonly read = ({ header, rows }: ReadFile): ReadFile => ({
    header: header === undefined ? undefined : this.#fields(header).filter((name) => name !== null),
    rows: this.#translated(rows),
  });

  /** What each of the columns is read as. */
  #fields(names: readonly string[]): readonly (string | null)[] {
    const text = JSON.stringify(names);
    const known = this.#found.get(text);
    if (known !== undefined) return known;
    const found = fieldsOf(names, this.#words);
    this.#found.set(text, found);
    for (const [index, name] of names.entries()) this.columns.set(name, found[index] ?? null);
    return found;
  }

  async *#translated(batches: ReadFile['rows']): AsyncGenerator<readonly FileRow[]> {
    let waiting: FileRow[] = [];
    for await (const batch of batches) {
      for (const row of batch) {
        const renamed = this.#renamed(row);
        if (this.#keepsRows) this.rows.push(renamed);
        waiting.push(renamed);
      }
      if (waiting.length < BATCH_ROWS) continue;
      yield await this.#withKeys(waiting);
      waiting = [];
    }
    if (waiting.length > 0) yield this.#withKeys(waiting);
  }

  #renamed(row: FileRow): FileRow {
    if (row.fault !== undefined) return row;
    const names = Object.keys(row.values);
    const fields = this.#fields(names);
    const taken = fields.filter((name) => name !== null);
    const twice = taken.find((name, index) => taken.indexOf(name) !== index);
    if (twice !== undefined) return { number: row.number, fault: `has two values for ${twice}`, path: [twice] };
    const entries = names.flatMap((name, index): [string, unknown][] => {
      const field = fields[index] ?? null;
      return field === null ? [] : [[field, row.values[name]]];
    });
    return { number: row.number, values: Object.fromEntries(entries) };
  }

  /** Names of records become keys. */
  async #withKeys(rows: readonly FileRow[]): Promise<readonly FileRow[]> {
    const keys = new Map<string, NamedRecords>();
    for (const [field, find] of this.#words.references) {
      const texts = new Set(rows.flatMap((row) => nameIn(row, field) ?? []));
      if (texts.size > 0) keys.set(field, await find([...texts]));
    }
    if (keys.size === 0) return rows;
    return rows.map((row) => {
      if (row.fault !== undefined) return row;
      const values: Record<string, unknown> = { ...row.values };
      const faults: Record<string, string> = {};
      for (const [field, named] of keys) {
        const record = named.get(nameIn(row, field) ?? '');
        if (record === undefined) continue;
        if ('key' in record) values[field] = record.key;
        else faults[field] = record.fault;
      }
      return { number: row.number, values, faults };
    });
  }
}

function nameIn(row: FileRow, field: string): string | undefined {
  const value = row.fault === undefined && Object.hasOwn(row.values, field) ? row.values[field] : undefined;
  const name = typeof value === 'string' ? unguarded(value).trim() : '';
  return name === '' ? undefined : name;
}

/** What the columns of a file are: as chosen, else by their names and labels, each field once. A column that nothing is known of keeps its name. */
export function fieldsOf(names: readonly string[], { fields, chosen }: Pick<FileWords, 'fields' | 'chosen'>): readonly (string | null)[] {
  const found = new Map<number, string | null>();
  const taken = new Set<string>();
  const take = (index: number, field: string): void => {
    found.set(index, field);
    taken.add(field);
  };
  for (const [index, name] of names.entries()) {
    const field = Object.hasOwn(chosen, name) ? chosen[name] : undefined;
    if (field === '') found.set(index, null);
    else if (field !== undefined) take(index, field);
  }
  for (const isSame of [isExact, isAlike])
    for (const [index, name] of names.entries()) {
      if (found.has(index)) continue;
      const field = fields.find((each) => !taken.has(each.name) && isSame(each, name));
      if (field !== undefined) take(index, field.name);
    }
  return names.map((name, index) => (found.has(index) ? (found.get(index) ?? null) : name));
}

function isExact(field: FileField, name: string): boolean {
  return field.name === name;
}

/** `Customer`, `customer id` and `CUSTOMER_ID` are the field `customer_id` with the label `Customer`. */
function isAlike(field: FileField, name: string): boolean {
  const wanted = plain(name);
  return wanted !== '' && [field.name, field.label, field.name.replace(/_id$/, '')].some((each) => plain(each) === wanted);
}

function plain(name: string): string {
  return name
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '');
}
