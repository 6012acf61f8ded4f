// Tables, users with a key, and their endpoints.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { authOf } from './auth.js';
import { PrismaService } from './prisma.service.js';

const client = new pg.Client({ connectionString: process.env['DATABASE_URL'] });
await client.connect();
await client.query(readFileSync(new URL('./tables.sql', import.meta.url), 'utf8'));
await client.end();

const prisma = new PrismaService();
const redis = new Redis(process.env['REDIS_URL'] ?? '');
const auth = authOf(prisma, redis);
const accounts = [];
for (const { name, hooks } of JSON.parse(process.env['ACCOUNTS'] ?? '[]') as { name: string; hooks: string[] }[]) {
  const now = new Date();
  const user = await prisma.user.create({ data: { id: name, name, email: `${name}@example.com`, updatedAt: now } });
  const { key } = await auth.api.createApiKey({ body: { name: 'shop', userId: user.id } });
  const endpoints = [];
  for (const url of hooks) {
    const secret = `whsec_${randomBytes(32).toString('base64')}`;
    await prisma.endpoint.create({ data: { id: uuidv7(), ownerId: user.id, url, secret } });
    endpoints.push({ url, secret });
  }
  accounts.push({ key, endpoints });
}
console.log(JSON.stringify(accounts));
await prisma.$disconnect();
redis.disconnect();
