import { expect, test } from 'vitest';
import { createApp } from '../../app/assemble/create-app.ts';
import { model, t } from '../../db/index.ts';
import {
  allowAny,
  any,
  hasRecentLogin,
  hasRole,
  hasRule,
  hasScopes,
  isAuthenticated,
  isOwner,
  isStaff,
  Permission,
} from '../../permissions/index.ts';
import { CrudController, derived, people, resource, visibleTo } from '../index.ts';
import { STAFF } from '../declare/resource.ts';
import { mountedResourceOf } from '../serve/controller.ts';
import { isSteady } from './steady-list.ts';

const notes = model('notes', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  org: t.text(20).readOnly(),
  level: t.int(),
  due_at: t.timestamp(),
});
const owner = 'owner_id';
const READ_ONLY = { create: false, update: false, partialUpdate: false, destroy: false } as const;
const relations = { author: people('owner_id') };

function isSteadyList(
  declared: object,
  { permission = isAuthenticated, ...controller }: { permission?: Permission; audience?: string } = {},
): boolean {
  class Notes extends CrudController(resource(notes, declared as never), {
    permission,
    live: true,
    operations: READ_ONLY,
    ...controller,
  }) {}
  const { controllers } = createApp({
    database: 'sqlite::memory:',
    tenant: () => null,
    users: {
      table: {
        name: 'users',
        id: 'id',
        username: 'username',
        email: 'email',
        isActive: 'is_active',
        isStaff: 'is_staff',
        isSuperuser: 'is_superuser',
      },
    },
    mount: { '/v1': { '/notes': Notes } },
    log: { level: 'silent' },
  });
  const mounted = mountedResourceOf(controllers.find((each) => each instanceof Notes) as object);
  return isSteady(mounted as NonNullable<typeof mounted>, permission);
}

test.each<[string, object, { permission?: Permission; audience?: string }?]>([
  ['an owner', { owner }],
  ['an owner, unless staff asks', { owner: { column: owner, unless: isStaff } }],
  ['a tenant and a role', { tenant: 'org' }, { permission: hasRole('lead') }],
  ['rows that are data', { unscoped: true, audiences: { [STAFF]: { rows: true } } }, { permission: isStaff, audience: STAFF }],
  ['everybody', { unscoped: true }, { permission: allowAny }],
  ['fields by rules about the caller and the row', { owner, fields: { level: visibleTo(any(isStaff, isOwner())) } }],
  ['a state of the row', { owner, computed: { state: derived(['due', 'open'], { due: ({ now }) => ({ due_at: { lte: now } }) }) } }],
])('the rights of a list are not asked again where they follow from the caller: %s', (_, declared, controller) => {
  expect(isSteadyList(declared, controller)).toBe(true);
});

const anything = new Permission({ name: 'anything', kind: 'is_staff', evaluate: () => true });

test.each<[string, object, { permission?: Permission; audience?: string }?]>([
  ['rows by a function', { rows: () => ({ level: 1 }) }],
  ['a rule of the application', { owner }, { permission: hasRule(() => true) }],
  ['a permission of the application, whatever it says of itself', { owner }, { permission: anything }],
  ['such a permission among others', { owner }, { permission: isAuthenticated.and(any(hasScopes({ allowUnscoped: true }), anything)) }],
  ['a login that becomes old', { owner }, { permission: hasRecentLogin }],
  ['an exception by a rule', { owner: { column: owner, unless: anything } }],
  ['a field by a rule', { owner, fields: { level: visibleTo(anything) } }],
  [
    'a state of the owner',
    { owner, relations, computed: { state: derived(['open', 'left'], { open: () => ({ author: { is: { is_active: true } } }) }) } },
  ],
])('they are asked again where something else decides: %s', (_, declared, controller) => {
  expect(isSteadyList(declared, controller)).toBe(false);
});
