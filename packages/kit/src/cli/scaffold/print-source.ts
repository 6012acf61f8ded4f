import { printColumn, printIndex, printText } from '../../db/migrations/print-operation.ts';
import type { ColumnDefinition } from '../../db/declare/table-definition.ts';
import { isFilter, type Names, namesOf, type ScaffoldTable } from './scaffold-table.ts';

/** Columns of `?search=`: more of them make a search slow before they make it better. */
const SEARCHED_MAX = 2;

/** The file with model, resource, controller and module. */
export function printSource(table: ScaffoldTable): string {
  const names = namesOf(table.definition.name);
  const isOpen = table.owner === undefined && table.tenant === undefined;
  const parents = table.parents.map((parent) => namesOf(parent.table.definition.name));
  const helpers = ['model', 't', ...(table.stamped ? ['timestamps'] : []), ...(table.versioned ? ['versioned'] : [])].sort();
  const imports = [
    `import { ${isOpen ? 'isStaff' : 'hasScopes'}, type Module } from 'kit';`,
    `import { modelResource } from 'kit/admin';`,
    `import { CrudController, ${parents.length > 0 ? 'one, ' : ''}resource } from 'kit/crud';`,
    `import { ${helpers.join(', ')} } from 'kit/db';`,
    `import create from '../migrations/${names.migration}.ts';`,
    ...new Set(parents.map(({ model, table: file }) => `import { ${model} } from './${file}.ts';`)),
  ];
  return `${imports.join('\n')}

export const ${names.model} = model(
  ${printText(names.table)},
  {
${modelColumns(table)
  .map((line) => `    ${line},`)
  .join('\n')}
  },
${printIndexes(table)});

/** ${rowSentence(table)} */
export const ${names.resource} = resource(${names.model}, {
${resourceOptions(table)
  .map((line) => `  ${line},`)
  .join('\n')}
});

export class ${names.controller} extends CrudController(${names.resource}, {
${controllerOptions(table, names, isOpen)
  .map((line) => `  ${line},`)
  .join('\n')}
}) {
  static override readonly tags = [${printText(names.table)}];
}

/** In the app: modules: [${names.module}()] and mount: { '/v1': { '${names.path}': ${names.controller} } }. */
export function ${names.module}(): Module {
  return {
    name: ${printText(names.table)},${requires(parents)}
    models: [${names.model}],
    migrations: [create],
    admin: { resources: [modelResource(${names.resource})] },
  };
}
`;
}

/** The tables that it refers to are created first. */
function requires(parents: readonly Names[]): string {
  const tables = [...new Set(parents.map(({ table }) => printText(table)))];
  return tables.length === 0 ? '' : `\n    requires: [${tables.join(', ')}],`;
}

function modelColumns(table: ScaffoldTable): string[] {
  const { definition, owner, tenant, stamped, versioned, parents } = table;
  const isSpread = (name: string) => (stamped && (name === 'created_at' || name === 'updated_at')) || (versioned && name === 'version');
  const lines = Object.entries(definition.columns).flatMap(([name, column]) => {
    if (isSpread(name)) return [];
    const isKey = definition.primaryKey.includes(name);
    const parent = parents.find((each) => each.column === name);
    const base =
      isKey && column.kind === 'uuid' ? 't.uuidv7()' : parent === undefined ? printColumn(column) : printReference(column, parent.table);
    const scope = name === owner || name === tenant ? '.readOnly()' : '';
    // Rows of a user are exported, and erased with the user.
    return [`${name}: ${base}${isKey ? '.pk()' : ''}${scope}${name === owner ? '.person()' : ''}`];
  });
  return [...lines, ...(stamped ? ['...timestamps()'] : []), ...(versioned ? ['...versioned()'] : [])];
}

/** By its model, so that the type of the key follows it. */
function printReference({ references, nullable }: ColumnDefinition, target: ScaffoldTable): string {
  const settings = [
    references?.onDelete === 'restrict' ? undefined : `onDelete: ${printText(references?.onDelete ?? 'restrict')}`,
    references?.column === target.definition.primaryKey[0] ? undefined : `column: ${printText(references?.column ?? 'id')}`,
  ].filter((part) => part !== undefined);
  const more = settings.length === 0 ? '' : `, { ${settings.join(', ')} }`;
  return `t.ref(() => ${namesOf(target.definition.name).model}${more})${nullable ? '.nullable()' : ''}`;
}

function printIndexes({ definition: { name, indexes } }: ScaffoldTable): string {
  if (indexes.length === 0) return '';
  return `  {\n    indexes: [\n${indexes.map((index) => `      ${printIndex(name, index)},`).join('\n')}\n    ],\n  },\n`;
}

function rowSentence({ owner, tenant }: ScaffoldTable): string {
  if (owner !== undefined && tenant !== undefined) return 'Callers see, create and change their own rows, in their tenant.';
  if (owner !== undefined) return 'Callers see, create and change their own rows.';
  return tenant === undefined
    ? 'Every row, for staff only. To open it to users, say whose a row is: owner, tenant or rows, instead of unscoped.'
    : 'Callers see, create and change the rows of their tenant.';
}

function resourceOptions({ owner, tenant, versioned, parents }: ScaffoldTable): string[] {
  const relations = parents.map(
    ({ relation, column, table }) => `${relation}: one(() => ${namesOf(table.definition.name).model}, '${column}')`,
  );
  return [
    ...(tenant === undefined ? [] : [`tenant: ${printText(tenant)}`]),
    ...(owner === undefined ? [] : [`owner: ${printText(owner)}`]),
    ...(owner === undefined && tenant === undefined ? ['unscoped: true'] : []),
    ...(versioned ? [`version: 'version'`] : []),
    ...(relations.length === 0 ? [] : [`relations: { ${relations.join(', ')} }`]),
    `admin: { rows: true${tenant === undefined ? '' : `, tenant: 'all'`} }`,
  ];
}

function controllerOptions(table: ScaffoldTable, { table: name }: Names, isOpen: boolean): string[] {
  const { definition, parents } = table;
  const filters = Object.entries(definition.columns)
    .filter(([column, facts]) => isFilter(facts) && column !== table.owner && column !== table.tenant && isIndexed(table, column))
    .map(([column]) => `${column}: ['eq']`);
  const searched = Object.entries(definition.columns)
    .filter(
      ([column, { kind, references }]) => kind === 'text' && references === undefined && column !== table.owner && column !== table.tenant,
    )
    .slice(0, SEARCHED_MAX)
    .map(([column]) => printText(column));
  return [
    ...(isOpen ? ['permission: isStaff'] : ['permission: hasScopes({ allowUnscoped: true })', `scope: ${printText(name)}`]),
    ...(filters.length === 0 ? [] : [`filters: { ${filters.join(', ')} }`]),
    ...(searched.length === 0 ? [] : [`search: [${searched.join(', ')}]`]),
    ...(parents.length === 0 ? [] : [`expand: [${parents.map(({ relation }) => printText(relation)).join(', ')}]`]),
  ];
}

/** A filter that no index serves reads the whole table. */
function isIndexed({ definition, owner, tenant }: ScaffoldTable, column: string): boolean {
  return definition.indexes.some(
    ({ columns }) => columns.map((each) => each.replace(/^-/, '')).find((each) => each !== owner && each !== tenant) === column,
  );
}
