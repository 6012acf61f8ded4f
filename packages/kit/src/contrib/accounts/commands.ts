import type { Command as CommanderCommand } from 'commander';
import type { App } from '../../app/declare/module.ts';
import type { Command, CommandContext } from '../../app/declare/command.ts';
import { accountsOf } from './users/accounts.ts';
import {
  activateUser,
  changeEmail,
  changePassword,
  createUser,
  deactivateUser,
  deleteUser,
  publicUser,
  requireUser,
} from './users/manage-users.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import { generateFernetKey } from '../../db/sealing/fernet.ts';
import { splitSecretKeys } from '../../db/sealing/secret-box.ts';
import { encryptFactorSecrets } from './factors/factor-secrets.ts';
import { createLink } from './mail/links.ts';
import type { LinkPurpose } from './users/link-store.ts';
import { normalizeEmail, normalizeLogin } from './users/login-name.ts';
import { linkTo } from './mail/mail.ts';
import { generatePassword } from './users/password-policy.ts';
import { resetSecondFactor } from './factors/second-factor.ts';
import { startInvitation, startReset } from './mail/send-link.ts';
import { findUserByLogin, listUsers, type UserRow } from './users/store.ts';

const ACTOR = 'cli';
const PAGE = 500;

interface PasswordChoice {
  readonly generate?: boolean;
  readonly password?: boolean;
}

