import type { Command as CommanderCommand } from 'commander';
import type { App } from '../../app/module.ts';
import type { Command, CommandContext } from '../../app/command.ts';
import { accountsOf } from './accounts.ts';
import { activateUser, changePassword, createUser, deactivateUser, deleteUser, publicUser, requireUser } from './manage-users.ts';
import { generatePassword } from './password-policy.ts';
import { listUsers, type UserRow } from './store.ts';

const ACTOR = 'cli';
const PAGE = 500;

interface PasswordChoice {
  readonly generate?: boolean;
  readonly password?: boolean;
}

/** `kit user create|deactivate|activate|delete|password|list`. */
export const userCommand: Command<App> = {
  name: 'user',
  summary: 'create, deactivate, delete and list users, set passwords',
  configure(command, context) {
    addCreate(command, context);
    addPassword(command, context);
    for (const [name, change, done] of [
      ['deactivate', deactivateUser, 'is deactivated; all sessions ended'],
      ['activate', activateUser, 'is active'],
    ] as const) {
      command
        .command(`${name} <user>`)
        .description(name === 'deactivate' ? 'refuse all credentials of a user and end all sessions, at once' : 'let a user in again')
        .action(async (login: string) => {
          const { db } = await context.app();
          const user = await change(db, (await requireUser(db, login)).id, accountsOf(db).management(ACTOR));
          show(context, user, `${user.username} ${done}.`);
        });
    }
    command
      .command('delete <user>')
      .description('delete a user with its sessions, memberships, API keys and grants; refused while other rows refer to it')
      .action(async (login: string) => {
        const { db } = await context.app();
        const user = await deleteUser(db, (await requireUser(db, login)).id, accountsOf(db).management(ACTOR));
        show(context, user, `${user.username} is deleted, with all sessions, memberships, API keys and grants.`);
      });
    addList(command, context);
  },
};

function addCreate(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('create <username>')
    .description('create a user')
    .option('--email <address>', 'e-mail address, also usable to log in')
    .option('--staff', 'may use what isStaff guards')
    .option('--superuser', 'may use what isSuperuser guards')
    .option('--generate', 'generate a password and print it on the last line')
    .option('--no-password', 'create without a password: the user cannot log in with one')
    .addHelpText('after', PASSWORD_HELP)
    .action(async (username: string, options: PasswordChoice & { email?: string; staff?: boolean; superuser?: boolean }) => {
      const { db } = await context.app();
      const password = options.password === false ? null : await choosePassword(context, options);
      const flags = { is_staff: options.staff === true, is_superuser: options.superuser === true };
      const user = await createUser(db, { username, email: options.email ?? null, password, ...flags }, accountsOf(db).management(ACTOR));
      show(context, user, `User ${user.username} created (id ${user.id}).`, options.generate === true ? password : null);
    });
}

function addPassword(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('password <user>')
    .description("set a user's password and end all of the user's sessions")
    .option('--generate', 'generate a password and print it on the last line')
    .addHelpText('after', PASSWORD_HELP)
    .action(async (login: string, options: PasswordChoice) => {
      const { db } = await context.app();
      const user = await requireUser(db, login);
      const password = await choosePassword(context, options);
      await changePassword(db, user, password, accountsOf(db).management(ACTOR));
      show(context, user, `The password of ${user.username} is changed; all sessions ended.`, options.generate === true ? password : null);
    });
}

function addList(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('list')
    .description('list users by name')
    .action(async () => {
      const { db } = await context.app();
      const users: UserRow[] = [];
      for (let page = await listUsers(db, PAGE, 0); page.length > 0; page = await listUsers(db, PAGE, users.length)) users.push(...page);
      if (context.json) return context.print(JSON.stringify(users.map(asJson), null, 2));
      for (const user of users) context.print([user.username, user.email ?? '-', flagsOf(user), user.id].join('  '));
      if (users.length === 0) context.print('There are no users.');
    });
}

const PASSWORD_HELP = `
Without --generate the password is asked for on a terminal, or read as the first line of standard input:
  printf '%s' "$PASSWORD" | kit user create ada`;

async function choosePassword(context: CommandContext<App>, { generate }: PasswordChoice): Promise<string> {
  return generate === true ? generatePassword() : context.secret('Password');
}

/** A generated password is alone on the last line, so that `$(… | tail -n 1)` works. */
function show(context: CommandContext<App>, user: UserRow, sentence: string, password: string | null = null): void {
  if (context.json) return context.print(JSON.stringify(password === null ? asJson(user) : { ...asJson(user), password }));
  context.print(sentence);
  if (password !== null) context.print(password);
}

function asJson(user: UserRow): object {
  return { ...publicUser(user), created_at: user.created_at };
}

function flagsOf(user: UserRow): string {
  const flags = [user.is_active ? 'active' : 'inactive', user.is_staff ? 'staff' : '', user.is_superuser ? 'superuser' : ''];
  return flags.filter((flag) => flag !== '').join(',');
}
