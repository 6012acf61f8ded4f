export { memoryStorage, type MemoryStorageOptions } from './memory-storage.ts';
export { parseRate, type Rate } from './rate.ts';
export { redisStorage, type RedisClient, type RedisStorageOptions } from './redis-storage.ts';
export { sqlStorage, type SqlStorageOptions } from './sql-storage.ts';
export type { ThrottleDecision, ThrottleStorage, ThrottleStorageContext } from './storage.ts';
export { type Throttle, type ThrottleContext, type ThrottleRates } from './throttle.ts';
export {
  anonymousThrottle,
  clientThrottle,
  scopedThrottle,
  tenantThrottle,
  userThrottle,
  type TenantThrottleOptions,
  type ThrottleOptions,
} from './throttles.ts';
