export interface ReconnectState {
  /** Attempts in a row that brought no event. */
  readonly failures: number;
  /** The server's `retry:` advice. */
  readonly retryMs: number | undefined;
  /** The server's `Retry-After` on a refusal: a floor, not a suggestion. */
  readonly retryAfterMs: number | undefined;
  readonly retryMaxMs: number;
}

const RETRY_MS = 1_000;

/** The shortest accepted advice: with `retry: 0` a server that ends every stream would get requests as fast as the network allows. */
const RETRY_MS_MIN = 500;

/**
 * Milliseconds to wait before the next attempt; `random` is in [0, 1).
 * Spread over the whole interval: thousands of clients lose the same server in the same instant and must not return in one.
 */
export function reconnectDelay({ failures, retryMs = RETRY_MS, retryAfterMs = 0, retryMaxMs }: ReconnectState, random: number): number {
  const ceiling = Math.min(retryMaxMs, Math.max(retryMs, RETRY_MS_MIN) * 2 ** Math.min(failures, 16));
  // Never zero: a server that accepts and closes at once must not be overloaded.
  const spread = ceiling * (0.1 + 0.9 * random);
  return Math.round(retryAfterMs > 0 ? retryAfterMs + spread : spread);
}
