import { Kysely, Transaction } from 'kysely';
import type { Db } from '../engine/db.ts';
import type { Handle } from '../engine/handle.ts';
import { requireArguments } from '../../options/read-options.ts';
import { objectWith } from '../../options/value-rule.ts';
import { EngineConnection, EngineDialect } from './engine-dialect.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- `any` is Kysely's own way to say "unchecked"
const known = new WeakMap<object, Kysely<any>>();

/**
 * Kysely on a database, or on the open transaction of a handle: its statements commit and roll back with the handle's, and are observed like them.
 *
 * ```ts
 * type Shop = Tables<{ orders: typeof orders }>;
 * const paid = await kyselyOf<Shop>(tx).selectFrom('orders').selectAll().where('status', '=', 'paid').execute();
 * ```
 */
export function kyselyOf<T>(db: Db): Kysely<T> {
  requireArguments('kyselyOf()', { db }, { db: objectWith('a database or a transaction of kit', 'query') });
  let kysely = known.get(db) as Kysely<T> | undefined;
  if (kysely === undefined) known.set(db, (kysely = made(db as unknown as Handle)));
  return kysely;
}

function made<T>({ context: { engine }, runner, isTransaction }: Handle): Kysely<T> {
  const dialect = new EngineDialect(engine, runner);
  const kysely = new Kysely<T>({ dialect });
  if (!isTransaction) return kysely;
  const connection = new EngineConnection(runner);
  const executor = kysely.getExecutor().withConnectionProvider({ provideConnection: (consumer) => consumer(connection) });
  return new Transaction<T>({ config: { dialect }, driver: dialect.createDriver(), dialect, executor });
}
