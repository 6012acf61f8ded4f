// Run by one version of vitest in a project with the packed kit.
import { expect, test } from 'vitest';
import { describeDatabases } from 'kit/testing';

describeDatabases('a database of the testing kit', (database) => {
  test('runs a statement', async () => {
    expect(await database.db.query('select 1 as one')).toEqual([{ one: 1 }]);
  });
});
