import { expect, test } from 'vitest';
import type { Database } from '../db/engine/db.ts';
import { describeDatabases } from './databases.ts';

const fills: string[] = [];

const options = {
  template: `databases_test_${process.pid}`,
  prepare: async (db: Database): Promise<void> => {
    fills.push(db.dialect);
    await db.execute('create table notes (body varchar(20) not null)');
    await db.execute(`insert into notes values ('from the template')`);
  },
};

for (const block of ['first', 'second']) {
  describeDatabases(
    `the ${block} block of a template`,
    (database) => {
      test('has what was prepared, once for the run, in a database of its own', async () => {
        await database.db.execute(`insert into notes values ('of the ${block}')`);
        expect(await database.db.query('select body from notes order by body')).toEqual([
          { body: 'from the template' },
          { body: `of the ${block}` },
        ]);
        expect(fills.filter((dialect) => dialect === database.dialect)).toHaveLength(1);
      });
    },
    options,
  );
}
