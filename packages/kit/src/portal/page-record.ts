import { labelOf } from '../app/admin/model-columns.ts';
import type { PortalColumn, PortalPage } from '../app/admin/portal-page.ts';
import type { AdminSection } from '../app/admin/sections.ts';
import type { AdminContext } from '../app/admin/declaration.ts';
import type { AdminColumn, AdminRow, AdminState, AdminValue } from '../app/admin/shapes.ts';
import { isShown } from './access.ts';
import { cellKind, propertiesOf, resolved, type Schema } from './schema-words.ts';

type Item = Readonly<Record<string, unknown>>;

/** The columns of the list, with what the schema of its items says about them. */
export function columnsOf({ columns, states = {}, cells = {} }: PortalPage, fields: Readonly<Record<string, Schema>>): AdminColumn[] {
  return columns.flatMap((given) => {
    const { of, recordOnly, ...column } = typeof given === 'string' ? { name: given } : given;
    const schema = fields[column.name] ?? (cells[column.name] === undefined ? undefined : {});
    if (schema === undefined || recordOnly === true) return [];
    const kind = of !== undefined ? 'link' : states[column.name] === undefined ? cellKind(schema) : 'state';
    return [{ label: labelOf(column.name), kind, sortNote: 'The list is in the order of the API.', ...column }];
  });
}

/** The rows with what the page makes of their fields: its own cells, and names in place of the ids of other records. */
export async function drawnRows(
  page: PortalPage,
  records: readonly { readonly item: Item; readonly id: string }[],
  context: AdminContext,
): Promise<AdminRow[]> {
  const { columns, cells = {} } = page;
  const drawn = records.map(({ item, id }) => {
    const row = rowOf(page, item, id);
    const values: Record<string, AdminValue | undefined> = { ...row.values };
    for (const [name, cell] of Object.entries(cells)) values[name] = cell(item, context);
    return { ...row, values };
  });
  const links = columns.flatMap((each) => (typeof each === 'string' || each.of === undefined ? [] : [[each.name, each.of] as const]));
  const shown = links.filter(([, of]) => isShown(context, of));
  for (const [name, of] of shown) {
    const ids = drawn.map(({ values }) => values[name]).filter((id): id is string => typeof id === 'string' && id !== '');
    const titles = await context.titlesOf(of, ids);
    for (const { values } of drawn) {
      const id = values[name];
      const title = typeof id === 'string' ? titles.get(id) : undefined;
      // A record that is gone has no name, and no page.
      values[name] = title === undefined ? (id === '' ? null : id) : (context.linkTo(of, id as string, title) ?? id);
    }
  }
  return drawn;
}

export function rowOf({ title, states = {}, singular }: PortalPage, item: Item, id: string): AdminRow {
  const values = Object.fromEntries(Object.entries(item).map(([name, value]) => [name, stateOf(states[name], value)]));
  const named = item[title];
  return { id, title: typeof named === 'string' && named !== '' ? named : singular, values };
}

function stateOf(states: Readonly<Record<string, AdminState>> | undefined, value: unknown): AdminValue {
  const key = String(value);
  if (states === undefined || value === null || value === undefined) return value as AdminValue;
  return states[key] ?? { value: labelOf(key), tone: 'neutral' };
}

/** Every field of a record, as its schema says it. */
export function sectionsOf(page: PortalPage, item: Item, values: AdminRow['values'], schema: Schema | undefined): AdminSection[] {
  const fields = Object.entries(propertiesOf(schema)).filter(([name, field]) => name in item && field['x-sensitive'] !== true);
  const resolvedFields = fields.map(([name, field]) => [name, resolved(field, schema)] as const);
  const isSimple = ([, field]: readonly [string, Schema]) => cellKind(field) !== 'json';
  const columns = resolvedFields.filter(isSimple).map(([name, field]): AdminColumn => {
    const words = page.columns.find((each): each is PortalColumn => typeof each === 'object' && each.name === name);
    const kind = words?.of !== undefined ? 'link' : page.states?.[name] === undefined ? (words?.kind ?? cellKind(field)) : 'state';
    return { name, label: words?.label ?? labelOf(name), kind };
  });
  const made = page.columns.filter((each): each is PortalColumn => typeof each === 'object' && !(each.name in item));
  const more = made.map(({ name, label = labelOf(name), kind = 'text' }): AdminColumn => ({ name, label, kind }));
  const facts: AdminSection = { kind: 'facts', title: labelOf(page.singular), columns: [...columns, ...more], values };
  const parts = resolvedFields
    .filter((each) => !isSimple(each))
    .flatMap(([name, field]) => partOf(page, labelOf(name), item[name], field, schema));
  return [facts, ...parts];
}

/** A list of objects is a table, anything else is JSON. */
function partOf({ states = {} }: PortalPage, title: string, value: unknown, field: Schema, root: Schema | undefined): AdminSection[] {
  if (value === null || value === undefined) return [];
  const items = field.items === undefined ? undefined : resolved(field.items, root);
  if (!Array.isArray(value) || items?.properties === undefined) return [{ kind: 'json', title, value }];
  const columns = Object.entries(items.properties).map(([name, each]) => ({
    name,
    label: labelOf(name),
    kind: states[name] === undefined ? cellKind(each) : ('state' as const),
  }));
  const rows = (value as Item[]).map((row, index) => ({
    id: String(index),
    title: `${title} ${index + 1}`,
    values: Object.fromEntries(Object.entries(row).map(([name, each]) => [name, stateOf(states[name], each)])),
  }));
  return [{ kind: 'table', title, columns, rows }];
}
