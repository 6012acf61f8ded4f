import type { Destination } from './destination.ts';
import type { PackedEvent } from './envelope.ts';

export type DestinationResult =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'failure'; readonly reason: 'timeout' | 'connection' | 'payload'; readonly error: string; readonly status: null };

/** One attempt. Never rejects: whatever goes wrong is the result. */
export async function sendToDestination(
  { envelope, send }: Destination,
  event: PackedEvent & { readonly traceparent: string | null },
  timeoutMs: number,
): Promise<DestinationResult> {
  const over = new AbortController();
  const expired = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    over.abort();
    expired.reject(new Error('The destination did not confirm the message in time.'));
  }, timeoutMs);
  try {
    const { id, type, orderingKey, traceparent } = event;
    const { headers, body } = envelope.pack(event);
    const own = { 'webhook-id': `msg_${id}`, ...(traceparent === null ? {} : { traceparent }) };
    await Promise.race([send({ id, type, orderingKey, headers: { ...headers, ...own }, body }, over.signal), expired.promise]);
    return { kind: 'accepted' };
  } catch (error) {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    if (over.signal.aborted) return failure('timeout', 'The destination did not confirm the message in time.');
    // By name: the error may come from another copy of this package.
    if (name === 'UndeliverableMessage') return failure('payload', message);
    return failure('connection', `The destination did not take the message: ${message}`);
  } finally {
    clearTimeout(timer);
  }
}

function failure(reason: 'timeout' | 'connection' | 'payload', error: string): DestinationResult {
  return { kind: 'failure', reason, error, status: null };
}
