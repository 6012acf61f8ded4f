import { TransactionRefused } from './transaction-refused.ts';
import { dialectTransactionRules, type SqlExecutor } from './sql-executor.ts';
import { runAfterCommit } from './after-commit.ts';
import { kyselyTransaction, type KyselyTransaction, type KyselyTransactionOptions } from './kysely.ts';
import { readOptions, requireArguments } from '../../../options/read-options.ts';
import { objectWith } from '../../../options/value-rule.ts';

interface TransactionEnd {
  readonly transaction?: unknown;
}

interface TransactionSubscriber {
  afterTransactionCommit(end: TransactionEnd): Promise<void>;
  afterTransactionRollback(end: TransactionEnd): Promise<void>;
}

/** What is used of an entity manager of MikroORM 7. */
export interface MikroOrmEntityManager {
  getTransactionContext(): unknown;
  getEventManager(): { registerSubscriber(subscriber: TransactionSubscriber): void };
}

/** The transaction of the entity manager that MikroORM passes to `em.transactional(…)`, or of one after `em.begin()`. */
export function mikroOrmTransaction(em: MikroOrmEntityManager, options: KyselyTransactionOptions = {}): SqlExecutor {
  readOptions('mikroOrmTransaction()', options, dialectTransactionRules);
  requireArguments(
    'mikroOrmTransaction()',
    { em },
    { em: objectWith('the entity manager that MikroORM passes to em.transactional()', 'getTransactionContext') },
  );
  const context = em.getTransactionContext();
  if (context === undefined)
    throw new TransactionRefused(
      'no_transaction',
      'The entity manager has no open transaction: use the one of em.transactional(async (em) => …).',
    );
  if (!isKysely(context)) throw new TransactionRefused('database_unsupported', 'mikroOrmTransaction() needs MikroORM 7 or later.');
  const executor = kyselyTransaction(context, options);
  // The hook also fires when a savepoint is released, which is no commit, and does not say whose savepoint it was.
  if ('savepointName' in context) return executor;
  const callbacks = callbacksOf(em.getEventManager());
  return {
    ...options,
    dialect: executor.dialect,
    query: executor.query.bind(executor),
    get isTransaction() {
      return em.getTransactionContext() === context && executor.isTransaction;
    },
    afterCommit: (callback) => {
      callbacks.set(context, [...(callbacks.get(context) ?? []), callback]);
    },
  };
}

function isKysely(context: unknown): context is KyselyTransaction {
  return typeof (context as Partial<KyselyTransaction>).executeQuery === 'function';
}

type Callbacks = WeakMap<object, (() => unknown)[]>;

/** One subscriber per event manager: MikroORM has no way to take one away again. */
const subscribed = new WeakMap<object, Callbacks>();

function callbacksOf(events: ReturnType<MikroOrmEntityManager['getEventManager']>): Callbacks {
  const known = subscribed.get(events);
  if (known !== undefined) return known;
  const callbacks: Callbacks = new WeakMap();
  const taken = ({ transaction }: TransactionEnd): (() => unknown)[] => {
    const waiting = callbacks.get(transaction as object) ?? [];
    callbacks.delete(transaction as object);
    return waiting;
  };
  events.registerSubscriber({
    afterTransactionCommit: (end) => runAfterCommit(taken(end)),
    afterTransactionRollback: async (end) => void taken(end),
  });
  subscribed.set(events, callbacks);
  return callbacks;
}
