import { activeTracing } from '../../../observe/tracing.ts';
import type { NewEvent } from './publish-store.ts';

/** As the messages of other systems are called in traces. */
export const MESSAGING_SYSTEM = 'kit_webhooks';

/**
 * Runs `write` in a span of the running trace, with events that remember it: their deliveries belong to that trace, hours later and in another
 * process. Outside a trace, and without tracing(), the events are written as they are.
 */
export function writeTraced<R>(events: readonly NewEvent[], write: (events: readonly NewEvent[]) => R): R {
  const tracing = activeTracing();
  const [first] = events;
  if (tracing === undefined || first === undefined) return write(events);
  const one = { 'messaging.destination.name': first.type, 'messaging.message.id': first.id };
  const attributes = {
    'messaging.system': MESSAGING_SYSTEM,
    'messaging.operation.type': 'send',
    'messaging.operation.name': 'publish',
    ...(events.length === 1 ? one : { 'messaging.batch.message_count': events.length }),
  };
  return tracing.span(events.length === 1 ? `publish ${first.type}` : 'publish', { kind: 'producer', attributes }, (span) => {
    const traceparent = span?.traceparent ?? tracing.traceparent();
    return write(traceparent === undefined ? events : events.map((event) => ({ ...event, traceparent })));
  });
}
