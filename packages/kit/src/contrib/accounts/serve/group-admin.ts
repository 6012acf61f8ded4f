import { modelField, modelList } from '../../../app/admin/model-list.ts';
import type { AdminAction, AdminResource } from '../../../app/admin/declaration.ts';
import type { AdminRow } from '../../../app/admin/shapes.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { accountErrors } from '../errors.ts';
import { addGroupMember, createGroup, deleteGroup, removeGroupMember, renameGroup } from '../users/groups.ts';
import { findGroupById, type GroupRow, membersOf } from '../users/group-store.ts';
import { requireUser } from '../users/manage-users.ts';
import { groups } from '../models.ts';

const MEMBERS_SHOWN = 200;

const list = modelList(groups, 'g', {
  columns: [
    'name',
    { name: 'tenant_key', label: 'Tenant', secondary: true },
    { name: 'members', kind: 'number' },
    { name: 'created_at', label: 'Created', sortable: true, secondary: true },
  ],
});

const nameField = modelField(groups, 'name');

/** The admin site's list of groups. */
export function groupsResource(): AdminResource {
  return {
    name: 'groups',
    label: 'Groups',
    singular: 'group',
    group: 'Access',
    icon: 'user',
    auditedAs: 'group',
    columns: list.columns,
    filters: [{ name: 'tenant', label: 'Tenant', kind: 'text' }],
    searches: 'name',
    creation: {
      fields: [
        nameField,
        modelField(groups, 'tenant_key', { label: 'Tenant', nullable: true, help: 'Empty: the group counts in every tenant.' }),
      ],
    },
    editable: true,
    removable: true,
    removal: 'Its memberships and everything it was granted go with it. This cannot be undone.',
    actions: [
      memberAction('add-member', 'Add member', 'neutral', addGroupMember, ['is a member now.', 'was a member already.']),
      memberAction('remove-member', 'Remove member', 'bad', removeGroupMember, ['is no longer a member.', 'was not a member.']),
    ],
    async list({ db }, query) {
      const where = await list.conditions(db, query, { search: { columns: ['name'] }, equals: { tenant: 'tenant_key' } });
      const columns = 'g.id, g.tenant_key, g.name, g.created_at, (select count(*) from group_members m where m.group_id = g.id) as members';
      const { rows, ...page } = await list.rows<GroupRow & { members: number | bigint }>(db, query, where, { columns });
      return { items: rows.map((row) => rowOf(row, Number(row.members))), ...page };
    },
    titles: ({ db }, ids) => list.titles(db, ids, 'name'),
    async read({ db, linkTo }, id) {
      const group = isUuid(id) ? await findGroupById(db, id) : null;
      if (group === null) return null;
      const members = await membersOf(db, group.id, MEMBERS_SHOWN + 1);
      const row = rowOf(group, members.length);
      return {
        ...row,
        sections: [
          {
            kind: 'facts',
            title: 'Group',
            columns: [...list.columns.filter(({ name }) => name !== 'members'), { name: 'id', label: 'Id', kind: 'code' }],
            values: { ...row.values, id: group.id },
          },
          {
            kind: 'table',
            title: members.length > MEMBERS_SHOWN ? `Members (the first ${MEMBERS_SHOWN})` : 'Members',
            columns: [
              { name: 'user', label: 'User', kind: 'link' },
              { name: 'since', label: 'Since', kind: 'time' },
            ],
            rows: members.slice(0, MEMBERS_SHOWN).map(({ user_id, username, created_at }) => ({
              id: user_id,
              title: username,
              values: { user: linkTo('user', user_id, username), since: created_at.toISOString() },
            })),
            empty: 'The group has no members.',
          },
        ],
        form: { fields: [nameField], values: { name: group.name } },
        actions: ['add-member', 'remove-member'],
        removable: true,
      };
    },
    async create({ db, principal, requestId }, fields) {
      const tenantKey = typeof fields['tenant_key'] === 'string' && fields['tenant_key'] !== '' ? fields['tenant_key'] : null;
      const group = await named(() => createGroup(db, { name: String(fields['name']), tenantKey }, { by: principal, requestId }));
      return { message: `Group ${group.name} created.`, id: group.id };
    },
    async update({ db, principal, requestId }, id, fields) {
      const group = await named(() => renameGroup(db, id, String(fields['name']), { by: principal, requestId }));
      return { message: `The group is now named ${group.name}.`, id: group.id };
    },
    async remove({ db, principal, requestId }, id) {
      await deleteGroup(db, id, { by: principal, requestId });
      return { message: 'Group deleted.' };
    },
  };
}

/** A name that cannot be used is a fault of its field. */
async function named<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = (error as { code?: string }).code;
    if (code !== 'group_name_taken' && code !== 'invalid_group') throw error;
    const message = (error as { detail?: string }).detail ?? 'The name cannot be used.';
    throw coreErrors.validation_error({ errors: [{ location: ['body', 'name'], code, message }] });
  }
}

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
      const user = await requireUser(db, String(fields['user'])).catch((error: { code?: string; detail?: string }) => {
        if (error.code !== 'user_not_found') throw error;
        throw coreErrors.validation_error({
          errors: [{ location: ['body', 'user'], code: 'user_not_found', message: error.detail ?? 'There is no such user.' }],
        });
      });
      const changed = await change(db, id, user.id, { by: principal, requestId });
      return { message: `${user.username} ${changed ? done : already}`, id };
    },
  };
}

function rowOf(group: GroupRow, members: number): AdminRow {
  return { id: group.id, title: group.name, values: list.values(group, { members }) };
}
