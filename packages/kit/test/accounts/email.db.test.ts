import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { activateUser, deactivateUser, inviteUser } from '../../src/contrib/accounts/index.ts';
import { accountsOf } from '../../src/contrib/accounts/users/accounts.ts';
import { changeEmail } from '../../src/contrib/accounts/users/manage-users.ts';
import { countQueries } from '../../src/db/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { auditLog } from '../audit-log.ts';
import { LoginApp, PASSWORD, type Browser } from './login-app.ts';

describeDatabases(
  'the own e-mail address',
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

    const confirm = (token: string) => shop.call('POST', '/account/email/confirm', { token });
    const ask = async (browser: Browser, email: string) => {
      const answer = await browser.post('/account/email', { email });
      await shop.runJobs();
      return answer;
    };
    const tokenTo = (address: string) => /#email=([\w-]+)/.exec(shop.mails.find(({ to }) => to === address)?.text ?? '')?.[1] ?? '';
    const emailOf = async (id: string) =>
      (await database.db.query<{ email: string }>('select email from users where id = $1', [id]))[0]?.email;

    test('changes when the link is used that was sent to the new one; the old one gets a notice', async () => {
      const user = await shop.newUser();
      const browser = await shop.loggedIn(user.username);
      expect(await ask(browser, ' New@Example.COM ')).toMatchObject({ status: 202, text: '' });
      expect(await emailOf(user.id)).toBe(user.email);
      expect(new Map(shop.mails.map(({ to, subject }) => [to, subject]))).toEqual(
        new Map([
          ['new@example.com', 'Confirm your e-mail address for Shop'],
          [user.email, 'Your e-mail address at Shop'],
        ]),
      );
      const notice = shop.mails.find(({ to }) => to === user.email)?.text ?? '';
      expect(notice).not.toContain('new@example.com');
      expect(notice).not.toContain('#email=');
      expect((await confirm(tokenTo('new@example.com'))).status).toBe(204);
      expect(await emailOf(user.id)).toBe('new@example.com');
      expect((await shop.browser().logIn('new@example.com')).status).toBe(200);
      expect((await shop.browser().logIn(user.email ?? '')).status).toBe(401);
      expect(await auditLog(database.db, { action: 'user.email_changed' })).toMatchObject([{ target_id: user.id }]);
    });

    test('needs a login within ten minutes', async () => {
      const user = await shop.newUser();
      const browser = await shop.loggedIn(user.username);
      shop.clock.advance(601_000);
      expect((await ask(browser, 'late@example.com')).body.code).toBe('recent_login_required');
      expect(shop.mails).toEqual([]);
      await browser.post('/account/presence', { password: PASSWORD });
      expect((await ask(browser, 'late@example.com')).status).toBe(202);
    });

    test('that another user has gets the same answer, with the same statements, and no link', async () => {
      const [user, other] = [await shop.newUser(), await shop.newUser()];
      const browser = await shop.loggedIn(user.username);
      const seen = [];
      for (const email of ['free@example.com', other.email ?? '']) {
        const { result, queries } = await countQueries(() => browser.post('/account/email', { email }));
        seen.push(JSON.stringify({ status: result.status, text: result.text, statements: queries.map(({ sql }) => sql) }));
      }
      expect(seen[0]).toBe(seen[1]);
      await shop.runJobs();
      expect(shop.mails.filter(({ to }) => to === other.email)).toEqual([]);
      expect(tokenTo('free@example.com')).not.toBe('');
    });

    test('that another user got meanwhile is not changed, and the answer does not say why', async () => {
      const user = await shop.newUser();
      await ask(await shop.loggedIn(user.username), 'wanted@example.com');
      await shop.newUser({ email: 'wanted@example.com' });
      expect((await confirm(tokenTo('wanted@example.com'))).body.code).toBe('invalid_link');
      expect(await emailOf(user.id)).toBe(user.email);
    });

    test('is refused where it is not an address, and where there is no mail', async () => {
      const user = await shop.newUser();
      const browser = await shop.loggedIn(user.username);
      expect((await browser.post('/account/email', { email: 'no address' })).body).toMatchObject({
        code: 'invalid_user',
        errors: [{ location: ['body', 'email'] }],
      });
      const silent = await new LoginApp(await database.open(), { mail: undefined as never, signUp: 'closed' }, shop.clock).ready();
      expect((await (await silent.loggedIn(user.username)).post('/account/email', { email: 'a@example.com' })).body.code).toBe(
        'mail_not_set_up',
      );
      await silent.app.close();
    });

    describe('a link', () => {
      test('works once, for its purpose, within a day; of twenty requests one succeeds', async () => {
        const user = await shop.newUser();
        const browser = await shop.loggedIn(user.username);
        await ask(browser, 'race@example.com');
        const token = tokenTo('race@example.com');
        for (const path of ['/account/reset/confirm', '/account/invitations/accept'])
          expect((await shop.call('POST', path, { token, password: 'another good password' })).status).toBe(410);
        const racing = await Promise.all(
          Array.from({ length: 20 }, (_, index) =>
            shop.app.inject({
              method: 'POST',
              url: '/account/email/confirm',
              headers: { host: 'shop.example.com' },
              payload: { token },
              remoteAddress: `10.2.${index}.1`,
            }),
          ),
        );
        expect(racing.filter(({ statusCode }) => statusCode === 204)).toHaveLength(1);
        expect(racing.filter(({ statusCode }) => statusCode === 410)).toHaveLength(19);
        await ask(browser, 'late-link@example.com');
        shop.clock.advance(24 * 3_600_000 + 1);
        expect((await confirm(tokenTo('late-link@example.com'))).status).toBe(410);
      });

      test('to the old address ends with it: an invitation and a reset are not used by who had the address', async () => {
        const invited = await inviteUser(database.db, { username: 'mistyped', email: 'wrong@example.com' });
        await shop.runJobs();
        const invitation = shop.linkToken();
        await changeEmail(database.db, invited.id, 'right@example.com', accountsOf(database.db).management('cli'));
        expect(
          (await shop.call('POST', '/account/invitations/accept', { token: invitation, password: 'another good password' })).status,
        ).toBe(410);
        const user = await shop.newUser();
        await shop.call('POST', '/account/reset', { login: user.username });
        await shop.runJobs();
        const reset = shop.linkToken();
        await ask(await shop.loggedIn(user.username), 'moved@example.com');
        await confirm(tokenTo('moved@example.com'));
        expect((await shop.call('POST', '/account/reset/confirm', { token: reset, password: 'another good password' })).status).toBe(410);
      });

      test('ends with a change of the password', async () => {
        const user = await shop.newUser();
        const browser = await shop.loggedIn(user.username);
        await ask(browser, 'thief@example.com');
        await browser.post('/account/password', { current_password: PASSWORD, new_password: 'another good password' });
        expect((await confirm(tokenTo('thief@example.com'))).status).toBe(410);
      });

      test('that could not be sent yet is not sent after a change of the password: the mail server of the new address may have delayed it', async () => {
        const user = await shop.newUser();
        const browser = await shop.loggedIn(user.username);
        await browser.post('/account/email', { email: 'delayed@example.com' });
        shop.mailFault = new Error('451 try again later');
        await shop.runJobs();
        shop.mailFault = null;
        await browser.post('/account/password', { current_password: PASSWORD, new_password: 'another good password' });
        shop.clock.advance(3_600_000);
        await shop.runJobs();
        expect(shop.mails.map(({ to }) => to)).toEqual([user.email]);
        expect(tokenTo('delayed@example.com')).toBe('');
      });

      test('that waits ends with a deactivation and with another change of the address, too', async () => {
        const [first, second] = [await shop.newUser(), await shop.newUser()];
        await (await shop.loggedIn(first.username)).post('/account/email', { email: 'waiting1@example.com' });
        await (await shop.loggedIn(second.username)).post('/account/email', { email: 'waiting2@example.com' });
        shop.clock.advance(1000);
        const management = accountsOf(database.db).management('cli');
        await deactivateUser(database.db, first.id, management);
        await activateUser(database.db, first.id, management);
        await changeEmail(database.db, second.id, 'operator@example.com', management);
        await shop.runJobs();
        expect(shop.mails.filter(({ to }) => to.startsWith('waiting'))).toEqual([]);
      });

      test('is stored as a digest, and neither it nor the address is in the log', async () => {
        const user = await shop.newUser();
        await ask(await shop.loggedIn(user.username), 'quiet@example.com');
        const token = tokenTo('quiet@example.com');
        const stored = await Promise.all(
          ['account_links', 'jobs', 'audit_inbox'].map((table) => database.db.query(`select * from ${table}`)),
        );
        expect(JSON.stringify(stored, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value))).not.toContain(token);
        await confirm(token);
        for (const hidden of [token, 'quiet@example.com']) expect(shop.logged.join('\n')).not.toContain(hidden);
      });
    });

    test('mails to one address are limited, so that nobody can fill a mailbox', async () => {
      const user = await shop.newUser();
      const browser = await shop.loggedIn(user.username);
      const statuses = [];
      for (let index = 0; index < 7; index++) statuses.push((await browser.post('/account/email', { email: 'victim@example.com' })).status);
      expect(statuses).toEqual([202, 202, 202, 202, 202, 429, 429]);
    });
  },
  { template: 'logins', prepare: (db) => LoginApp.migrate(db) },
);
