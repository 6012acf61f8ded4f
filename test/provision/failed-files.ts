import { writeFileSync } from 'node:fs';
import process from 'node:process';
import type { SerializedError } from 'vitest';
import type { Reporter, TestModule } from 'vitest/node';

/** Writes the paths of files with a failed test or an unhandled error to KIT_FAILED_FILES, a line each: scripts/test.ts runs them again. */
export default class FailedFiles implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const list = process.env['KIT_FAILED_FILES'];
    if (list === undefined) return;
    const failed = modules.filter((module) => !['passed', 'skipped'].includes(module.state())).map(({ moduleId }) => moduleId);
    // An error outside of any test: vitest notes the file that ran, or there is nothing to run again.
    const outside = errors.map(({ VITEST_TEST_PATH: path }) => (typeof path === 'string' ? path : ''));
    writeFileSync(list, outside.includes('') ? '' : [...new Set([...failed, ...outside])].join('\n'));
  }
}
