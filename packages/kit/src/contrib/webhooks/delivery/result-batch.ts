import type { Outcome } from './delivery-outcome.ts';
import type { Finalised, Success } from './result-store.ts';
import type { SendReport } from './sender.ts';

export interface Result {
  readonly report: SendReport;
  readonly outcome: Outcome;
  /** Most results are successes of healthy endpoints, which change nothing about them. */
  readonly changesHealth: boolean;
}

/** Results stored together. */
export interface Batch {
  results: Result[];
  /** Other deliveries cannot be sent before these results are stored. */
  isAwaited: boolean;
  /** What is still to be written; rows are made once, however often it takes to write them. */
  successes: Success[];
  others: Finalised[];
  /** Failures in place of results that the database rejects. */
  rejections: Finalised[];
  /** Deliveries whose claims were lost, or whose results were rejected: they change nothing about their endpoint. */
  readonly lost: Set<string>;
  readonly stored: PromiseWithResolvers<void>;
  /** When the batch before it is stored. */
  readonly before: Promise<void> | undefined;
}

export const noRows = (): Pick<Batch, 'successes' | 'others' | 'rejections'> => ({ successes: [], others: [], rejections: [] });

/** These rows are written, or left to another batch. */
export function drop(batch: Batch, rows: readonly { readonly id: string }[]): void {
  const ids = new Set(rows.map(({ id }) => id));
  batch.successes = batch.successes.filter(({ id }) => !ids.has(id));
  batch.others = batch.others.filter(({ id }) => !ids.has(id));
  batch.rejections = batch.rejections.filter(({ id }) => !ids.has(id));
}

export const NO_OUTCOME: Outcome = {
  delivery: {
    status: 'pending',
    attempts: 0,
    nextAttemptAt: null,
    deliveredAt: null,
    lastStatusCode: null,
    lastError: null,
    failureReason: null,
  },
  health: null,
  disable: null,
};
