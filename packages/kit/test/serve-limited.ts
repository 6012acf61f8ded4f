// A process of its own for throttle.slow.test.ts: the app of key-app.ts on a database others share, with budgets in that database or in
// Redis. Prints its address; ends when its standard input does.
import { Redis } from 'ioredis';
import { openDatabase } from '../src/db/index.ts';
import { redisStorage, sqlStorage } from '../src/throttle/index.ts';
import { startKeyApp } from './key-app.ts';

const [databaseUrl = '', redisUrl = '', now = ''] = process.argv.slice(2);
const strict = { onFailure: 'refuse', timeoutMs: 60_000 } as const;
const redis = redisUrl === '' ? null : new Redis(redisUrl);
const db = await openDatabase(databaseUrl);
const clock = { now: () => new Date(now), set: () => undefined, advance: () => undefined };
const throttleStorage = redis === null ? sqlStorage({ db, ...strict }) : redisStorage(redis, strict);
const { app } = await startKeyApp(db, { clock, app: { throttleStorage } });
process.stdout.write(`${await app.listen({ port: 0 })}\n`);
process.stdin.resume().on('end', () => {
  void app
    .close()
    .then(() => db.close())
    .then(() => redis?.quit())
    .then(() => process.exit(0));
});
