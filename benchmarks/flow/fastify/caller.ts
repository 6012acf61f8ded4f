import { createHash } from 'node:crypto';
import { and, eq, isNull, sql } from 'drizzle-orm';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { db } from './database.ts';
import { apiKeys } from './schema.ts';

export interface Caller {
  readonly id: string;
  readonly keyId: string;
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller;
  }
}

export const digestOf = (key: string): string => createHash('sha256').update(key).digest('hex');

const keyOf = db
  .select({ id: apiKeys.userId, keyId: apiKeys.id })
  .from(apiKeys)
  .where(and(eq(apiKeys.digest, sql.placeholder('digest')), isNull(apiKeys.revokedAt)))
  .prepare('key_of');

export async function authenticate(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
  const [scheme, given] = request.headers.authorization?.split(' ') ?? [];
  if (scheme !== 'Bearer' || given === undefined) return reply.code(401).send({ error: 'unauthorized' });
  const [found] = await keyOf.execute({ digest: digestOf(given) });
  if (found === undefined) return reply.code(401).send({ error: 'unauthorized' });
  request.caller = found;
  return undefined;
}
