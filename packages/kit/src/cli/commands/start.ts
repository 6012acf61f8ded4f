import { InvalidArgumentError } from 'commander';
import type { CoreCommand } from '../core-command.ts';

const DEFAULT_PORT = 3000;

/** Loopback unless told: a server that strangers can reach is a decision. */
const DEFAULT_HOST = '127.0.0.1';

export const startCommand: CoreCommand = {
  name: 'start',
  summary: 'serve the app until SIGINT or SIGTERM',
  configure(command, context) {
    command
      .option('-p, --port <number>', `port to listen on (PORT; default ${DEFAULT_PORT}; 0 picks a free one)`, portNumber)
      .option('-H, --host <address>', `address to listen on (HOST; default ${DEFAULT_HOST})`)
      .addHelpText('after', '\nOpen requests are finished before the program ends; a second signal ends it at once.')
      .action(async ({ port, host }: { port?: number; host?: string }) => {
        const given = context.environment['PORT'];
        const app = await context.app();
        const address = await app.listen({
          port: port ?? (given === undefined || given === '' ? DEFAULT_PORT : environmentPort(given, (message) => context.fail(message))),
          host: host ?? (context.environment['HOST'] || DEFAULT_HOST),
        });
        context.print(context.json ? JSON.stringify({ address }) : `${app.title} listens on ${address}`);
        for (const text of await app.monitor()) context.stderr.write(`${text}\n`);
        await stopSignal();
        context.stderr.write('Stopping: open requests are being finished.\n');
      });
  },
};

function portNumber(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new InvalidArgumentError('A port is a number from 0 to 65535.');
  return port;
}

function environmentPort(text: string, fail: (message: string) => never): number {
  const port = Number(text);
  return /^\d{1,5}$/.test(text) && port <= 65_535 ? port : fail(`PORT is ${JSON.stringify(text)}; a port is a number from 0 to 65535.`);
}

/** The first signal; after it the default action is back, so a second one ends the process at once. */
async function stopSignal(): Promise<void> {
  await new Promise<void>((stop) => {
    const stopped = (): void => {
      process.off('SIGINT', stopped).off('SIGTERM', stopped);
      stop();
    };
    process.on('SIGINT', stopped).on('SIGTERM', stopped);
  });
}
