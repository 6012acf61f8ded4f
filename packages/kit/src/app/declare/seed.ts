import type { Db } from '../../db/engine/db.ts';
import type { Model } from '../../db/declare/model.ts';
import type { Insert, Row } from '../../db/declare/rows.ts';
import { InvalidOptions, requireArguments } from '../../options/read-options.ts';
import { aFunction, filledText, wrongValue } from '../../options/value-rule.ts';

/** What a seed has at hand. */
export interface SeedContext {
  /** The transaction of the seed: all of its rows or none. */
  readonly tx: Db;
  /** A UUID that is the same at every run, on every machine: `id('ada')`. Seeds share these names. */
  readonly id: (name: string) => string;
  /**
   * Creates the row, or changes the one that is there back to these values, so that a seed can run again. The row is found by its key, or by
   * the columns of `by`, which together are unique.
   */
  readonly put: <M extends Model>(
    model: M,
    row: Insert<M>,
    options?: { readonly by?: readonly (keyof M['columns'] & string)[] },
  ) => Promise<Row<M>>;
}

/** Rows for development and tests, declared once: see {@link seed}. */
export interface Seed {
  readonly name: string;
  readonly run: (context: SeedContext) => unknown;
}

/** How many rows a seed created, changed, and found as they should be. */
export interface SeedReport {
  readonly name: string;
  readonly created: number;
  readonly changed: number;
  readonly unchanged: number;
}

const NAME = /^[a-z][a-z0-9_-]{0,39}$/;

/**
 * Declares rows that `kit seed` and `testApp({ seeds })` create:
 *
 * @example
 * ```ts
 * export const demo = seed('demo', async ({ put, id }) => {
 *   const ada = await put(users, { id: id('ada'), username: 'ada' });
 *   await put(notes, { id: id('milk'), owner_id: ada.id, title: 'Milk' });
 * });
 * ```
 */
export function seed(name: string, run: Seed['run']): Seed {
  requireArguments('seed()', { name, run }, { name: filledText, run: aFunction });
  if (!NAME.test(name)) throw new InvalidOptions([wrongValue('seed()', 'name', name, 'a name such as "demo": a-z, 0-9, "_" and "-"')]);
  return Object.freeze({ name, run });
}
