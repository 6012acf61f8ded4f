import { appBackfills, type AppBackfill, pauseBackfill, resumeBackfill } from '../../app/data/app-backfills.ts';
import { MigrationRefused } from '../../db/migrations/migration-refused.ts';
import { runBackfills } from '../../db/rollout/run-backfills.ts';
import type { BackfillProgress } from '../../db/backfills/progress.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { stopSignal } from '../terminal/stop-signal.ts';
import { table } from '../terminal/terminal.ts';

/** `kit backfill`. */
export const backfillCommand: CoreCommand = (command, context) => {
  command.addHelpText('after', HELP);
  command
    .command('run')
    .argument('[names...]', 'such as 0012_full_name or shop/0012_full_name (default: all that are not finished)')
    .description('run back-fills until they are finished, or until SIGINT or SIGTERM')
    .option('--again', 'do finished back-fills once more, from the first row; needs a name')
    .action((names: string[], { again }: { again?: boolean }) => run(context, names, again === true));
  command
    .command('status')
    .argument('[names...]', 'default: all')
    .description('list back-fills with progress, rate and time left')
    .action((names: string[]) => status(context, names));
  command
    .command('pause')
    .argument('<names...>', 'which')
    .description('stop before the next batch; processes that run it wait')
    .action((names: string[]) => change(context, names, 'paused', pauseBackfill));
  command
    .command('resume')
    .argument('<names...>', 'which')
    .description('go on with a paused back-fill')
    .action((names: string[]) => change(context, names, 'resumed', resumeBackfill));
};

const HELP = `
A back-fill changes the rows of a table in batches, each in a transaction of its own, while the app runs. It stands still while a replica is
far behind or transactions wait for locks. A run that was stopped or killed goes on where it was; several at once share the work.`;

async function run(context: CliContext, names: readonly string[], again: boolean): Promise<void> {
  if (again && names.length === 0) context.fail('--again needs the name of a back-fill: npx kit backfill run 0012_full_name --again');
  const all = await chosen(context, names);
  const waiting = all.filter(({ progress }) => again || progress.state !== 'finished');
  if (waiting.length === 0)
    return context.print(
      context.json ? '{"finished":[]}' : all.length === 0 ? 'The app has no back-fills.' : 'Every back-fill is finished.',
    );
  const stop = new AbortController();
  void stopSignal().then(() => stop.abort());
  const finished: string[] = [];
  for (const each of waiting) {
    if (stop.signal.aborted) break;
    const shown = progressLine(context, each, again);
    const done = await runBackfills(each.database, each.modules, { only: [each.id], again, signal: stop.signal, onProgress: shown.update })
      .catch((error: unknown) => (error instanceof MigrationRefused ? context.fail(error.message) : Promise.reject(error as Error)))
      .finally(() => shown.end());
    if (done.length === 0) continue;
    finished.push(each.label);
    if (!context.json) context.print(`${context.paint('green', 'finished')} ${each.label}`);
  }
  if (context.json) context.print(JSON.stringify({ finished }));
  else if (finished.length < waiting.length) context.print('Stopped. The next npx kit backfill run goes on with it.');
}

/** A bar, and on standard error why the run stands still. */
function progressLine(context: CliContext, { label, progress }: AppBackfill, again: boolean) {
  let bar: ReturnType<CliContext['progress']> | undefined;
  let reason: string | null = null;
  return {
    update: (_id: string, rows: number, waitsFor: string | null): void => {
      if (context.json) return;
      if (waitsFor !== reason && waitsFor !== null) context.stderr.write(`${label} waits: ${waitsFor}\n`);
      reason = waitsFor;
      if (bar === undefined && rows > 0) {
        bar = context.progress(label, Math.max(progress.rowsTotal, rows));
        if (!again) bar.advance(progress.rowsDone);
      }
      bar?.advance(rows);
    },
    end: (): void => bar?.end(),
  };
}

async function status(context: CliContext, names: readonly string[]): Promise<void> {
  const found = await chosen(context, names);
  if (context.json) return context.print(JSON.stringify({ backfills: found.map(asJson) }, null, 2));
  if (found.length === 0) return context.print('The app has no back-fills.');
  const heads = ['BACK-FILL', 'STATE', 'DONE', 'ROWS', 'RATE', 'LEFT', 'REQUIRED BY'];
  for (const line of table(heads, found.map(asRow))) context.print(line);
  for (const { label, progress } of found) if (progress.waitsFor !== null) context.print(`${label} waits: ${progress.waitsFor}`);
}

async function change(
  context: CliContext,
  names: readonly string[],
  done: string,
  work: (backfill: AppBackfill) => Promise<boolean>,
): Promise<void> {
  const changed: string[] = [];
  for (const each of await chosen(context, names)) {
    if (!(await work(each))) context.fail(`The back-fill ${each.label} cannot be ${done}: it is ${each.progress.state}.`);
    changed.push(each.label);
    if (!context.json) context.print(`${context.paint('green', done)} ${each.label}`);
  }
  if (context.json) context.print(JSON.stringify({ [done]: changed }));
}

/** By name, with or without the module; all of them without names. */
async function chosen(context: CliContext, names: readonly string[]): Promise<AppBackfill[]> {
  const app = await (await context.bareApp()).openDatabases({ createFiles: false });
  const all = await appBackfills(app);
  if (names.length === 0) return all;
  return names.flatMap((name) => {
    const found = all.filter((each) => each.id === name || each.backfill.name === name);
    const modules = [...new Set(found.map(({ module }) => module))];
    if (modules.length > 1)
      context.fail(`Several modules have a back-fill ${name}: use ${modules.map((each) => `${each}/${name}`).join(' or ')}.`);
    if (found.length > 0) return found;
    const known = all.flatMap(({ id, backfill }) => [id, backfill.name]);
    return context.fail(
      `There is no back-fill "${name}".${didYouMean(name, known) || ` Known: ${[...new Set(all.map(({ id }) => id))].join(', ') || 'none'}.`}`,
    );
  });
}

function asRow({ label, progress, requiredBy }: AppBackfill): string[] {
  const { state, share, rowsDone, rowsTotal, rowsPerSecond, secondsLeft } = progress;
  return [
    label,
    state,
    state === 'not started' ? '-' : `${Math.floor(share * 100)} %`,
    state === 'not started' ? '-' : `${rowsDone} of ${rowsTotal}`,
    rowsPerSecond === null ? '-' : `${Math.round(rowsPerSecond)}/s`,
    secondsLeft === null ? '-' : timeText(secondsLeft),
    requiredBy.join(', ') || '-',
  ];
}

function timeText(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function asJson({ id, alias, progress, requiredBy, after }: AppBackfill): object {
  return { id, database: alias, after, required_by: requiredBy, ...jsonProgress(progress) };
}

function jsonProgress({ state, share, rowsDone, rowsTotal, rowsPerSecond, secondsLeft, waitsFor }: BackfillProgress): object {
  return {
    state,
    share,
    rows_done: rowsDone,
    rows_total: rowsTotal,
    rows_per_second: rowsPerSecond,
    seconds_left: secondsLeft,
    waits_for: waitsFor,
  };
}
