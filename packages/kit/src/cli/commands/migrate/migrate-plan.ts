import type { Command } from 'commander';
import { migratedDatabases } from '../../../app/data/migration-modules.ts';
import { type ExplainedMigration, type ExplainedOperation, explainMigrations } from '../../../db/rollout/explain-migrations.ts';
import type { CliContext } from '../../load/context.ts';

/** `kit migrate plan`. */
export function addPlan(command: Command, context: CliContext): void {
  command
    .command('plan')
    .description('show what the pending migrations lock, read and write in this database, how long, and the safe form')
    .addHelpText('after', HELP)
    .action(() => plan(context));
}

const HELP = `
Reads the sizes of tables and a sample of their rows; changes nothing. Run it against production, or a copy of it. Times are rough: the work on the
rows of today, without the time that a migration waits for its locks.`;

async function plan(context: CliContext): Promise<void> {
  const app = await (await context.bareApp()).openDatabases({ createFiles: false });
  const databases = [];
  for (const { alias, database, modules } of migratedDatabases(app))
    databases.push({ database: alias, dialect: database.dialect, ...(await explainMigrations(database, modules)) });
  if (context.json) return context.print(JSON.stringify({ databases }, null, 2));
  for (const { database, migrations, left } of databases) {
    for (const each of migrations) {
      const place = database === 'default' ? '' : ` (database ${database})`;
      context.print(context.paint('bold', `${each.id}${place}${each.online ? ', online' : ''}`));
      for (const line of migrationLines(each)) context.print(`  ${line}`);
    }
    for (const column of left) context.print(`Column "${column}" is in no model any more: npx kit migrate make drops it.`);
  }
  if (databases.every(({ migrations }) => migrations.length === 0)) context.print('The database is up to date.');
}

function migrationLines({ operations, blocked, requires }: ExplainedMigration): string[] {
  return [
    ...requires.map((id) => `requires the back-fill ${id}, which is not finished: npx kit backfill run ${id}`),
    ...operations.flatMap(operationLines),
    ...blocked.map(({ table, waits, ms }) => `in all      ${waits} of "${table}" wait ${timeText(ms)}`),
  ];
}

function operationLines({ text, tables, safe, runningCode }: ExplainedOperation): string[] {
  return [
    text,
    ...(tables === null ? ['  not known: written by hand. Its locks stay until the migration commits'] : []),
    ...(tables ?? []).map(({ table, lock, waits, work, rows, workMs }) => {
      const rowsText = work === 'none' ? '' : `; ${WORDS[work]} ${rows} rows, ${timeText(workMs)}`;
      return `  "${table}": ${lock === 'writer' ? 'the writer of the file' : lock}, ${waits === 'nothing' ? 'nothing waits' : `${waits} wait`}${rowsText}`;
    }),
    ...(safe === null ? [] : [`  safe form: ${safe}`]),
    ...(runningCode === null ? [] : [`  code of the version before: ${runningCode}`]),
  ];
}

const WORDS = { scan: 'reads', index: 'builds an index of', update: 'writes', rewrite: 'rewrites' } as const;

function timeText(ms: number): string {
  if (ms < 100) return 'less than 0.1 s';
  return ms < 90_000 ? `about ${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s` : `about ${Math.round(ms / 60_000)} min`;
}
