// A delivery worker in a process of its own, to be killed: node worker-process.ts <database url> <timeout in ms>
import { startWorker } from '../../src/contrib/webhooks/delivery/deliver.ts';
import { httpTransport } from '../../src/contrib/webhooks/network/transport.ts';
import { useWebhooks } from '../../src/contrib/webhooks/webhooks.ts';
import { URLPolicy } from '../../src/contrib/webhooks/network/url-policy.ts';
import { openDatabase } from '../../src/db/open/open-database.ts';

const [url = '', timeout = ''] = process.argv.slice(2);
const name = String(process.pid);
const urlPolicy = URLPolicy({ allowHttp: true, allowPrivateNetworks: true });
const timeoutMs = Number(timeout);
const http = httpTransport({ policy: urlPolicy, timeoutMs });
const database = await openDatabase(url);
useWebhooks(database, {
  urlPolicy,
  timeoutMs,
  concurrency: 20,
  pollIntervalMs: 50,
  schedule: Array.from({ length: 40 }, () => 0.05),
  // The receiver is told who sends, so that every duplicate can be traced to its worker.
  transport: { send: (request) => http.send({ ...request, headers: { ...request.headers, 'x-worker': name } }), close: () => http.close() },
});
const worker = await startWorker(database, { name });
process.on('SIGTERM', () => {
  void worker
    .stop()
    .then(() => Promise.all([http.close(), database.close()]))
    .then(() => process.send?.({ summary: worker.summary }, () => process.exit(0)));
});
process.on('disconnect', () => process.exit(1)); // its parent process is gone
process.send?.({ ready: true });
