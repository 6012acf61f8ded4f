import { Exchange } from '../../http/exchange/exchange.ts';
import type { CrudRequest } from './crud-request.ts';

/** Tells the request that this many rows are written one by one, because the caller sent them. */
export function noteItems({ context }: CrudRequest, count: number): void {
  if (context instanceof Exchange) context.itemCount += count;
}
