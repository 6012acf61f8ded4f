import type { App } from '../../app/declare/module.ts';
import { isResource } from '../../crud/declare/resource.ts';
import type { Db } from '../../db/engine/db.ts';
import type { ColumnDefinition, TableDefinition } from '../../db/declare/table-definition.ts';
import { CliFailure } from '../terminal/cli-failure.ts';
import { readTable } from './found-table.ts';
import { namesOf, newTable, type Parent, type ScaffoldTable } from './scaffold-table.ts';

export interface ScaffoldOptions {
  readonly owner?: string | undefined;
  readonly tenant?: string | undefined;
}

/** A new table with these fields. The tables that fields refer to are resources of the app that were scaffolded, too. */
export function planNew(
  app: App,
  table: string,
  fields: Readonly<Record<string, ColumnDefinition>>,
  { owner, tenant }: ScaffoldOptions,
  isScaffolded: (table: string) => boolean,
): ScaffoldTable {
  const scope = new Set([owner, tenant]);
  const clash = ['id', 'created_at', 'updated_at', 'version'].find((name) => Object.hasOwn(fields, name) || scope.has(name));
  if (clash !== undefined) throw new CliFailure(`Every scaffolded model has the column "${clash}"; leave it out.`);
  const parents = Object.entries(fields).flatMap(([column, { references }]): Parent[] => {
    if (references === undefined || references.table === table) return [];
    const target = isScaffolded(references.table) ? existing(app, references.table, isScaffolded) : undefined;
    if (target === undefined)
      throw new CliFailure(
        `"${column}" refers to "${references.table}", which is not a scaffolded resource of the app. Run npx kit scaffold ${references.table} and add ${namesOf(references.table).module}() to the app first.`,
      );
    return [{ column, relation: relationOf(column), table: target }];
  });
  return newTable({ table, fields, owner, tenant, parents });
}

/** The table and, before it, the tables that it refers to and that the app has no resource for. */
export async function planFound(
  db: Db,
  app: App,
  table: string,
  options: ScaffoldOptions,
  isScaffolded: (table: string) => boolean,
): Promise<ScaffoldTable[]> {
  const planned = new Map<string, ScaffoldTable>();
  const visit = async (name: string, trail: readonly string[]): Promise<ScaffoldTable | undefined> => {
    const known = planned.get(name) ?? (name !== table && isScaffolded(name) ? existing(app, name, isScaffolded) : undefined);
    if (known !== undefined) return known;
    const { definition, notes } = await readTable(db, name);
    const rings: string[] = [];
    const parents: Parent[] = [];
    for (const [column, { references }] of Object.entries(definition.columns)) {
      if (references === undefined || references.table === name) continue;
      const target = trail.includes(references.table) ? undefined : await visit(references.table, [...trail, name]);
      if (target !== undefined) parents.push({ column, relation: relationOf(column), table: target });
      else rings.push(`${name}.${column} and ${references.table} refer to each other: add this relation to the resource.`);
    }
    const scoped = (column: string | undefined) => (column !== undefined && Object.hasOwn(definition.columns, column) ? column : undefined);
    const plan = foundTable(definition, parents, { owner: scoped(options.owner), tenant: scoped(options.tenant) }, [...notes, ...rings]);
    planned.set(name, plan);
    return plan;
  };
  const asked = await visit(table, []);
  for (const [option, column] of Object.entries({ owner: options.owner, tenant: options.tenant }))
    if (column !== undefined && asked?.definition.columns[column] === undefined)
      throw new CliFailure(
        `--${option} is ${column}, and "${table}" has the columns ${Object.keys(asked?.definition.columns ?? {}).join(', ')}.`,
      );
  return [...planned.values()];
}

function foundTable(
  definition: TableDefinition,
  parents: readonly Parent[],
  scope: ScaffoldOptions,
  notes: readonly string[],
): ScaffoldTable {
  const { created_at, updated_at, version } = definition.columns;
  const isStamp = (column: ColumnDefinition | undefined) =>
    column?.kind === 'timestamp' && !column.nullable && column.dbDefault !== undefined && 'make' in column.dbDefault;
  const isFirst = version?.dbDefault !== undefined && 'value' in version.dbDefault && version.dbDefault.value === 1;
  return {
    definition,
    owner: scope.owner,
    tenant: scope.tenant,
    stamped: isStamp(created_at) && isStamp(updated_at),
    versioned: version?.kind === 'int' && !version.nullable && isFirst,
    // A column that says whose a row is cannot be a relation that callers choose.
    parents: parents.filter(({ column }) => column !== scope.owner && column !== scope.tenant),
    notes,
  };
}

/** What an earlier scaffold made of a table, as the app has it now. */
function existing(app: App, table: string, isScaffolded: (table: string) => boolean): ScaffoldTable | undefined {
  const found = app.controllers
    .map(({ constructor }) => (constructor as { readonly crudResource?: unknown }).crudResource)
    .find((resource) => isResource(resource) && resource.model.name === table);
  if (!isResource(found)) return undefined;
  const { tenant, owner, version } = found.options;
  const definition = found.model.table;
  return {
    definition,
    owner: typeof owner === 'object' ? (owner as { readonly column: string }).column : (owner as string | undefined),
    tenant: tenant as string | undefined,
    stamped: Object.hasOwn(definition.columns, 'created_at') && Object.hasOwn(definition.columns, 'updated_at'),
    versioned: version !== undefined,
    parents: Object.entries(definition.columns).flatMap(([column, { references }]): Parent[] => {
      if (references === undefined || references.table === table || !isScaffolded(references.table)) return [];
      const target = existing(app, references.table, isScaffolded);
      return target === undefined ? [] : [{ column, relation: relationOf(column), table: target }];
    }),
    notes: [],
  };
}

/** `project_id` → `project`; a column without the ending gets one, so that column and relation have two names. */
function relationOf(column: string): string {
  return column.endsWith('_id') ? column.slice(0, -'_id'.length) : `${column}_row`;
}
