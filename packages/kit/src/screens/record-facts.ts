import type { AdminContext } from '../app/admin/declaration.ts';
import { adminColumn, labelOf, shownColumns, titleColumn } from '../app/admin/model-columns.ts';
import type { AdminSection } from '../app/admin/sections.ts';
import type { AdminCellKind, AdminColumn, AdminRow } from '../app/admin/shapes.ts';
import type { AdminRecordRow, RelatedRows } from '../crud/staff/admin-access.ts';
import { referenceTitles } from './reference-titles.ts';
import type { Plan } from './screen-plan.ts';
import { cellOf, plainValue } from './screen-rows.ts';

const COLUMNS_MAX = 8;
const MAIN_COLUMNS = 4;

/** Computed fields that the columns of the page do not have, each shown as its value is. */
export function computedFacts(
  { facts }: Plan,
  { item, computed }: AdminRecordRow,
): Pick<Extract<AdminSection, { kind: 'facts' }>, 'columns' | 'values'> {
  const more = computed.filter((name) => name in item && !facts.some((column) => column.name === name));
  return {
    columns: more.map((name): AdminColumn => ({ name, label: labelOf(name), kind: kindOf(item[name], plainValue(item[name])) })),
    values: Object.fromEntries(more.map((name) => [name, plainValue(item[name])])),
  };
}

export async function relatedSection(context: AdminContext, related: RelatedRows): Promise<AdminSection> {
  const { name, model, column, columns, items, hasMore } = related;
  const [key = ''] = model.primaryKey;
  const shown = shownColumns(model).filter((each) => columns.has(each.name));
  const listed = shown.filter((each) => each.name !== key && each.name !== column && each.settings.kind !== 'json').slice(0, COLUMNS_MAX);
  const titles = await referenceTitles(context, listed, items);
  // The list of these records says what they are called.
  const called = await context.titlesOf(
    model.name,
    items.map((item) => String(item[key])),
  );
  const title = titleColumn(listed);
  // The column that leads to the record shows its own value.
  const linked = listed.find((each) => each.name === title) ?? listed[0];
  const rows = items.map((item): AdminRow => {
    const id = String(item[key]);
    const named = title === undefined ? undefined : item[title];
    const text = called.get(id) ?? (typeof named === 'string' && named !== '' ? named : id);
    const values = Object.fromEntries(listed.map((each) => [each.name, cellOf(context, each, plainValue(item[each.name]), titles)]));
    const own = linked === undefined ? null : plainValue(item[linked.name]);
    const way = context.linkTo(model.name, id, typeof own === 'string' && own !== '' ? own : text);
    return { id, title: text, values: way === null || linked === undefined ? values : { ...values, [linked.name]: way } };
  });
  const isLinked = linked !== undefined && context.linkTo(model.name, '') !== null;
  return {
    kind: 'table',
    title: hasMore ? `${labelOf(name)}, the first ${items.length}` : labelOf(name),
    columns: listed.map((each, index) =>
      Object.assign(adminColumn(each, index >= MAIN_COLUMNS), isLinked && each === linked ? { kind: 'link' as const } : {}),
    ),
    rows,
    empty: 'None.',
  };
}

function kindOf(made: unknown, value: unknown): AdminCellKind {
  if (made instanceof Date) return 'time';
  if (typeof value === 'number') return 'number';
  if (typeof value === 'boolean') return 'bool';
  if (Array.isArray(value)) return value.every((each) => typeof each === 'string') ? 'chips' : 'json';
  return typeof value === 'object' && value !== null ? 'json' : 'text';
}
