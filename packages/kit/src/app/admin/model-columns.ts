import { type ColumnSettings, columnDefinition, resolveReference } from '../../db/declare/column.ts';
import type { Model } from '../../db/declare/model.ts';
import type { ColumnDefinition } from '../../db/declare/table-definition.ts';
import { quoteName } from '../../db/declare/names.ts';
import { jsonSchemaOf, type Schema } from '../../http/declare/schema.ts';
import type { AdminCellKind, AdminColumn, AdminField } from './shapes.ts';

/** How a list is ordered besides its key: SQL over the tables of `from`, and what its values are. */
export interface AdminOrder {
  readonly sql: string;
  readonly kind: 'text' | 'number' | 'time';
  readonly nullable?: boolean;
  /** The column, where it is one: it says more than `kind`. */
  readonly definition?: ColumnDefinition;
  /** Characters that it compares, of a column with longer texts. */
  readonly cut?: number;
  /** An index has the rows in this order. Of a large table without one the newest rows are put in order. */
  readonly indexed?: boolean;
}

export type AdminOrders = Readonly<Record<string, AdminOrder>>;

/** A longer text gets a larger field. */
const SHORT_TEXT_MAX = 200;

export interface ModelColumn {
  readonly name: string;
  readonly settings: ColumnSettings;
}

/** What may be shown: neither sensitive nor internal columns, nor bytes. */
export function shownColumns({ columns }: Pick<Model, 'columns'>): readonly ModelColumn[] {
  return settingsOf(columns).filter(({ settings }) => !settings.sensitive && settings.internal !== true && settings.kind !== 'bytes');
}

/** What a form may set: neither what the application sets itself nor what must not be shown. `opens` names guarded columns that a resource opens. */
export function writableColumns(model: Model, opens: (name: string) => boolean = () => false): readonly ModelColumn[] {
  return shownColumns(model).filter(
    ({ name, settings }) =>
      (!settings.readOnly || (settings.guarded === true && opens(name))) &&
      settings.touch === undefined &&
      !(settings.primaryKey && settings.default !== undefined),
  );
}

/** Columns a new row needs and a form cannot give: the application has to make such rows. */
export function unfillableColumns(model: Model): readonly string[] {
  const writable = new Set(writableColumns(model).map(({ name }) => name));
  return settingsOf(model.columns)
    .filter(({ name, settings }) => isRequired(settings) && !writable.has(name))
    .map(({ name }) => name);
}

function settingsOf(columns: Model['columns']): ModelColumn[] {
  return Object.entries(columns).map(([name, { settings }]) => ({ name, settings: resolveReference(settings) }));
}

function isRequired({ nullable, default: made, dbDefault }: ColumnSettings): boolean {
  return !nullable && made === undefined && dbDefault === undefined;
}

const CELLS: Readonly<Record<ColumnSettings['kind'], AdminCellKind>> = {
  uuid: 'code',
  text: 'text',
  enum: 'state',
  int: 'number',
  bigint: 'number',
  decimal: 'number',
  float: 'number',
  bool: 'bool',
  timestamp: 'time',
  date: 'date',
  bytes: 'text',
  array: 'json',
  json: 'json',
};

export function adminColumn({ name, settings }: ModelColumn, secondary: boolean): AdminColumn {
  const kind = settings.reference !== undefined ? 'link' : isTexts(settings) ? 'chips' : CELLS[settings.kind];
  return { name, label: labelOf(name), kind, ...(secondary ? { secondary } : {}) };
}

/** A computed field as a column of the list: what its schema says is how it is shown. */
export function computedColumn(name: string, response: Schema | undefined, secondary: boolean): AdminColumn {
  const json = response === undefined ? {} : jsonSchemaOf(response, 'output');
  const sortNote = 'Cannot be sorted: it is computed from other columns.';
  return { name, label: labelOf(name), kind: cellKindOf(json), sortNote, ...(secondary ? { secondary } : {}) };
}

function cellKindOf({ type, format, items }: Readonly<Record<string, unknown>>): AdminCellKind {
  switch (type) {
    case 'boolean':
      return 'bool';
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return (items as { readonly type?: unknown } | undefined)?.type === 'string' ? 'chips' : 'json';
    case 'object':
      return 'json';
    default:
      return format === 'date-time' ? 'time' : 'text';
  }
}

const ORDER_KINDS: Readonly<Partial<Record<ColumnSettings['kind'], AdminOrder['kind']>>> = {
  text: 'text',
  enum: 'text',
  date: 'text',
  decimal: 'text',
  int: 'number',
  bigint: 'number',
  float: 'number',
  bool: 'number',
  timestamp: 'time',
};

/** Longer texts are ordered by their beginning: that of the last row travels in the cursor, whatever its characters are. */
const ORDERED_TEXT_MAX = 500;

/** How the list is ordered by its columns; those without an order worth having are not among them. */
export function ordersOf(model: Model, columns: readonly ModelColumn[], alias?: string): AdminOrders {
  return Object.fromEntries(
    columns.flatMap((column): [string, AdminOrder][] => {
      const order = orderOf(model, column, alias);
      return order === undefined ? [] : [[column.name, order]];
    }),
  );
}

