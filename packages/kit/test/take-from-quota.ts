// A process of its own for redis-counter.db.test.ts: counts `takes` requests in parallel against one quota and prints how many were admitted. It waits for a
// line on standard input, so that several processes start together, and for a second one before it ends in order.
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { quotaCount } from '../src/contrib/requests/quotas/quota-store.ts';
import { RedisCounter } from '../src/contrib/requests/quotas/redis-counter.ts';
import { openDatabase } from '../src/db/index.ts';
import { calendarPeriod, parseQuota } from '../src/throttle/quota.ts';

const [database = '', redis = '', prefix = '', keyId = '', text = '', takes = '0', nowMs = '0'] = process.argv.slice(2);
const now = new Date(Number(nowMs));
const db = await openDatabase(database);
const client = new Redis(redis);
await client.ping();
const counter = new RedisCounter(db, { client, prefix, timeoutMs: 60_000 }, { clock: { now: () => now }, log: pino({ level: 'silent' }) });
const quota = parseQuota(text);
const count = quotaCount({ kind: 'key', owner: 'ada', tenant: '', keyId }, { ...calendarPeriod(quota.period, now), quota });

process.stdout.write('ready\n');
await once(process.stdin, 'data');
const taken = await Promise.all(Array.from({ length: Number(takes) }, () => counter.take([count])));
process.stdout.write(`${taken.filter((each) => 'used' in each).length}\n`);
await once(process.stdin, 'data');
await counter.stop();
await client.quit();
await db.close();
process.exit(0);
