import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import {
  activateUser,
  changePassword,
  changeStaff,
  deactivateUser,
  deleteUser,
  folderMail,
  inviteUser,
} from '../../src/contrib/accounts/index.ts';
import { accountsOf } from '../../src/contrib/accounts/users/accounts.ts';
import { userCommand } from '../../src/contrib/accounts/commands.ts';
import { countQueries } from '../../src/db/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { LoginApp } from './login-app.ts';

const NEW_PASSWORD = 'another good password';

describeDatabases(
  'links by mail',
  (database) => {
    let shop: LoginApp;
    beforeAll(async () => {
      shop = await new LoginApp(database.db).ready();
    });
    beforeEach(() => {
      shop.unthrottle();
      shop.mails.length = 0;
      shop.mailFault = null;
    });
    afterAll(() => shop.app.close());

    const reset = (login: string) => shop.call('POST', '/account/reset', { login });
    const confirm = (token: string, password = NEW_PASSWORD) => shop.call('POST', '/account/reset/confirm', { token, password });
    const accept = (token: string, password = NEW_PASSWORD) => shop.call('POST', '/account/invitations/accept', { token, password });
    const resetToken = async (login: string) => {
      await reset(login);
      await shop.runJobs();
      return shop.linkToken();
    };

    describe('a reset', () => {
      test('sets a new password once, ends every session and opens none', async () => {
        const user = await shop.newUser();
        const browser = await shop.loggedIn(user.username);
        const token = await resetToken(user.email ?? '');
        expect(shop.mails).toHaveLength(1);
        expect(shop.mails[0]).toMatchObject({ to: user.email, subject: 'Set a new password for Shop' });
        expect(shop.mails[0]?.text).toContain('https://shop.example.com/account#reset=');
        const used = await confirm(token);
        expect(used.status).toBe(204);
        expect(used.headers['set-cookie']).toBeUndefined();
        expect((await browser.get('/desk/anyone')).status).toBe(401);
        expect((await shop.browser().logIn(user.username)).status).toBe(401);
        expect((await shop.browser().logIn(user.username, undefined, NEW_PASSWORD)).status).toBe(200);
        expect((await confirm(token)).body).toMatchObject({ status: 410, code: 'invalid_link' });
      });

      test('of twenty requests with one link, one succeeds', async () => {
        const user = await shop.newUser();
        const token = await resetToken(user.username);
        const answers = await Promise.all(
          Array.from({ length: 20 }, (_, index) =>
            new LoginAppCaller(shop, index).post('/account/reset/confirm', { token, password: `${NEW_PASSWORD} ${index}` }),
          ),
        );
        expect(answers.filter((status) => status === 204)).toHaveLength(1);
        expect(answers.filter((status) => status === 410)).toHaveLength(19);
      });

      test('of two links, the first that is used ends the other; so do a change of the password and a deactivation', async () => {
        const user = await shop.newUser();
        const [first, second] = [await resetToken(user.username), await resetToken(user.username)];
        const racing = await Promise.all([confirm(first), confirm(second)]);
        expect(racing.map(({ status }) => String(status)).toSorted()).toEqual(['204', '410']);
        const third = await resetToken(user.username);
        await changePassword(database.db, user, 'a third good password');
        expect((await confirm(third)).status).toBe(410);
        const fourth = await resetToken(user.username);
        await deactivateUser(database.db, user.id);
        expect((await confirm(fourth)).status).toBe(410);
      });

      test('is dead after an hour, for another purpose, and with any other token', async () => {
        const user = await shop.newUser();
        const token = await resetToken(user.username);
        expect((await accept(token)).status).toBe(410);
        const changed = `${token.startsWith('A') ? 'B' : 'A'}${token.slice(1)}`;
        for (const wrong of [changed, token.slice(1), `${token}x`, ' ', 'x'.repeat(100)]) expect((await confirm(wrong)).status).toBe(410);
        shop.clock.advance(3_600_001);
        shop.unthrottle();
        expect((await confirm(token)).status).toBe(410);
      });

      test('with a weak password does not use the link up', async () => {
        const user = await shop.newUser();
        const token = await resetToken(user.username);
        expect((await confirm(token, 'short')).body.code).toBe('weak_password');
        expect((await confirm(token)).status).toBe(204);
      });

      test('keeps the second factor', async () => {
        const user = await shop.newUser();
        const { secret } = await shop.setUpCodes(await shop.loggedIn(user.username));
        await confirm(await resetToken(user.username));
        expect((await shop.browser().logIn(user.username, undefined, NEW_PASSWORD)).body.code).toBe('one_time_code_required');
        shop.clock.advance(30_000);
        expect((await shop.browser().logIn(user.username, shop.code(secret), NEW_PASSWORD)).status).toBe(200);
      });
    });

    describe('asking for a reset', () => {
      test('returns the same bytes and runs the same statements for known, unknown, deactivated and password-less users', async () => {
        const [known, inactive, sso, noMail] = [
          await shop.newUser(),
          await shop.newUser(),
          await shop.newUser({ password: null }),
          await shop.newUser({ email: null }),
        ];
        await deactivateUser(database.db, inactive.id);
        const seen = [];
        for (const login of [
          known.username,
          known.email ?? '',
          inactive.username,
          sso.username,
          noMail.username,
          'nobody',
          'no@body.example',
        ]) {
          const { result, queries } = await countQueries(() => reset(login));
          const { status, text, headers } = result;
          seen.push(JSON.stringify({ status, text, headers: Object.keys(headers).toSorted(), statements: queries.map(({ sql }) => sql) }));
        }
        expect(new Set(seen).size).toBe(1);
        for (const odd of ['a\u0000b', '\ud800', ' ']) expect((await reset(odd)).status).toBeLessThan(500);
        expect(JSON.parse(seen[0] ?? '{}')).toMatchObject({ status: 202, text: '' });
        await shop.runJobs();
        expect(shop.mails.map(({ to }) => to)).toEqual([known.email, known.email]);
      });

      test('is limited for one user, so that nobody can fill a mailbox', async () => {
        const user = await shop.newUser();
        const statuses = [];
        for (let index = 0; index < 7; index++)
          statuses.push(await new LoginAppCaller(shop, index).post('/account/reset', { login: user.username }));
        expect(statuses).toEqual([202, 202, 202, 202, 202, 429, 429]);
      });

      test('stores and logs no token', async () => {
        const user = await shop.newUser();
        const token = await resetToken(user.username);
        const tables = ['account_links', 'jobs', 'audit_inbox', 'users', 'sessions'];
        const stored = await Promise.all(tables.map((table) => database.db.query(`select * from ${table}`)));
        expect(JSON.stringify(stored, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value))).not.toContain(token);
        expect(JSON.stringify(stored[0])).toContain(user.id);
        await confirm(token);
        expect(shop.logged.join('\n')).not.toContain(token);
      });
    });

    describe('an invitation', () => {
      const staff = async () => {
        const browser = await shop.loggedIn((await shop.newUser({ is_staff: true })).username);
        await shop.setUpCodes(browser);
        return browser;
      };

      test('by staff creates the user, whose first password comes with the link', async () => {
        const browser = await staff();
        const invited = await browser.post('/account/invitations', { username: 'grace', email: 'Grace@example.com' });
        expect(invited).toMatchObject({ status: 202, body: { user: { username: 'grace', email: 'grace@example.com', is_staff: false } } });
        expect((await shop.browser().logIn('grace')).status).toBe(401);
        await shop.runJobs();
        expect(shop.mails[0]).toMatchObject({ to: 'grace@example.com', subject: 'Your account at Shop' });
        const token = shop.linkToken();
        expect((await confirm(token)).status).toBe(410);
        expect((await accept(token)).status).toBe(204);
        expect((await shop.browser().logIn('grace', undefined, NEW_PASSWORD)).status).toBe(200);
        expect((await accept(token)).status).toBe(410);
        expect((await browser.post('/account/invitations', { username: 'grace', email: 'other@example.com' })).body.code).toBe(
          'username_taken',
        );
      });

      test('of twenty requests with one invitation, one succeeds: one account, one password, no session that nobody asked for', async () => {
        const browser = await staff();
        await browser.post('/account/invitations', { username: 'linus', email: 'linus@example.com' });
        await shop.runJobs();
        const token = shop.linkToken();
        const passwords = Array.from({ length: 20 }, (_, index) => `${NEW_PASSWORD} ${index}`);
        const answers = await Promise.all(
          passwords.map((password, index) => new LoginAppCaller(shop, index).post('/account/invitations/accept', { token, password })),
        );
        expect(answers.filter((status) => status === 204)).toHaveLength(1);
        expect(answers.filter((status) => status === 410)).toHaveLength(19);
        const people = await database.db.query<{ id: string }>(`select id from users where username = 'linus'`);
        expect(people).toHaveLength(1);
        const sessions = () => database.db.query('select id from sessions where user_id = $1', [people[0]?.id]);
        expect(await sessions()).toHaveLength(0);
        const used = passwords[answers.indexOf(204)];
        shop.unthrottle();
        expect((await shop.browser().logIn('linus', undefined, passwords[(answers.indexOf(204) + 1) % 20])).status).toBe(401);
        expect((await shop.browser().logIn('linus', undefined, used)).status).toBe(200);
        expect(await sessions()).toHaveLength(1);
      });

      test('is for present staff only, and only where it is enabled', async () => {
        const body = { username: 'mallory', email: 'mallory@example.com' };
        const user = await shop.loggedIn((await shop.newUser()).username);
        expect((await user.post('/account/invitations', body)).status).toBe(403);
        const browser = await staff();
        shop.clock.advance(601_000);
        expect((await browser.post('/account/invitations', body)).body.code).toBe('recent_login_required');
        const closed = await new LoginApp(await database.open(), { signUp: 'closed', secondFactor: 'optional' }, shop.clock).ready();
        const other = await closed.loggedIn((await shop.newUser({ is_staff: true })).username);
        expect((await other.post('/account/invitations', body)).body.code).toBe('sign_up_closed');
        await closed.app.close();
      });

      describe('ends with the rights of who sent it:', () => {
        const invited = async (username: string) => {
          const sender = await shop.newUser({ is_staff: true });
          const browser = await shop.loggedIn(sender.username);
          await shop.setUpCodes(browser);
          const answer = await browser.post('/account/invitations', { username, email: `${username}@example.com` });
          return { sender, id: answer.body.user.id as string };
        };

        test.each([
          ['deactivated', (id: string) => deactivateUser(database.db, id)],
          ['no longer staff', (id: string) => changeStaff(database.db, id, false)],
          ['deleted', (id: string) => deleteUser(database.db, id)],
        ])('a link of a user who is %s is dead, and stays dead', async (what, end) => {
          const username = `guest-${what.replaceAll(' ', '-')}`;
          const { sender } = await invited(username);
          await shop.runJobs();
          const token = shop.linkToken();
          await end(sender.id);
          expect((await accept(token)).body).toMatchObject({ status: 410, code: 'invalid_link' });
          if (what === 'deleted') return;
          await (what === 'deactivated' ? activateUser(database.db, sender.id) : changeStaff(database.db, sender.id, true));
          expect((await accept(token)).status).toBe(410);
        });

        test('one that waits to be sent is not sent', async () => {
          const [first, second] = [await invited('waiting-1'), await invited('waiting-2')];
          await deactivateUser(database.db, first.sender.id);
          await changeStaff(database.db, second.sender.id, false);
          await shop.runJobs();
          expect(shop.mails).toEqual([]);
        });

        test('others stay: of another sender, of a command, of a user who was never staff', async () => {
          const [gone, stays] = [await invited('other-1'), await shop.newUser()];
          await inviteUser(database.db, { username: 'other-2', email: 'other-2@example.com' });
          await inviteUser(database.db, { username: 'other-3', email: 'other-3@example.com' }, accountsOf(database.db).management(stays));
          await shop.runJobs();
          const tokenOf = (to: string) =>
            /#invitation=([A-Za-z0-9_-]+)/.exec(shop.mails.find((mail) => mail.to === to)?.text ?? '')?.[1] ?? '';
          await changeStaff(database.db, stays.id, true);
          await deactivateUser(database.db, gone.sender.id);
          expect((await accept(tokenOf('other-1@example.com'))).status).toBe(410);
          expect((await accept(tokenOf('other-2@example.com'))).status).toBe(204);
          expect((await accept(tokenOf('other-3@example.com'))).status).toBe(204);
        });
      });

      test('that is rolled back leaves no user and sends no mail', async () => {
        await expect(
          database.db.transaction(async (tx) => {
            await inviteUser(tx, { username: 'undone', email: 'undone@example.com' });
            throw new Error('changed my mind');
          }),
        ).rejects.toThrow('changed my mind');
        await shop.runJobs();
        expect(shop.mails).toEqual([]);
        expect(await database.db.query(`select id from users where username = 'undone'`)).toEqual([]);
      });
    });

    describe('kit user invite', () => {
      const printed: string[] = [];
      const run = (...args: string[]) => {
        const fail = (message: string): never => {
          throw new Error(message);
        };
        const program = new Command();
        userCommand.configure(program, {
          app: async () => shop.app,
          print: (text: string) => printed.push(text),
          fail,
          json: false,
        } as never);
        return program.parseAsync(args, { from: 'user' });
      };

      test('takes a user without a password, and the address for one who has none', async () => {
        const bare = await shop.newUser({ password: null, email: null });
        await expect(run('invite', bare.username)).rejects.toThrow('The user has no e-mail address: add --email <address>');
        await run('invite', bare.username, '--email', 'Bare@Example.com');
        expect(printed.at(-1)).toBe(`${bare.username} is invited; the mail to bare@example.com is queued.`);
        await run('invite', bare.username, '--email', 'bare@example.com');
        await shop.runJobs();
        expect(shop.mails.map(({ to }) => to)).toEqual(['bare@example.com', 'bare@example.com']);
      });

      test('sends nothing to another address than the one that was given, makes nobody staff, and refuses a deactivated user', async () => {
        const mistyped = await shop.newUser({ password: null, email: 'mistypd@example.com' });
        const { username } = mistyped;
        await expect(run('invite', username, '--email', 'mistyped@example.com')).rejects.toThrow(
          `The e-mail address of ${username} is mistypd@example.com. Change it with \`kit user email ${username} mistyped@example.com\` first.`,
        );
        await expect(run('invite', username, '--staff', '--print')).rejects.toThrow(`${username} is not staff`);
        await deactivateUser(database.db, mistyped.id);
        await expect(run('invite', username)).rejects.toThrow(`${username} is deactivated.`);
        await shop.runJobs();
        expect(shop.mails).toEqual([]);
      });
    });

    describe('a mail that cannot be sent', () => {
      test('is tried again, warned of, counted, and leaves no link behind that nobody has', async () => {
        const user = await shop.newUser();
        const links = async () => (await database.db.query('select id from account_links where user_id = $1', [user.id])).length;
        shop.mailFault = new Error('connect ECONNREFUSED');
        await reset(user.username);
        await shop.runJobs();
        expect(shop.mails).toHaveLength(0);
        expect(await links()).toBe(0);
        const health = await shop.call('GET', '/health/ready');
        expect(health).toMatchObject({ status: 200, body: { status: 'ok', checks: { mail: { status: 'warning' } } } });
        expect(health.body.checks.mail.detail).toContain('1 could not be sent yet and will be tried again');
        expect((await shop.app.inject('/metrics')).body).toMatch(/kit_accounts_mails_total\{outcome="failed"\} \d/);
        shop.mailFault = null;
        shop.clock.advance(60_000);
        await expect.poll(async () => (await shop.runJobs(), shop.mails.length), { timeout: 30_000 }).toBe(1);
        expect(await links()).toBe(1);
        expect((await shop.call('GET', '/health/ready')).body.checks.mail).toEqual({ status: 'ok' });
        expect((await confirm(shop.linkToken())).status).toBe(204);
      });
    });

    test('mails in a folder can be read back, newest first, and by nobody else', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'kit-mail-'));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      const port = folderMail({ folder: join(folder, 'mails') });
      const { signal } = new AbortController();
      expect(await port.sent?.list(10)).toEqual([]);
      await port.send({ to: 'a@example.com', subject: 'One', text: 'first' }, { signal });
      await new Promise((done) => setTimeout(done, 5));
      await port.send({ to: 'b@example.com', subject: 'Two', text: 'second\n' }, { signal });
      const listed = (await port.sent?.list(10)) ?? [];
      expect(listed.map(({ subject }) => subject)).toEqual(['Two', 'One']);
      expect(await port.sent?.read(listed[0]?.id ?? '')).toMatchObject({ to: 'b@example.com', text: 'second\n' });
      for (const other of ['../../etc/passwd', '', '.', `${listed[0]?.id}x`]) expect(await port.sent?.read(other)).toBeNull();
      const [file = ''] = readdirSync(join(folder, 'mails'));
      expect(statSync(join(folder, 'mails', file)).mode & 0o077).toBe(0);
      expect(readFileSync(join(folder, 'mails', file), 'utf8')).toContain('first');
    });
  },
  { template: 'logins', prepare: (db) => LoginApp.migrate(db) },
);

/** Requests of one client each: the limit of clients is not what these tests are about. */
class LoginAppCaller {
  readonly #shop: LoginApp;
  readonly #address: string;

  constructor(shop: LoginApp, index: number) {
    this.#shop = shop;
    this.#address = `10.1.${index}.1`;
  }

  async post(url: string, payload: object): Promise<number> {
    const headers = { host: 'shop.example.com' };
    return (await this.#shop.app.inject({ method: 'POST', url, headers, payload, remoteAddress: this.#address })).statusCode;
  }
}