/** `kit user create|create-superuser|invite|reset|reset-factor|email|encrypt-secrets|generate-key|deactivate|activate|delete|password|list`. */
export const userCommand: Command<App> = {
  name: 'user',
  summary: 'create, invite, deactivate, delete and list users, set passwords and addresses, reset second factors',
  configure(command, context) {
    addCreate(command, context);
    addCreateSuperuser(command, context);
    addPassword(command, context);
    addInvite(command, context);
    addReset(command, context);
    addResetFactor(command, context);
    addEmail(command, context);
    addSecrets(command, context);
    for (const [name, change, done] of [
      ['deactivate', deactivateUser, 'is deactivated; all sessions ended'],
      ['activate', activateUser, 'is active'],
    ] as const) {
      command
        .command(`${name} <user>`)
        .description(name === 'deactivate' ? 'reject all credentials of a user and end all sessions immediately' : 'reactivate a user')
        .action(async (login: string) => {
          const { db } = await context.app();
          const user = await change(db, (await requireUser(db, login)).id, accountsOf(db).management(ACTOR));
          show(context, user, `${user.username} ${done}.`);
        });
    }
    command
      .command('delete <user>')
      .description('delete a user with its sessions, memberships, API keys and grants; fails while other rows refer to it')
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

function addCreateSuperuser(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('create-superuser <username>')
    .description('create the first administrator: a user whom isStaff and isSuperuser admit')
    .option('--email <address>', 'e-mail address, also usable to log in')
    .option('--generate', 'generate a password and print it on the last line')
    .addHelpText('after', PASSWORD_HELP)
    .action(async (username: string, options: PasswordChoice & { email?: string }) => {
      const { db } = await context.app();
      const known = await findUserByLogin(db, normalizeLogin(username));
      if (known !== null) context.fail(`${known.username} exists. Create another user, or make this one staff in the admin site: Users.`);
      const password = await choosePassword(context, options);
      const given = { username, email: options.email ?? null, password, is_staff: true, is_superuser: true };
      const user = await createUser(db, given, accountsOf(db).management(ACTOR));
      show(context, user, `Superuser ${user.username} created (id ${user.id}).`, options.generate === true ? password : null);
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

function addInvite(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('invite <username>')
    .description('create a user, or take one without a password, and send a link to choose a password')
    .option('--email <address>', 'where the invitation is sent')
    .option('--staff', 'may use what isStaff guards')
    .option('--print', 'print the link on the last line instead of sending it')
    .action(async (username: string, options: { email?: string; staff?: boolean; print?: boolean }) => {
      const { db } = await context.app();
      const management = accountsOf(db).management(ACTOR);
      const known = await findUserByLogin(db, normalizeLogin(username));
      const fault = known === null ? null : invitationFault(known, options);
      if (fault !== null) context.fail(fault);
      const facts = { username, email: options.email ?? null, is_staff: options.staff === true };
      const invited = await db.transaction(async (tx) => {
        const user = await (known === null
          ? createUser(tx, { ...facts, password: null }, management)
          : known.email === null && facts.email !== null
            ? changeEmail(tx, known.id, facts.email, management)
            : known);
        if (options.print === true) return { user, link: await printedLink(tx, user, 'invitation') };
        if (user.email === null) context.fail('The user has no e-mail address: add --email <address>, or --print to print the link.');
        await startInvitation(tx, user, ACTOR);
        return { user, link: null };
      }, CONFLICT_RETRIES);
      showLink(context, invited, `${invited.user.username} is invited`);
    });
}

/** Why a user that exists cannot be invited like this. An option that would have no effect is one of the reasons. */
function invitationFault(
  { username, email, is_active, is_staff, password_hash }: UserRow,
  options: { readonly email?: string; readonly staff?: boolean },
): string | null {
  if (password_hash !== null) return `${username} has a password already. \`kit user reset ${username}\` sends a link to set a new one.`;
  if (!is_active) return `${username} is deactivated.`;
  if (options.email !== undefined && email !== null && normalizeEmail(options.email) !== email)
    return `The e-mail address of ${username} is ${email}. Change it with \`kit user email ${username} ${options.email}\` first.`;
  if (options.staff === true && !is_staff) return `${username} is not staff, and --staff is only for new users. Use the admin site.`;
  return null;
}

function addReset(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('reset <user>')
    .description('send a user a link to set a new password; the old password works until then')
    .option('--print', 'print the link on the last line instead of sending it')
    .action(async (login: string, options: { print?: boolean }) => {
      const { db } = await context.app();
      const user = await requireUser(db, login);
      if (!user.is_active) context.fail(`${user.username} is deactivated.`);
      if (options.print === true) {
        showLink(context, { user, link: await printedLink(db, user, 'reset') }, 'Link created');
        return;
      }
      if (user.email === null || user.password_hash === null)
        context.fail(`${user.username} has no ${user.email === null ? 'e-mail address' : 'password'}: use --print to print a link.`);
      await startReset(db, user.username);
      showLink(context, { user, link: null }, `Asked for a link for ${user.username}`);
    });
}

function addResetFactor(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('reset-factor <user>')
    .description('remove the second factor and the recovery codes of a user who lost them, and end all sessions')
    .action(async (login: string) => {
      const { db } = await context.app();
      const user = await requireUser(db, login);
      const removed = await resetSecondFactor(db, user, ACTOR);
      const next = removed ? 'is removed; all sessions ended. The next login can set up a new one.' : 'was not set up.';
      show(context, user, `The second factor of ${user.username} ${next}`);
    });
}

function addEmail(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('email <user> <address>')
    .description("change a user's e-mail address; links that were sent to the old one end")
    .action(async (login: string, email: string) => {
      const { db } = await context.app();
      const user = await changeEmail(db, (await requireUser(db, login)).id, email, accountsOf(db).management(ACTOR));
      show(context, user, `The e-mail address of ${user.username} is ${user.email}.`);
    });
}

function addSecrets(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('encrypt-secrets')
    .description('encrypt every stored secret of one-time codes with the first key of ACCOUNT_SECRET_KEYS; repeatable')
    .action(async () => {
      const app = await context.app();
      if (splitSecretKeys(app.settings.accountSecretKeys).length === 0)
        context.fail('ACCOUNT_SECRET_KEYS is empty: create a key with `kit user generate-key` and set it first.');
      const { encrypted, unchanged, unavailable } = await encryptFactorSecrets(app.db);
      const counts = { encrypted, unchanged, unavailable };
      context.print(
        context.json ? JSON.stringify(counts) : `${encrypted} secrets encrypted with the first key, ${unchanged} were already.`,
      );
      if (unavailable.length > 0)
        context.fail(
          `No configured key decrypts the secrets of ${unavailable.join(', ')}: add the old key after the first, or use \`kit user reset-factor\`.`,
        );
    });
  command
    .command('generate-key')
    .description('create a key for ACCOUNT_SECRET_KEYS')
    .action(() => {
      const key = generateFernetKey();
      context.print(context.json ? JSON.stringify({ key }) : key);
    });
}

/** The link with the address of the page where there is one, else only its token. */
async function printedLink(db: Db, user: UserRow, purpose: LinkPurpose): Promise<string> {
  const { mail } = accountsOf(db).settings;
  const { token } = await createLink(db, user, purpose);
  return mail === null ? token : linkTo(mail, purpose, token);
}

function showLink(context: CommandContext<App>, { user, link }: { user: UserRow; link: string | null }, sentence: string): void {
  if (context.json) return context.print(JSON.stringify({ ...asJson(user), link }));
  context.print(link === null ? `${sentence}; the mail to ${user.email} is queued.` : `${sentence}. Hand over this link; it works once:`);
  if (link !== null) context.print(link);
}

function addList(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('list')
    .description('list users by name')
    .action(async () => {
      const { db } = await context.app();
      const users: UserRow[] = [];
      for (let page = await listUsers(db, '', PAGE); page.length > 0; page = await listUsers(db, users.at(-1)?.username ?? '', PAGE))
        users.push(...page);
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
