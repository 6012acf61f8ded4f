import { context, trace } from '@opentelemetry/api';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { job, type JobContext } from '../../src/contrib/jobs/declare/job.ts';
import { startJob, startJobs } from '../../src/contrib/jobs/start/start-job.ts';
import { OtelTracing } from '../../src/contrib/tracing/otel-tracing.ts';
import { inSpan, installTracing } from '../../src/observe/tracing.ts';
import { describeJobs } from '../jobs/describe-jobs.ts';
import { recordSpans } from './spans.ts';

const input = z.object({ n: z.int() });
let handle: (run: JobContext<{ n: number }>) => unknown = () => undefined;
const counted = job('counted', {
  input,
  queue: 'counting',
  retry: { attempts: 2, firstDelaySeconds: 1 },
  run: async (run) => void (await handle(run)),
});
const followUp = job('follow-up', { input, run: () => undefined });

const inRequest = <R>(work: () => Promise<R>): Promise<R> => inSpan('request', { parent: null }, work);

describeJobs('jobs in a trace', { jobs: [counted, followUp] }, (bench) => {
  let recorded = recordSpans();
  let remove: (() => void) | undefined;
  const withTracing = (on: boolean): void => {
    remove?.();
    remove = on ? installTracing(new OtelTracing(trace.getTracer('test'))) : undefined;
  };
  beforeEach(() => {
    recorded = recordSpans();
    withTracing(true);
    handle = () => undefined;
  });
  afterAll(() => {
    withTracing(false);
    trace.disable();
    context.disable();
  });
  const storedTrace = async (id: string): Promise<string | null | undefined> =>
    (await bench.db.query<{ traceparent: string | null }>('select traceparent from jobs where id = $1', [id]))[0]?.traceparent;
  const named = (name: string) => recorded.spans().filter((span) => span.name === name);

  test('every job remembers the trace it was started in; outside one it remembers none', async () => {
    const { id } = await inRequest(() => bench.start(counted, { n: 1 }));
    const many = await inRequest(() => bench.db.transaction((tx) => startJobs(tx, counted, [{ n: 2 }, { n: 3 }])));
    const [one, batch] = named('start counted').map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`);
    expect(await Promise.all([id, ...many.ids].map(storedTrace))).toEqual([one, batch, batch]);
    expect(await storedTrace((await bench.start(counted, { n: 4 })).id)).toBeNull();
    withTracing(false);
    expect(await storedTrace((await bench.start(counted, { n: 5 })).id)).toBeNull();
  });

  test('a run hours later belongs to the trace of its request, and so do the jobs that it starts', async () => {
    await inRequest(() => bench.start(counted, { n: 1 }, { delaySeconds: 3 * 3600 }));
    const [start] = named('start counted');
    handle = ({ db }) => db.transaction((tx) => startJob(tx, followUp, { n: 2 }));
    bench.clock.advance(5 * 3_600_000);
    await bench.run();
    const [run] = named('run counted');
    expect(run).toMatchObject({ traceId: start?.traceId, parentId: start?.spanId, links: [] });
    expect(run?.attributes).toMatchObject({ 'messaging.destination.name': 'counting', 'kit.jobs.attempt': 1 });
    expect(named('start follow-up')[0]).toMatchObject({ traceId: start?.traceId, parentId: run?.spanId });
    expect(named('run follow-up')[0]).toMatchObject({ traceId: start?.traceId });
  });

  test('a retry is linked to the start it repeats, and a failure is named without its message', async () => {
    await inRequest(() => bench.start(counted, { n: 1 }));
    const [start] = named('start counted');
    handle = () => Promise.reject(new Error('private'));
    await bench.run();
    bench.clock.advance(3_600_000);
    await bench.run();
    const runs = named('run counted');
    expect(runs.map(({ traceId, links }) => [traceId, links])).toEqual([
      [start?.traceId, []],
      [start?.traceId, [start?.spanId]],
    ]);
    expect(runs.map(({ attributes }) => attributes['error.type'])).toEqual(['job_failed', 'job_failed']);
    expect(JSON.stringify(recorded.spans())).not.toContain('private');
  });
});
