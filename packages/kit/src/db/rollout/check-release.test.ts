import { expect, test } from 'vitest';
import { t } from '../declare/column.ts';
import { model, type Model } from '../declare/model.ts';
import { migration } from '../migrations/migration.ts';
import {
  addCheck,
  addColumn,
  alterColumn,
  createIndex,
  createTable,
  dropColumn,
  dropTable,
  renameColumn,
} from '../migrations/operation.ts';
import type { Operation } from '../migrations/operation.ts';
import { checkRelease, parseReleaseSchema, releaseSchema } from './check-release.ts';

const columns = { id: t.int().pk(), name: t.text(20), old: t.text().nullable(), state: t.enum(['open', 'done']), price: t.decimal(8, 2) };
const people = model('people', columns);
const initial = migration('0001_initial', [createTable('people', columns)]);
const before = (models: readonly Model[] = [people]) => releaseSchema([{ name: 'shop', models }]);
const after = (...operations: (Operation | readonly Operation[])[]) =>
  checkRelease(before(), [{ name: 'shop', migrations: [initial, migration('0002_change', operations)] }]);

test.each<[string, ReturnType<typeof after>, RegExp]>([
  ['dropping a column that the version before reads', after(dropColumn('people', 'old')), /^Column "people.old" is dropped or renamed/],
  ['renaming one', after(renameColumn('people', 'old', 'newer')), /^Column "people.old" is dropped or renamed/],
  ['dropping its table', after(dropTable('people')), /^Table "people" is dropped or renamed/],
  ['a new required column', after(addColumn('people', 'email', t.text(), { backfill: `''` })), /"people.email" is new and required/],
  ['another type', after(alterColumn('people', 'old', t.int().nullable())), /changes from text to integer/],
  ['shorter text', after(alterColumn('people', 'name', t.text(10))), /character varying\(20\) to character varying\(10\)/],
  ['fewer values', after(alterColumn('people', 'state', t.enum(['open']))), /no longer accepts "done"/],
])('%s breaks the version before', (_name, report, sentence) => {
  expect(report.breaks).toEqual([expect.stringMatching(sentence)]);
});

test.each<[string, ReturnType<typeof after>]>([
  ['a nullable column', after(addColumn('people', 'email', t.text().nullable()))],
  ['a column with a default', after(addColumn('people', 'n', t.int().dbDefault(0)))],
  ['longer text', after(alterColumn('people', 'name', t.text(40)))],
  ['larger numbers', after(alterColumn('people', 'price', t.decimal(12, 2)))],
  ['an index', after(createIndex('people', { columns: ['name'] }))],
])('%s does not concern the version before', (_name, report) => {
  expect(report).toEqual({ breaks: [], warnings: [] });
});

test.each<[string, ReturnType<typeof after>, RegExp]>([
  ['a value that is required now', after(alterColumn('people', 'old', t.text(), { backfill: `''` })), /requires a value now/],
  ['a value that may be missing now', after(alterColumn('people', 'name', t.text(20).nullable())), /may be null now/],
  ['a unique index', after(createIndex('people', { columns: ['name'], unique: true })), /^Unique index "people_name_unique"/],
  ['a check', after(addCheck('people', 'positive', 'id > 0')), /^Check "people_positive_check"/],
  ['a value of an enum', after(alterColumn('people', 'state', t.enum(['open', 'done', 'late']))), /can be "late" now/],
])('%s is a warning', (_name, report, sentence) => {
  expect(report).toEqual({ breaks: [], warnings: [expect.stringMatching(sentence)] });
});

test('a column that the version before no longer has in its models can be dropped', () => {
  const { old: _left, ...kept } = columns;
  const schema = parseReleaseSchema(JSON.stringify(before([model('people', kept)])));
  const modules = [{ name: 'shop', migrations: [initial, migration('0002_drop', [dropColumn('people', 'old')])] }];
  expect(schema).not.toBeNull();
  expect(checkRelease(schema ?? before(), modules)).toEqual({ breaks: [], warnings: [] });
});

test.each(['', 'null', '{}', '{"format":2,"tables":{}}'])('%j is not the schema of a release', (text) => {
  expect(parseReleaseSchema(text)).toBeNull();
});
