import type { App, Command } from 'kit';
import { find, findBy, insert, update } from 'kit/db';
import { memberships, organizations, ROLES, type Role } from './organizations.ts';

/** `kit organization create "Blue Bikes"`, `kit organization add <id> ada --role agent` */
export const organizationCommand: Command<App> = {
  name: 'organization',
  summary: 'create organizations and add users to them',
  configure(command, context) {
    command
      .command('create <name>')
      .description('create an organization and print its id')
      .action(async (name: string) => {
        const { db } = await context.app();
        const { id } = await insert(db, organizations, { name });
        context.print(context.json ? JSON.stringify({ id }) : id);
      });
    command
      .command('add <organization> <username>')
      .description('add a user to an organization, or give a member another role')
      .option('--role <role>', ROLES.join(' or '), 'member')
      .action(async (organization: string, username: string, { role }: { role: string }) => {
        if (!ROLES.includes(role as Role)) context.fail(`There is no role "${role}"; there are ${ROLES.join(' and ')}.`);
        const app = await context.app();
        const found = await app.users?.findByLogin(app.db, username);
        const user = found ?? context.fail(`There is no user "${username}". Create one: kit user create ${username}`);
        if ((await find(app.db, organizations, organization)) === undefined) context.fail(`There is no organization "${organization}".`);
        const membership = { organization_id: organization, user_id: user.id };
        const member = await findBy(app.db, memberships, membership);
        if (member === undefined) await insert(app.db, memberships, { ...membership, role: role as Role });
        else await update(app.db, memberships, member.id, { role: role as Role });
        context.print(context.json ? JSON.stringify({ user: user.id, role }) : `${username} is now ${role} of ${organization}.`);
      });
  },
};
