import { workerName } from '../../../work/worker-name.ts';
import type { Jobs } from '../rows/jobs.ts';
import { WORKER_NAME_LENGTH_MAX } from '../models.ts';
import { jobIdOf } from '../rows/store.ts';
import { claimOne, type Claim } from './claim-store.ts';
import { handOver } from './hand-over.ts';
import { ResultWriter } from './result-writer.ts';
import { Runs } from './runs.ts';

const name = workerName().slice(0, WORKER_NAME_LENGTH_MAX);

/**
 * Runs one job by its id, as the worker of another engine does it: claimed with token and lease, its result and retries in our row. False:
 * another worker has it, it is not ready, or it has ended; an engine may deliver an id as often as it likes.
 */
export async function runById(jobs: Jobs, given: string): Promise<boolean> {
  const { database, clock, settings } = jobs;
  const id = jobIdOf(given);
  if (id === null) return false;
  const claim = await claimOne(database, id, { now: clock.now(), leaseMs: settings.leaseMs, worker: name });
  if (claim === undefined) return false;
  const held: Claim[] = [claim];
  const runs = new Runs(
    jobs,
    () => held,
    () => undefined,
  );
  const results = new ResultWriter(jobs, name, {
    stored: () => void held.splice(0),
    ready: (ready) => (settings.taskQueue === null ? undefined : handOver(jobs, settings.taskQueue, ready)),
    waiting: () => undefined,
  });
  runs.start();
  try {
    results.add(await runs.run(claim));
    await results.flush();
  } finally {
    await runs.stop();
  }
  return true;
}
