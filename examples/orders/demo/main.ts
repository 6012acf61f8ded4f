// `npm start`: the configuration server, the orders API and a webhook receiver on loopback, with demo data, from nothing.
import { join } from 'node:path';
import { dataFolder } from '../config.ts';
import { explainFailure } from './explain-failure.ts';
import { apiPort, freePort } from './free-port.ts';
import { takeFolder } from './only-one.ts';
import { panel } from './panel.ts';
import { startConfigServer } from './start-config-server.ts';
import { startReceiver } from './start-receiver.ts';

const began = performance.now();
// False in a pipe, and with NO_COLOR.
const colour = process.stdout.isTTY && process.stdout.hasColors();
const step = (text: string): void => {
  if (colour) process.stdout.write(text === '' ? '\r\x1b[2K' : `\r\x1b[2K${text} …`);
};

const folder = takeFolder(dataFolder);
if (folder.takenBy !== undefined) {
  process.stderr.write(
    `The example is running already, as process ${folder.takenBy}: its terminal shows the addresses and the key; Ctrl-C there stops it.\n` +
      'For another one beside it: DATA_FOLDER=.data/second npm start\n',
  );
  process.exit(1);
}

const { api, configuration, receiver } = await start().catch(giveUp);
step('');
process.stdout.write(panel({ api, configuration, receiver, seconds: (performance.now() - began) / 1000, colour }));

let stopping = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (stopping) process.exit(1);
    stopping = true;
    process.stdout.write('\nstopping …\n');
    void Promise.allSettled([api.stop(), configuration.stop(), receiver.stop()]).then(() => {
      folder.release();
      process.exit(0);
    });
  });
}

async function start() {
  // First: a PORT that cannot be used ends the start before anything runs.
  const port = await apiPort(3000, process.env['PORT']);
  process.env['PUBLIC_URL'] ??= `http://127.0.0.1:${port.port}`;
  step('starting the configuration server');
  const configuration = await startConfigServer(dataFolder);
  process.env['CONFIG_URL'] = configuration.url;
  process.env['CONFIG_TOKEN'] = configuration.token;
  // Plain HTTP on loopback: otherwise the session cookie would insist on HTTPS.
  process.env['NODE_ENV'] ??= 'development';
  process.env['LOG_FILE'] ??= join(dataFolder, 'api.log');
  process.env['METRICS_PORT'] ??= String(await freePort(9464));

  step('migrating the database');
  // Imported only now: kit.config.ts reads the environment when it is loaded.
  const { startApi } = await import('./start-api.ts');
  const receiver = await startReceiver();
  return { api: await startApi(receiver, port), configuration, receiver };
}

function giveUp(error: unknown): never {
  step('');
  folder.release();
  const lines = explainFailure(error, dataFolder);
  if (lines === undefined) throw error;
  process.stderr.write(`${lines.join('\n')}\n`);
  process.exit(1);
}
