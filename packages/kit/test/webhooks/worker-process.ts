// A delivery worker in a process of its own, to be killed: node worker-process.ts <database url> <clock offset in ms>
import { startWorker } from '../../src/contrib/webhooks/deliver.ts';
import { useWebhooks } from '../../src/contrib/webhooks/webhooks.ts';
import { URLPolicy } from '../../src/contrib/webhooks/url-policy.ts';
import { openDatabase } from '../../src/db/open-database.ts';

const [url = '', offsetMs = '0'] = process.argv.slice(2);
const clock = { now: () => new Date(Date.now() + Number(offsetMs)) };
const database = await openDatabase(url, { clock });
useWebhooks(database, {
  urlPolicy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }),
  timeoutMs: 5000,
  concurrency: 20,
  pollIntervalMs: 50,
  schedule: Array.from({ length: 40 }, () => 0.05),
});
const worker = await startWorker(database);
process.on('SIGTERM', () => {
  void worker
    .stop()
    .then(() => database.close())
    .then(() => process.send?.({ summary: worker.summary }, () => process.exit(0)));
});
process.send?.({ ready: true });
