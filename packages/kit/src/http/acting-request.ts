import { AsyncLocalStorage } from 'node:async_hooks';
import type { Principal } from '../auth/principal.ts';
import type { Exchange } from './exchange.ts';

/** The request whose handler is running. */
export interface ActingRequest {
  readonly principal: Principal | null;
  readonly requestId: string;
}

const acting = new AsyncLocalStorage<{ exchange: Exchange | undefined }>();

/** Runs a handler: until it has ended, {@link actingRequest} is its request. Work that outlives the handler acts for nobody. */
export function runActing<R>(exchange: Exchange, handler: () => R): R {
  const store: { exchange: Exchange | undefined } = { exchange };
  const end = () => void (store.exchange = undefined);
  let result: R;
  try {
    result = acting.run(store, handler);
  } catch (error) {
    end();
    throw error;
  }
  if (result instanceof Promise) result.then(end, end);
  else end();
  return result;
}

/** Undefined outside the handler of a write. */
export function actingRequest(): ActingRequest | undefined {
  return acting.getStore()?.exchange;
}
