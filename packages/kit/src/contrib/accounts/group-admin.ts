import { AdminConditions, type AdminOrders, adminRows, sortableColumns } from '../../app/admin/list.ts';
import type { AdminAction, AdminResource } from '../../app/admin/declaration.ts';
import { boundOrder, searchRows } from '../../app/admin/search-rows.ts';
import type { AdminRow } from '../../app/admin/shapes.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { isUuid } from '../../db/uuid.ts';
import { accountErrors } from './errors.ts';
import { addGroupMember, createGroup, deleteGroup, removeGroupMember, renameGroup } from './groups.ts';
import { findGroupById, type GroupRow, membersOf } from './group-store.ts';
import { requireUser } from './manage-users.ts';

const MEMBERS_SHOWN = 200;

const PLACE = { table: 'groups', alias: 'g', key: 'id' } as const;

const orders: AdminOrders = {
  name: { sql: 'g.name', kind: 'text' },
  tenant_key: { sql: 'g.tenant_key', kind: 'text' },
};

const columns = sortableColumns(
  [
    { name: 'name', label: 'Name', kind: 'text' },
    { name: 'tenant_key', label: 'Tenant', kind: 'text', secondary: true },
    { name: 'members', label: 'Members', kind: 'number' },
    { name: 'created_at', label: 'Created', kind: 'time', sortable: true, secondary: true },
  ],
  orders,
);

const nameField = { name: 'name', label: 'Name', kind: 'text', required: true, maxLength: 150 } as const;

/** The admin site's list of groups. */
export function groupsResource(): AdminResource {
  return {
    name: 'groups',
    label: 'Groups',
    singular: 'group',
    group: 'Access',
    icon: 'user',
    auditedAs: 'group',
    columns,
    filters: [{ name: 'tenant', label: 'Tenant', kind: 'text' }],
    searches: 'name',
    creation: {
      fields: [
        nameField,
        {
          name: 'tenant_key',
          label: 'Tenant',
          kind: 'text',
          nullable: true,
          maxLength: 200,
          help: 'Empty: the group counts in every tenant.',
        },
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
      const where = new AdminConditions(db.dialect);
      if (query.search !== null) await searchRows(db, where, { ...PLACE, columns: ['name'] }, query.search);
      if (query.filters['tenant'] !== undefined) where.add(`g.tenant_key = ${where.parameter(query.filters['tenant'])}`);
      await boundOrder(db, where, query, orders, PLACE);
      const { rows, count, next } = await adminRows<GroupRow & { members: number | bigint }>(
        db,
        {
          columns:
            'g.id, g.tenant_key, g.name, g.created_at, g.updated_at, (select count(*) from group_members m where m.group_id = g.id) as members',
          from: 'from groups g',
          key: 'g.id',
          orders,
          ...where.parts,
        },
        query,
      );
      return { items: rows.map((row) => rowOf(row, Number(row.members))), count, next, ...where.searchNote };
    },
    async titles({ db }, ids) {
      const known = ids.filter(isUuid);
      if (known.length === 0) return new Map();
      const listed = known.map((_, index) => `$${index + 1}`).join(', ');
      const rows = await db.query<{ id: string; name: string }>(`select id, name from groups where id in (${listed})`, known);
      return new Map(rows.map(({ id, name }) => [id, name]));
    },
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
            columns: [...columns.filter(({ name }) => name !== 'members'), { name: 'id', label: 'Id', kind: 'code' }],
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

function rowOf({ id, name, tenant_key, created_at }: GroupRow, members: number): AdminRow {
  return {
    id,
    title: name,
    values: { name, tenant_key: tenant_key === '' ? null : tenant_key, members, created_at: created_at.toISOString() },
  };
}
