import { expect, test } from 'vitest';
import { createApp } from '../../app/assemble/create-app.ts';
import type { StartUpError } from '../../app/check/start-up-error.ts';
import { model, t, whereSql } from '../../db/index.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { CrudController, derived, one, resource } from '../index.ts';

const lists = model('lists', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly() });
const columns = {
  id: t.uuidv7().pk(),
  list_id: t.ref(() => lists),
  title: t.text(80),
  due_at: t.timestamp(),
  level: t.int(),
  data: t.json(),
};
const entries = model('entries', columns);
const relations = { list: one(() => lists, 'list_id') };
const text = jsonSchema<string>({ type: 'string' });

function faults(options: object, controller: object = {}, table = entries): readonly string[] {
  const owned = resource(lists, { owner: 'owner_id' });
  class Entries extends CrudController(
    resource(table, { relations, ...options }) as never,
    {
      permission: isAuthenticated,
      live: true,
      ...controller,
    } as never,
  ) {}
  try {
    createApp({ database: 'sqlite::memory:', mount: { '/v1': { '/entries': Entries } }, resources: [owned], log: { level: 'silent' } });
    return [];
  } catch (error) {
    return (error as StartUpError).faults.filter(({ id }) => id === 'E035').map(({ message }) => message);
  }
}

test.each<[string, object, object, RegExp]>([
  ['a rule over another table', { rows: () => ({ list: { is: {} } }) }, {}, /rows depends on more than logged columns/],
  ['a rule in SQL', { rows: () => whereSql('this.level > 1') }, {}, /rows depends on more than logged columns/],
  ['a rule on a column that is not logged', { rows: () => ({ data: { isnull: false } }) }, {}, /rows depends on more than logged columns/],
  [
    'a rule about a time that is rounded',
    { rows: ({ now }: { now: Date }) => ({ due_at: { gt: new Date(Math.floor(now.getTime() / 60_000) * 60_000) } }) },
    {},
    /rows depends on the time in a way that cannot be followed/,
  ],
  [
    'a rule that is another one at another time',
    { rows: ({ now }: { now: Date }) => (now.getUTCFullYear() > 1990 ? { level: 1 } : true) },
    {},
    /rows depends on the time in a way that cannot be followed/,
  ],
  ['rows for anonymous callers over another table', { rows: () => true, anonymous: { list: { is: {} } } }, {}, /anonymous depends on/],
  [
    'a field of a related record',
    { rows: () => true, computed: { owner: { requires: ['list.owner_id'], response: text, value: () => '' } } },
    {},
    /the field "owner" depends on other records/,
  ],
  [
    'a state that depends on the day',
    {
      rows: () => true,
      computed: { state: derived(['late', 'open'], { late: ({ now }) => ({ level: now.getUTCFullYear() }) }) },
    },
    {},
    /the field "state" depends on other records, or on the time/,
  ],
  [
    'a state of related records',
    { rows: () => true, computed: { state: derived(['owned', 'open'], { owned: () => ({ list: { is: { owner_id: 'x' } } }) }) } },
    {},
    /the field "state" depends on other records, or on the time/,
  ],
  ['no list', { rows: () => true }, { operations: { list: false } }, /it has no list/],
])('a live list with %s does not start', (_name, options, controller, message) => {
  expect(faults(options, controller)).toEqual([expect.stringMatching(message)]);
});

test('a live list whose rows the database deletes by a foreign key does not start', () => {
  const cascading = model('entries', { ...columns, list_id: t.ref(() => lists, { onDelete: 'cascade' }) });
  expect(faults({ rows: () => true }, {}, cascading as never)).toEqual([expect.stringMatching(/"list_id" refers to .*on delete cascade/)]);
});

test('a live list whose changes triggers log starts, also where the database deletes its rows', () => {
  const cascading = model('entries', { ...columns, list_id: t.ref(() => lists, { onDelete: 'cascade' }) });
  expect(faults({ rows: () => true, changes: 'trigger' }, {}, cascading as never)).toEqual([]);
});

test('a live list with a handler around it does not start: it would not see the stream', () => {
  const owned = resource(lists, { owner: 'owner_id' });
  class Lists extends CrudController(owned, { permission: isAuthenticated, live: true }) {
    override list = this.wrap('list', {}, (_context, next) => next());
  }
  expect(() => createApp({ database: 'sqlite::memory:', mount: { '/v1': { '/lists': Lists } }, log: { level: 'silent' } })).toThrow(
    /a handler is around its list/,
  );
});

test('a live list whose rows and states are decided by comparing times with now starts', () => {
  const rows = ({ now }: { now: Date }) => ({ or: [{ due_at: { gt: now } }, { due_at: { lt: new Date(now.getTime() - 60_000) } }] });
  const state = derived(['late', 'open'], { late: ({ now }) => ({ due_at: { lt: now } }) });
  expect(faults({ rows, computed: { state } })).toEqual([]);
});

test('a live list below a record starts, with a rule that the caller sees that record', () => {
  expect(faults({ rows: () => ({ list: { is: {} } }) }, { parent: { relation: 'list' } })).toEqual([]);
  expect(faults({ rows: () => ({ list: { is: { owner_id: 'x' } } }) }, { parent: { relation: 'list' } })).toEqual([
    expect.stringMatching(/rows depends on more than logged columns/),
  ]);
});

test('a live list that columns of the row decide starts, also where such a field is left out of the output', () => {
  const computed = { owner: { requires: ['list.owner_id'], response: text, value: () => '' } };
  expect(faults({ rows: () => ({ level: { lt: 3 } }), computed }, { output: ['id', 'title'] })).toEqual([]);
});
