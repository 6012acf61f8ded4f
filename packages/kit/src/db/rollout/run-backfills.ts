import { type OptionRules, readOptions, requireArguments } from '../../options/read-options.ts';
import { aFunction, aList, filledText, flag, instanceOf, listOf, queryable } from '../../options/value-rule.ts';
import { readStates } from '../backfills/backfill-state.ts';
import { runBackfill } from '../backfills/run-backfill.ts';
import type { Database } from '../engine/db.ts';
import { MigrationRefused } from '../migrations/migration-refused.ts';
import type { MigrationModule } from '../migrations/plan.ts';
import { type DeclaredBackfill, declaredBackfills, missingMigration } from './declared-backfills.ts';

export interface RunBackfillsOptions {
  /** `shop/0012_full_name`. Default: all that are not finished. */
  readonly only?: readonly string[];
  /** Does finished back-fills once more, from the first row; for those of `only`. */
  readonly again?: boolean;
  /** Stops after the batch under way. */
  readonly signal?: AbortSignal;
  /** Called after each batch, and with a sentence while a back-fill stands still. */
  readonly onProgress?: (id: string, rows: number, waitsFor: string | null) => void;
}

const rules: OptionRules<RunBackfillsOptions> = {
  only: listOf(filledText, { min: 1 }),
  again: flag,
  signal: instanceOf(AbortSignal, 'an AbortSignal'),
  onProgress: aFunction,
};

/**
 * Runs back-fills one after the other, what `kit backfill run` does. Returns those that it has finished. A run that was killed is continued by the
 * next; several at once share the work.
 */
export async function runBackfills(
  database: Database,
  modules: readonly MigrationModule[],
  options: RunBackfillsOptions = {},
): Promise<readonly string[]> {
  const { only, again = false, signal, onProgress } = readOptions('runBackfills()', options, rules);
  requireArguments('runBackfills()', { database, modules }, { database: queryable, modules: aList });
  const finished: string[] = [];
  for (const each of await chosen(database, modules, only)) {
    if (signal?.aborted === true) break;
    const missing = await missingMigration(database, each);
    if (missing !== null) throw new MigrationRefused(`Back-fill ${each.id} comes after migration ${missing}. Run: npx kit migrate`);
    const ended = await runBackfill(database, { module: each.module, name: each.backfill.name }, each.backfill, {
      again,
      ...(signal === undefined ? {} : { signal }),
      onProgress: (rows, waitsFor) => onProgress?.(each.id, rows, waitsFor),
    });
    if (ended === 'finished') finished.push(each.id);
  }
  return finished;
}

async function chosen(database: Database, modules: readonly MigrationModule[], only?: readonly string[]): Promise<DeclaredBackfill[]> {
  const declared = declaredBackfills(modules);
  if (only !== undefined) {
    for (const id of only) if (!declared.some((each) => each.id === id)) throw new Error(`There is no back-fill "${id}".`);
    return declared.filter(({ id }) => only.includes(id));
  }
  const states = await readStates(database);
  return declared.filter(({ id }) => states.get(id)?.state !== 'finished');
}
