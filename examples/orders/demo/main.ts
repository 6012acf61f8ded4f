// `npm start`: the configuration server, the orders API and a webhook receiver on loopback, with demo data, from nothing.
import { join } from 'node:path';
import { StartRefusal } from '@kit/config-server';
import { dataFolder } from '../config.ts';
import { panel } from './panel.ts';
import { startConfigServer } from './start-config-server.ts';
import { startReceiver } from './start-receiver.ts';

const began = performance.now();
// False in a pipe, and with NO_COLOR.
const colour = process.stdout.isTTY && process.stdout.hasColors();
const step = (text: string): void => {
  if (colour) process.stdout.write(text === '' ? '\r\x1b[2K' : `\r\x1b[2K${text} …`);
};

step('starting the configuration server');
const configuration = await startConfigServer(dataFolder).catch(explainRefusal);
process.env['CONFIG_URL'] = configuration.url;
process.env['CONFIG_TOKEN'] = configuration.token;
// Plain HTTP on loopback: otherwise the session cookie would insist on HTTPS.
process.env['NODE_ENV'] ??= 'development';
process.env['LOG_FILE'] ??= join(dataFolder, 'api.log');

step('migrating the database');
// Imported only now: kit.config.ts reads the environment when it is loaded.
const { startApi } = await import('./start-api.ts');
const receiver = await startReceiver();
const api = await startApi(receiver);

step('');
process.stdout.write(panel({ api, configuration, receiver, seconds: (performance.now() - began) / 1000, colour }));

let stopping = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (stopping) process.exit(1);
    stopping = true;
    process.stdout.write('\nstopping …\n');
    void Promise.allSettled([api.stop(), configuration.stop(), receiver.stop()]).then(() => process.exit(0));
  });
}

/** A settings file broken by hand is the likely reason: say where, and how to begin again. */
function explainRefusal(error: unknown): never {
  if (!(error instanceof StartRefusal)) throw error;
  step('');
  for (const line of error.lines) process.stderr.write(`the configuration server refuses to start: ${line}\n`);
  process.stderr.write(`Repair the file, or delete ${dataFolder} to begin again.\n`);
  process.exit(1);
}
