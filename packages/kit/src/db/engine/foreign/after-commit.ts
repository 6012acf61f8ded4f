/** Runs the callbacks of a transaction that has committed: one that fails is reported, and hurts neither the caller nor the others. */
export async function runAfterCommit(callbacks: readonly (() => unknown)[]): Promise<void> {
  for (const callback of callbacks) {
    try {
      await callback();
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
}
