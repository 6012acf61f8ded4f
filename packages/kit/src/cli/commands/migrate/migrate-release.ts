import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { migrationModules } from '../../../app/data/migration-modules.ts';
import { checkRelease, parseReleaseSchema, releaseSchema } from '../../../db/rollout/check-release.ts';
import type { CliContext } from '../../load/context.ts';

/** `kit migrate schema` and `kit migrate check-release`. */
export function addRelease(command: Command, context: CliContext): void {
  command
    .command('schema')
    .description('print the tables that this version reads and writes, for check-release of the next version')
    .addHelpText('after', '\nNo database is opened. Keep it with the release: npx kit migrate schema > schema.json')
    .action(async () => context.print(JSON.stringify(releaseSchema(migrationModules(await context.bareApp())), null, 2)));
  command
    .command('check-release')
    .argument('<schema>', 'what kit migrate schema printed in the version before: schema.json')
    .description('check that the version before works on the tables of this one; exit code 1 when its statements would fail')
    .addHelpText('after', '\nNo database is opened. During a deployment both versions run on one database.')
    .action(async (file: string) => {
      const text = await readFile(file, 'utf8').catch((error: Error) => context.fail(`${file} cannot be read: ${error.message}`));
      const before = parseReleaseSchema(text);
      if (before === null) context.fail(`${file} is not a schema. Run in the version before: npx kit migrate schema > schema.json`);
      const report = checkRelease(before, migrationModules(await context.bareApp()));
      if (context.json) context.print(JSON.stringify(report, null, 2));
      else {
        for (const each of report.breaks) context.print(`${context.paint('red', 'breaks')}  ${each}`);
        for (const each of report.warnings) context.print(`${context.paint('yellow', 'warning')} ${each}`);
      }
      if (report.breaks.length > 0) context.fail('The version before does not work on the tables of this version.');
      if (!context.json) context.print('The version before works on the tables of this version.');
    });
}
