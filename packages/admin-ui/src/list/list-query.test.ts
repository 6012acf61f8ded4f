import { expect, test } from 'vitest';
import type { AdminResourceShape } from '../api/shapes.ts';
import { hashOf, parseHash } from '../routing/location.ts';
import { listParams, readListQuery } from './list-query.ts';

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
  const shown = { search: 'a&b #?/ü', filters: { state: 'revoked' }, sort: '-name', cursor: 'c/1+2=', limit: 100 };
  const hash = hashOf({ page: 'list', resource: keys.name }, listParams(shown));
  const { place, params } = parseHash(hash);
  expect(place).toEqual({ page: 'list', resource: 'api-keys' });
  expect(readListQuery(keys, params)).toEqual(shown);
});

test('what the resource does not offer is not asked for', () => {
  const params = new URLSearchParams('filter.owner=x&sort=digest&size=7');
  expect(readListQuery(keys, params)).toEqual({ search: '', filters: {}, sort: '', cursor: '', limit: 50 });
});

test('an id of any form leads to its record and back', () => {
  for (const id of ['new', '-', 'a/b', '%2F', '<b>', 'ü ?#&']) {
    for (const page of ['record', 'edit'] as const)
      expect(parseHash(hashOf({ page, resource: 'r', id })).place).toEqual({ page, resource: 'r', id });
  }
  expect(parseHash('#/r/-/new').place).toEqual({ page: 'create', resource: 'r' });
});
