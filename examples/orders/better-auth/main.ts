// `npm start -- --better-auth`: the orders API with better-auth as its login, two organizations and an invitation, on loopback.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { appDatabase, migrateApp } from 'kit';
import { dataFolder } from '../config.ts';
import { explainFailure } from '../demo/explain-failure.ts';
import { apiPort } from '../demo/free-port.ts';
import { takeFolder } from '../demo/only-one.ts';
import { createOrdersApp } from './app.ts';
import { createAuth, type Mail } from './auth.ts';
import { panel } from './panel.ts';
import { seed } from './seed.ts';

const began = performance.now();
const place = join(dataFolder, 'better-auth');
mkdirSync(place, { recursive: true });
const folder = takeFolder(place);
if (folder.takenBy !== undefined) {
  process.stderr.write(`The example is running already, as process ${folder.takenBy}; Ctrl-C in its terminal stops it.\n`);
  process.exit(1);
}

const app = await start().catch((error: unknown): never => {
  folder.release();
  const lines = explainFailure(error, place);
  if (lines === undefined) throw error;
  process.stderr.write(`${lines.join('\n')}\n`);
  process.exit(1);
});
let stopping = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (stopping) process.exit(1);
    stopping = true;
    void app.close().then(() => {
      folder.release();
      process.exit(0);
    });
  });
}

async function start() {
  const { port } = await apiPort(3000, process.env['PORT']);
  const baseURL = `http://127.0.0.1:${port}`;
  process.env['LOG_FILE'] ??= join(place, 'api.log');
  const database = appDatabase({ defaultUrl: `sqlite:${join(place, 'orders.db')}` });
  const mails: Mail[] = [];
  let isSeeded = false;
  const auth = createAuth(database, {
    baseURL,
    send(mail) {
      mails.push(mail);
      if (isSeeded) process.stdout.write(`  mail to ${mail.to}: ${mail.subject}: ${mail.link}\n`);
    },
  });
  const made = createOrdersApp(database, auth);
  await migrateApp(made);
  await made.ready();
  const seeded = await seed(made, auth, baseURL, mails);
  isSeeded = true;
  const url = await made.listen({ host: '127.0.0.1', port });
  process.stdout.write(panel({ ...seeded, url, folder: place, seconds: (performance.now() - began) / 1000 }));
  return made;
}
