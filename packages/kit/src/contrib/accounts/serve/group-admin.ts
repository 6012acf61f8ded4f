import type { AdminAction } from '../../../app/admin/declaration.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { screen } from '../../../screens/screen.ts';
import { section } from '../../../screens/screen-words.ts';
import type { Db } from '../../../db/engine/db.ts';
import { accountErrors } from '../errors.ts';
import { membersOf } from '../users/group-store.ts';
import { addGroupMember, removeGroupMember } from '../users/groups.ts';
import { requireUser } from '../users/manage-users.ts';
import { groupResource } from './group-resource.ts';

const MEMBERS_SHOWN = 200;

/** The admin site's list of groups. */
export const groupsScreen = screen(groupResource, {
  label: 'Groups',
  singular: 'group',
  group: 'Access',
  icon: 'user',
  columns: [
    'name',
    { name: 'tenant_key', label: 'Tenant', secondary: true },
    { name: 'members', kind: 'number' },
    { name: 'created_at', label: 'Created', sortable: true, secondary: true },
  ],
  facts: ['id'],
  filters: [{ column: 'tenant_key', name: 'tenant', label: 'Tenant' }],
  search: ['name'],
  edit: ['name'],
  create: ['name', 'tenant_key'],
  fields: { tenant_key: { label: 'Tenant', nullable: true, help: 'Empty: the group counts in every tenant.' } },
  exports: false,
  imports: false,
  bulkEdit: false,
  removal: 'Its memberships and everything it was granted go with it. This cannot be undone.',
  actions: [
    memberAction('add-member', 'Add member', 'neutral', addGroupMember, ['is a member now.', 'was a member already.']),
    memberAction('remove-member', 'Remove member', 'bad', removeGroupMember, ['is no longer a member.', 'was not a member.']),
  ],
  sections: [
    section<{ readonly id: string }>(async ({ row, context }) => {
      const members = await membersOf(context.db, row.id, MEMBERS_SHOWN + 1);
      return {
        kind: 'table',
        title: members.length > MEMBERS_SHOWN ? `Members (the first ${MEMBERS_SHOWN})` : 'Members',
        columns: [
          { name: 'user', label: 'User', kind: 'link' },
          { name: 'since', label: 'Since', kind: 'time' },
        ],
        rows: members.slice(0, MEMBERS_SHOWN).map(({ user_id, username, created_at }) => ({
          id: user_id,
          title: username,
          values: { user: context.linkTo('user', user_id, username), since: created_at.toISOString() },
        })),
        empty: 'The group has no members.',
      };
    }),
  ],
});

function memberAction(
  name: string,
  label: string,
  tone: 'neutral' | 'bad',
  change: typeof addGroupMember,
  [done, already]: readonly [string, string],
): AdminAction {
  return {
    name,
    label,
    tone,
    on: 'record',
    fields: [{ name: 'user', label: 'User', kind: 'reference', of: 'user', required: true }],
    async run({ db, principal, requestId }, [id], fields) {
      if (id === undefined) throw accountErrors.group_not_found();
      const user = await chosenUser(db, String(fields['user']));
      const changed = await change(db, id, user.id, { by: principal, requestId });
      return { message: `${user.username} ${changed ? done : already}`, id };
    },
  };
}

function chosenUser(db: Db, login: string): ReturnType<typeof requireUser> {
  return requireUser(db, login).catch((error: { code?: string; detail?: string }) => {
    if (error.code !== 'user_not_found') throw error;
    throw coreErrors.validation_error({
      errors: [{ location: ['body', 'user'], code: 'user_not_found', message: error.detail ?? 'There is no such user.' }],
    });
  });
}
