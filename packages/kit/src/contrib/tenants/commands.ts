import type { Command, CommandContext } from '../../app/declare/command.ts';
import type { App } from '../../app/declare/module.ts';
import { addTenantDataCommands } from '../../crud/subjects/tenant-data-commands.ts';
import type { Db } from '../../db/engine/db.ts';
import { findBy, list } from '../../db/rows/repository.ts';
import { isUuid } from '../../db/values/uuid.ts';
import { tenantsIn } from './declare/tenants.ts';
import { tenantErrors } from './errors.ts';
import { addMember, changeMember, removeMember } from './manage/members.ts';
import { purgeTenants } from './manage/purge.ts';
import { resumeTenant, suspendTenant } from './manage/suspend.ts';
import { createTenant, deleteTenant, restoreTenant } from './manage/tenants.ts';
import { tenantMembers, tenants } from './models.ts';
import type { TenantRow } from './rows/store.ts';

const BY = { by: 'kit tenant' } as const;
const PAGE = 500;

type Context = CommandContext<App>;

/** `kit tenant create|list|members|add|change|remove|suspend|resume|export|hold|release|delete|restore|purge`. */
export const tenantCommand: Command<App> = {
  name: 'tenant',
  summary: 'create, list, suspend and delete tenants, add and remove members',
  configure(command, context) {
    command
      .command('create <name>')
      .description('create a tenant')
      .requiredOption('--owner <user>', 'the user who becomes the owner: user name, e-mail address or id')
      .option('--slug <slug>', 'names the tenant in requests (default: made of the name)')
      .action(async (name: string, { owner, slug }: { owner: string; slug?: string }) => {
        const { db } = await context.app();
        const tenant = await createTenant(db, { name, slug, owner: await userId(db, owner), ...BY });
        show(context, tenant, `Tenant ${tenant.name} created (slug ${tenant.slug}, id ${tenant.id}).`);
      });
    command
      .command('list')
      .description('list tenants by slug')
      .action(async () => {
        const { db } = await context.app();
        const found: TenantRow[] = [];
        for (let page: TenantRow[] = [], first = true; first || page.length === PAGE; first = false) {
          page = await list(db, tenants, { where: { slug: { gt: found.at(-1)?.slug ?? '' } }, orderBy: ['slug'], limit: PAGE });
          found.push(...page);
        }
        if (context.json) return context.print(JSON.stringify(found, null, 2));
        for (const { slug, name, state, id } of found) context.print([slug, name, state, id].join('  '));
        if (found.length === 0) context.print('There are no tenants.');
      });
    command
      .command('members <tenant>')
      .description('list the members of a tenant')
      .action(async (name: string) => {
        const { db } = await context.app();
        const { id } = await requireTenant(db, name);
        const members = await list(db, tenantMembers, { where: { tenant_id: id }, orderBy: ['id'] });
        if (context.json) return context.print(JSON.stringify(members, null, 2));
        for (const { user_id, roles } of members) context.print(`${user_id}  ${roles.join(', ')}`);
        if (members.length === 0) context.print('The tenant has no members.');
      });
    for (const [verb, change, description, done] of [
      ['add', addMember, 'make a user a member', 'is a member of'],
      ['change', changeMember, 'give a member other roles', 'has new roles in'],
    ] as const)
      command
        .command(`${verb} <tenant> <user>`)
        .description(description)
        .requiredOption('--role <role...>', 'roles of the member')
        .action(async (name: string, login: string, { role: roles }: { role: string[] }) => {
          const { db } = await context.app();
          const [tenant, user] = [await requireTenant(db, name), await userId(db, login)];
          const member = await change(db, { tenant: tenant.id, user, roles, ...BY });
          show(context, member, `${login} ${done} ${tenant.slug}: ${member.roles.join(', ')}.`);
        });
    command
      .command('remove <tenant> <user>')
      .description('remove a member, effective with the next request')
      .action(async (name: string, login: string) => {
        const { db } = await context.app();
        const [tenant, user] = [await requireTenant(db, name), await userId(db, login)];
        await removeMember(db, { tenant: tenant.id, user, ...BY });
        show(context, { tenant_id: tenant.id, user_id: user }, `${login} is no longer a member of ${tenant.slug}.`);
      });
    command
      .command('delete <tenant>')
      .description('close a tenant and delete it after its grace period')
      .action(async (name: string) => {
        const { db } = await context.app();
        const tenant = await deleteTenant(db, (await requireTenant(db, name)).id, BY);
        show(
          context,
          tenant,
          `Tenant ${tenant.slug} is deleted on ${tenant.deletes_at?.toISOString()}; restore it with kit tenant restore.`,
        );
      });
    command
      .command('restore <tenant>')
      .description('restore a tenant that is being deleted')
      .action(async (name: string) => {
        const { db } = await context.app();
        const tenant = await restoreTenant(db, (await requireTenant(db, name)).id, BY);
        show(context, tenant, `Tenant ${tenant.slug} is active.`);
      });
    command
      .command('suspend <tenant>')
      .description('suspend a tenant: its members get 403, its deliveries and jobs wait')
      .option('--reason <text>', 'shown to its members')
      .action(async (name: string, { reason }: { reason?: string }) => {
        const { db } = await context.app();
        const tenant = await suspendTenant(db, (await requireTenant(db, name)).id, { reason, ...BY });
        show(context, tenant, `Tenant ${tenant.slug} is suspended; resume it with kit tenant resume.`);
      });
    command
      .command('resume <tenant>')
      .description('resume a suspended tenant: what waited goes on')
      .action(async (name: string) => {
        const { db } = await context.app();
        const tenant = await resumeTenant(db, (await requireTenant(db, name)).id, BY);
        show(context, tenant, `Tenant ${tenant.slug} is active.`);
      });
    addTenantDataCommands(command, context, { program: BY.by, find: async (db, name) => requireTenant(db, name) });
    command
      .command('purge')
      .description('erase tenants whose grace period is over; run it again to continue')
      .action(async () => {
        const { db } = await context.app();
        let purged = 0;
        for (let batch = await purgeTenants(db, BY); batch > 0; batch = await purgeTenants(db, BY)) purged += batch;
        show(context, { purged }, `${purged} tenants deleted.`);
      });
  },
};

function show(context: Context, value: object, sentence: string): void {
  context.print(context.json ? JSON.stringify(value) : sentence);
}

async function requireTenant(db: Db, name: string): Promise<TenantRow> {
  const stored = name.toLowerCase();
  const tenant = (isUuid(stored) ? await findBy(db, tenants, { id: stored }) : undefined) ?? (await findBy(db, tenants, { slug: stored }));
  if (tenant === undefined) throw tenantErrors.tenant_not_found({ detail: `There is no tenant ${JSON.stringify(name)}.` });
  return tenant;
}

async function userId(db: Db, login: string): Promise<string> {
  const user = (await tenantsIn(db).users.findByLogin(db, login)) ?? (await tenantsIn(db).users.findById(db, login));
  if (user === null) throw tenantErrors.member_not_found({ detail: `There is no user ${JSON.stringify(login)}.` });
  return user.id;
}
