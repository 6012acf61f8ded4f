/** Aborted by Ctrl-C or SIGTERM while `work` runs, so that it can remove what it has begun. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupted = new AbortController();
  const abort = (): void => interrupted.abort();
  process.on('SIGINT', abort).on('SIGTERM', abort);
  try {
    return await work(interrupted.signal);
  } finally {
    process.off('SIGINT', abort).off('SIGTERM', abort);
  }
}
