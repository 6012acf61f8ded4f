import { kyselyOf } from '../kysely/index.ts';
import { expect, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { currentTransaction } from '../engine/ambient.ts';
import type { Db } from '../engine/db.ts';
import { openDatabase } from './open-database.ts';

interface Tables {
  entries: { label: string };
}

const prepare = async (db: Db): Promise<void> => {
  await db.query('create table entries (label text not null unique)');
};

describeDatabases(
  'transactions',
  (database) => {
    const entries = (): Db => database.db;
    const add = (db: Db, label: string): Promise<unknown> => kyselyOf<Tables>(db).insertInto('entries').values({ label }).execute();
    const labels = async (prefix: string): Promise<string[]> =>
      (await database.db.query<{ label: string }>('select label from entries where label like $1 order by label', [`${prefix}%`])).map(
        (row) => row.label,
      );

    test('a rejected transaction leaves nothing behind and passes its error on', async () => {
      const failure = new Error('no');
      await expect(
        entries().transaction(async (tx) => {
          await add(tx, 'rejected-1');
          throw failure;
        }),
      ).rejects.toBe(failure);
      expect(await labels('rejected')).toEqual([]);
    });

    test('a rolled-back savepoint takes only its own writes with it', async () => {
      await entries().transaction(async (tx) => {
        await add(tx, 'sp-a');
        await tx
          .transaction(async (inner) => {
            await add(inner, 'sp-b');
            throw new Error('inner');
          })
          .catch(() => undefined);
        await tx.transaction((inner) => add(inner, 'sp-c'));
      });
      expect(await labels('sp')).toEqual(['sp-a', 'sp-c']);
    });

    test('after-commit callbacks run once, in order, after the outermost commit, and not for a rolled-back savepoint', async () => {
      const log: string[] = [];
      await entries().transaction(async (tx) => {
        tx.afterCommit(async () => log.push(`outer sees ${(await labels('ac')).join()}`));
        await add(tx, 'ac-a');
        await tx.transaction(async (inner) => inner.afterCommit(() => log.push('kept')));
        await tx
          .transaction(async (inner) => {
            inner.afterCommit(() => log.push('dropped'));
            throw new Error('inner');
          })
          .catch(() => undefined);
        log.push('work done');
      });
      expect(log).toEqual(['work done', 'outer sees ac-a', 'kept']);

      await entries()
        .transaction(async (tx) => {
          await tx.transaction(async (inner) => inner.afterCommit(() => log.push('never')));
          throw new Error('outer');
        })
        .catch(() => undefined);
      expect(log).not.toContain('never');
    });

    test('a failing after-commit callback is logged and stops neither the caller nor the next callback', async () => {
      const logged: unknown[] = [];
      const db = await database.open({ log: { warn: () => undefined, error: (fields) => logged.push(fields) } });
      const ran: string[] = [];
      const result = await db.transaction(async (tx) => {
        tx.afterCommit(() => {
          throw new Error('broken hook');
        });
        tx.afterCommit(() => ran.push('second'));
        return 42;
      });
      expect(result).toBe(42);
      expect(ran).toEqual(['second']);
      expect(logged).toEqual([{ err: expect.objectContaining({ message: 'broken hook' }) }]);
    });

    test('after-commit outside a transaction runs at once; on the outer handle inside one it waits for the commit', async () => {
      const log: string[] = [];
      database.db.afterCommit(() => log.push('at once'));
      expect(log).toEqual(['at once']);
      await database.db.transaction(async () => {
        database.db.afterCommit(() => log.push('committed'));
        expect(log).toEqual(['at once']);
      });
      expect(log).toEqual(['at once', 'committed']);
    });

    test('many parallel transactions never interleave: each reads what it wrote and nothing of the others', async () => {
      await database.db.query('create table counters (id integer primary key, value integer not null)');
      await database.db.query('insert into counters (id, value) values (1, 0)');
      const seen = await Promise.all(
        Array.from({ length: 60 }, (_, index) =>
          database.db
            .transaction(async (tx) => {
              const lock = tx.dialect === 'postgres' ? ' for update' : '';
              const [row] = await tx.query<{ value: number }>(`select value from counters where id = 1${lock}`);
              await new Promise((done) => setImmediate(done));
              await tx.query('update counters set value = $1 where id = 1', [(row?.value ?? 0) + 1]);
              await tx.query('insert into entries (label) values ($1)', [`parallel-${index}`]);
              if (index % 3 === 0) throw new Error('every third is rolled back');
              return row?.value ?? -1;
            })
            .catch(() => null),
        ),
      );
      const committed = seen.filter((value) => value !== null);
      expect(committed).toHaveLength(40);
      expect(committed.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, index) => index));
      expect(await labels('parallel')).toHaveLength(40);
    });

    test('savepoints started in parallel on one transaction follow one another', async () => {
      await entries().transaction(async (tx) => {
        await Promise.all(
          Array.from({ length: 10 }, (_, index) =>
            tx
              .transaction(async (inner) => {
                await add(inner, `side-${index}`);
                await new Promise((done) => setImmediate(done));
                if (index % 2 === 1) throw new Error('odd');
              })
              .catch(() => undefined),
          ),
        );
      });
      expect(await labels('side')).toEqual(['side-0', 'side-2', 'side-4', 'side-6', 'side-8']);
    });

    test('a savepoint that was not awaited saves nothing, neither its half nor what is around it', async () => {
      let inner: Promise<unknown> = Promise.resolve();
      const ended = Promise.withResolvers<void>();
      const forgetful = entries().transaction(async (tx) => {
        await add(tx, 'loose-outer');
        const started = Promise.withResolvers<void>();
        inner = tx.transaction(async (savepoint) => {
          await add(savepoint, 'loose-1');
          started.resolve();
          await ended.promise;
          await add(savepoint, 'loose-2');
        });
        inner.catch(() => undefined);
        await started.promise;
      });
      await expect(forgetful).rejects.toMatchObject({ code: 'transaction_finished' });
      ended.resolve();
      await expect(inner).rejects.toMatchObject({ code: 'transaction_finished' });
      expect(await labels('loose')).toEqual([]);
    });

    test('a write beside a savepoint that rolls back is never reported as saved', async () => {
      const beside = (fails: boolean, prefix: string) =>
        entries().transaction(async (tx) => {
          const started = Promise.withResolvers<void>();
          const written = Promise.withResolvers<void>();
          const savepoint = tx.transaction(async (inner) => {
            await add(inner, `${prefix}-inner`);
            started.resolve();
            await written.promise;
            if (fails) throw new Error('no');
          });
          await started.promise;
          await add(tx, `${prefix}-beside`);
          written.resolve();
          await savepoint.catch(() => undefined);
        });
      await expect(beside(true, 'lost')).rejects.toMatchObject({ code: 'transaction_aborted' });
      expect(await labels('lost')).toEqual([]);
      await beside(false, 'kept');
      expect(await labels('kept')).toEqual(['kept-beside', 'kept-inner']);
    });

    test('a write sent while the savepoint is still being made is no exception', async () => {
      const together = entries().transaction(async (tx) => {
        const written = Promise.withResolvers<void>();
        const failing = tx.transaction(async () => {
          await written.promise;
          throw new Error('no');
        });
        await Promise.resolve().then(() => undefined); // the savepoint is sent, its answer is not here yet
        await tx.query('insert into entries (label) values ($1)', ['together-1']);
        written.resolve();
        await failing.catch(() => undefined);
      });
      await expect(together).rejects.toMatchObject({ code: 'transaction_aborted' });
      expect(await labels('together')).toEqual([]);
    });

    test('a savepoint inside one that rolled back writes nothing more', async () => {
      let orphan: Promise<unknown> = Promise.resolve();
      await entries().transaction(async (tx) => {
        const go = Promise.withResolvers<void>();
        const outer = tx.transaction(async (savepoint) => {
          const started = Promise.withResolvers<void>();
          orphan = savepoint.transaction(async (nested) => {
            await add(nested, 'orphan-1');
            started.resolve();
            await go.promise;
            await add(nested, 'orphan-2');
          });
          orphan.catch(() => undefined);
          await started.promise;
          throw new Error('no');
        });
        await outer.catch(() => undefined);
        go.resolve();
        await orphan.catch(() => undefined);
        await add(tx, 'orphan-after');
      });
      await expect(orphan).rejects.toMatchObject({ code: 'transaction_finished' });
      expect(await labels('orphan')).toEqual(['orphan-after']);
    });

    test('reads beside a savepoint, and its own writes through the handle around it, are no reason to refuse', async () => {
      await entries().transaction(async (tx) => {
        const started = Promise.withResolvers<void>();
        const read = Promise.withResolvers<void>();
        const savepoint = tx.transaction(async () => {
          await add(tx, 'through-outer');
          started.resolve();
          await read.promise;
          throw new Error('no');
        });
        await started.promise;
        await tx.query('select 1 as one');
        read.resolve();
        await savepoint.catch(() => undefined);
        await add(tx, 'through-after');
      });
      expect(await labels('through')).toEqual(['through-after']);
    });

    test('the transaction handle used inside its own savepoint nests instead of waiting for itself', async () => {
      await entries().transaction(async (tx) => {
        await tx.transaction(async () => {
          await tx.transaction((nested) => add(nested, 'nested-1'));
        });
      });
      expect(await labels('nested')).toEqual(['nested-1']);
    });

    test('a swallowed statement error never looks like a commit', async () => {
      await add(entries(), 'taken');
      const swallowed = entries().transaction(async (tx) => {
        await add(tx, 'swallowed-1');
        await add(tx, 'taken').catch(() => undefined);
      });
      await expect(swallowed).rejects.toMatchObject({ code: 'transaction_aborted' });
      expect(await labels('swallowed')).toEqual([]);
    });

    test('after a failed statement the transaction refuses further ones until its savepoint is rolled back', async () => {
      let refused: unknown;
      await add(entries(), 'unique-1');
      await entries().transaction(async (tx) => {
        await tx
          .transaction(async (inner) => {
            await add(inner, 'unique-1').catch(() => undefined);
            refused = await add(inner, 'unique-2').catch((error: unknown) => error);
            throw new Error('undo');
          })
          .catch(() => undefined);
        await add(tx, 'unique-3');
      });
      expect(refused).toMatchObject({ code: 'transaction_aborted' });
      expect(await labels('unique')).toEqual(['unique-1', 'unique-3']);
    });

    test('a handle kept beyond its transaction is refused with a sentence', async () => {
      let kept: Db | undefined;
      let keptInner: Db | undefined;
      await database.db.transaction(async (tx) => {
        kept = tx;
        await tx.transaction(async (inner) => {
          keptInner = inner;
        });
        await expect(keptInner?.query('select 1 as one')).rejects.toMatchObject({ code: 'transaction_finished' });
      });
      await expect(kept?.query('select 1 as one')).rejects.toThrow('await everything inside its callback');
      expect(() => kept?.afterCommit(() => undefined)).toThrow('await everything inside its callback');
    });

    test('code that was handed no handle finds the transaction it runs in, per named database', async () => {
      const reports = await openDatabase(database.url, { name: 'reports' });
      try {
        expect(currentTransaction()).toBeUndefined();
        await database.db.transaction(async (tx) => {
          expect(currentTransaction()).toBe(tx);
          expect(currentTransaction('reports')).toBeUndefined();
          await tx.transaction(async (inner) => expect(currentTransaction()).toBe(inner));
          expect(currentTransaction()).toBe(tx);
        });
        await reports.transaction(async (tx) => {
          expect(currentTransaction('reports')).toBe(tx);
          expect(tx.using).toBe('reports');
          expect(currentTransaction()).toBeUndefined();
        });
      } finally {
        await reports.close();
      }
    });

    test('a read-only transaction sees one snapshot and refuses writes', async () => {
      const writer = await database.open();
      await database.db.transaction(
        async (tx) => {
          const before = await tx.query('select label from entries');
          await writer.query('insert into entries (label) values ($1)', ['meanwhile']);
          expect(await tx.query('select label from entries')).toHaveLength(before.length);
        },
        { readOnly: true, isolation: 'repeatable read' },
      );
      const refused = database.db.transaction((tx) => tx.query('insert into entries (label) values ($1)', ['refused']), { readOnly: true });
      await expect(refused).rejects.toThrow(/read-?only/);
      expect(await labels('refused')).toEqual([]);
    });

    test('Kysely on the handle and on the transaction is typed and runs on the right connection', async () => {
      await entries().transaction(async (tx) => {
        await add(tx, 'typed-1');
        const inside = await kyselyOf<Tables>(tx).selectFrom('entries').select('label').where('label', '=', 'typed-1').executeTakeFirst();
        expect(inside).toEqual({ label: 'typed-1' });
        const outside = await kyselyOf<Tables>(entries())
          .selectFrom('entries')
          .select('label')
          .where('label', '=', 'typed-1')
          .executeTakeFirst();
        expect(outside).toBeUndefined();
      });
      const removed = await kyselyOf<Tables>(entries()).deleteFrom('entries').where('label', '=', 'typed-1').executeTakeFirst();
      expect(removed.numDeletedRows).toBe(1n);
    });
  },
  { prepare },
);
