import { expect, test } from 'vitest';
import type { AdminResourceShape } from '../api/shapes.ts';
import { hashOf, parseHash } from '../routing/location.ts';
import { ApiFault } from '../api/fault.ts';
import { hiddenColumns, listParams, readListQuery, shownColumns, withoutWrong } from './list-query.ts';

const keys: AdminResourceShape = {
  name: 'api-keys',
  label: 'API keys',
  singular: 'API key',
  group: 'Access',
  columns: [
    { name: 'name', label: 'Name', kind: 'text', sortable: true },
    { name: 'digest', label: 'Digest', kind: 'code' },
  ],
  filters: [{ name: 'state', label: 'State', kind: 'select' }],
  searches: 'name',
  creation: { refused: 'no' },
  editable: true,
  removable: false,
  actions: [],
};

test('a list that is shared by its address is the same list', () => {
  const shown = {
    search: 'a&b #?/ü',
    filters: { state: 'revoked' },
    sort: '-name',
    cursor: 'c/1+2=',
    limit: 100,
    columns: ['name', 'digest'],
  };
  const hash = hashOf({ page: 'list', resource: keys.name }, listParams(shown));
  const { place, params } = parseHash(hash);
  expect(place).toEqual({ page: 'list', resource: 'api-keys' });
  expect(readListQuery(params)).toEqual(shown);
});

test('what the server does not take of an address is said by its name, and the rest is kept', () => {
  const query = readListQuery(new URLSearchParams('filter.owner=x&filter.state=open&sort=digest&size=7&search=ci&after=c'));
  const refused = (...fields: string[]) =>
    new ApiFault({
      status: 422,
      code: 'validation_error',
      detail: '',
      fields: fields.map((field) => ({ field, row: null, message: 'Choose another.' })),
    });
  expect(withoutWrong(keys, query, refused('filter.owner', 'filter.state', 'sort'))).toEqual({
    query: { search: 'ci', filters: {}, sort: '', cursor: '', limit: 50, columns: [] },
    sentences: [
      'The filter "owner: x" is ignored. This list has no such filter.',
      'The filter "State: open" is ignored. Choose another.',
      'The sort order "digest" is ignored. Choose another.',
    ],
  });
  expect(withoutWrong(keys, query, refused('cursor'))).toBeNull();
  expect(withoutWrong(keys, query, refused())).toBeNull();
});

test('an id of any form leads to its record and back', () => {
  for (const id of ['new', '-', 'a/b', '%2F', '<b>', 'ü ?#&']) {
    for (const page of ['record', 'edit'] as const)
      expect(parseHash(hashOf({ page, resource: 'r', id })).place).toEqual({ page, resource: 'r', id });
  }
  expect(parseHash('#/r/-/new').place).toEqual({ page: 'create', resource: 'r' });
});

test('a view shows the columns that it names and its first; names that the list has lost are nothing', () => {
  expect(hiddenColumns(keys, { columns: ['name'] }, [])).toEqual(['digest']);
  expect(hiddenColumns(keys, { columns: ['digest'] }, ['digest'])).toEqual([]);
  expect(hiddenColumns(keys, { columns: ['gone'] }, ['digest'])).toEqual(['digest']);
  expect(hiddenColumns(keys, { columns: [] }, ['digest'])).toEqual(['digest']);
  expect(shownColumns(keys, ['name', 'digest'])).toEqual(['name']);
});