/** `key`: what the list goes by in the end, see {@link AdminOrder}. */
export function orderOf(model: Model, column: ModelColumn, alias = 't', key = model.primaryKey[0]): AdminOrder | undefined {
  const { name, settings } = column;
  const kind = ORDER_KINDS[settings.kind];
  // The order of keys is not the order of the names that are shown.
  if (kind === undefined || settings.reference !== undefined) return undefined;
  const definition = columnDefinition(settings);
  const sql = `${alias}.${quoteName(name)}`;
  if (settings.kind === 'text' && (settings.max ?? Infinity) > ORDERED_TEXT_MAX) {
    const beginning = `substr(${sql}, 1, ${ORDERED_TEXT_MAX})`;
    return { sql: beginning, kind, definition: { ...definition, max: ORDERED_TEXT_MAX }, cut: ORDERED_TEXT_MAX, indexed: false };
  }
  return { sql, kind, definition, indexed: isInOrder(model, column, key) };
}

/** How cursors hold the key of a list. */
export function keyKindOf({ columns }: Model, key: string): 'uuid' | 'int' | 'bigint' | 'text' {
  const kind = columns[key]?.settings.kind;
  return kind === 'uuid' || kind === 'int' || kind === 'bigint' ? kind : 'text';
}

/** Whether an index finds the rows that have one value of the column; `whole`: of all rows, not only of those that a partial index has. */
export function isIndexed({ primaryKey, columns, table }: Model, name: string, { whole = false } = {}): boolean {
  return (
    name === primaryKey[0] ||
    columns[name]?.settings.unique === true ||
    table.indexes.some(({ columns: [first = ''], where }) => first.replace(/^-/, '') === name && (!whole || where === undefined))
  );
}

/**
 * Whether an index has all rows in the order of the column and then of the key. NULLs come last, which is not where SQLite has them; decimals
 * are compared as numbers there and stored as text.
 */
function isInOrder({ table }: Model, { name, settings: { kind, nullable, unique } }: ModelColumn, key: string | undefined): boolean {
  if (nullable || kind === 'decimal') return false;
  const isOfBoth = table.indexes.some(
    ({ columns: [first, second], where }) => where === undefined && first === name && (second === key || name === key),
  );
  return unique || name === key || isOfBoth;
}

export function adminField({ name, settings }: ModelColumn, isNew: boolean): AdminField {
  const { kind, max, values, nullable, description } = settings;
  const required = isNew ? isRequired(settings) : !nullable && kind !== 'bool' && kind !== 'json' && kind !== 'array' && kind !== 'text';
  return {
    name,
    label: labelOf(name),
    ...fieldKind(settings),
    ...(required && !(kind === 'text' && (settings.min ?? 0) === 0) && kind !== 'bool' ? { required: true } : {}),
    ...(nullable ? { nullable: true } : {}),
    ...(description === undefined ? {} : { help: description }),
    ...(kind === 'text' && max !== undefined ? { maxLength: max } : {}),
    ...(values === undefined ? {} : { choices: values.map((value) => ({ value, label: value })) }),
  };
}

/** The table whose key the column holds; null where it holds something else. */
export function referenceTarget({ reference }: ColumnSettings): string | null {
  if (reference === undefined || reference.column !== undefined) return null;
  return typeof reference.target === 'string' ? reference.target : reference.target().name;
}

function fieldKind(settings: ColumnSettings): Pick<AdminField, 'kind' | 'placeholder' | 'of'> {
  const target = referenceTarget(settings);
  // Numbers travel as numbers: their form takes the typed key.
  if (target !== null && settings.kind !== 'int') return { kind: 'reference', of: target };
  switch (settings.kind) {
    case 'text':
      return { kind: settings.max !== undefined && settings.max <= SHORT_TEXT_MAX ? 'text' : 'long_text' };
    case 'enum':
      return { kind: 'select' };
    case 'int':
    case 'float':
      return { kind: 'number' };
    case 'bool':
      return { kind: 'bool' };
    case 'timestamp':
      return { kind: 'time' };
    case 'date':
      return { kind: 'date' };
    case 'decimal':
      return { kind: 'text', placeholder: (0).toFixed(settings.scale ?? 0) };
    case 'array':
      return { kind: isTexts(settings) ? 'strings' : 'json' };
    case 'json':
      return { kind: 'json' };
    default:
      return { kind: 'text' };
  }
}

function isTexts({ kind, of }: ColumnSettings): boolean {
  return kind === 'array' && (of?.kind === 'text' || of?.kind === 'enum');
}

/** The text column that people call a record by. */
export function titleColumn(columns: readonly ModelColumn[]): string | undefined {
  const texts = columns.filter(({ settings }) => settings.kind === 'text');
  const named = texts.find(({ name }) => /^(name|title|label|username|filename|slug)$/.test(name));
  return (named ?? texts.find(({ settings }) => settings.unique) ?? texts[0])?.name;
}

const ABBREVIATIONS: ReadonlySet<string> = new Set([
  'api',
  'csv',
  'html',
  'http',
  'https',
  'iban',
  'ip',
  'json',
  'pdf',
  'sku',
  'tls',
  'uri',
  'url',
  'uuid',
  'vat',
]);

/** `owner_id` → `Owner`, `callback_url` → `Callback URL`, `created_at` → `Created`, `is_listed` → `Listed`. */
export function labelOf(name: string): string {
  const words = name
    .replace(/^is_(?=.)/, '')
    .replace(/(?<=.)_(?:id|at)$/, '')
    .split('_');
  const label = words.map((word) => (ABBREVIATIONS.has(word) ? word.toUpperCase() : word)).join(' ');
  return `${label.charAt(0).toUpperCase()}${label.slice(1)}`;
}

/** What records are called, within a sentence: `orders`, `API keys`. */
export function inSentence(text: string): string {
  return /^[A-Z]{2}/.test(text) ? text : text.toLowerCase();
}
