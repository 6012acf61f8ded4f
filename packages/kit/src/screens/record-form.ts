import type { AdminContext, AdminResource } from '../app/admin/declaration.ts';
import { closing } from '../app/admin/closed-fields.ts';
import { adminField, type ModelColumn, unfillableColumns, writableColumns } from '../app/admin/model-columns.ts';
import type { AdminRecord } from '../app/admin/sections.ts';
import type { AdminField } from '../app/admin/shapes.ts';
import { scopeColumn } from '../crud/declare/scope-rule.ts';
import type { AnyResource } from '../crud/declare/resource.ts';
import { toJson } from '../db/declare/column-json.ts';
import type { Plan } from './screen-plan.ts';
import type { ScreenForms, ScreenRow } from './screen-words.ts';
import { accessOf, unlessRefused } from './staff-access.ts';

/** What the forms and buttons of a list may change at all. */
export interface Changes {
  readonly creation: AdminResource['creation'];
  readonly isEditable: boolean;
  readonly isRemovable: boolean;
}

export function changesOf(plan: Plan): Changes {
  const { words, resource } = plan;
  const { hooks = {}, writes } = resource.options;
  // Rows that only a module writes are shown; what a resource opens of them can be edited.
  const isManaged = hasManagedRows(plan);
  const byVerbs = writes === 'verbs';
  // A form with a body of its own is written by the hooks.
  const isReadOnly = words.readOnly === true || (isManaged && plan.writable.length === 0 && hooks.update === undefined);
  return {
    creation: creationOf(plan, isReadOnly),
    isEditable: !isReadOnly && (byVerbs ? hooks.update !== undefined && (words.forms !== undefined || plan.writable.length > 0) : true),
    isRemovable: words.removable !== false && words.readOnly !== true && (byVerbs || isManaged ? hooks.destroy !== undefined : !isReadOnly),
  };
}

/** Every column that could be written is guarded, and no hook of a resource takes over deletions. */
function hasManagedRows({ model, resource }: Plan): boolean {
  const isGuarded = Object.values(model.columns).some(({ settings }) => settings.guarded === true);
  return isGuarded && writableColumns(model).length === 0 && resource.options.hooks?.destroy === undefined;
}

function creationOf({ words, model, resource, creatable, given }: Plan, isReadOnly: boolean): AdminResource['creation'] {
  if (words.creation !== undefined) return 'refused' in words.creation ? words.creation : { fields: words.creation.fields };
  if (isReadOnly) return { refused: 'This list is read-only.' };
  const { once = {}, hooks = {}, version, tenant, writes } = resource.options;
  if (words.once === undefined && Object.values(once).some(({ on }) => on.includes('create')))
    return { refused: 'A new record has a value that is shown once. Create it where it is used.' };
  if (writes === 'verbs' && hooks.create === undefined) return { refused: 'The application creates these.' };
  if (words.forms !== undefined) return { fields: words.forms.create };
  const settable = new Set(creatable.map(({ name }) => name));
  // The hook of a resource may set what the form does not.
  const missing = hooks.create === undefined ? unfillableColumns(model).filter((name) => !settable.has(name)) : [];
  const unset = missing.filter((name) => name !== version && name !== scopeColumn(tenant));
  if (unset.length > 0) return { refused: `The application creates these: it sets ${unset.join(', ')} itself.` };
  const fields = creatable.map((column) => Object.assign(fieldOf(words, column, true), given.has(column.name) ? { required: true } : {}));
  return { fields };
}

/** A field of a form, with its words. */
export function fieldOf({ fields = {} }: Plan['words'], column: ModelColumn, isNew: boolean): AdminField {
  return { ...adminField(column, isNew), ...fields[column.name] };
}

/** By the name of a column that this staff member cannot write: the rule that says so. Without a row, of the form of a new one. */
export async function closedFields(
  context: AdminContext,
  { resource, writable, words }: Plan,
  row?: ScreenRow,
): Promise<Readonly<Record<string, string>>> {
  const access = await accessOf(resource, context, words);
  const names = writable.map(({ name }) => name);
  const closed = await unlessRefused(() => access.closedColumns(names, row), new Map<string, string>());
  return Object.fromEntries([...closed].map(([name, permission]) => [name, closedReason(resource, permission)]));
}

function closedReason({ name }: AnyResource, permission: string): string {
  return `You cannot change this field. Only users who pass ${permission} can: the resource ${name} says so in writableBy().`;
}

async function ownForm(
  context: AdminContext,
  { suggestions }: Plan['words'],
  { edit, values }: ScreenForms,
  row: ScreenRow,
): Promise<NonNullable<AdminRecord['form']>> {
  const suggested = await suggestions?.(context);
  const fields = edit.map((field) => {
    const more = suggested?.[field.name];
    return more === undefined ? field : { ...field, suggestions: [...new Set([...(field.suggestions ?? []), ...more])] };
  });
  return { fields, values: values(row) };
}

/** The form of a record: the columns that this staff member sees, closed where a rule says so. */
export async function formOf(
  context: AdminContext,
  plan: Plan,
  row: ScreenRow,
  shows: (name: string) => boolean,
): Promise<NonNullable<AdminRecord['form']>> {
  const { resource, words, writable } = plan;
  if (words.forms !== undefined) return ownForm(context, words, words.forms, row);
  const closed = await closedFields(context, plan, row);
  const shown = writable.filter(({ name }) => shows(name));
  const version = resource.options.version as string | undefined;
  const suggested = await words.suggestions?.(context);
  const field = (column: ModelColumn): AdminField => {
    const suggestions = suggested?.[column.name];
    return { ...fieldOf(words, column, false), ...(suggestions === undefined ? {} : { suggestions }) };
  };
  return {
    fields: shown.map((column) => closing(field(column), closed)),
    values: Object.fromEntries(shown.map(({ name, settings }) => [name, toJson(settings, row[name])])),
    ...(version === undefined ? {} : { version: Number(row[version]) }),
  };
}
