// A process of its own for cache.slow.test.ts: verifies one key from its cache, over and over, and says when it was last let in.
import { useApiKeys, verifyApiKey } from '../src/contrib/apikeys/index.ts';
import { openDatabase } from '../src/db/index.ts';
import { people } from './people.ts';

const [url = '', raw = ''] = process.argv.slice(2);
const db = await openDatabase(url);
const keys = await useApiKeys(db, { users: people, cache: { maxAgeMs: 300_000 } });
await verifyApiKey(db, raw);
process.stdout.write('ready\n');
let lastMs = 0;
for (let startedMs = Date.now(); (await verifyApiKey(db, raw)) !== null; startedMs = Date.now()) {
  lastMs = startedMs;
  await new Promise((resolve) => setImmediate(resolve));
}
process.stdout.write(`${lastMs}\n`);
await keys.stop();
await db.close();
