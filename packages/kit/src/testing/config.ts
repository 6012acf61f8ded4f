import { isMainThread } from 'node:worker_threads';

/** Where a project's own tests find a PostgreSQL server; without it they run on SQLite alone. */
export function testPostgresUrl(): string | undefined {
  const url = process.env['KIT_TEST_POSTGRES_URL'];
  return url === '' ? undefined : url;
}

/** Vitest sets it in the processes of its tests. */
export function runsInVitest(): boolean {
  return process.env['VITEST'] !== undefined;
}

/** The same in all processes of one test run: runners start a process, or a thread, for a file. A process that nothing runs is a run of its own. */
export function testRun(): string {
  const isStartedByRunner = runsInVitest() || process.env['NODE_TEST_CONTEXT'] !== undefined;
  return String(isStartedByRunner && isMainThread ? process.ppid : process.pid);
}
