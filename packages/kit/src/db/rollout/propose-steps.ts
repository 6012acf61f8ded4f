import type { ColumnDefinition, TableDefinition } from '../declare/table-definition.ts';
import type { Operation } from '../migrations/operation.ts';
import { type MigrationModule, planMigrations } from '../migrations/plan.ts';
import { printColumn, printText } from '../migrations/print-operation.ts';
import { migrationSource, proposeModuleMigration } from '../migrations/propose-migration.ts';

/** A file that `kit migrate make` writes. */
export interface ProposedFile {
  readonly name: string;
  readonly source: string;
  readonly kind: 'migration' | 'backfill';
  /** `next`: for the release after this one, when no process of the version before runs. */
  readonly release: 'this' | 'next';
}

export interface ProposedSteps {
  readonly files: readonly ProposedFile[];
  /** What the author must look at. */
  readonly notes: readonly string[];
  /** New required columns, which are nullable in this release: `orders.total`. */
  readonly required: readonly string[];
}

type AddColumn = Extract<Operation, { op: 'add_column' }>;

/**
 * The next migration of a module. A new required column without a default takes three steps: nullable, a back-fill, NOT NULL. In one step it would
 * stop the table while every row is written, and inserts of the version before, which leave the column out, would fail.
 */
export function proposeSteps(modules: readonly MigrationModule[], module: string, label: string): ProposedSteps | undefined {
  const proposed = proposeModuleMigration(modules, module, label);
  if (proposed === undefined) return undefined;
  const required = proposed.operations.filter((each): each is AddColumn => each.op === 'add_column' && each.backfill !== undefined);
  if (required.length === 0)
    return {
      files: [{ name: proposed.name, source: proposed.source, kind: 'migration', release: 'this' }],
      notes: proposed.notes,
      required: [],
    };
  const numbers = nextNumbers(modules, module);
  const operations = proposed.operations.map((each): Operation =>
    required.includes(each as AddColumn) ? nullable(each as AddColumn) : each,
  );
  const notes = proposed.notes.filter(
    (note) => !required.some(({ table, column }) => note.startsWith(`the backfill of "${table}.${column}"`)),
  );
  const first = `${numbers()}_${label}`;
  const { end } = planMigrations(modules);
  const files: ProposedFile[] = [{ name: first, source: migrationSource(first, operations, notes), kind: 'migration', release: 'this' }];
  const fills = new Map<string, string>();
  for (const table of new Set(required.map((each) => each.table))) {
    const name = `${numbers()}_fill_${table}`;
    fills.set(table, name);
    const columns = required.filter((each) => each.table === table);
    files.push({ name, source: backfillSource(name, end.get(table), columns), kind: 'backfill', release: 'this' });
  }
  for (const { table, column, definition } of required) {
    const name = `${numbers()}_require_${table}_${column}`;
    files.push({
      name,
      source: requireSource(name, { op: 'alter_column', table, column, definition }, fills.get(table) ?? ''),
      kind: 'migration',
      release: 'next',
    });
  }
  return { files, notes, required: required.map(({ table, column }) => `${table}.${column}`) };
}

/** Migrations and back-fills of a module share their numbers. */
function nextNumbers(modules: readonly MigrationModule[], module: string): () => string {
  const own = modules.find(({ name }) => name === module);
  const taken = [...(own?.migrations ?? []), ...(own?.backfills ?? [])].map(({ name }) => Number(name.slice(0, 4)));
  let last = Math.max(0, ...taken);
  return () => String(++last).padStart(4, '0');
}

function nullable({ backfill: _backfill, ...operation }: AddColumn): AddColumn {
  return { ...operation, definition: { ...operation.definition, nullable: true } };
}

function backfillSource(name: string, table: TableDefinition | undefined, columns: readonly AddColumn[]): string {
  const tableName = columns[0]?.table ?? '';
  const key = table?.primaryKey ?? ['id'];
  const declared = [
    ...key.map((column) => `  ${column}: ${printColumn(table?.columns[column] ?? UUID)}${key.length === 1 ? '.pk()' : ''},`),
    ...columns.map(({ column, definition }) => `  ${column}: ${printColumn({ ...definition, nullable: true })},`),
  ];
  const keys = key.length > 1 ? `, { primaryKey: [${key.map(printText).join(', ')}] }` : '';
  const conditions = columns.map(({ column }) => `{ ${column}: null }`);
  const where = conditions.length === 1 ? conditions[0] : `{ or: [${conditions.join(', ')}] }`;
  const row = key.length === 1 ? (key[0] ?? 'id') : `{ ${key.join(', ')} }`;
  const names = ['backfill', ...(columns.some(({ definition }) => definition.kind === 'json') ? ['json'] : []), 'model', 't', 'update'];
  return `import { ${names.join(', ')} } from 'kit/db';

// Review: add the columns that the new values are made of, and set the values.
const table = model(${printText(tableName)}, {
${declared.join('\n')}
}${keys});

export default backfill(${printText(name)}, {
  model: table,
  where: ${where},
  async run(tx, rows) {
    for (const { ${key.join(', ')} } of rows) await update(tx, table, ${row}, { ${columns.map(({ column, definition }) => `${column}: ${sampleValue(definition)}`).join(', ')} });
  },
});
`;
}

const UUID: ColumnDefinition = { kind: 'uuid', nullable: false };

/** A value of the type, so that the file compiles. */
function sampleValue({ kind, values }: ColumnDefinition): string {
  switch (kind) {
    case 'int':
    case 'float':
      return '0';
    case 'bigint':
      return '0n';
    case 'decimal':
      return `'0'`;
    case 'bool':
      return 'false';
    case 'timestamp':
      return 'tx.clock.now()';
    case 'date':
      return `'2000-01-01'`;
    case 'json':
      return 'json({})';
    case 'array':
      return '[]';
    case 'bytes':
      return 'new Uint8Array()';
    case 'uuid':
      return `'00000000-0000-0000-0000-000000000000'`;
    case 'enum':
      return printText(values?.[0] ?? '');
    default:
      return `''`;
  }
}

function requireSource(name: string, operation: Operation, fill: string): string {
  const source = migrationSource(name, [operation], []);
  return source.replace(/\]\);\n$/, `], { online: true, backfills: [${printText(fill)}] });\n`);
}
