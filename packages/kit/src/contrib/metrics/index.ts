export { metrics } from './module.ts';
export type { MetricsOptions } from './options.ts';
