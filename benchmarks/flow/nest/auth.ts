import { apiKey } from '@better-auth/api-key';
import { betterAuth } from 'better-auth';
import { prismaAdapter } from 'better-auth/adapters/prisma';
import type { PrismaClient } from './generated/client.js';

/** Its default of 10 requests a day per key would end the benchmark at once. */
export const authOf = (prisma: PrismaClient) =>
  betterAuth({
    secret: process.env['AUTH_SECRET'],
    baseURL: 'http://127.0.0.1',
    database: prismaAdapter(prisma, { provider: 'postgresql' }),
    plugins: [apiKey({ rateLimit: { enabled: false } })],
    telemetry: { enabled: false },
  });
