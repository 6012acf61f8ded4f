import type { App } from '../../../app/declare/module.ts';
import type { Command, CommandContext } from '../../../app/declare/command.ts';
import { addGroupMember, createGroup, deleteGroup, removeGroupMember, renameGroup, requireGroup } from '../users/groups.ts';
import { type GroupRow, listGroups, membersOf } from '../users/group-store.ts';
import { requireUser } from '../users/manage-users.ts';

const CHANGE = { by: 'kit group' };
const PAGE = 500;

/** `kit group create|rename|delete|add|remove|members|list`. */
export const groupCommand: Command<App> = {
  name: 'group',
  summary: 'create, delete and list groups, add and remove members',
  configure(command, context) {
    const tenant = ['--tenant <key>', 'the group of this tenant'] as const;
    command
      .command('create <name>')
      .description('create a group')
      .option('--tenant <key>', 'the tenant that the group counts in (default: every tenant)')
      .option('--managed-by <issuer>', 'the identity provider whose tokens decide who is a member: the `issuer` of jwtBearer()')
      .action(async (name: string, options: { tenant?: string; managedBy?: string }) => {
        const { db } = await context.app();
        const group = await createGroup(db, { name, tenantKey: options.tenant ?? null, managedBy: options.managedBy ?? null }, CHANGE);
        show(context, group, `Group ${group.name} created (id ${group.id}).`);
      });
    command
      .command('rename <group> <name>')
      .description('give a group another name; what it was granted stays')
      .option(...tenant)
      .action(async (idOrName: string, name: string, options: { tenant?: string }) => {
        const { db } = await context.app();
        const group = await renameGroup(db, (await requireGroup(db, idOrName, options.tenant)).id, name, CHANGE);
        show(context, group, `The group is now named ${group.name}.`);
      });
    command
      .command('delete <group>')
      .description('delete a group, its memberships and what it was granted')
      .option(...tenant)
      .action(async (idOrName: string, options: { tenant?: string }) => {
        const { db } = await context.app();
        const group = await requireGroup(db, idOrName, options.tenant);
        await deleteGroup(db, group.id, CHANGE);
        show(context, group, `Group ${group.name} deleted.`);
      });
    for (const [verb, change, done, already] of [
      ['add', addGroupMember, 'is a member of', 'was a member of'],
      ['remove', removeGroupMember, 'is no longer a member of', 'was not a member of'],
    ] as const) {
      command
        .command(`${verb} <group> <user>`)
        .description(verb === 'add' ? 'make a user a member' : 'remove a user from a group, effective with the next request')
        .option(...tenant)
        .action(async (idOrName: string, login: string, options: { tenant?: string }) => {
          const { db } = await context.app();
          const [group, user] = [await requireGroup(db, idOrName, options.tenant), await requireUser(db, login)];
          const changed = await change(db, group.id, user.id, CHANGE);
          show(context, group, `${user.username} ${changed ? done : already} ${group.name}.`);
        });
    }
    command
      .command('members <group>')
      .description('list the members of a group by name')
      .option(...tenant)
      .action(async (idOrName: string, options: { tenant?: string }) => {
        const { db } = await context.app();
        const members = await membersOf(db, (await requireGroup(db, idOrName, options.tenant)).id, MEMBERS_MAX);
        if (context.json) return context.print(JSON.stringify(members, null, 2));
        for (const { username, user_id } of members) context.print(`${username}  ${user_id}`);
        if (members.length === 0) context.print('The group has no members.');
      });
    command
      .command('list')
      .description('list groups by name')
      .action(async () => {
        const { db } = await context.app();
        const groups: Awaited<ReturnType<typeof listGroups>> = [];
        const first = { tenant_key: '', name: '' };
        for (let page = await listGroups(db, first, PAGE); page.length > 0; page = await listGroups(db, groups.at(-1) ?? first, PAGE))
          groups.push(...page);
        if (context.json) return context.print(JSON.stringify(groups.map(asJson), null, 2));
        for (const { name, tenant_key, members, id } of groups)
          context.print([name, tenant_key === '' ? '-' : tenant_key, `${members} members`, id].join('  '));
        if (groups.length === 0) context.print('There are no groups.');
      });
  },
};

const MEMBERS_MAX = 100_000;

function show(context: CommandContext<App>, group: GroupRow, sentence: string): void {
  context.print(context.json ? JSON.stringify(asJson(group)) : sentence);
}

function asJson({ tenant_key, managed_by, ...group }: GroupRow): object {
  return { ...group, tenant_key: tenant_key === '' ? null : tenant_key, managed_by: managed_by === '' ? null : managed_by };
}
