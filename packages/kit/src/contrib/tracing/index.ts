export { tracing, type TracingOptions } from './module.ts';
