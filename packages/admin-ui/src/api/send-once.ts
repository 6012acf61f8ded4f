import { markOverdue } from './connection.ts';
import { ApiFault, isUnsettled } from './fault.ts';

/** A change that waits longer says that it may have been saved. */
const SLOW_MS = 5_000;
/** Between two attempts; the server may ask for longer. */
const PAUSE_MS = 2_000;
/** Then the person decides. */
const GIVE_UP_MS = 120_000;

/** Keys of changes whose outcome is not known, by what was sent: sent again by hand, such a change is still done once. */
const unsettled = new Map<string, string>();

/**
 * Sends a change until the server has answered, each time with the same idempotency key. Faults that do not say whether the change was made
 * keep the key. `send` gets the key. Null: it was done before, and its response got lost.
 */
export async function sendOnce<T>(identity: string, send: (key: string) => Promise<T>, signal?: AbortSignal): Promise<T | null> {
  const key = unsettled.get(identity) ?? newKey();
  unsettled.set(identity, key);
  const end = performance.now() + GIVE_UP_MS;
  let settle: (() => void) | null = null;
  const slow = window.setTimeout(() => (settle = markOverdue()), SLOW_MS);
  try {
    for (;;) {
      try {
        const result = await send(key);
        unsettled.delete(identity);
        return result;
      } catch (error) {
        if (!(error instanceof ApiFault)) throw error;
        if (error.code === 'response_not_kept') {
          unsettled.delete(identity);
          return null;
        }
        if (!isUnsettled(error)) unsettled.delete(identity);
        if (!isWaiting(error) || performance.now() > end) throw error;
        await pause((error.retryAfterSeconds ?? 0) * 1000 || PAUSE_MS, signal);
      }
    }
  } finally {
    window.clearTimeout(slow);
    (settle as (() => void) | null)?.();
  }
}

/** The server is there and has not answered yet. One that cannot be reached is for the person to judge. */
function isWaiting({ code }: ApiFault): boolean {
  return code === 'no_answer' || code === 'request_in_progress';
}

/** Not `randomUUID`: that is missing on plain HTTP. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((done, stop) => {
    const timer = window.setTimeout(done, ms);
    signal?.addEventListener('abort', () => {
      window.clearTimeout(timer);
      stop(signal.reason as Error);
    });
  });
}
