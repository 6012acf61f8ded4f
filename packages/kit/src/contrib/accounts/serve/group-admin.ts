import { screen } from '../../../screens/screen.ts';
import { type ActionsDone, section } from '../../../screens/screen-words.ts';
import { membersOf } from '../users/group-store.ts';
import { groupResource } from './group-resource.ts';

const MEMBERS_SHOWN = 200;

const ofMember = {
  on: 'record',
  fields: [{ name: 'user', label: 'User', kind: 'reference', of: 'user', required: true }],
  message: ({ returned: [text] }: ActionsDone) => String(text),
} as const;

/** The admin site's list of groups. */
export const groupsScreen = screen(groupResource, {
  label: 'Groups',
  singular: 'group',
  group: 'Access',
  icon: 'group',
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
  fields: { tenant_key: { label: 'Tenant', kind: 'text', nullable: true, help: 'Leave empty for a group in all tenants.' } },
  exports: false,
  imports: false,
  bulkEdit: false,
  removal: 'Its memberships and everything it was granted go with it. This cannot be undone.',
  actions: [
    { name: 'add-member', label: 'Add member', ...ofMember },
    { name: 'remove-member', label: 'Remove member', tone: 'bad', ...ofMember },
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
