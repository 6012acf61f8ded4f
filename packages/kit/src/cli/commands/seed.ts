import { runSeeds, seedsOf } from '../../app/data/run-seeds.ts';
import type { CoreCommand } from '../load/core-command.ts';

export const seedCommand: CoreCommand = (command, context) => {
  command
    .argument('[names...]', 'seeds to run (default: all, those of modules first)')
    .option('--list', 'list the seeds and run none')
    .addHelpText(
      'after',
      '\nSeeds are declared with seed() and given to createApp({ seeds }) or a module. They can run again. Not for production.',
    )
    .action(async (names: string[], { list = false }: { list?: boolean }) => {
      const { environment } = context;
      if (list) {
        const known = seedsOf(await context.bareApp()).map(({ name }) => name);
        return context.print(
          context.json ? JSON.stringify(known) : known.join('\n') || 'The app has no seeds. Declare one: createApp({ seeds: [demo] }).',
        );
      }
      if (environment['NODE_ENV'] === 'production') context.fail('Seeds are for development and tests, and NODE_ENV is production.');
      const app = await context.app();
      if (seedsOf(app).length === 0) context.fail('The app has no seeds. Declare one: createApp({ seeds: [demo] }).');
      const reports = await runSeeds(app, names.length === 0 ? undefined : names).catch((error: Error) => context.fail(error.message));
      if (context.json) return context.print(JSON.stringify(reports));
      for (const { name, created, changed, unchanged } of reports)
        context.print(`${context.paint('green', name)} ${created} created, ${changed} changed, ${unchanged} as they were`);
    });
};
