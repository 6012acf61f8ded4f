import { RepeatedStatements } from '../app/check/repeated-statements.ts';
import type { Middleware } from '../http/exchange/middleware.ts';
import { REPEATS_MAX, repeatsFrom, tableOf } from '../middleware/n-plus-one.ts';
import { testRun } from './config.ts';

/** Of this process; null where nothing can be noted. */
let notes: RepeatedStatements | null | undefined;

/** Notes for `kit doctor` (W030) which requests of the tests repeat a statement. Only where `kit.config.ts` is in the working directory. */
export function noteRepeats(): readonly Middleware[] {
  if (notes === undefined) notes = RepeatedStatements.open(process.cwd(), testRun());
  const opened = notes;
  if (opened === null) return [];
  const onQuery = repeatsFrom(REPEATS_MAX, ({ route }, { sql }, count) => {
    if (route !== null) opened.add({ operation: route.operationId, table: tableOf(sql) ?? null, count });
  });
  return [{ name: 'n_plus_one_notes', onQuery }];
}
