import type { Kysely } from 'kysely';
import { currentTransactionOn } from '../../db/engine/ambient.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import { kyselyOf } from '../../db/kysely/kysely-of.ts';
import { requireArguments } from '../../options/read-options.ts';
import { database as aDatabase } from '../../options/value-rule.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- better-auth has its own tables; `any` is Kysely's way to leave them unchecked
type AnyKysely = Kysely<any>;

const databases = new WeakMap<object, Database>();

/**
 * The database for better-auth: `database: { db: joinedKysely(db), type: db.dialect, transaction: true }`. Its statements join the transaction
 * that is open around the call, and its own transactions are transactions of the toolkit. With a connection of its own SQLite is locked, and
 * PostgreSQL waits for itself.
 */
export function joinedKysely(database: Database): AnyKysely {
  requireArguments('joinedKysely()', { database }, { database: aDatabase });
  const current = (): Db => currentTransactionOn(database) ?? database;
  const transaction = () => ({
    execute: <R>(work: (kysely: AnyKysely) => Promise<R>): Promise<R> => current().transaction((tx) => work(kyselyOf(tx))),
  });
  const joined = new Proxy(kyselyOf(database) as AnyKysely, {
    get(_target, name) {
      if (name === 'transaction') return transaction;
      const kysely = kyselyOf(current()) as AnyKysely;
      const value: unknown = Reflect.get(kysely, name, kysely);
      // `fn` is a function with members; everything else that is a function is a method.
      return typeof value === 'function' && name !== 'fn' ? (value.bind(kysely) as unknown) : value;
    },
  });
  databases.set(joined, database);
  return joined;
}

/** The database behind the option `database` of a better-auth instance; undefined when it was not made by `joinedKysely`. */
export function joinedDatabase(option: unknown): Database | undefined {
  const kysely = typeof option === 'object' && option !== null && 'db' in option ? option.db : undefined;
  return typeof kysely === 'object' && kysely !== null ? databases.get(kysely) : undefined;
}
