import type { ColumnDefinition } from '../../db/declare/table-definition.ts';
import { isFilledIn, namesOf, type ScaffoldTable } from './scaffold-table.ts';

/** The file with tests: what the resource does, and what generic CRUD guarantees of it. */
export function printTest(table: ScaffoldTable): string {
  const names = namesOf(table.definition.name);
  // Tables that others refer to come first.
  const every = [...ancestors(table), table];
  const all = [...new Set(every.map(({ definition }) => definition.name))].map(namesOf);
  const hasParents = table.parents.length > 0;
  const isOpen = table.owner === undefined && table.tenant === undefined;
  const hasTenant = every.some(({ tenant }) => tenant !== undefined);
  const needsStaff = every.some(({ owner, tenant }) => owner === undefined && tenant === undefined);
  const literal = printRow(table, 'body');
  const usesNumber = literal.includes('number');
  const values = `async (${usesNumber || hasParents ? `${usesNumber ? 'number' : '_number'}: number` : ''}${hasParents ? ', { db }: App' : ''}) => (${literal})`;
  const call = (number: string, app: string) =>
    `values(${[...(usesNumber || hasParents ? [number] : []), ...(hasParents ? [app] : [])].join(', ')})`;
  return `${hasParents ? `import type { App } from 'kit';\nimport { insert } from 'kit/db';\n` : ''}import { crudTests, testApp } from 'kit/testing';
import { expect, test } from 'vitest';
${all.map((each) => `import { ${[each.controller, ...(each === all.at(-1) ? [] : [each.model]), each.module].sort((a, b) => a.localeCompare(b)).join(', ')} } from '../src/${each.table}.ts';`).join('\n')}

const ada = { id: '01890000-0000-7000-8000-000000000001'${needsStaff ? ', is_staff: true' : ''} };
const bob = { id: '01890000-0000-7000-8000-000000000002' };
${hasTenant ? `\n/** The tenant of each user. */\nconst tenants: Record<string, string> = { [ada.id]: ${tenantId(3)}, [bob.id]: ${tenantId(4)} };\n` : ''}
const options = {
  modules: [${all.map(({ module }) => `${module}()`).join(', ')}],
  mount: { '/v1': { ${all.map(({ path, controller }) => `'${path}': ${controller}`).join(', ')} } },${hasTenant ? `\n  tenant: ({ user }: { readonly user: { readonly id: string } | null }) => tenants[user?.id ?? ''] ?? null,` : ''}
};

const values = ${values};

test('${article(names.singular)} ${names.singular} is created, and ${isOpen ? 'only staff see it' : table.owner === undefined ? 'only its tenant sees it' : 'only its owner sees it'}', async () => {
  await using app = await testApp(options);
  const created = await app.as(ada).post('/v1${names.path}', await ${call('1', 'app.app')});
  expect(created.statusCode).toBe(201);
  const url = \`/v1${names.path}/\${created.json<{ ${table.definition.primaryKey[0]}: string }>().${table.definition.primaryKey[0]}}\`;
  expect((await app.as(ada).get(url)).statusCode).toBe(200);
  expect((await app.as(bob).get(url)).statusCode).toBe(${isOpen ? 403 : 404});
  expect((await app.inject(url)).statusCode).toBe(401);
});

// What generic CRUD guarantees, tried on this resource. With KIT_TEST_POSTGRES_URL on PostgreSQL, too.
crudTests(${names.controller}, {
  app: (database) => testApp({ ...options, database: database.db }),
  callers: { owner: ada${isOpen ? '' : ', stranger: bob'} },
  input: (${usesNumber || hasParents ? `number${hasParents ? ', { app }' : ''}` : ''}) => ${call('number', 'app')},
});
`;
}

const tenantId = (last: number): string => `'01890000-0000-7000-8000-00000000000${last}'`;

const article = (noun: string): string => (/^[aeiou]/.test(noun) ? 'an' : 'a');

/** Every table that rows of this one need, in the order in which they are created. */
function ancestors({ parents }: ScaffoldTable): ScaffoldTable[] {
  return parents.flatMap(({ table }) => [...ancestors(table), table]);
}

/** The columns that a new row needs: as the body of a request, or as the values of `insert`. */
function printRow(table: ScaffoldTable, as: 'body' | 'row'): string {
  const { definition, owner, tenant, parents } = table;
  const scope =
    as === 'body'
      ? []
      : [...(tenant === undefined ? [] : [`${tenant}: tenants[ada.id] ?? ''`]), ...(owner === undefined ? [] : [`${owner}: ada.id`])];
  const values = Object.entries(definition.columns)
    .filter(([name, column]) => !isFilledIn(table, name) && !column.nullable && column.dbDefault === undefined)
    .map(([name, column]) => {
      const parent = parents.find((each) => each.column === name);
      // A key is part of a path.
      const isKey = definition.primaryKey.includes(name) && column.kind === 'text';
      return `${name}: ${isKey ? '`key-${number}`' : parent === undefined ? printValue(name, column, as) : printParent(parent.table, column.references?.column ?? 'id')}`;
    });
  return `{ ${[...scope, ...values].join(', ')} }`;
}

function printParent(table: ScaffoldTable, column: string): string {
  return `(await insert(db, ${namesOf(table.definition.name).model}, ${printRow(table, 'row')})).${column}`;
}

function printValue(name: string, { kind, max, scale, values }: ColumnDefinition, as: 'body' | 'row'): string {
  switch (kind) {
    case 'text':
      return max !== undefined && max < name.length + 5 ? '`${number}`' : `\`${name.replaceAll('_', ' ')} \${number}\``;
    case 'int':
      return 'number';
    case 'bigint':
      return as === 'body' ? 'String(number)' : 'BigInt(number)';
    case 'decimal':
      return `'1${scale === undefined || scale === 0 ? '' : `.${'0'.repeat(scale)}`}'`;
    case 'float':
      return '1.5';
    case 'bool':
      return 'true';
    case 'timestamp':
      return as === 'body' ? `'2026-03-01T12:00:00.000Z'` : `new Date('2026-03-01T12:00:00.000Z')`;
    case 'date':
      return `'2026-03-01'`;
    case 'json':
      return '{}';
    case 'bytes':
      return as === 'body' ? `'AAAA'` : 'new Uint8Array(3)';
    case 'array':
      return '[]';
    case 'enum':
      return JSON.stringify(values?.[0] ?? '').replaceAll('"', "'");
    default:
      return 'crypto.randomUUID()';
  }
}
