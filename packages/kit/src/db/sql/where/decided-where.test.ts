import { expect, test } from 'vitest';
import { model, t } from '../../index.ts';
import { compileWhere } from './compile-where.ts';
import type { Where } from './where.ts';

const people = model('people', { id: t.text().pk(), name: t.text(), is_active: t.bool() });
const notes = model('notes', { id: t.int().pk(), level: t.int().nullable(), owner_id: t.text() });
const relations = (name: string) => (name === 'owner' ? ({ kind: 'one', model: people, column: 'owner_id' } as const) : undefined);
const active = { owner: { is: { is_active: true } } };
const trees: readonly object[] = [
  active,
  { not: active },
  { and: [{ level: 1 }, active] },
  { or: [{ level: 1 }, { not: active }] },
  { not: { or: [{ level: { gt: 1 } }, { owner: { is: { and: [{ is_active: false }, { id: 'a' }] } } }] } },
];

test.each(trees)('a relation to a known row is decided as it is for each row that was read with it: %j', (tree) => {
  const where = compileWhere(notes, tree as Where, relations);
  expect(where.isEvaluable).toBe(false);
  for (const owner of [null, { id: 'a', is_active: true }, { id: 'a', is_active: false }, { id: 'b', is_active: false }]) {
    const decided = where.deciding(new Map([['owner', owner]]));
    expect(decided.isEvaluable).toBe(true);
    for (const level of [null, 0, 1, 2]) {
      const row = { id: 1, level, owner_id: 'a' };
      expect(decided.matches(row)).toBe(where.matches({ ...row, owner }));
    }
  }
});

test('a column that the known row does not have leaves the condition as it is', () => {
  const where = compileWhere(notes, { owner: { is: { name: 'ada' } } } as Where, relations);
  const known = new Map([['owner', { id: 'a', is_active: true }]]);
  expect([where.deciding(known).isEvaluable, where.deciding(new Map()).isEvaluable]).toEqual([false, false]);
});
