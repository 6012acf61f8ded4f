import { heldOf } from '../../crud/subjects/held-tables.ts';
import { purgeDeleted, softDeletedModels } from '../../crud/write/purge.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { CoreCommand } from '../load/core-command.ts';

const UNIT_MS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000 };

/** `kit crud purge`. */
export const crudCommand: CoreCommand = (command, context) => {
  command
    .command('purge')
    .argument('<model>', 'the table whose soft-deleted rows are deleted permanently')
    .description('permanently delete soft-deleted rows and the rows deleted with them')
    .requiredOption('--older-than <age>', 'how long ago they were deleted: 90d, 12h')
    .addHelpText(
      'after',
      '\nRows that others still refer to are kept and counted. Rows of people and tenants under a legal hold stay, with those above them.',
    )
    .action(async (name: string, { olderThan }: { olderThan: string }) => {
      const age = /^(\d{1,6})([dh])$/.exec(olderThan);
      if (age === null) return context.fail(`--older-than takes days or hours such as 90d or 12h, not ${JSON.stringify(olderThan)}.`);
      const app = await context.app();
      const models = softDeletedModels(app);
      const policy = models.get(name);
      if (policy === undefined)
        return context.fail(
          `No resource that soft-deletes has the model "${name}".${didYouMean(name, [...models.keys()]) || ` Known: ${[...models.keys()].join(', ') || 'none'}.`}`,
        );
      const before = new Date(app.clock.now().getTime() - Number(age[1]) * (UNIT_MS[age[2] as string] as number));
      const database = app.databases[policy.using] as (typeof app)['db'];
      const report = await purgeDeleted(database, policy, before, heldOf(app, policy.using));
      if (context.json) return context.print(JSON.stringify(report));
      const kept = report.kept === 0 ? '' : ` ${report.kept} kept, because other rows refer to them.`;
      context.print(`${report.removed} deleted rows of ${name} removed, and ${report.related} that went with them.${kept}`);
    });
};
