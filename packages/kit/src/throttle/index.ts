export { memoryStorage } from './memory-storage.ts';
export { parseRate, type Rate } from './rate.ts';
export type { RedisClient } from './redis-client.ts';
export { redisStorage } from './redis-storage.ts';
export { sqlStorage } from './sql-storage.ts';
export type { ThrottleDecision, ThrottleStorage, ThrottleStorageContext } from './storage.ts';
export type { Throttle, ThrottleContext } from './throttle.ts';
export { anonymousThrottle, clientThrottle, scopedThrottle, tenantThrottle, userThrottle } from './throttles.ts';
