import { personalWarnings } from '../../crud/subjects/personal-warnings.ts';
import { moduleFaults } from '../load/module-faults.ts';
import type { CoreCommand } from '../load/core-command.ts';

export const checkCommand: CoreCommand = (command, context) => {
  command
    .addHelpText(
      'after',
      '\nOpens the databases and runs what `kit start` runs before it listens. Exit code 1 when the app would not start.',
    )
    .action(async () => {
      // To look at an app must not leave an empty database where its address is misspelt.
      await (await context.bareApp()).openDatabases({ createFiles: false });
      const app = await context.app();
      const own = [...app.warnings, ...personalWarnings(app)];
      const faults = [...own.map((fault) => ({ module: null, fault })), ...(await moduleFaults(app))];
      if (context.json)
        return context.print(
          JSON.stringify({
            ok: true,
            routes: app.routes.length,
            warnings: faults.map(({ module, fault: { id, message, hint } }) => ({ module, id, message, hint })),
          }),
        );
      for (const {
        fault: { id, message, hint },
      } of faults)
        context.print(`${context.paint('yellow', id)} ${message}${hint === undefined ? '' : ` ${hint}`}`);
      context.print(
        `${context.paint('green', 'ok')} ${app.title}: ${app.routes.length} routes, ${app.modules.length} ${app.modules.length === 1 ? 'module' : 'modules'}.`,
      );
    });
};
