export { mcp } from './module.ts';
export type { McpOptions } from './options.ts';
export type { McpPrompt } from './serve/prompts.ts';
