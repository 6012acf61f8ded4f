// A worker that is killed: node crash-worker-process.ts <database url>.
import { useJobs } from '../../src/contrib/jobs/rows/jobs.ts';
import { startJobWorker } from '../../src/contrib/jobs/manage/work-jobs.ts';
import { openDatabase } from '../../src/db/index.ts';
import { CRASH_LEASE_MS, crashJob } from './crash-job.ts';

const [url = ''] = process.argv.slice(2);
const db = await openDatabase(url);
useJobs(db, { jobs: [crashJob], leaseMs: CRASH_LEASE_MS, pollIntervalMs: 200 });
await startJobWorker(db);
process.on('disconnect', () => process.exit(1)); // its parent process is gone
process.send?.({ ready: true });
