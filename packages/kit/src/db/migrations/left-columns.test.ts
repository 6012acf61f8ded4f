import { expect, test } from 'vitest';
import { t } from '../declare/column.ts';
import { model } from '../declare/model.ts';
import { leftColumns, modelDrift } from './drift.ts';
import { migration } from './migration.ts';
import { createTable } from './operation.ts';

const key = { id: t.int().pk() };
const now = [model('people', { ...key, name: t.text() })];
const made = (columns: Parameters<typeof createTable>[1], options?: Parameters<typeof createTable>[2]) => [
  {
    name: 'shop',
    models: now,
    migrations: [migration('0001_initial', [createTable('people', { ...key, name: t.text(), ...columns }, options)])],
  },
];

test.each([
  ['that may be null', t.text().nullable()],
  ['with a default', t.int().dbDefault(0)],
])('a column %s may stay behind when the model no longer has it, with its index and check', (_name, old) => {
  const modules = made({ old }, { indexes: [{ columns: ['old', 'name'] }], checks: { some: 'old is not null' } });
  expect(modelDrift(modules)).toEqual([]);
  expect(leftColumns(modules)).toEqual(['people.old']);
});

test('a column that every new row needs cannot stay behind', () => {
  expect(modelDrift(made({ old: t.text() }))).toEqual(['Column "people.old" is in the migrations but no longer in the model.']);
});

test('a unique index of a column that stays behind is a difference: rows without a value could collide', () => {
  expect(modelDrift(made({ old: t.int().dbDefault(0) }, { indexes: [{ columns: ['old'], unique: true }] }))).toEqual([
    'Index "people_old_unique" of "people" is in the migrations but is missing or different in the model.',
  ]);
});
