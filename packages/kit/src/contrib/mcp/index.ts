export { mcp } from './module.ts';
export type { McpOptions } from './options.ts';
