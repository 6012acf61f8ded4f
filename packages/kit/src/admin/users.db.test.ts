import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AdminApp, cookieOf, type Browser } from '../../test/admin/admin-app.ts';
import { untilSomebodyWaits } from '../../test/admin/lock-wait.ts';
import { changeStaff, type MailMessage } from '../contrib/accounts/index.ts';
import { jobs, runDueJobs } from '../contrib/jobs/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { oneTimeCode } from '../testing/one-time-code.ts';
import { auditLog } from '../../test/audit-log.ts';

describeDatabases('users in the admin site', (database) => {
  let site: AdminApp;
  let staff: Browser;

  beforeAll(async () => {
    site = await new AdminApp(database.db).ready();
    staff = await site.browser({ username: 'operator', is_staff: true });
  });
  afterAll(() => site.close());

  const names = async (query: string): Promise<string[]> =>
    (await site.get(staff, `resources/users?${query}`)).body.items.map((item: { title: string }) => item.title);
  const read = async (id: string) => (await site.get(staff, `resources/users/${id}`)).body;

  describe('the list', () => {
    test('is searched by user name and e-mail, filtered, ordered, and paged without gaps or repeats', async () => {
      for (const index of ['a', 'b', 'c', 'd', 'e'])
        await site.newUser({ username: `page-${index}`, email: `${index}@pages.example`, is_staff: index > 'c' });
      expect(await names('search=PAGE-&sort=username')).toEqual(['page-a', 'page-b', 'page-c', 'page-d', 'page-e']);
      expect(await names('search=pages.example&filter.staff=yes&sort=-username')).toEqual(['page-e', 'page-d']);
      expect(await names('search=page-')).toEqual(['page-e', 'page-d', 'page-c', 'page-b', 'page-a']);
      for (const sort of ['username', '-username', 'created_at', '-created_at']) {
        const whole = await names(`search=page-&sort=${sort}`);
        const walked: string[] = [];
        for (let cursor: string | null = ''; cursor !== null;) {
          const { body } = await site.get(staff, `resources/users?search=page-&limit=2&sort=${sort}&cursor=${cursor}`);
          expect(body.count).toBe(5);
          walked.push(...body.items.map((item: { title: string }) => item.title));
          cursor = body.next;
        }
        expect(walked).toEqual(whole);
      }
    });

    test('takes wildcards of SQL as plain text', async () => {
      expect(await names('search=%25')).toEqual([]);
      expect(await names('search=_')).toEqual([]);
    });

    test.each([
      ['filter.colour=red', ['query', 'filter.colour'], /filter\.active, filter\.staff/],
      ['filter.active=maybe', ['query', 'filter.active'], /yes, no/],
      ['sort=password_hash', ['query', 'sort'], /username, email, created_at/],
      ['cursor=nonsense', ['query', 'cursor'], /first page/],
      ['limit=1000', ['query', 'limit'], /./],
      ['colour=red', ['query', 'colour'], /filter\./],
    ])('%s is a 422 that says what exists', async (query, location, message) => {
      const answer = await site.get(staff, `resources/users?${query}`);
      expect(answer.status).toBe(422);
      expect(answer.body.errors[0]).toMatchObject({ location, message: expect.stringMatching(message) });
    });

    test('an unknown list, record or action is a 404 that names the known ones', async () => {
      expect(await site.get(staff, 'resources/planets')).toMatchObject({
        status: 404,
        body: { resources: expect.arrayContaining(['users']) },
      });
      for (const id of ['nobody', '019b0000-0000-7000-8000-000000000000'])
        expect(await site.get(staff, `resources/users/${id}`)).toMatchObject({ status: 404, body: { code: 'record_not_found' } });
      expect(await site.act(staff, 'users', 'explode', [staff.userId])).toMatchObject({
        status: 404,
        body: { actions: expect.arrayContaining(['deactivate']) },
      });
    });

    test('users can be neither created nor edited there, and users cannot remove themselves; the answer says why', async () => {
      expect(await site.send(staff, 'POST', 'resources/users', {})).toMatchObject({ status: 409, body: { code: 'not_creatable' } });
      expect(await site.send(staff, 'PATCH', `resources/users/${staff.userId}`, {})).toMatchObject({
        status: 409,
        body: { code: 'not_editable' },
      });
      expect(await site.send(staff, 'DELETE', `resources/users/${staff.userId}`)).toMatchObject({
        status: 409,
        body: { code: 'not_removable' },
      });
    });
  });

  test('a page has the open sessions of its user, the newest first; neither ended ones nor those of others', async () => {
    const first = await site.browser({ username: 'walker', is_staff: true });
    site.clock.advance(60_000);
    await site.logIn('walker');
    const section = async () => {
      const { sections } = await read(first.userId);
      return {
        rows: sections.find(({ title }: { title: string }) => title === 'Open sessions').rows as { values: { created_at: string } }[],
        count: sections[0].values.sessions as number,
      };
    };
    const { rows, count } = await section();
    expect([rows.length, count]).toEqual([2, 2]);
    const times = rows.map(({ values }) => Date.parse(values.created_at));
    expect((times[0] ?? 0) - (times[1] ?? 0)).toBe(60_000);
    await site.send(first, 'POST', 'logout');
    expect((await section()).rows).toEqual([rows[0]]);
    await site.act(staff, 'users', 'deactivate', [first.userId]);
    expect(await section()).toEqual({ rows: [], count: 0 });
  });

  test('sessions that nobody used for too long are neither listed nor counted', async () => {
    const sleeper = await site.browser({ username: 'sleeper', is_staff: true });
    site.clock.advance(25 * 3_600_000);
    const later = await site.browser({ username: 'later', is_staff: true });
    const { sections } = (await site.get(later, `resources/users/${sleeper.userId}`)).body;
    site.clock.advance(-25 * 3_600_000);
    expect(sections.find(({ title }: { title: string }) => title === 'Open sessions').rows).toEqual([]);
    expect(sections[0].values.sessions).toBe(0);
  });

  describe('actions', () => {
    test('deactivating ends sessions at once; activating lets the user in again; both are recorded with actor and request', async () => {
      const other = await site.browser();
      const done = await site.act(staff, 'users', 'deactivate', [other.userId]);
      expect(done).toMatchObject({ status: 200, body: { message: '1 user deactivated.' } });
      expect((await site.get(other, 'session')).status).toBe(401);
      expect(await read(other.userId)).toMatchObject({ state: { value: 'deactivated' }, actions: ['activate', 'remove-staff'] });
      await site.act(staff, 'users', 'activate', [other.userId]);
      const record = await read(other.userId);
      expect(record).toMatchObject({ state: { value: 'active' } });
      const history = record.sections.at(-1);
      expect(history.title).toBe('History');
      expect(history.entries.slice(0, 2).map((entry: { title: string }) => entry.title)).toEqual(['User activated', 'User deactivated']);
      const entry = (await site.get(staff, `resources/audit-log/${history.entries[1].link.id}`)).body;
      expect(entry.sections[0].values).toMatchObject({
        actor_name: { resource: 'users', id: staff.userId, text: 'operator' },
        target: { resource: 'users', id: other.userId },
        request_id: expect.stringMatching(/./),
      });
    });

    test('what another request has done meanwhile is not recorded again', async () => {
      const user = await site.newUser();
      const other = await database.open();
      let answer: ReturnType<AdminApp['act']> | undefined;
      await other.transaction(async (tx) => {
        await tx.query('update users set is_active = $2 where id = $1', [user.id, false]);
        answer = site.act(staff, 'users', 'deactivate', [user.id]);
        await untilSomebodyWaits(tx);
      });
      expect((await answer)?.body).toEqual({ message: '1 user deactivated.' });
      expect((await auditLog(database.db, { target_id: user.id })).map(({ action }) => action)).toEqual(['user.created']);
    });

    test('the staff flag is given and taken', async () => {
      const user = await site.newUser();
      await site.act(staff, 'users', 'make-staff', [user.id]);
      expect((await site.logIn(user.username)).status).toBe(200);
      await site.act(staff, 'users', 'remove-staff', [user.id]);
      expect((await site.logIn(user.username)).body.code).toBe('staff_only');
    });

    test('users cannot lock themselves out, and one refusal does not undo the others', async () => {
      const other = await site.newUser();
      for (const action of ['deactivate', 'remove-staff']) {
        const answer = await site.act(staff, 'users', action, [staff.userId, other.id]);
        expect(answer.body.failures).toEqual([{ id: staff.userId, message: expect.stringContaining('your own account') }]);
        expect(answer.body.message).toMatch(/^1 user .*; 1 failed\.$/);
      }
      expect((await site.get(staff, 'session')).status).toBe(200);
      expect((await read(staff.userId)).actions).toEqual([]);
    });

    test('a user is deleted, with its sessions; not by itself, and a superuser by a superuser only', async () => {
      const other = await site.browser();
      expect(await read(other.userId)).toMatchObject({ removable: true });
      const done = await site.send(staff, 'DELETE', `resources/users/${other.userId}`);
      expect(done).toMatchObject({ status: 200, body: { message: expect.stringMatching(/ deleted\.$/) } });
      expect((await site.get(other, 'session')).status).toBe(401);
      expect((await auditLog(database.db, { target_id: other.userId })).at(-1)?.action).toBe('user.deleted');
      const owner = await site.browser({ is_staff: true, is_superuser: true });
      const second = await site.newUser({ is_staff: true, is_superuser: true });
      expect(await site.send(staff, 'DELETE', `resources/users/${second.id}`)).toMatchObject({
        status: 409,
        body: { code: 'not_removable' },
      });
      expect((await site.send(owner, 'DELETE', `resources/users/${second.id}`)).status).toBe(200);
    });

    test('the second factor of a user who lost it is reset: sessions end, the next login needs the password, and it is recorded', async () => {
      const other = await site.browser();
      expect((await read(other.userId)).actions).not.toContain('reset-factor');
      const { secret } = (await site.send(other, 'POST', 'account/factor')).body;
      const code = oneTimeCode(secret, site.clock.now());
      const confirmed = await site.send(other, 'POST', 'account/factor/confirm', { code });
      const renewed = { ...other, cookie: cookieOf(confirmed), csrf: confirmed.body.csrf_token };
      expect((await site.get(renewed, 'session')).status).toBe(200);
      const record = await read(other.userId);
      expect(record.actions).toContain('reset-factor');
      // Not by the user: the own account page does that, and asks for a code.
      const own = await site.act(renewed, 'users', 'reset-factor', [other.userId]);
      expect(own.body).toMatchObject({ code: 'own_account', detail: expect.stringContaining('your own account') });
      const done = await site.act(staff, 'users', 'reset-factor', [other.userId], { reason: 'phone stolen' });
      expect(done).toMatchObject({ status: 200, body: { message: '1 user without a second factor.' } });
      expect((await site.get(renewed, 'session')).status).toBe(401);
      expect((await site.logIn(record.title)).status).toBe(200);
      const actions = (await auditLog(database.db, { target_id: other.userId })).map(({ action }) => action);
      expect(actions).toEqual(expect.arrayContaining(['user.second_factor_removed', 'user.reason_given']));
      const again = await site.act(staff, 'users', 'reset-factor', [other.userId]);
      expect(again.body).toMatchObject({ code: 'no_second_factor', detail: expect.stringContaining('no second factor') });
    });

    test('only present staff reset a factor, and that of a superuser only a superuser', async () => {
      const absent = await site.browser();
      const second = await site.newUser({ is_staff: true, is_superuser: true });
      expect((await site.act(absent, 'users', 'reset-factor', [second.id])).body).toMatchObject({ code: 'superuser_only' });
      site.clock.advance(601_000);
      try {
        expect(await site.act(absent, 'users', 'reset-factor', [second.id])).toMatchObject({
          status: 403,
          body: { code: 'recent_login_required' },
        });
      } finally {
        site.clock.advance(-601_000);
      }
    });

    test('only a superuser changes a superuser', async () => {
      const owner = await site.browser({ is_staff: true, is_superuser: true });
      const second = await site.newUser({ is_staff: true, is_superuser: true });
      const refused = await site.act(staff, 'users', 'deactivate', [second.id]);
      expect(refused.body.failures).toEqual([{ id: second.id, message: expect.stringContaining('superuser') }]);
      expect((await read(second.id)).actions).toEqual([]);
      expect((await site.act(owner, 'users', 'deactivate', [second.id])).body.failures).toBeUndefined();
    });

    test.each([
      ['no id', { ids: [] }],
      ['101 ids', { ids: Array.from({ length: 101 }, (_, index) => `id-${index}`) }],
      ['an id twice', { ids: ['a', 'a'] }],
      ['an undeclared field', { ids: ['a'], fields: { password: 'x' } }],
      ['an unknown member', { ids: ['a'], all: true }],
    ])('%s is refused before anything is done', async (_, body) => {
      expect((await site.send(staff, 'POST', 'resources/users/actions/activate', body)).status).toBe(422);
    });

    test('each invalid id is a failure of its own', async () => {
      const answer = await site.act(staff, 'users', 'activate', ['not-an-id', '019b0000-0000-7000-8000-000000000000']);
      expect(answer.body.failures).toHaveLength(2);
    });
  });

  describe('mails to users', () => {
    let mailing: AdminApp;
    let sender: Browser;
    const mails: MailMessage[] = [];
    beforeAll(async () => {
      const mail = { linkUrl: 'https://shop.example.com/account', send: async (message: MailMessage) => void mails.push(message) };
      mailing = await new AdminApp(await database.open(), [jobs()], {}, {}, { signUp: 'invitation', mail }).ready();
      sender = await mailing.browser({ username: 'sender', is_staff: true });
    });
    afterAll(() => mailing.close());
    const send = (by: Browser, action: string, id: string) => mailing.send(by, 'POST', `resources/users/actions/${action}`, { ids: [id] });
    const token = async (to: string): Promise<string> => {
      mails.length = 0;
      await runDueJobs(mailing.app.db);
      expect(mails.map((mail) => mail.to)).toEqual([to]);
      return /#\w+=([A-Za-z0-9_-]+)/.exec(mails[0]?.text ?? '')?.[1] ?? '';
    };
    const accept = async (given: string) =>
      (await mailing.call('POST', 'api/account/invitations/accept', {}, { token: given, password: 'another good password' })).status;

    test('an invitation is sent again to who has no password yet, by another member of staff, and recorded', async () => {
      const invited = await mailing.send(sender, 'POST', 'resources/users', { username: 'guest', email: 'guest@example.com' });
      expect(invited.status).toBe(201);
      const { id } = invited.body;
      const first = await token('guest@example.com');
      await changeStaff(mailing.app.db, sender.userId, false);
      expect(await accept(first)).toBe(410);
      const other = await mailing.browser({ username: 'other-sender', is_staff: true });
      expect((await mailing.get(other, `resources/users/${id}`)).body.actions).toContain('send-invitation');
      expect((await send(other, 'send-invitation', id)).body).toEqual({ message: '1 user invited again.', id });
      const entries = await auditLog(mailing.app.db, { target_id: id });
      expect(entries.at(-1)).toMatchObject({ action: 'user.invitation_sent' });
      expect(await accept(await token('guest@example.com'))).toBe(204);
      expect((await mailing.get(other, `resources/users/${id}`)).body.actions).not.toContain('send-invitation');
      expect((await send(other, 'send-invitation', id)).body).toMatchObject({
        detail: 'The user has a password, logs in elsewhere, or has no e-mail address.',
      });
      expect((await send(other, 'send-reset', id)).body).toEqual({ message: '1 user sent a link.', id });
      expect((await auditLog(mailing.app.db, { target_id: id })).at(-1)).toMatchObject({ action: 'user.reset_sent' });
    });
  });
});
