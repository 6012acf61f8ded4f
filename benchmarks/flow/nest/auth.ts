import { apiKey } from '@better-auth/api-key';
import { betterAuth } from 'better-auth';
import { prismaAdapter } from 'better-auth/adapters/prisma';
import { Redis } from 'ioredis';
import type { PrismaClient } from './generated/client.js';

/** Keys are in Redis, and what their use changes is written after the answer. The default of 10 requests a day per key would end the benchmark at once. */
export function authOf(prisma: PrismaClient, redis: Redis) {
  return betterAuth({
    secret: process.env['AUTH_SECRET'],
    baseURL: 'http://127.0.0.1',
    database: prismaAdapter(prisma, { provider: 'postgresql' }),
    secondaryStorage: {
      get: (key) => redis.get(key),
      set: async (key, value, ttl) => void (await (ttl === undefined ? redis.set(key, value) : redis.set(key, value, 'EX', ttl))),
      delete: async (key) => void (await redis.del(key)),
    },
    plugins: [apiKey({ rateLimit: { enabled: false }, storage: 'secondary-storage', deferUpdates: true })],
    telemetry: { enabled: false },
  });
}
