import { readStates } from '../backfills/backfill-state.ts';
import type { Database } from '../engine/db.ts';
import { leftColumns } from '../migrations/drift.ts';
import { compareHistory, readHistory } from '../migrations/history.ts';
import type { Operation } from '../migrations/operation.ts';
import { type MigrationModule, type PlannedMigration, planMigrations } from '../migrations/plan.ts';
import { applyOperation, type SchemaState } from '../migrations/schema-state.ts';
import { sqliteSteps } from '../migrations/sqlite-steps.ts';
import { type Waits, waitsFor } from './lock-mode.ts';
import { byTable, type OperationImpact, operationText, postgresImpact, type TableImpact } from './operation-impact.ts';
import { estimatedMs, readTableFacts, type TableFacts } from './table-facts.ts';

export interface ExplainedTable extends TableImpact {
  readonly waits: Waits;
  readonly rows: number;
  /** How long the work takes on the rows of today, roughly. */
  readonly workMs: number;
}

export interface ExplainedOperation extends Omit<OperationImpact, 'tables'> {
  readonly tables: readonly ExplainedTable[] | null;
}

/** A migration that is not applied yet, and what it would do to the database. */
export interface ExplainedMigration {
  readonly id: string;
  readonly online: boolean;
  /** Back-fills that it requires and that are not finished. */
  readonly requires: readonly string[];
  readonly operations: readonly ExplainedOperation[];
  /** How long reads or writes of a table wait in all: a lock stays until the migration commits. */
  readonly blocked: readonly { readonly table: string; readonly waits: Waits; readonly ms: number }[];
}

export interface MigrationsExplained {
  readonly migrations: readonly ExplainedMigration[];
  /** Columns that no model has any more, and that a migration may drop. */
  readonly left: readonly string[];
}

/** What `kit migrate plan` prints. Reads sizes and a sample of rows; changes nothing. */
export async function explainMigrations(database: Database, modules: readonly MigrationModule[]): Promise<MigrationsExplained> {
  const { pending } = compareHistory(planMigrations(modules), await readHistory(database));
  const states = await readStates(database);
  const facts = new FactsOfTables(database);
  const migrations: ExplainedMigration[] = [];
  for (const step of pending) {
    const operations = await explainOperations(database, step, facts);
    migrations.push({
      id: step.id,
      online: step.migration.online,
      requires: step.backfills.map(({ name }) => `${step.module}/${name}`).filter((id) => states.get(id)?.state !== 'finished'),
      operations,
      blocked: blockedTables(operations, step.migration.online),
    });
  }
  return { migrations, left: leftColumns(modules) };
}

class FactsOfTables {
  readonly #database: Database;
  readonly #known = new Map<string, TableFacts | null>();

  constructor(database: Database) {
    this.#database = database;
  }

  async of(table: string): Promise<TableFacts | null> {
    const known = this.#known.get(table);
    if (known !== undefined) return known;
    const found = await readTableFacts(this.#database, table);
    this.#known.set(table, found);
    return found;
  }
}

async function explainOperations(
  database: Database,
  { migration, before }: PlannedMigration,
  facts: FactsOfTables,
): Promise<ExplainedOperation[]> {
  const explained: ExplainedOperation[] = [];
  let state = before;
  for (const operation of migration.operations) {
    const impact = database.dialect === 'sqlite' ? sqliteImpact(operation, state) : postgresImpact(operation, state, migration.online);
    const isFullText = operation.op === 'create_full_text';
    const tables: ExplainedTable[] = [];
    for (const each of impact.tables ?? []) {
      const found = await facts.of(each.table);
      // A table that an earlier migration of this run creates has no rows, and nobody uses it.
      if (found !== null)
        tables.push({
          ...each,
          waits: waitsFor(each.lock),
          rows: Math.round(found.rows),
          workMs: estimatedMs(found, each.work, isFullText),
        });
    }
    const isLong = tables.some(({ work }) => work !== 'none');
    explained.push({ ...impact, tables: impact.tables === null ? null : tables, safe: isLong ? impact.safe : null });
    state = applyOperation(state, operation);
  }
  return explained;
}

/** On SQLite writers wait for the whole file, readers never. */
function sqliteImpact(operation: Operation, before: SchemaState): OperationImpact {
  const { runningCode } = postgresImpact(operation, before);
  const text = operationText(operation);
  if (operation.op === 'sql' || operation.op === 'code') return { text, tables: null, safe: null, runningCode };
  const isRebuilt = sqliteSteps(operation, before).rebuild !== undefined;
  const reads = operation.op === 'create_index' || operation.op === 'create_full_text';
  return {
    text,
    tables: [{ table: operation.table, lock: 'writer', work: isRebuilt ? 'rewrite' : reads ? 'index' : 'none' }],
    safe: isRebuilt || reads ? 'run it at a quiet time: writers of the file wait, readers do not' : null,
    runningCode,
  };
}

function blockedTables(operations: readonly ExplainedOperation[], online: boolean): ExplainedMigration['blocked'] {
  const held = new Map<string, { waits: Waits; ms: number }>();
  for (const { tables } of operations) {
    for (const { table, lock } of byTable(tables ?? [])) {
      const waits = waitsFor(lock);
      const other = held.get(table);
      if (waits !== 'nothing') held.set(table, { waits: other?.waits === 'reads and writes' ? other.waits : waits, ms: other?.ms ?? 0 });
    }
    // The work of an operation on one table keeps the locks of all that came before.
    const ms = online ? 0 : (tables ?? []).reduce((sum, { workMs }) => sum + workMs, 0);
    for (const each of held.values()) each.ms += ms;
  }
  return [...held].map(([table, { waits, ms }]) => ({ table, waits, ms }));
}
