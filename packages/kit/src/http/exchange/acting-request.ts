import { AsyncLocalStorage } from 'node:async_hooks';
import type { Principal } from '../../auth/people/principal.ts';
import type { Exchange } from './exchange.ts';

/** The request whose handler is running. */
export interface ActingRequest {
  readonly principal: Principal | null;
  readonly requestId: string;
}

const acting = new AsyncLocalStorage<{ exchange: ActingRequest | undefined }>();

/** Runs a handler: until it has ended, {@link actingRequest} is its request. Work that outlives the handler acts for nobody. */
export function runActing<R>(exchange: Pick<Exchange, 'principal' | 'requestId'>, handler: () => R): R {
  const store: { exchange: ActingRequest | undefined } = { exchange };
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

/** Of the ids that are stored with what a request caused. */
export const REQUEST_ID_LENGTH_MAX = 200;

/** For the rows that a request causes; null outside the handler of a write. An id that no column takes must not refuse the row. */
export function actingRequestId(): string | null {
  const id = actingRequest()?.requestId;
  return id === undefined || id.length > REQUEST_ID_LENGTH_MAX || id.includes('\0') ? null : id;
}

/** Runs work that a request left behind, such as its job: what the work causes belongs to the request, and nobody acts. */
export function runOnBehalfOf<R>(requestId: string | null, work: () => R): R {
  return requestId === null ? work() : runActing({ principal: null, requestId }, work);
}
