import { activeTracing } from '../../../observe/tracing.ts';
import type { JobDefinition } from '../declare/job.ts';

/** The name of this system in traces, as OpenTelemetry names message queues. */
export const MESSAGING_SYSTEM = 'kit_jobs';

/**
 * Runs `write` in a span of the running trace, with the `traceparent` that the jobs store: their runs belong to that trace, hours later and in
 * another process. Null outside a trace and without tracing().
 */
export function startTraced<R>(definition: JobDefinition, ids: readonly string[], write: (traceparent: string | null) => R): R {
  const tracing = activeTracing();
  if (tracing === undefined) return write(null);
  const attributes = {
    'messaging.system': MESSAGING_SYSTEM,
    'messaging.operation.type': 'send',
    'messaging.operation.name': 'start',
    'messaging.destination.name': definition.queue,
    'kit.jobs.name': definition.name,
    ...(ids.length === 1 ? { 'messaging.message.id': ids[0] } : { 'messaging.batch.message_count': ids.length }),
  };
  return tracing.span(`start ${definition.name}`, { kind: 'producer', attributes }, (span) =>
    write(span?.traceparent ?? tracing.traceparent() ?? null),
  );
}
