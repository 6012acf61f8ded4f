import { expect, test } from 'vitest';
import * as db from '../index.ts';
import { t } from '../declare/column.ts';
import { model } from '../declare/model.ts';
import { modelDrift } from '../migrations/drift.ts';
import { type Migration, migration } from '../migrations/migration.ts';
import { createTable } from '../migrations/operation.ts';
import type { Backfill } from '../backfills/backfill.ts';
import { proposeSteps } from './propose-steps.ts';

const key = { id: t.uuidv7().pk() };
const initial = migration('0001_initial', [
  createTable('people', key),
  createTable('marks', { a: t.int(), b: t.text(9) }, { primaryKey: ['a', 'b'] }),
]);

/** The default export of a proposed file. */
function evaluate<R>(source: string): R {
  const names = Object.keys(db);
  const body = source.replace(/^import .*$/m, '').replace('export default ', 'return ');
  // oxlint-disable-next-line typescript/no-implied-eval -- the source is what the function under test wrote
  return new Function(...names, body)(...names.map((name) => (db as Record<string, unknown>)[name])) as R;
}

test('a new required column takes three steps, which lead to the models of both releases', () => {
  const columns = { name: t.text(20), state: t.enum(['open', 'done']), paid: t.bool() };
  const optional = { name: t.text(20).nullable(), state: t.enum(['open', 'done']).nullable(), paid: t.bool().nullable() };
  const marks = { a: t.int(), b: t.text(9) };
  const release = (first: typeof columns | typeof optional, n: ReturnType<typeof t.int>) => [
    model('people', { ...key, ...first }),
    model('marks', { ...marks, n }, { primaryKey: ['a', 'b'] }),
  ];
  const wanted = release(columns, t.int());
  const steps = proposeSteps([{ name: 'shop', models: wanted, migrations: [initial] }], 'shop', 'more');
  expect(steps?.required).toEqual(['people.name', 'people.state', 'people.paid', 'marks.n']);
  expect(steps?.files.map(({ name, kind, release: when }) => [name, kind, when])).toEqual([
    ['0002_more', 'migration', 'this'],
    ['0003_fill_people', 'backfill', 'this'],
    ['0004_fill_marks', 'backfill', 'this'],
    ['0005_require_people_name', 'migration', 'next'],
    ['0006_require_people_state', 'migration', 'next'],
    ['0007_require_people_paid', 'migration', 'next'],
    ['0008_require_marks_n', 'migration', 'next'],
  ]);
  const of = (kind: string, when: string) => (steps?.files ?? []).filter((each) => each.kind === kind && each.release === when);
  const now = of('migration', 'this').map(({ source }) => evaluate<Migration>(source));
  const next = of('migration', 'next').map(({ source }) => evaluate<Migration>(source));
  const backfills = of('backfill', 'this').map(({ source }) => evaluate<Backfill>(source));
  const nullable = release(optional, t.int().nullable() as never);
  expect(modelDrift([{ name: 'shop', models: nullable, migrations: [initial, ...now], backfills }])).toEqual([]);
  expect(modelDrift([{ name: 'shop', models: wanted, migrations: [initial, ...now, ...next], backfills }])).toEqual([]);
  expect(next.every(({ online, backfills: fills }) => online && fills.length === 1)).toBe(true);
});

test('a column that is nullable or has a default takes one step', () => {
  const models = [model('people', { ...key, note: t.text().nullable(), n: t.int().dbDefault(0) })];
  const steps = proposeSteps(
    [{ name: 'shop', models, migrations: [migration('0001_initial', [createTable('people', key)])] }],
    'shop',
    'note',
  );
  expect(steps).toMatchObject({ files: [{ name: '0002_note', kind: 'migration', release: 'this' }], required: [] });
});

test('an encrypted column that replaces a plaintext one takes three steps', () => {
  const before = { ...key, org: t.text(20), phone: t.text(20).nullable(), notes: t.json<string[]>().nullable() };
  const first = migration('0001_initial', [createTable('people', before)]);
  const phone = t.text(20).nullable().unique();
  const models = (replaces: boolean) => [
    model(
      'people',
      {
        ...key,
        org: t.text(20),
        ...(replaces ? { phone: before.phone, notes: before.notes } : {}),
        phone_sealed: phone.encrypted({
          search: 'equality',
          tenant: 'org',
          normalize: (value) => value.trim(),
          ...(replaces ? { replaces: 'phone' } : {}),
        }),
        notes_sealed: t
          .json<string[]>()
          .nullable()
          .encrypted({ id: 'notes', ...(replaces ? { replaces: 'notes' } : {}) }),
      },
      { id: 'persons' },
    ),
  ];
  const steps = proposeSteps([{ name: 'shop', models: models(true), migrations: [first] }], 'shop', 'seal');
  expect(steps).toMatchObject({ required: [], encrypted: ['people.phone_sealed', 'people.notes_sealed'] });
  const files = steps?.files ?? [];
  expect(files.map(({ name, kind, release: when }) => [name, kind, when])).toEqual([
    ['0002_seal', 'migration', 'this'],
    ['0003_encrypt_people', 'backfill', 'this'],
    ['0004_drop_people_phone', 'migration', 'next'],
    ['0005_drop_people_notes', 'migration', 'next'],
  ]);
  const [added, filled, ...dropped] = files.map(({ source }) => source) as [string, string, ...string[]];
  const backfills = [evaluate<Backfill>(filled.replace(/^\/\/.*\n/gm, ''))];
  const now = [first, evaluate<Migration>(added)];
  const last = [...now, ...dropped.map((source) => evaluate<Migration>(source))];
  expect(modelDrift([{ name: 'shop', models: models(true), migrations: now, backfills }])).toEqual([]);
  expect(modelDrift([{ name: 'shop', models: models(false), migrations: last, backfills }])).toEqual([]);
  expect(backfills[0]?.model.id).toBe('persons');
  expect(filled).toContain(`phone_sealed: t.text(20).nullable().encrypted({ search: 'equality', tenant: 'org' })`);
  expect(filled).toContain(`notes_sealed: t.json().nullable().encrypted({ id: 'notes' })`);
  expect(filled).toContain("// Review: give 'phone_sealed' the normalize of its declaration");
});

test('what an encrypted column replaces must be able to end', () => {
  const sealed = (plain: object, options: object = {}) =>
    model('people', {
      ...key,
      ...plain,
      sealed: t
        .text(20)
        .nullable()
        .encrypted({ replaces: 'phone', ...options }),
    } as never);
  expect(() => sealed({})).toThrow('replaces refers to an unknown column "phone"');
  expect(() => sealed({ phone: t.text(20) })).toThrow('make "phone" .nullable(), so that the next release can leave it out');
  expect(() => sealed({ phone: t.json().nullable() })).toThrow('is a text, and "phone", which it replaces, is a json');
  expect(() => sealed({ phone: t.text(20).nullable().dbDefault('none') })).toThrow('the database fills "phone"');
  const required = { ...key, phone: t.text(20).nullable(), sealed: t.text(20).encrypted({ replaces: 'phone' }) };
  expect(() => model('people', required)).toThrow('make it .nullable() until every row is encrypted');
  const early = { ...key, sealed: t.text(20).nullable().encrypted({ replaces: 'phone' }), phone: t.text(20).nullable() };
  expect(() => model('people', early)).toThrow('declare it after "phone"');
});
