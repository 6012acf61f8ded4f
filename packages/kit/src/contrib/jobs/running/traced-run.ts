import { activeTracing, inSpan } from '../../../observe/tracing.ts';
import { MESSAGING_SYSTEM } from '../start/traced-start.ts';
import type { Claim } from './claim-store.ts';
import type { RunReport } from './job-run.ts';

/** One attempt, in the trace of the request that started the job. A retry is linked to the start it repeats. */
export function runTraced(claim: Claim, run: () => Promise<RunReport>): Promise<RunReport> {
  if (activeTracing() === undefined) return run();
  const { id, name, queue, attempts, traceparent } = claim;
  const attributes = {
    'messaging.system': MESSAGING_SYSTEM,
    'messaging.operation.type': 'process',
    'messaging.operation.name': 'run',
    'messaging.destination.name': queue,
    'messaging.message.id': id,
    'kit.jobs.name': name,
    'kit.jobs.attempt': attempts,
  };
  const links = attempts > 1 && traceparent !== null ? [traceparent] : [];
  return inSpan(`run ${name}`, { kind: 'consumer', parent: traceparent, links, attributes }, async (span) => {
    const report = await run();
    if (report.end.kind === 'failed') span?.fail(report.end.failure.code);
    else if (report.end.kind !== 'succeeded' && report.end.kind !== 'committed') span?.set({ 'error.type': report.end.kind });
    return report;
  });
}
