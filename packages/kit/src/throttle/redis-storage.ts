import { describe, gcra } from './gcra.ts';
import type { Rate } from './rate.ts';
import { isRedisClient, REDIS_CLIENT, redisScript, type RedisClient } from './redis-client.ts';
import { storageFailureRules, survivingFailure, type StorageFailureOptions } from './storage-failure.ts';
import type { ThrottleDecision, ThrottleStorage } from './storage.ts';
import { readOptions } from '../options/read-options.ts';
import { text } from '../options/value-rule.ts';

export interface RedisStorageOptions extends StorageFailureOptions {
  /** Written before every key (default `kit:throttle:`), so that several apps can share one server. */
  readonly prefix?: string;
}

// Redis runs a script alone, so reading and writing the TAT is one step. Numbers cross as text: Lua's own conversion
// of a 16-digit number rounds it ("%.14g"). The key lives until its budget is whole again (ARGV[3] is at most that).
const TAKE = `
local now, inc, window, horizon = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local tat = tonumber(redis.call('GET', KEYS[1]) or '0')
local base = now
if tat > now and tat <= horizon then base = tat end
local next = base + inc
if next - now > window then return { '0', string.format('%.0f', base) } end
redis.call('SET', KEYS[1], string.format('%.0f', next), 'PX', string.format('%.0f', math.ceil((next - now) / 1000)))
return { '1', string.format('%.0f', next) }
`;

const GIVE_BACK = `
local tat = redis.call('GET', KEYS[1])
if tat then redis.call('SET', KEYS[1], string.format('%.0f', tonumber(tat) - tonumber(ARGV[1])), 'KEEPTTL') end
return tat
`;

/** Budgets shared by every process that talks to one Redis server (6.0 or later). */
export function redisStorage(client: RedisClient, options: RedisStorageOptions = {}): ThrottleStorage {
  const { prefix = 'kit:throttle:', ...failure } = readOptions('redisStorage()', options, { ...storageFailureRules, prefix: text });
  if (!isRedisClient(client)) throw new TypeError(`redisStorage(): the first argument is ${REDIS_CLIENT}.`);
  const take = redisScript(client, TAKE);
  const giveBack = redisScript(client, GIVE_BACK);
  const storage: ThrottleStorage = {
    async take(key: string, rate: Rate, now: Date, cost?: number): Promise<ThrottleDecision> {
      const cell = gcra(rate, now, cost);
      const reply = await take([prefix + key], [cell.nowUs, cell.incrementUs, cell.windowUs, cell.horizonUs]);
      if (!Array.isArray(reply)) throw new TypeError('Redis answered the throttle script with something other than a list.');
      return describe(String(reply[0]) === '1', Number(reply[1]), rate, cell);
    },
    async giveBack(key, rate, now, cost) {
      await giveBack([prefix + key], [gcra(rate, now, cost).incrementUs]);
    },
  };
  return survivingFailure(storage, 'redis', failure);
}
