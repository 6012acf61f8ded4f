import { expect, test } from 'vitest';
import { t } from '../declare/column.ts';
import { addColumn, createTable, dropTable } from './operation.ts';
import { migration } from './migration.ts';
import { planMigrations } from './plan.ts';

test('a migration that does not fit is refused with one sentence', () => {
  const users = createTable('users', { id: t.uuid().pk() });
  for (const [operation, sentence] of [
    [addColumn('users', 'boss', t.ref('users', { column: 'name' }).nullable()), 'Table "users" has no column "name".'],
    [dropTable('people'), 'there is no table "people".'],
  ] as const) {
    const modules = [{ name: 'shop', migrations: [migration('0001_initial', [users, operation])] }];
    expect(() => planMigrations(modules)).toThrow(new RegExp(`^Migration shop/0001_initial: ${sentence.replaceAll('.', String.raw`\.`)}$`));
  }
});
