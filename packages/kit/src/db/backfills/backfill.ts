import { readOptions, requireArguments, type OptionRules } from '../../options/read-options.ts';
import { aFunction, aModel, anObject, filledText, milliseconds, required, wholeNumber } from '../../options/value-rule.ts';
import type { Model } from '../declare/model.ts';
import type { Columns, Row } from '../declare/rows.ts';
import type { Db } from '../engine/db.ts';
import { compileWhere } from '../sql/where/compile-where.ts';
import type { Where } from '../sql/where/where.ts';

export interface BackfillOptions<M extends Model> {
  /** The table, with the columns that `run` reads. A model of its own, as a migration has, keeps the back-fill working when the app's model changes. */
  readonly model: M;
  /** Which rows. Default: all. */
  readonly where?: Where<M['columns']>;
  /** Rows of one transaction. Default: 1,000. */
  readonly batch?: number;
  /** Stops while a replica is further behind than this. Default: 10 seconds. */
  readonly replicaLagMsMax?: number;
  /** Stops while a transaction waits longer than this for a lock, and gives up a batch that does. Default: 1 second. */
  readonly lockWaitMsMax?: number;
  /**
   * Writes one batch, through `tx` alone: its changes and the progress are committed together, so each row is done exactly once. On PostgreSQL the
   * rows are locked. It runs again when the batch is rolled back.
   */
  readonly run: (tx: Db, rows: readonly Row<M>[]) => Promise<unknown>;
}

/** Changes the rows of a large table in many short transactions, while the app runs. */
export interface Backfill {
  /** Four digits, an underscore and words: `0012_full_name`. */
  readonly name: string;
  /** The table, with the columns that `run` reads. */
  readonly model: Model;
  /** Which rows. */
  readonly where: Where | true;
  /** Rows of one transaction. */
  readonly batch: number;
  /** Stops while a replica is further behind than this. */
  readonly replicaLagMsMax: number;
  /** Stops while a transaction waits longer than this for a lock. */
  readonly lockWaitMsMax: number;
  /** Writes one batch, through `tx` alone. */
  readonly run: (tx: Db, rows: readonly never[]) => Promise<unknown>;
}

const NAME = /^\d{4}_[a-z0-9_]+$/;
const BATCH = 1000;
const BATCH_MAX = 100_000;
/** What `kit doctor` warns of. */
const REPLICA_LAG_MS_MAX = 10_000;
const LOCK_WAIT_MS_MAX = 1000;

const rules: OptionRules<BackfillOptions<Model>> = {
  model: required(aModel),
  where: anObject,
  batch: wholeNumber(1, BATCH_MAX),
  replicaLagMsMax: milliseconds(1),
  lockWaitMsMax: milliseconds(1),
  run: required(aFunction),
};

/**
 * Declares a back-fill, for the `backfills` of a module. It comes after the migrations of the module with smaller numbers; a later migration can
 * require it: `migration('0013_require_name', [ … ], { backfills: ['0012_full_name'] })`. `kit backfill run` runs it.
 *
 * @example
 * ```ts
 * const people = model('people', { id: t.uuidv7().pk(), first: t.text(), last: t.text(), full_name: t.text().nullable() });
 *
 * export const fullNames = backfill('0012_full_name', {
 *   model: people,
 *   where: { full_name: null },
 *   async run(tx, rows) {
 *     for (const { id, first, last } of rows) await update(tx, people, id, { full_name: `${first} ${last}` });
 *   },
 * });
 * ```
 */
export function backfill<M extends Model>(name: string, options: BackfillOptions<M>): Backfill {
  requireArguments('backfill()', { name }, { name: filledText });
  if (!NAME.test(name)) throw new Error(`Back-fill "${name}": names are four digits, an underscore and snake_case, like 0012_full_name.`);
  const { model, where, batch, replicaLagMsMax, lockWaitMsMax, run } = readOptions(`backfill("${name}")`, options, rules as never);
  if (where !== undefined) compileWhere<Columns>(model, where);
  return Object.freeze({
    name,
    model,
    where: where ?? true,
    batch: batch ?? BATCH,
    replicaLagMsMax: replicaLagMsMax ?? REPLICA_LAG_MS_MAX,
    lockWaitMsMax: lockWaitMsMax ?? LOCK_WAIT_MS_MAX,
    run,
  });
}
