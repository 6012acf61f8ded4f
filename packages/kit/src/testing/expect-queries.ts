import { countQueries } from '../db/engine/query-observer.ts';

/**
 * Runs the work and fails when it needed another number of statements, with the text of each. Returns what the work returned. `begin` and
 * `commit` are not counted.
 */
export async function expectQueries<R>(count: number, work: () => Promise<R>): Promise<R> {
  const { result, queries } = await countQueries(work);
  if (queries.length === count) return result;
  const statements = queries.map(({ sql }, index) => `${index + 1}. ${sql}`).join('\n');
  throw new Error(`Expected ${count} ${count === 1 ? 'statement' : 'statements'}, and ${queries.length} ran:\n${statements}`);
}
