import type { CoreCommand } from '../load/core-command.ts';
import { DEFAULT_HOST, DEFAULT_PORT, listeningPlace, portNumber, type PlaceOptions } from '../terminal/listening-place.ts';
import { stopSignal } from '../terminal/stop-signal.ts';

export const startCommand: CoreCommand = (command, context) => {
  command
    .option('-p, --port <number>', `port to listen on (PORT; default ${DEFAULT_PORT}; 0 picks a free one)`, portNumber)
    .option('-H, --host <address>', `address to listen on (HOST; default ${DEFAULT_HOST})`)
    .addHelpText('after', '\nOpen requests finish before the program exits; a second signal exits immediately.')
    .action(async (options: PlaceOptions) => {
      const app = await context.app();
      const address = await app.listen(listeningPlace(options, context.environment, (message) => context.fail(message)));
      context.print(context.json ? JSON.stringify({ address }) : `${app.title} listens on ${address}`);
      for (const text of await app.monitor()) context.stderr.write(`${text}\n`);
      await stopSignal();
      context.stderr.write('Stopping: open requests are being finished.\n');
    });
};
