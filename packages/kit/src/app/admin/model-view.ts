// Parts of a page that a module shows of its models by hand, such as the sessions of a user: what the columns say about labels and kinds.
import type { Model } from '../../db/declare/model.ts';
import { adminColumn, adminField, labelOf, type ModelColumn, shownColumns } from './model-columns.ts';
import type { AdminColumn, AdminField, AdminRow, AdminValue } from './shapes.ts';

/** A column by its name, or with what the model does not say about it. One that the model does not have needs its kind. */
export type ShownColumn = string | (Pick<AdminColumn, 'name'> & Partial<AdminColumn>);

/** Columns of a model as the site shows them, and the values of a row for them. */
export interface ModelView {
  readonly columns: readonly AdminColumn[];
  /** Of a row, the values of these columns; `more` are those that the row does not have, or has otherwise. */
  values(row: object, more?: AdminRow['values']): AdminRow['values'];
}

/** Columns that are sensitive or internal cannot be shown: naming one is an error. */
export function modelView(model: Model, columns: readonly ShownColumn[]): ModelView {
  const shown = new Map(shownColumns(model).map((column) => [column.name, column]));
  return {
    columns: columns.map((column) => columnOf(model, shown, column)),
    values(row, more = {}) {
      const known = columns.map((column) => (typeof column === 'string' ? column : column.name)).filter((name) => shown.has(name));
      const own = known.map((name) => [name, valueOf((row as Readonly<Record<string, unknown>>)[name])] as const);
      return { ...Object.fromEntries(own), ...more };
    },
  };
}

function columnOf(model: Model, shown: ReadonlyMap<string, ModelColumn>, column: ShownColumn): AdminColumn {
  const given = typeof column === 'string' ? { name: column } : column;
  const { name } = given;
  const own = shown.get(name);
  if (own !== undefined) return { ...adminColumn(own, false), ...given };
  if (given.kind === undefined || Object.hasOwn(model.columns, name))
    throw new TypeError(`The admin site cannot show "${name}" of "${model.name}": it is not a column, or it is sensitive.`);
  return { label: labelOf(name), ...given, kind: given.kind };
}

/** Empty text stands for nothing in columns that are not nullable, such as `tenant_key`. */
function valueOf(value: unknown): AdminValue {
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'bigint') return Number(value);
  return value === undefined || value === '' ? null : value;
}

/** A field of a form, as the column says; `given` replaces what it says. */
export function modelField(model: Model, name: string, given: Partial<AdminField> = {}): AdminField {
  const column = shownColumns(model).find((each) => each.name === name);
  if (column === undefined) throw new TypeError(`The admin site has no field for "${name}" of "${model.name}".`);
  return { ...adminField(column, true), ...given };
}
