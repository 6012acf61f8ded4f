import type { AdminContext } from '../../app/admin/declaration.ts';
import type { AdminCellKind, AdminColumn, AdminRow, AdminSection } from '../../app/admin/shapes.ts';
import type { RelatedRows } from '../../crud/serve/admin-access.ts';
import { adminColumn, labelOf, shownColumns, titleColumn } from '../../app/admin/model-columns.ts';
import type { Plan, Row } from './model-plan.ts';
import { cellOf } from './model-rows.ts';
import { databaseOf } from './model-store.ts';
import { referenceTitles } from './reference-titles.ts';
import { accessOf, unlessRefused } from '../staff/staff-access.ts';

/** What the page of a record has besides its columns. */
export interface ExpandedRecord {
  /** Of computed fields. */
  readonly columns: readonly AdminColumn[];
  readonly values: AdminRow['values'];
  readonly sections: readonly AdminSection[];
}

const NOTHING: ExpandedRecord = { columns: [], values: {}, sections: [] };
const COLUMNS_MAX = 8;
const MAIN_COLUMNS = 4;

/** Computed fields of the resource, and rows of its relations to many. Those with a list that refers to this one stand on the page already. */
export async function expandedRecord(context: AdminContext, plan: Plan, id: string, isDeleted: boolean): Promise<ExpandedRecord> {
  const { resource, model } = plan;
  if (resource === null || isDeleted) return NOTHING;
  const access = await accessOf(resource, context);
  const isListed = (of: { readonly name: string }, column: string): boolean => context.refersTo(of.name, column) === model.name;
  const { computed, related } = await unlessRefused(() => access.expanded(id, isListed), { computed: {}, related: [] });
  const values = Object.fromEntries(Object.entries(computed).map(([name, value]) => [name, plainValue(value)]));
  return {
    columns: Object.entries(values).map(([name, value]) => ({ name, label: labelOf(name), kind: kindOf(computed[name], value) })),
    values,
    sections: await Promise.all(related.map((rows) => relatedSection(context, plan, rows))),
  };
}

/** The computed fields that the list shows, by the ids of its rows. */
export async function computedValues(
  context: AdminContext,
  { resource, computed, keyName }: Plan,
  rows: readonly Row[],
): Promise<ReadonlyMap<string, AdminRow['values']>> {
  if (resource === null || computed.length === 0 || rows.length === 0) return new Map();
  const access = await accessOf(resource, context);
  const keys = rows.map((row) => row[keyName]);
  const found = await unlessRefused(() => access.computed(keys, computed), new Map<string, Row>());
  return new Map(
    [...found].map(([id, item]) => [
      id,
      Object.fromEntries(computed.flatMap((name) => (name in item ? [[name, plainValue(item[name])]] : []))),
    ]),
  );
}

async function relatedSection(context: AdminContext, plan: Plan, related: RelatedRows): Promise<AdminSection> {
  const { name, model, column, columns, items, hasMore } = related;
  const [key = ''] = model.primaryKey;
  const shown = shownColumns(model).filter((each) => columns.has(each.name));
  const listed = shown.filter((each) => each.name !== key && each.name !== column && each.settings.kind !== 'json').slice(0, COLUMNS_MAX);
  const titles = await referenceTitles(context, databaseOf(plan, context), listed, items);
  const title = titleColumn(listed);
  // The column that leads to the record shows its own value.
  const linked = listed.find((each) => each.name === title) ?? listed[0];
  const rows = items.map((item): AdminRow => {
    const id = String(item[key]);
    const named = title === undefined ? undefined : item[title];
    const text = typeof named === 'string' && named !== '' ? named : id;
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

/** As JSON has it. */
function plainValue(value: unknown): AdminRow['values'][string] {
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'bigint' ? String(value) : (value as AdminRow['values'][string]);
}

function kindOf(made: unknown, value: unknown): AdminCellKind {
  if (made instanceof Date) return 'time';
  if (typeof value === 'number') return 'number';
  if (typeof value === 'boolean') return 'bool';
  if (Array.isArray(value)) return value.every((each) => typeof each === 'string') ? 'chips' : 'json';
  return typeof value === 'object' && value !== null ? 'json' : 'text';
}
