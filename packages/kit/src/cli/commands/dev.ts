import { dirname, resolve } from 'node:path';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { DevServer, reservePort } from '../dev/dev-server.ts';
import { FileWatch } from '../dev/watch-files.ts';
import { readDotenv } from '../load/dotenv.ts';
import { missingConfig } from '../load/find-config.ts';
import { DEFAULT_HOST, DEFAULT_PORT, listeningPlace, portNumber, type PlaceOptions } from '../terminal/listening-place.ts';
import { stopSignal } from '../terminal/stop-signal.ts';
import { languageOf } from '../load/write-client.ts';

interface DevOptions extends PlaceOptions {
  readonly yes?: boolean;
  readonly client?: readonly string[];
}

/** Files of a change that a message names. */
const NAMED_MAX = 3;

export const devCommand: CoreCommand = (command, context) => {
  command
    .option('-p, --port <number>', `port to listen on (PORT; default ${DEFAULT_PORT}; 0 picks a free one and keeps it)`, portNumber)
    .option('-H, --host <address>', `address to listen on (HOST; default ${DEFAULT_HOST})`)
    .option('-y, --yes', 'apply pending migrations without asking')
    .option('--client <file...>', 'write a client at each start and keep it current: .ts or .py')
    .addHelpText('after', HELP)
    .action(async (options: DevOptions) => run(options, context));
};

const HELP = `
For development: NODE_ENV is development unless it is set. Watches the code in the folder of kit.config.ts and the file .env there; tests,
node_modules, dist, data and hidden folders are not watched. An app that does not start is started again when a file is saved.`;

async function run(options: DevOptions, context: CliContext): Promise<void> {
  const { configFile, environment, terminal, cwd } = context;
  if (configFile === null) return context.fail(missingConfig(cwd));
  if (environment['NODE_ENV'] === 'production')
    return context.fail('kit dev is for development, and NODE_ENV is production. Use kit start, or unset NODE_ENV.');
  // Read here for the port alone: the process of the app reads the file again at every start.
  const settings = { ...readDotenv(configFile, environment), ...environment };
  const place = await reservePort(listeningPlace(options, settings, (message) => context.fail(message)));
  const clients = (options.client ?? []).map((file) => resolve(cwd, file));
  const other = clients.find((file) => languageOf(file) === undefined);
  if (other !== undefined) return context.fail(`--client is ${other}; clients are written to files that end with .ts or .py.`);
  const program = [process.argv[1] ?? '', '--config', configFile] as const;
  const server = new DevServer({ program, cwd, environment, terminal, place, yes: options.yes === true, clients });
  const watch = new FileWatch(
    dirname(configFile),
    (files) => {
      const named = files.slice(0, NAMED_MAX).join(', ');
      context.stderr.write(
        `${context.paint('dim', `↻ ${named}${files.length > NAMED_MAX ? ` and ${files.length - NAMED_MAX} more` : ''}`)}\n`,
      );
      void server.restart();
    },
    clients,
  );
  server.start();
  await stopSignal();
  watch.close();
  await server.stop();
}
