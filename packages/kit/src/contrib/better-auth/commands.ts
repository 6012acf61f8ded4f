import { randomBytes } from 'node:crypto';
import type { Command } from '../../app/declare/command.ts';
import type { App } from '../../app/declare/module.ts';
import { eraseDue } from '../../crud/subjects/erase-due.ts';
import { addTenantDataCommands } from '../../crud/subjects/tenant-data-commands.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import { cancelErasure, openErasure } from '../../db/subjects/erasure-state.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { createSuperuser, SuperuserRefused } from './create-superuser.ts';
import { type BetterAuthInstance, type InstanceContext, optionsOf, pluginOf } from './instance.ts';
import { resumeTenant, suspendTenant } from './organizations.ts';
import { passOnChanges } from './user-changes.ts';

const DONE = {
  created: 'is created, with the role admin',
  promoted: 'has the role admin now',
  none: 'has the role admin already',
} as const;

/** `kit user create-superuser ada@example.com`. Everything else about users is done by better-auth. */
export function userCommand(auth: BetterAuthInstance, instance: () => InstanceContext): Command<App> {
  return {
    name: 'user',
    summary: 'create the first administrator',
    configure(command, context) {
      command
        .command('create-superuser <email>')
        .description('create a user with the role admin, or give the role to a user who has signed up')
        .option('--name <name>', 'the name of a new user (default: the part of the address before the @)')
        .option('--generate', 'generate a password and print it on the last line')
        .addHelpText(
          'after',
          `
Without --generate the password of a new user is asked for on a terminal, or read as the first line of standard input:
  printf '%s' "$PASSWORD" | kit user create-superuser ada@example.com`,
        )
        .action(async (email: string, { name, generate }: { readonly name?: string; readonly generate?: boolean }) => {
          if (pluginOf(optionsOf(auth), 'admin') === undefined)
            context.fail('The better-auth instance has no roles: add admin() of better-auth/plugins to its plugins.');
          const { db } = await context.app();
          let generated: string | null = null;
          const password = async () =>
            generate === true ? (generated = randomBytes(18).toString('base64url')) : context.secret('Password');
          try {
            const { id, email: address, change } = await createSuperuser(db, instance(), { email, name, password });
            const created = generated === null ? {} : { password: generated as string };
            if (context.json) return context.print(JSON.stringify({ id, email: address, change, ...created }));
            context.print(`${address} ${DONE[change]} (id ${id}).`);
            if (generated !== null) context.print(generated);
          } catch (error) {
            if (error instanceof SuperuserRefused) context.fail(error.message);
            throw error;
          }
        });
    },
  };
}

const BY = 'kit organization';
const BATCH = 100;

/** `kit organization suspend|resume|export|hold|release|keep|purge`. Everything else about organizations is done by better-auth. */
export const organizationCommand: Command<App> = {
  name: 'organization',
  summary: 'suspend an organization, export its rows, keep them, and erase those of deleted ones',
  configure(command, context) {
    command
      .command('suspend <organization>')
      .description('suspend an organization: its members get 403, its deliveries and jobs wait')
      .option('--reason <text>', 'for the audit log')
      .action(async (name: string, { reason }: { readonly reason?: string }) => {
        const { db } = await context.app();
        const { id, slug } = await find(db, name);
        await suspendTenant(db, id, { reason, by: BY });
        context.print(context.json ? JSON.stringify({ suspended: id }) : `${slug} is suspended; resume it with kit organization resume.`);
      });
    command
      .command('resume <organization>')
      .description('resume a suspended organization: what waited goes on')
      .action(async (name: string) => {
        const { db } = await context.app();
        const { id, slug } = await find(db, name);
        await resumeTenant(db, id, { by: BY });
        context.print(context.json ? JSON.stringify({ resumed: id }) : `${slug} is active.`);
      });
    addTenantDataCommands(command, context, { program: BY, find });
    command
      .command('keep <organization>')
      .description('keep the rows of a deleted organization: they are not erased when its grace period is over')
      .action(async (id: string) => {
        const { db, registry } = await context.app();
        await passOnChanges(db, BY);
        const kept = await db.transaction(async (tx) => {
          const done = await cancelErasure(tx, { kind: 'tenant', id });
          if (done)
            await registry.audit?.record(tx, [{ actor: BY, action: 'tenant.erasure_cancelled', target_type: 'tenant', target_id: id }]);
          return done;
        }, CONFLICT_RETRIES);
        if (!kept) context.fail(`No erasure of ${id} waits.`);
        context.print(context.json ? JSON.stringify({ kept: id }) : `The rows of ${id} stay.`);
      });
    command
      .command('purge')
      .description('erase the rows of organizations whose grace period is over; run it again to continue')
      .action(async () => {
        const app = await context.app();
        // Also those that another program has deleted.
        await passOnChanges(app.db, BY);
        let purged = 0;
        for (let batch = await eraseDue(app, 'tenant', BATCH); batch > 0; batch = await eraseDue(app, 'tenant', BATCH)) purged += batch;
        context.print(context.json ? JSON.stringify({ purged }) : `The rows of ${purged} organizations are erased.`);
      });
  },
};

/** By id or slug. A deleted one is found by its id until its rows are erased. */
async function find(db: Db, name: string): Promise<{ readonly id: string; readonly slug: string }> {
  const [found] = await db.query<{ id: string; slug: string | null }>(
    'select "id" as id, "slug" as slug from "organization" where "id" = $1 or "slug" = $1 order by case when "id" = $1 then 0 else 1 end limit 1',
    [name],
  );
  if (found !== undefined) return { id: found.id, slug: found.slug ?? found.id };
  if ((await openErasure(db, { kind: 'tenant', id: name })) !== undefined) return { id: name, slug: name };
  throw coreErrors.not_found({ detail: `There is no organization ${JSON.stringify(name)}.` });
}
