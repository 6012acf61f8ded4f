import type { Reporter, TestModule } from 'vitest/node';

/** Prints the tests that passed only the second time: vitest counts them as passed and says no more. */
export default class RetriedTests implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    for (const { project, relativeModuleId, children } of modules) {
      for (const test of children.allTests('passed')) {
        if ((test.diagnostic()?.retryCount ?? 0) > 0) console.warn(`retried: ${project.name} ${relativeModuleId} > ${test.fullName}`);
      }
    }
  }
}
