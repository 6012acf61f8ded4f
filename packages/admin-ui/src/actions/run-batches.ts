import type { AdminResult } from '../api/shapes.ts';

export interface BatchProgress {
  readonly done: number;
  readonly failures: readonly { readonly id: string; readonly message: string }[];
  readonly results: readonly AdminResult[];
  /** Not sent yet, in order. */
  readonly rest: readonly string[];
}

interface RunBatchesOptions {
  readonly ids: readonly string[];
  readonly size: number;
  readonly send: (ids: readonly string[]) => Promise<AdminResult>;
  readonly onProgress: (progress: BatchProgress) => void;
  readonly isStopped: () => boolean;
}

/**
 * Runs an action on any number of records, some at a time. What a request that failed would have hit stays in `rest`:
 * the server did not say that it was done, and every action may be run again.
 */
export async function runBatches({ ids, size, send, onProgress, isStopped }: RunBatchesOptions): Promise<BatchProgress> {
  let progress: BatchProgress = { done: 0, failures: [], results: [], rest: ids };
  while (progress.rest.length > 0 && !isStopped()) {
    const batch = progress.rest.slice(0, size);
    const result = await send(batch);
    progress = {
      done: progress.done + batch.length - (result.rest?.length ?? 0),
      failures: [...progress.failures, ...(result.failures ?? [])],
      results: [...progress.results, { ...result }],
      rest: [...(result.rest ?? []), ...progress.rest.slice(batch.length)],
    };
    onProgress(progress);
  }
  return progress;
}
