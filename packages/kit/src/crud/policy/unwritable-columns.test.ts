import { expect, test } from 'vitest';
import { model, t } from '../../db/index.ts';
import { isStaff, isSuperuser } from '../../permissions/index.ts';
import { Permission, type PermissionContext } from '../../permissions/permission.ts';
import { resource } from '../checks/declare-resource.ts';
import { writableBy } from '../declare/field-rule.ts';
import { Policy } from './policy.ts';
import { unwritableColumns } from './unwritable-columns.ts';

const notes = model('notes', { id: t.uuidv7().pk(), title: t.text(50), pinned: t.bool(), price: t.text(20), body: t.text(100) });
const isDraft = new Permission({
  name: 'isDraft',
  requires: ['title'],
  evaluate: (_, row) => (row === undefined ? 'unknown' : (row as { title: string }).title === 'draft'),
});
const declared = resource(notes, {
  unscoped: true,
  fields: {
    pinned: writableBy(isStaff),
    price: writableBy(isSuperuser),
    body: writableBy(isDraft),
  },
});
const policy = new Policy(declared, {
  policyOf: () => undefined,
  all: () => [],
  hasTenants: false,
  users: null,
  isLogged: false,
  isTriggered: false,
  audience: null,
  using: 'default',
});
const user = { id: 'u', username: 'ann', email: null, is_active: true, is_staff: true, is_superuser: false };
const context = { user, principal: { user, scheme: 'test', scopes: null }, method: 'PATCH', headers: {} } as unknown as PermissionContext;
const verdicts = async (names: readonly string[], row?: object) =>
  [...(await unwritableColumns(policy, context, names, row as never))].map(([name, { verdict, permission }]) => [
    name,
    verdict,
    permission.name,
  ]);

test('columns without a rule, and those that a rule opens to the caller, are not among them', async () => {
  expect(await verdicts(['title', 'pinned'])).toEqual([]);
});

test('without a row, a rule about the row is unknown; with it, it is decided', async () => {
  expect(await verdicts(['title', 'price', 'body'])).toEqual([
    ['price', false, 'isSuperuser'],
    ['body', 'unknown', 'isDraft'],
  ]);
  expect(await verdicts(['body'], { title: 'draft' })).toEqual([]);
  expect(await verdicts(['body'], { title: 'sent' })).toEqual([['body', false, 'isDraft']]);
});
