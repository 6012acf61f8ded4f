export { contentType, type ContentTypeOptions } from './content-type.ts';
export { deprecation } from './deprecation.ts';
export { HealthController, type HealthCheck, type HealthOptions } from './health.ts';
export { nPlusOne, type NPlusOneOptions } from './n-plus-one.ts';
export { queryHeaders, type QueryHeadersOptions } from './query-headers.ts';
export { requestId, type RequestIdOptions } from './request-id.ts';
export { requestLog, type RequestLogOptions } from './request-log.ts';
export { securityHeaders, type SecurityHeadersOptions } from './security-headers.ts';
export { serverTiming } from './server-timing.ts';
