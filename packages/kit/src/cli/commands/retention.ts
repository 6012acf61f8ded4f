import { didYouMean } from '../../options/did-you-mean.ts';
import { retainedTables, retainRows } from '../../crud/subjects/retained-tables.ts';
import { describeData } from '../../crud/subjects/describe-data.ts';
import { countOverdue, type RetainedTable, retentionStates } from '../../db/subjects/retention.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { stopSignal } from '../terminal/stop-signal.ts';
import { table } from '../terminal/terminal.ts';

/** `kit retention run|status`. */
export const retentionCommand: CoreCommand = (command, context) => {
  command.addHelpText('after', HELP);
  command
    .command('run')
    .argument('[tables...]', 'default: all that have a retention')
    .option('--dry-run', 'count the rows, and change nothing')
    .description('delete or anonymise rows whose time is over, in batches, until none is left or SIGINT')
    .action((names: string[], { dryRun }: { dryRun?: boolean }) => run(context, names, dryRun === true));
  command
    .command('status')
    .description('list tables with their retention and what it did')
    .action(() => status(context));
};

const HELP = `
The models declare it: model('orders', …, { retention: { after: '24 months', by: 'created_at', then: 'anonymise' } }). Processes of an app with
personalData() run it by themselves. Rows under a legal hold stay. A run that was killed is continued by the next one.`;

async function chosen(context: CliContext, names: readonly string[]): Promise<RetainedTable[]> {
  const all = retainedTables(await context.app());
  const known = all.map(({ model }) => model.name);
  for (const name of names)
    if (!known.includes(name))
      context.fail(`The table "${name}" has no retention.${didYouMean(name, known) || ` Known: ${known.join(', ') || 'none'}.`}`);
  return names.length === 0 ? all : all.filter(({ model }) => names.includes(model.name));
}

async function run(context: CliContext, names: readonly string[], isDry: boolean): Promise<void> {
  const app = await context.app();
  const tables = await chosen(context, names);
  const stop = new AbortController();
  void stopSignal().then(() => stop.abort());
  const report: { table: string; rows: number }[] = [];
  const failures: string[] = [];
  for (const each of tables) {
    if (stop.signal.aborted) break;
    const due = isDry || !context.json ? await countOverdue(each, app.db) : 0;
    let rows = isDry ? due : 0;
    const bar = isDry || due === 0 ? undefined : context.progress(each.model.name, due);
    try {
      for (let more = isDry ? 0 : 1; more > 0 && !stop.signal.aborted;) {
        more = (await retainRows(app, each, { now: true })) ?? 0;
        rows += more;
        bar?.advance(more);
      }
    } catch (error) {
      // The other tables have theirs.
      failures.push(`${each.model.name}: ${(error as Error).message}`);
    } finally {
      bar?.end();
    }
    report.push({ table: each.model.name, rows });
  }
  const cells = report.map(({ table: name, rows }) => [name, String(rows)]);
  if (context.json) context.print(JSON.stringify({ dry_run: isDry, tables: report }));
  else if (report.length === 0) context.print('No table has a retention.');
  else for (const line of table(['TABLE', isDry ? 'WOULD CHANGE' : 'CHANGED'], cells)) context.print(line);
  if (failures.length > 0) context.fail(failures.join('\n'));
}

async function status(context: CliContext): Promise<void> {
  const app = await context.app();
  const states = await retentionStates(app.db);
  const tables = describeData(app).flatMap(({ table: name, retention }) =>
    retention === null ? [] : [{ name, retention, state: states.get(name) }],
  );
  if (context.json)
    return context.print(
      JSON.stringify(
        tables.map(({ name, retention, state }) => ({
          table: name,
          retention,
          last_run_at: state?.last_run_at ?? null,
          last_rows: Number(state?.last_rows ?? 0),
          total_rows: Number(state?.total_rows ?? 0),
          error: state?.last_error ?? null,
        })),
        null,
        2,
      ),
    );
  if (tables.length === 0) return context.print('No table has a retention.');
  const rows = tables.map(({ name, retention, state }) => [
    name,
    retention,
    state?.last_run_at?.toISOString() ?? 'never',
    String(state?.last_rows ?? 0),
    String(state?.total_rows ?? 0),
    state?.last_error ?? '-',
  ]);
  for (const line of table(['TABLE', 'RETENTION', 'LAST RUN', 'ROWS', 'ROWS OF ALL RUNS', 'ERROR'], rows)) context.print(line);
}
