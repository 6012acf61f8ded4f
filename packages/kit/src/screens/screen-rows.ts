import type { AdminContext } from '../app/admin/declaration.ts';
import type { ModelColumn } from '../app/admin/model-columns.ts';
import type { AdminRow, AdminValue } from '../app/admin/shapes.ts';
import { coreErrors } from '../errors/core-errors.ts';
import type { SchemaResult } from '../http/declare/schema.ts';
import type { StaffItem } from '../crud/staff/staff-list.ts';
import { referenceTitles, type ReferenceTitles } from './reference-titles.ts';
import { DELETED, type Plan } from './screen-plan.ts';
import type { ScreenOptions, ScreenRow } from './screen-words.ts';
import { stateTone } from './state-tone.ts';
import { stepsOf } from '../db/values/standard-schema.ts';

export function isDeleted({ softDeletes }: Plan, row: ScreenRow): boolean {
  return softDeletes && row[DELETED] !== null;
}

export function keyOf({ keyName, words: { lookup = keyName } }: Plan, row: ScreenRow): string {
  return String(row[lookup]);
}

/**
 * Items of the lane as the site draws them, in their order: `shows` are the names that this staff member sees, `names` those of the cells, and `loaded` what
 * the list reads for each.
 */
export async function rowsOf(
  context: AdminContext,
  plan: Plan,
  items: readonly StaffItem[],
  shows: (name: string) => boolean,
  names: readonly string[],
  loaded?: readonly ScreenRow[],
): Promise<readonly AdminRow[]> {
  const listed = items.map(({ item }) => item);
  // A cell says itself what a reference is called.
  const references = plan.shown.filter(({ name }) => names.includes(name) && plan.words.cells?.[name] === undefined);
  const titles = await referenceTitles(context, references, listed);
  const more = loaded ?? (await loadedOf(plan, context, listed));
  return items.map((each, index) => rowOf(context, plan, each, { shows, titles, names, loaded: more[index] ?? {} }));
}

/** What the list reads for these rows besides their columns. */
export async function loadedOf(
  { words: { load } }: Plan,
  context: AdminContext,
  rows: readonly ScreenRow[],
): Promise<readonly ScreenRow[]> {
  return load === undefined || rows.length === 0 ? [] : ((await load(rows, context)) as readonly ScreenRow[]);
}

interface Drawing {
  readonly shows: (name: string) => boolean;
  readonly titles: ReferenceTitles;
  readonly names: readonly string[];
  readonly loaded: ScreenRow;
}

function rowOf(context: AdminContext, plan: Plan, { key, item }: StaffItem, { shows, titles, names, loaded }: Drawing): AdminRow {
  const { cells = {}, tones } = plan.words;
  const columns = new Map(plan.shown.map((column) => [column.name, column]));
  const row = { ...item, ...loaded };
  const values = names.flatMap((name): [string, AdminValue][] => {
    const cell = cells[name];
    if (cell !== undefined) return [[name, cell(row, context)]];
    if (Object.hasOwn(loaded, name)) return [[name, plainValue(loaded[name])]];
    if (!shows(name) || !(name in item)) return [];
    const column = columns.get(name);
    const value = plainValue(item[name]);
    return [[name, column === undefined ? stateOf(tones, name, value) : cellOf(context, column, value, titles, tones)]];
  });
  return { id: key, title: titleOf(context, plan, row, key, shows), values: Object.fromEntries(values) };
}

/** Where no column and no cell says what records are called, it is their id: as it is where the title is the key, another id, or no text. */
export function isNamedById({ title, shown, words: { cells, load } }: Plan): boolean {
  const kind = shown.find(({ name }) => name === title)?.settings.kind;
  return cells?.[title] === undefined && load === undefined && kind !== undefined && NAMELESS.has(kind);
}

const NAMELESS: ReadonlySet<string> = new Set(['uuid', 'int', 'bigint', 'float', 'bool', 'json', 'array']);

/** A cell, a value that the list loads, or a column that this staff member sees. */
export function titleOf(
  context: AdminContext,
  { title: name, words: { cells = {} }, shown }: Plan,
  row: ScreenRow,
  key: string,
  shows: (name: string) => boolean,
): string {
  const isColumn = shown.some((column) => column.name === name);
  const title = cells[name] === undefined ? (!isColumn || shows(name) ? row[name] : undefined) : cells[name](row, context);
  return typeof title === 'string' && title !== '' ? title : key;
}

export function cellOf(
  { linkTo }: AdminContext,
  { name, settings }: ModelColumn,
  value: AdminValue,
  titles: ReferenceTitles,
  tones?: ScreenOptions['tones'],
): AdminValue {
  if (value === null) return null;
  if (settings.reference === undefined) return stateOf(tones, name, value, settings.kind === 'enum');
  const { target } = settings.reference;
  const table = typeof target === 'string' ? target : target().name;
  const id = value as string | number;
  const text = titles.get(name)?.get(String(id));
  return linkTo(table, String(id), text) ?? text ?? id;
}

/** A value with the tone, or the whole state, that the words give it. Default: by what the word means in English. */
function stateOf(tones: ScreenOptions['tones'], name: string, value: AdminValue, isState = false): AdminValue {
  if (typeof value !== 'string' || (!isState && tones?.[name] === undefined)) return value;
  const tone = tones?.[name]?.[value];
  return typeof tone === 'object' ? tone : { value, tone: tone ?? stateTone(value) };
}

/** As JSON has it. */
export function plainValue(value: unknown): AdminValue {
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'bigint') return String(value);
  return value ?? null;
}

/** The value of a form, or a 422 whose locations name its fields. */
export function checked(result: SchemaResult<unknown> | Promise<SchemaResult<unknown>>, at: readonly string[] = ['body']): object {
  if (result instanceof Promise) throw new TypeError('The schemas of models must be synchronous.');
  if (result.issues === undefined) return result.value as object;
  const errors = result.issues.map((issue) => ({
    location: [...at, ...stepsOf(issue)],
    code: issue.code ?? 'invalid',
    message: issue.message,
  }));
  throw coreErrors.validation_error({ errors });
}
