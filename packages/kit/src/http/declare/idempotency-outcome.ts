/** What a request with an idempotency key came to; counted by metrics(). */
export const idempotencyOutcomes = ['completed', 'refused', 'released', 'replayed', 'in_progress', 'reused', 'lost', 'not_kept'] as const;
export type IdempotencyOutcome = (typeof idempotencyOutcomes)[number];
