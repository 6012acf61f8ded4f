import type { ColumnDefinition, TableDefinition } from '../declare/table-definition.ts';
import { valueDefinition } from '../declare/column.ts';
import type { Model } from '../declare/model.ts';
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
  /** New encrypted columns that take the place of plaintext ones: `patients.phone_sealed`. */
  readonly encrypted: readonly string[];
}

type AddColumn = Extract<Operation, { op: 'add_column' }>;

interface Replacing {
  readonly model: Model;
  readonly column: string;
  readonly plain: string;
}

/**
 * The next migration of a module. A new required column without a default takes three steps: nullable, a back-fill, NOT NULL. In one step it would
 * stop the table while every row is written, and inserts of the version before, which leave the column out, would fail. An encrypted column that replaces
 * a plaintext one takes three, too: the new column, which every write fills from then on, a back-fill that encrypts the rows, and the end of the other column.
 */
export function proposeSteps(modules: readonly MigrationModule[], module: string, label: string): ProposedSteps | undefined {
  const proposed = proposeModuleMigration(modules, module, label);
  if (proposed === undefined) return undefined;
  const required = proposed.operations.filter((each): each is AddColumn => each.op === 'add_column' && each.backfill !== undefined);
  const models = modules.find(({ name }) => name === module)?.models ?? [];
  const replacing = proposed.operations.flatMap((each) => (each.op === 'add_column' ? (replacingIn(models, each) ?? []) : []));
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
  for (const { name: table } of new Set(replacing.map((each) => each.model))) {
    const name = `${numbers()}_encrypt_${table}`;
    const columns = replacing.filter(({ model }) => model.name === table);
    files.push({ name, source: encryptSource(name, columns), kind: 'backfill', release: 'this' });
    for (const { plain } of columns) {
      const last = `${numbers()}_drop_${table}_${plain}`;
      const indexes = end.get(table)?.indexes.filter((each) => each.columns.some((column) => column.replace(/^-/, '') === plain)) ?? [];
      const drops = indexes.map((index): Operation => ({ op: 'drop_index', table, name: index.name }));
      const source = dependingSource(last, [...drops, { op: 'drop_column', table, column: plain }], name, false);
      files.push({ name: last, source, kind: 'migration', release: 'next' });
    }
  }
  for (const { table, column, definition } of required) {
    const name = `${numbers()}_require_${table}_${column}`;
    files.push({
      name,
      source: dependingSource(name, [{ op: 'alter_column', table, column, definition }], fills.get(table) ?? '', true),
      kind: 'migration',
      release: 'next',
    });
  }
  return {
    files,
    notes,
    required: required.map(({ table, column }) => `${table}.${column}`),
    encrypted: replacing.map(({ model, column }) => `${model.name}.${column}`),
  };
}

function replacingIn(models: readonly Model[], { table, column }: AddColumn): Replacing | undefined {
  const model = models.find(({ name }) => name === table);
  const plain = model?.columns[column]?.settings.encrypted?.replaces;
  return model === undefined || plain === undefined ? undefined : { model, column, plain };
}

/** Every row is encrypted: the version before may have changed the plaintext of one that was. */
function encryptSource(name: string, columns: readonly Replacing[]): string {
  const { model } = columns[0] as Replacing;
  const { primaryKey: key, table } = model;
  const settingsOf = (column: string) => model.columns[column]?.settings;
  const tenants = columns.flatMap(({ column }) => settingsOf(column)?.encrypted?.tenant ?? []);
  const read = [...new Set([...tenants, ...columns.map(({ plain }) => plain)])].filter((column) => !key.includes(column));
  const declared = [
    ...key.map((column) => `  ${column}: ${printColumn(table.columns[column] ?? UUID)}${key.length === 1 ? '.pk()' : ''},`),
    ...read.map((column) => `  ${column}: ${printColumn(table.columns[column] ?? UUID)},`),
    ...columns.map(({ column }) => `  ${column}: ${printEncrypted(model, column)},`),
  ];
  const options = [
    ...(key.length > 1 ? [`primaryKey: [${key.map(printText).join(', ')}]`] : []),
    ...(model.id === model.name ? [] : [`id: ${printText(model.id)}`]),
  ];
  const normalized = columns.filter(({ column }) => settingsOf(column)?.encrypted?.normalize !== undefined);
  const review = normalized.map(
    ({ column }) => `// Review: give ${printText(column)} the normalize of its declaration, or it is not found.\n`,
  );
  const row = key.length === 1 ? (key[0] ?? 'id') : `{ ${key.join(', ')} }`;
  return `import { backfill, model, t, update } from 'kit/db';

${review.join('')}const table = model(${printText(model.name)}, {
${declared.join('\n')}
}${options.length === 0 ? '' : `, { ${options.join(', ')} }`});

// Every row: the version before may have changed the plaintext of one that was encrypted already.
export default backfill(${printText(name)}, {
  model: table,
  async run(tx, rows) {
    for (const { ${[...key, ...columns.map(({ plain }) => plain)].join(', ')} } of rows) await update(tx, table, ${row}, { ${columns.map(({ column, plain }) => `${column}: ${plain}`).join(', ')} });
  },
});
`;
}

function printEncrypted({ columns }: Model, name: string): string {
  const settings = columns[name]?.settings;
  if (settings?.encrypted === undefined) return '';
  const { id, search, tenant } = settings.encrypted;
  const given = Object.entries({ id, search, tenant }).flatMap(([option, value]) =>
    value === undefined ? [] : [`${option}: ${printText(value)}`],
  );
  const options = given.length === 0 ? '' : `{ ${given.join(', ')} }`;
  return `${printColumn({ ...valueDefinition(settings), nullable: true })}.encrypted(${options})`;
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

function dependingSource(name: string, operations: readonly Operation[], fill: string, online: boolean): string {
  const source = migrationSource(name, operations, []);
  return source.replace(/\]\);\n$/, `], { ${online ? 'online: true, ' : ''}backfills: [${printText(fill)}] });\n`);
}
