import type { Model } from '../declare/model.ts';
import { modelFaults } from '../declare/model-faults.ts';
import type { Operation } from './operation.ts';
import { type MigrationModule, planMigrations } from './plan.ts';
import { printOperation } from './print-operation.ts';
import { diffSchemas } from './schema-diff.ts';
import type { SchemaState } from './schema-state.ts';
import { requireArguments } from '../../options/read-options.ts';
import { aList } from '../../options/value-rule.ts';

export interface ProposedMigration {
  readonly name: string;
  readonly operations: readonly Operation[];
  /** The file to write: TypeScript that exports the migration. */
  readonly source: string;
  /** What the author must look at before using it. */
  readonly notes: readonly string[];
}

/** What the next migration must say so that `models` and migrations agree again; undefined when they do. */
export function proposeMigration(models: readonly Model[], state: SchemaState, name: string): ProposedMigration | undefined {
  requireArguments('proposeMigration()', { models }, { models: aList });
  const operations = diffSchemas(
    state,
    models.map((each) => each.table),
  );
  if (operations.length === 0) return undefined;
  const notes = operations.flatMap((operation) => noteOn(operation));
  return { name, operations, notes, source: migrationSource(name, operations, notes) };
}

/**
 * The same for one module of an application: its own models against the tables its own migrations have made, numbered
 * after its last one. `label` is the snake_case rest of the name.
 */
export function proposeModuleMigration(modules: readonly MigrationModule[], module: string, label: string): ProposedMigration | undefined {
  requireArguments('proposeModuleMigration()', { modules }, { modules: aList });
  const own = modules.find((each) => each.name === module);
  if (own === undefined) throw new Error(`There is no module "${module}".`);
  const faults = modelFaults(modules.flatMap((each) => each.models ?? []));
  if (faults.length > 0) throw new Error(faults.join('\n'));
  const plan = planMigrations(modules);
  const state = new Map([...plan.end].filter(([table]) => plan.owners.get(table) === module));
  const numbers = [...(own.migrations ?? []), ...(own.backfills ?? [])].map((each) => Number(each.name.slice(0, 4)));
  return proposeMigration(own.models ?? [], state, `${String(Math.max(0, ...numbers) + 1).padStart(4, '0')}_${label}`);
}

function noteOn(operation: Operation): string[] {
  if (operation.op === 'drop_table')
    return [`dropTable deletes every row of "${operation.table}"; if it was renamed, write renameTable instead`];
  if (operation.op === 'drop_column') {
    return [`dropColumn deletes the values of "${operation.table}.${operation.column}"; if it was renamed, write renameColumn instead`];
  }
  if (operation.op === 'create_full_text')
    return [`createFullText rewrites "${operation.table}" on PostgreSQL and locks it meanwhile: plan for that when it is large`];
  if ((operation.op === 'add_column' || operation.op === 'alter_column') && operation.backfill !== undefined) {
    return [`the backfill of "${operation.table}.${operation.column}" is a guess: say what existing rows get`];
  }
  return [];
}

const BUILDERS: Readonly<Partial<Record<Operation['op'], string>>> = {
  create_table: 'createTable',
  drop_table: 'dropTable',
  add_column: 'addColumn',
  alter_column: 'alterColumn',
  drop_column: 'dropColumn',
  create_index: 'createIndex',
  drop_index: 'dropIndex',
  add_check: 'addCheck',
  drop_check: 'dropCheck',
  create_full_text: 'createFullText',
  drop_full_text: 'dropFullText',
};

/** The file of a migration: TypeScript that exports it. */
export function migrationSource(name: string, operations: readonly Operation[], notes: readonly string[]): string {
  const body = operations.map((operation) => `  ${printOperation(operation)},`).join('\n');
  const names = [...new Set(operations.flatMap((operation) => BUILDERS[operation.op] ?? []))];
  const imports = [...names, 'migration', ...(/\bt\./.test(body) ? ['t'] : [])].sort();
  const comments = notes.map((note) => `// Review: ${note}.\n`).join('');
  return `import { ${imports.join(', ')} } from 'kit/db';\n\n${comments}export default migration('${name}', [\n${body}\n]);\n`;
}
