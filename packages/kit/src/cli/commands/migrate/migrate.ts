import type { CliContext } from '../../load/context.ts';
import type { CoreCommand } from '../../load/core-command.ts';
import { modelDrift } from '../../../db/migrations/drift.ts';
import { driftOf, driftRemedy, migrateApp, migrationModules, pendingOf } from '../../../app/data/migration-modules.ts';
import { addPlan } from './migrate-plan.ts';
import { addRelease } from './migrate-release.ts';
import { addMigrateMake } from './migrate-make.ts';

export const migrateCommand: CoreCommand = (command, context) => {
  command
    .option('--check', 'change nothing; exit code 1 when something is pending, or tables are not what this version needs')
    .option('--dry-run', 'change nothing; print the SQL that would run')
    .option('--adopt', 'record migrations that only create tables which exist already, instead of running them')
    .addHelpText('after', HELP)
    .action(async ({ check, dryRun, adopt }: { check?: boolean; dryRun?: boolean; adopt?: boolean }) => {
      if (check === true) await checkOnly(context);
      else if (dryRun === true) await printStatements(context);
      else await apply(context, adopt === true);
    });
  addPlan(command, context);
  addMigrateMake(command, context);
  addRelease(command, context);
};

const HELP = `
Applies the migrations of the toolkit and of every installed module, each in a transaction of its own, in every database
that a module has tables in.
Two processes may run this concurrently: the second waits and finds nothing left to do.`;

async function apply(context: CliContext, adopt: boolean): Promise<void> {
  const app = await (await context.bareApp()).openDatabases();
  const pending = await pendingOf(app);
  const progress = pending.length > 0 && !context.json ? context.progress('Migrating', pending.length) : undefined;
  const log = {
    info: () => progress?.advance(),
    warn: (fields: object, message: string) => app.log.warn(fields, message),
    error: (fields: object, message: string) => app.log.error(fields, message),
  };
  const report = await migrateApp(app, { log, adopt }).finally(() => progress?.end());
  if (context.json) return context.print(JSON.stringify({ applied: report.applied, unknown: report.unknown, backups: report.backups }));
  for (const id of report.applied) context.print(`${context.paint('green', 'applied')} ${id}`);
  for (const id of report.unknown)
    context.print(`${context.paint('yellow', 'unknown')} ${id} (applied by a newer version, or by a module no longer installed)`);
  for (const path of report.backups) context.print(`${context.paint('dim', 'backup')}  ${path}`);
  if (report.applied.length === 0) context.print('The database is up to date.');
  // What a migration that was written and not added to its module would change.
  const differing = modelDrift(migrationModules(app));
  for (const fault of differing) context.print(`${context.paint('yellow', 'drift')}   ${fault}`);
  if (differing.length > 0) context.print(`The app does not start like this. ${DISAGREE}`);
}

const DISAGREE = 'Models and migrations disagree: run npx kit migrate make <name>, or add the migration that it wrote to its module.';

async function checkOnly(context: CliContext): Promise<void> {
  const app = await (await context.bareApp()).openDatabases({ createFiles: false });
  const pending = await pendingOf(app);
  const drift = await driftOf(app);
  if (context.json) context.print(JSON.stringify({ pending, drift }));
  else {
    for (const id of pending) context.print(`${context.paint('yellow', 'pending')} ${id}`);
    for (const fault of [...drift.models, ...drift.database]) context.print(`${context.paint('yellow', 'drift')}   ${fault}`);
    for (const id of drift.newer) context.print(`${context.paint('dim', 'newer')}   ${id} (applied by a newer version)`);
    for (const each of drift.additions) context.print(`${context.paint('dim', 'extra')}   ${each} This version works without it.`);
  }
  const remedies = [
    ...(pending.length > 0 ? [`${pending.length} pending: run npx kit migrate.`] : []),
    ...(drift.models.length > 0 ? [DISAGREE] : []),
    ...(drift.database.length > 0 ? [driftRemedy(drift)] : []),
  ];
  if (remedies.length > 0) context.fail(remedies.join(' '));
  if (!context.json)
    context.print(drift.newer.length === 0 ? 'The database is up to date.' : 'The database is newer than this version, which can use it.');
}

async function printStatements(context: CliContext): Promise<void> {
  const app = await (await context.bareApp()).openDatabases({ createFiles: false });
  const report = await migrateApp(app, { dryRun: true });
  if (context.json) return context.print(JSON.stringify({ pending: report.applied, statements: report.statements }, null, 2));
  for (const id of report.applied) {
    context.print(context.paint('bold', `-- ${id}`));
    for (const statement of report.statements[id] ?? []) context.print(`${statement};`);
  }
  if (report.applied.length === 0) context.print('-- nothing to do');
}
