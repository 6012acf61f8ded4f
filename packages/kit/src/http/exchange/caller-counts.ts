import { clientKey } from '../../throttle/client-key.ts';
import type { Exchange } from './exchange.ts';

/** How much each caller has open of one kind. */
export class CallerCounts {
  readonly #counts = new Map<string, number>();

  /** Counts one more of this caller until the returned function is called. Undefined: the caller has `max` already. */
  add(exchange: Exchange, max: number): (() => void) | undefined {
    const key = callerKey(exchange);
    const count = this.#counts.get(key) ?? 0;
    if (count >= max) return undefined;
    this.#counts.set(key, count + 1);
    let isCounted = true;
    return () => {
      if (isCounted) this.#subtract(key);
      isCounted = false;
    };
  }

  #subtract(key: string): void {
    const left = (this.#counts.get(key) ?? 1) - 1;
    if (left === 0) this.#counts.delete(key);
    else this.#counts.set(key, left);
  }
}

/** An anonymous caller is known by its address, of IPv6 by its network. */
function callerKey({ principal, clientAddress }: Exchange): string {
  return principal === null ? `address ${clientKey(clientAddress)}` : `user ${principal.user.id}`;
}
