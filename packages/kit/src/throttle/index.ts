export { clientKey } from './client-key.ts';
export { enforceThrottles, throttledError, type ThrottleOutcome, type ThrottleResult } from './enforce.ts';
export { rateLimitHeaders } from './headers.ts';
export { initial as throttleMigration } from './migrations/0001_throttles.ts';
export { throttles as throttleModel } from './models.ts';
export { memoryStorage, type MemoryStorageOptions } from './memory-storage.ts';
export { formatRate, parseRate, rateFault, type Rate } from './rate.ts';
export { redisStorage, type RedisClient, type RedisStorageOptions } from './redis-storage.ts';
export { sqlStorage, type SqlStorageOptions } from './sql-storage.ts';
export type { StorageFailureOptions } from './storage-failure.ts';
export type { ThrottleDb, ThrottleDecision, ThrottleLog, ThrottleStorage, ThrottleStorageContext } from './storage.ts';
export { throttleFaults, type Throttle, type ThrottleContext, type ThrottleRates } from './throttle.ts';
export {
  anonymousThrottle,
  clientThrottle,
  scopedThrottle,
  tenantThrottle,
  userThrottle,
  type TenantThrottleOptions,
  type ThrottleOptions,
} from './throttles.ts';
