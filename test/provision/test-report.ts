import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import process from 'node:process';
import type { SerializedError } from 'vitest';
import type { Reporter, TestModule } from 'vitest/node';

/** A run of fewer files shows its times already. */
const FILES_MIN = 100;
const SLOWEST = 25;

/**
 * Writes the paths of files with a failed test or an unhandled error to KIT_FAILED_FILES, a line each: scripts/test.ts runs them again.
 * After a run of everything, prints where its time went: `npm test` has a bound, and what is slow belongs in `npm run test:long`.
 */
export default class TestReport implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    if (modules.length >= FILES_MIN) printTimes(modules);
    const list = process.env['KIT_FAILED_FILES'];
    if (list === undefined) return;
    const failed = modules.filter((module) => !['passed', 'skipped'].includes(module.state())).map(({ moduleId }) => moduleId);
    // An error outside of any test: vitest notes the file that ran, or there is nothing to run again.
    const outside = errors.map(({ VITEST_TEST_PATH: path }) => (typeof path === 'string' ? path : ''));
    writeFileSync(list, outside.includes('') ? '' : [...new Set([...failed, ...outside])].join('\n'));
  }
}

function printTimes(modules: readonly TestModule[]): void {
  const files = modules
    .map((module) => {
      const { duration, collectDuration, prepareDuration, setupDuration, environmentSetupDuration } = module.diagnostic();
      const seconds = (duration + collectDuration + prepareDuration + setupDuration + environmentSetupDuration) / 1000;
      return { project: module.project.name, path: relative(process.cwd(), module.moduleId), seconds };
    })
    .sort((a, b) => b.seconds - a.seconds);
  const projects = [...new Set(files.map(({ project }) => project))];
  console.log('\nSeconds of all files, by project:');
  for (const project of projects) {
    const own = files.filter((file) => file.project === project);
    console.log(`${total(own).padStart(6)}  ${project} (${own.length} files)`);
  }
  console.log(`\nSeconds of the ${SLOWEST} slowest files:`);
  for (const { path, seconds } of files.slice(0, SLOWEST)) console.log(`${seconds.toFixed(0).padStart(6)}  ${path}`);
}

function total(files: readonly { readonly seconds: number }[]): string {
  return files.reduce((sum, { seconds }) => sum + seconds, 0).toFixed(0);
}
