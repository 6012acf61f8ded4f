import { AsyncLocalStorage } from 'node:async_hooks';

/** How a request came in, where not as plain HTTP: kept with its audit entries. */
export interface RequestChannel {
  /** `mcp`: a tool call of an AI agent. */
  readonly via: string;
  /** What the client calls itself; null where it does not say. Not verified. */
  readonly client: string | null;
}

/** In the async context, because entries are written by every module, and a module must not be able to forget it. */
export const requestChannel: AsyncLocalStorage<RequestChannel> = new AsyncLocalStorage();
