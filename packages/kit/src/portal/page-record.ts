import { labelOf } from '../app/admin/model-columns.ts';
import type { PortalPage } from '../app/admin/portal-page.ts';
import type { AdminSection } from '../app/admin/sections.ts';
import type { AdminColumn, AdminRow, AdminState, AdminValue } from '../app/admin/shapes.ts';
import { cellKind, propertiesOf, resolved, type Schema } from './schema-words.ts';

type Item = Readonly<Record<string, unknown>>;

/** The columns of the list, with what the schema of its items says about them. */
export function columnsOf({ columns, states = {} }: PortalPage, fields: Readonly<Record<string, Schema>>): AdminColumn[] {
  return columns.flatMap((given) => {
    const column = typeof given === 'string' ? { name: given } : given;
    const schema = fields[column.name];
    if (schema === undefined) return [];
    const kind = states[column.name] === undefined ? cellKind(schema) : 'state';
    return [{ label: labelOf(column.name), kind, sortNote: 'The list is in the order of the API.', ...column }];
  });
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
export function sectionsOf(page: PortalPage, item: Item, schema: Schema | undefined): AdminSection[] {
  const fields = Object.entries(propertiesOf(schema)).filter(([name, field]) => name in item && field['x-sensitive'] !== true);
  const resolvedFields = fields.map(([name, field]) => [name, resolved(field, schema)] as const);
  const isSimple = ([, field]: readonly [string, Schema]) => cellKind(field) !== 'json';
  const columns = resolvedFields.filter(isSimple).map(([name, field]): AdminColumn => {
    const kind = page.states?.[name] === undefined ? cellKind(field) : 'state';
    return { name, label: labelOf(name), kind };
  });
  const { values } = rowOf(page, item, '');
  const facts: AdminSection = { kind: 'facts', title: labelOf(page.singular), columns, values };
  const parts = resolvedFields
    .filter((each) => !isSimple(each))
    .flatMap(([name, field]) => partOf(labelOf(name), item[name], field, schema));
  return [facts, ...parts];
}

/** A list of objects is a table, anything else is JSON. */
function partOf(title: string, value: unknown, field: Schema, root: Schema | undefined): AdminSection[] {
  if (value === null || value === undefined) return [];
  const items = field.items === undefined ? undefined : resolved(field.items, root);
  if (!Array.isArray(value) || items?.properties === undefined) return [{ kind: 'json', title, value }];
  const columns = Object.entries(items.properties).map(([name, each]) => ({ name, label: labelOf(name), kind: cellKind(each) }));
  const rows = (value as Item[]).map((row, index) => ({
    id: String(index),
    title: `${title} ${index + 1}`,
    values: row as AdminRow['values'],
  }));
  return [{ kind: 'table', title, columns, rows }];
}
