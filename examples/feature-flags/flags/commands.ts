import type { App, Command } from 'kit';
import { find, insert, list, update } from 'kit/db';
import { featureFlags } from './models.ts';
import type { FlagSettings } from './options.ts';

/** `kit flags list`, `kit flags set new_checkout 25` */
export function flagsCommand({ flags }: FlagSettings): Command<App> {
  return {
    name: 'flags',
    summary: 'list feature flags and set how many users have them',
    configure(command, context) {
      command
        .command('list')
        .description('list the declared flags')
        .action(async () => {
          const { db } = await context.app();
          const stored = new Map((await list(db, featureFlags, { limit: 1000 })).map(({ name, percentage }) => [name, percentage]));
          const rows = Object.entries(flags).map(([name, description]) => ({ name, percentage: stored.get(name) ?? 0, description }));
          if (context.json) return context.print(JSON.stringify(rows));
          for (const { name, percentage, description } of rows) context.print(`${name}  ${percentage} %  ${description}`);
        });
      command
        .command('set <flag> <percentage>')
        .description('turn a flag on for a percentage of the users: 0 is off, 100 is everyone')
        .action(async (flag: string, text: string) => {
          const percentage = Number(text);
          if (!Object.hasOwn(flags, flag)) context.fail(`There is no flag "${flag}"; there are ${Object.keys(flags).join(', ')}.`);
          if (!/^\d{1,3}$/.test(text) || percentage > 100) context.fail(`"${text}" is not a percentage; use an integer from 0 to 100.`);
          const { db } = await context.app();
          await db.transaction(async (tx) => {
            if ((await find(tx, featureFlags, flag)) === undefined) await insert(tx, featureFlags, { name: flag, percentage });
            else await update(tx, featureFlags, flag, { percentage });
          });
          context.print(context.json ? JSON.stringify({ name: flag, percentage }) : `${flag} is on for ${percentage} % of the users.`);
        });
    },
  };
}
