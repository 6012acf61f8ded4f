// Tables, users with a key, and their endpoints.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { runMigrations } from 'graphile-worker';
import { v7 as uuidv7 } from 'uuid';
import { digestOf } from './caller.ts';
import { db, pool } from './database.ts';
import { apiKeys, endpoints, users } from './schema.ts';

await pool.query(readFileSync(new URL('./tables.sql', import.meta.url), 'utf8'));
await runMigrations({ pgPool: pool });

const accounts = [];
for (const { name, hooks } of JSON.parse(process.env['ACCOUNTS'] ?? '[]') as { name: string; hooks: string[] }[]) {
  const userId = uuidv7();
  await db.insert(users).values({ id: userId, name });
  const key = `flow_${randomBytes(24).toString('hex')}`;
  await db.insert(apiKeys).values({ id: uuidv7(), userId, digest: digestOf(key) });
  const made = hooks.map((url) => ({ url, secret: `whsec_${randomBytes(32).toString('base64')}` }));
  await db.insert(endpoints).values(made.map((endpoint) => ({ id: uuidv7(), ownerId: userId, ...endpoint })));
  accounts.push({ key, endpoints: made });
}
console.log(JSON.stringify(accounts));
await pool.end();
