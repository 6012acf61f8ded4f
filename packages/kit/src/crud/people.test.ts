import { describe, expect, test } from 'vitest';
import { createApp, StartUpError } from '../app/index.ts';
import type { UserTable } from '../auth/people/user-table.ts';
import { model, t } from '../db/index.ts';
import { isAuthenticated, isStaff } from '../permissions/index.ts';
import { CrudController, people, resource, visibleTo } from './index.ts';

const sheets = model('sheets', { id: t.uuidv7().pk(), owner_id: t.uuid(), day: t.date(), note: t.text(40), title: t.text(40) });
const columns = { username: 'name', email: 'email', isActive: 'a', isStaff: 's', isSuperuser: 'r' };
const users = (idType: NonNullable<UserTable['idType']>) => ({ table: { name: 'users', id: 'id', ...columns, idType } });
const permission = isAuthenticated;

function faults(policy: object, options: object = {}, app: object = { users: users('uuid') }): string[] {
  class Sheets extends CrudController(resource(sheets, { unscoped: true, ...policy }), { permission, ...options }) {}
  try {
    createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, docs: false, mount: { '/v1': { '/sheets': Sheets } }, ...app });
    return [];
  } catch (error) {
    if (!(error instanceof StartUpError)) throw error;
    return error.faults.map(({ id, message }) => `${id} ${message}`);
  }
}

describe('relations to users, checked at startup', () => {
  const owner = { relations: { owner: people('owner_id') } };

  test.each([
    ['uuid', 'owner_id'],
    ['uuid', 'note'],
    ['text', 'owner_id'],
    ['bigint', 'note'],
  ] as const)('ids of %s can be in the column %s', (idType, column) => {
    expect(faults({ relations: { owner: people(column) } }, { expand: ['owner'] }, { users: users(idType) })).toEqual([]);
  });

  test.each([
    ['bigint', 'owner_id'],
    ['integer', 'owner_id'],
    ['uuid', 'day'],
    ['text', 'day'],
  ] as const)('ids of %s cannot be in the column %s', (idType, column) => {
    const found = faults({ relations: { owner: people(column) } }, { expand: ['owner'] }, { users: users(idType) });
    const problem = new RegExp(`^E017 .*is through "${column}", a \\w+ column, but the ids of "users" are ${idType}`);
    expect(found).toEqual([expect.stringMatching(problem)]);
  });

  test('an app without users, an unknown column, and a user as the parent of a URL', () => {
    expect(faults(owner, {}, {})).toEqual([expect.stringMatching(/E017 .*"owner" leads to users, and the app has none/)]);
    expect(faults({ relations: { owner: people('ownr_id') } })).toEqual([expect.stringMatching(/E012 .*unknown column "ownr_id"/)]);
    expect(faults(owner, { parent: { relation: 'owner' } })).toEqual(
      expect.arrayContaining([expect.stringMatching(/E017 .*parent is "owner", which leads to users/)]),
    );
  });

  test('filters and search name fields of a user that everyone can see', () => {
    expect(faults(owner, { filters: { 'owner.name': ['eq'] }, search: ['title', 'owner.name'] })).toEqual([]);
    expect(faults(owner, { filters: { 'owner.email': ['eq'] } })).toEqual([expect.stringMatching(/E012 .*"owner.email"/)]);
    expect(faults(owner, { search: ['owner.email'] })).toEqual([expect.stringMatching(/E012 .*"owner.email"/)]);
    expect(faults({ ...owner, fields: { owner_id: visibleTo(isStaff) } }, { search: ['owner.name'] })).toEqual([
      expect.stringMatching(/E016 .*"owner.name", which some callers cannot see/),
    ]);
  });
});

test('what types can say does not compile', () => {
  const wrong = () => {
    // @ts-expect-error -- no such column
    resource(sheets, { unscoped: true, relations: { owner: people('ownr_id') } });
    const own = resource(sheets, { unscoped: true, relations: { owner: people('owner_id') } });
    // @ts-expect-error -- a user has no such field
    CrudController(own, { permission, filters: { 'owner.email': ['eq'] } });
    // @ts-expect-error -- nor can it be searched
    CrudController(own, { permission, search: ['owner.email'] });
    // @ts-expect-error -- a condition on a user
    resource(sheets, { relations: { owner: people('owner_id') }, rows: () => ({ owner: { is: { email: 'x' } } }) });
  };
  expect(wrong).toBeTypeOf('function');
});
