import { randomBytes } from 'node:crypto';
import type { Command } from '../../app/declare/command.ts';
import type { App } from '../../app/declare/module.ts';
import { createSuperuser, SuperuserRefused } from './create-superuser.ts';
import { type BetterAuthInstance, type InstanceContext, optionsOf, pluginOf } from './instance.ts';

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
