import { type OptionRules, readOptions } from '../../../options/read-options.ts';
import { filledText, flag, required, rule } from '../../../options/value-rule.ts';
import { isRedisClient, REDIS_CLIENT, sendToRedis, type RedisClient } from '../../../throttle/redis-client.ts';
import { destination, type Destination, type SharedOptions, sharedRules } from './destination.ts';

export interface RedisStreamDestinationOptions extends SharedOptions {
  /** A client of ioredis or of the `redis` package. The application owns the connection. */
  readonly client: RedisClient;
  /** The key of the stream. Default: `events`. */
  readonly stream?: string;
  /** The server cannot be asked (`CONFIG` is not allowed), and its operator guarantees append-only persistence without eviction. Default: false. */
  readonly assumePersistence?: boolean;
}

const rules: OptionRules<RedisStreamDestinationOptions> = {
  ...sharedRules,
  client: required(rule(REDIS_CLIENT, isRedisClient)),
  stream: filledText,
  assumePersistence: flag,
};

/**
 * Adds events to a stream of Redis, with the fields `id`, `type`, `key`, the headers and `body`. A server that does not write to an append-only file, or that evicts
 * streams when its memory is full, loses them: nothing is sent to it.
 */
export function redisStreamDestination(options: RedisStreamDestinationOptions): Destination {
  const { client, stream = 'events', assumePersistence = false, ...shared } = readOptions('redisStreamDestination()', options, rules);
  const command = (...args: string[]): Promise<unknown> => sendToRedis(client, args);
  const setting = async (name: string): Promise<string> => settingIn(await command('CONFIG', 'GET', name), name);
  let isKept = assumePersistence;
  const check = async (): Promise<string | null> => {
    if (isKept) return null;
    if ((await setting('appendonly')) !== 'yes') return 'Redis does not write to an append-only file. Set `appendonly yes`.';
    const policy = await setting('maxmemory-policy');
    if (policy.startsWith('allkeys-'))
      return `Redis evicts streams when its memory is full (${policy}). Set \`maxmemory-policy noeviction\`.`;
    isKept = true;
    return null;
  };
  return destination({
    ...shared,
    check,
    async send({ id, type, orderingKey, headers, body }) {
      const fault = await check();
      if (fault !== null) throw new Error(fault);
      const key = orderingKey === null ? [] : ['key', orderingKey];
      await command('XADD', stream, '*', 'id', id, 'type', type, ...key, ...Object.entries(headers).flat(), 'body', body.toString());
    },
  });
}

/** A list of name and value, or a map where the client speaks RESP 3. */
function settingIn(reply: unknown, name: string): string {
  const entries = Array.isArray(reply) ? [reply] : reply instanceof Map ? [...reply] : Object.entries(reply ?? {});
  const value: unknown = entries.find(([each]) => each === name)?.[1];
  return typeof value === 'string' ? value : '';
}
