// A process of its own for storages.db.test.ts: takes `takes` requests in parallel from one budget and prints how many
// were admitted. It waits for a line on standard input, so that several processes start together.
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { openDatabase } from '../src/db/index.ts';
import { parseRate, redisStorage, sqlStorage, type ThrottleStorage } from '../src/throttle/index.ts';

const [url = '', key = '', rate = '', takes = '0', nowMs = '0'] = process.argv.slice(2);
const options = { onFailure: 'refuse', timeoutMs: 60_000 } as const;

let storage: ThrottleStorage;
let close: () => Promise<unknown>;
if (url.startsWith('redis:')) {
  const client = new Redis(url);
  await client.ping();
  storage = redisStorage(client, options);
  close = () => client.quit();
} else {
  const db = await openDatabase(url);
  storage = sqlStorage({ db, ...options });
  close = () => db.close();
}

process.stdout.write('ready\n');
await once(process.stdin, 'data');
const now = new Date(Number(nowMs));
const decisions = await Promise.all(Array.from({ length: Number(takes) }, () => storage.take(key, parseRate(rate), now)));
process.stdout.write(`${decisions.filter(({ allowed }) => allowed).length}\n`);
await close();
process.exit(0);
