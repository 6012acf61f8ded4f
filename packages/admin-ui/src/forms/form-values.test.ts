import { expect, test } from 'vitest';
import type { AdminField } from '../api/shapes.ts';
import { fromInput, toInput, toInputs, toSubmission } from './form-values.ts';

const field = (more: Partial<AdminField> & Pick<AdminField, 'kind'>): AdminField => ({ name: 'it', label: 'It', ...more });

test('a value that is not edited comes back as it was, whatever its kind', () => {
  const kinds: [AdminField, unknown][] = [
    [field({ kind: 'text' }), 'a'],
    [field({ kind: 'number' }), 12.5],
    [field({ kind: 'number', nullable: true }), null],
    [field({ kind: 'bool' }), false],
    [field({ kind: 'bool', nullable: true }), null],
    [field({ kind: 'time' }), '2026-03-01T09:30:00.000Z'],
    [field({ kind: 'strings' }), ['orders:read', '*']],
    [field({ kind: 'json' }), { a: [1, null] }],
  ];
  for (const [each, value] of kinds) expect(fromInput(each, toInput(each, value))).toEqual({ value });
});

test('an emptied field travels as null where it may, is asked for where it must be, and is left out otherwise', () => {
  expect(fromInput(field({ kind: 'time', nullable: true }), '')).toEqual({ value: null });
  expect(fromInput(field({ kind: 'text', required: true }), '')).toHaveProperty('fault');
  expect(fromInput(field({ kind: 'strings', required: true }), [])).toHaveProperty('fault');
  expect(fromInput(field({ kind: 'number' }), '')).toEqual({ absent: true });
});

test('a number too large for JavaScript keeps its digits', () => {
  expect(fromInput(field({ kind: 'number' }), '9007199254740993')).toEqual({ value: '9007199254740993' });
  expect(fromInput(field({ kind: 'number' }), 'twelve')).toHaveProperty('fault');
});

test('broken JSON is said at the field and nothing of it travels', () => {
  const fields = [field({ kind: 'json' })];
  const { values, faults } = toSubmission(fields, { it: '{"a":' }, null);
  expect(values).toEqual({});
  expect(faults['it']).toMatch(/^Invalid JSON/);
});

test('JSON with a number that JavaScript would change is said at the field, and does not travel', () => {
  const parsed = fromInput(field({ kind: 'json' }), '{"a":[1,9007199254740993]}');
  expect(parsed).toEqual({ fault: expect.stringContaining('9007199254740993') });
  expect(fromInput(field({ kind: 'json' }), '{"a":9007199254740991,"b":"9007199254740993"}')).toEqual({
    value: { a: 9_007_199_254_740_991, b: '9007199254740993' },
  });
});

test('an edit sends what was changed and nothing else', () => {
  const fields = [
    field({ kind: 'text' }),
    field({ kind: 'strings', name: 'scopes' }),
    field({ kind: 'time', name: 'until', nullable: true }),
  ];
  const before = toInputs(fields, { it: 'ci', scopes: ['a:b'], until: '2026-03-01T09:30:00.500Z' });
  expect(toSubmission(fields, { ...before, scopes: ['a:b', 'c:d'] }, before).values).toEqual({ scopes: ['a:b', 'c:d'] });
  expect(toSubmission(fields, { ...before, until: '' }, before).values).toEqual({ until: null });
});

test('a new record leaves out fields that were not filled in', () => {
  const fields = [field({ kind: 'text' }), field({ kind: 'text', name: 'note' }), field({ kind: 'bool', name: 'on' })];
  expect(toSubmission(fields, { it: 'x', note: '', on: false }, null).values).toEqual({ it: 'x', on: false });
});

test('a field that this member of staff cannot write is not sent, also when a new record needs no value for it', () => {
  const closed = { refused: 'Only users who pass isSuperuser can.' };
  const fields = [
    field({ kind: 'text' }),
    field({ kind: 'bool', name: 'special', ...closed }),
    field({ kind: 'number', name: 'rate', ...closed }),
  ];
  const inputs = { it: 'x', special: false, rate: 'no number' };
  expect(toSubmission(fields, inputs, null)).toEqual({ values: { it: 'x' }, faults: {} });
});
