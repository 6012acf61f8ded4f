import { copyAppDatabase } from '../../app/data/copy-app-database.ts';
import { modulesIn } from '../../app/data/migration-modules.ts';
import type { App } from '../../app/declare/module.ts';
import type { Database } from '../../db/engine/db.ts';
import { openDatabase } from '../../db/open/open-database.ts';
import { noSuchDatabase } from '../../db/open/named-database.ts';
import type { CopyStep } from '../../db/transfer/copy-database.ts';
import { CopyFailed } from '../../db/transfer/copy-failed.ts';
import { countRows } from '../../db/transfer/copied-table.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { table } from '../terminal/terminal.ts';

interface CopyArguments {
  readonly database: string;
  readonly without?: readonly string[];
}

/** `kit database copy`. */
export const databaseCommand: CoreCommand = (command, context) => {
  command
    .command('copy')
    .argument('<from>', 'the SQLite file: sqlite:./data/app.db')
    .argument('<to>', 'an empty PostgreSQL database: postgres://…')
    .description('copy every row of a SQLite database into PostgreSQL, and compare both')
    .option('--database <alias>', 'whose tables these are, in an app with several databases', 'default')
    .option('--without <tables...>', 'tables that stay behind, such as those of another program')
    .addHelpText('after', HELP)
    .action((from: string, to: string, options: CopyArguments) => copy(context, from, to, options));
};

const HELP = `
Stop everything that writes to the SQLite file first. Every value is checked before the first row is written; a copy that
was interrupted goes on where it was when the command runs again. Uploaded files are not in the database and stay where they are.`;

async function copy(context: CliContext, from: string, to: string, { database: alias, without }: CopyArguments): Promise<void> {
  if (!/^sqlite:./.test(from) || from === 'sqlite::memory:') context.fail('The source must be a SQLite file: sqlite:./data/app.db');
  if (!/^postgres(ql)?:\/\//.test(to)) context.fail('The target must be a PostgreSQL database: postgres://user:password@host:5432/name');
  const app = await context.bareApp();
  if (modulesIn(app, alias).length === 0) context.fail(noSuchDatabase(alias, aliasesOf(app)));
  const opened: Database[] = [];
  const open = async (url: string): Promise<Database> => {
    const database = await openDatabase(url, { name: alias, clock: app.clock, log: app.log, createFile: false });
    opened.push(database);
    return database;
  };
  try {
    const [source, target] = [await open(from), await open(to)];
    const bars = stepBars(context, await countRows(source));
    const report = await copyAppDatabase(app, alias, {
      from: source,
      to: target,
      without: without ?? [],
      onProgress: (step, rows) => bars.advance(step, rows),
    }).finally(() => bars.end());
    if (context.json) return context.print(JSON.stringify({ tables: report }, null, 2));
    const rows = report.filter((each) => each.rows > 0).map((each) => [each.table, String(each.rows), each.checksum.slice(0, 12)]);
    for (const line of table(['TABLE', 'ROWS', 'CHECKSUM'], rows)) context.print(line);
    const total = report.reduce((sum, each) => sum + each.rows, 0);
    context.print(`${context.paint('green', 'copied')} ${total} rows of ${report.length} tables; both databases have equal rows.`);
  } catch (error) {
    if (error instanceof CopyFailed) context.fail(error.message);
    throw error;
  } finally {
    await Promise.all(opened.map((each) => each.close()));
  }
}

function aliasesOf(app: App): string[] {
  return ['default', ...new Set(app.modules.flatMap(({ databases = [] }) => databases).filter((each) => each !== 'default'))];
}

const LABELS: Readonly<Record<CopyStep, string>> = { check: 'Checking', copy: 'Copying', compare: 'Comparing' };

/** One line for each step; the next one begins where the last has ended. */
function stepBars(context: CliContext, total: number) {
  let step: CopyStep | undefined;
  let bar: ReturnType<CliContext['progress']> | undefined;
  return {
    advance(next: CopyStep, rows: number): void {
      if (context.json) return;
      if (next !== step) {
        bar?.end();
        bar = context.progress(LABELS[next], total);
        step = next;
      }
      bar?.advance(rows);
    },
    end: (): void => bar?.end(),
  };
}
