import { createHash } from 'node:crypto';

/** The one method that is needed: `call` of ioredis, or `sendCommand` of the `redis` package. The app owns the connection. */
export type RedisClient =
  | {
      /** Of ioredis. */
      call(command: string, ...args: string[]): Promise<unknown>;
    }
  | {
      /** Of the `redis` package. */
      sendCommand(args: string[]): Promise<unknown>;
    };

export const REDIS_CLIENT = 'a client of ioredis (`call`) or of the redis package (`sendCommand`)';

export function isRedisClient(value: unknown): value is RedisClient {
  const { call, sendCommand } = (value ?? {}) as { readonly call?: unknown; readonly sendCommand?: unknown };
  return typeof call === 'function' || typeof sendCommand === 'function';
}

export function sendToRedis(client: RedisClient, args: readonly string[]): Promise<unknown> {
  return 'call' in client ? client.call(args[0] ?? '', ...args.slice(1)) : client.sendCommand([...args]);
}

/** Calls a script by its digest and sends its text only to a server that does not know it (any more). */
export function redisScript(
  client: RedisClient,
  text: string,
): (keys: readonly string[], values: readonly (string | number)[]) => Promise<unknown> {
  const digest = createHash('sha1').update(text).digest('hex');
  return async (keys, values) => {
    const rest = [String(keys.length), ...keys, ...values.map(String)];
    try {
      return await sendToRedis(client, ['EVALSHA', digest, ...rest]);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return await sendToRedis(client, ['EVAL', text, ...rest]);
    }
  };
}
