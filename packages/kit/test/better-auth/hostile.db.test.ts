import { customSession, jwt, username } from 'better-auth/plugins';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { fromBase32, stepAt, totpCode } from '../../src/auth/request/totp.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { type AuthApp, Browser, makeAdmin, member, ORIGIN, plainPasswords, startAuthApp, userId } from './auth-app.ts';

/** Addresses to go back to that a browser would take for another site, or for a script. */
const HOSTILE = [
  'https://evil.example/',
  '//evil.example',
  '///evil.example',
  'https:evil.example',
  'https:/evil.example',
  '\\\\evil.example',
  '/\\evil.example',
  '/\t/evil.example',
  '\t//evil.example',
  '/\n/evil.example',
  '\u0000https://evil.example',
  ' https://evil.example',
  '/%2F/evil.example',
  '/%5Cevil.example',
  '%2F%2Fevil.example',
  '/..//evil.example',
  `${ORIGIN}@evil.example`,
  `${ORIGIN}.evil.example`,
  `${ORIGIN}:8443/`,
  'javascript:alert(1)',
  'data:text/html,x',
];

describeDatabases('hostile requests of better-auth’s routes', (database) => {
  let here: AuthApp;
  let ada: Browser;
  const work = { passwords: 0 };
  beforeAll(async () => {
    const counted = {
      hash: (password: string) => ((work.passwords += 1), plainPasswords.hash(password)),
      verify: (given: { hash: string; password: string }) => ((work.passwords += 1), plainPasswords.verify(given)),
    };
    here = await startAuthApp(database.db, {
      instance: (options) => ({ ...options, emailAndPassword: { ...options.emailAndPassword, password: counted } }),
    });
    ada = await member(here, 'ada@example.com');
  });
  afterAll(() => here.app.close());

  describe('an address to go back to is one of the own origin', () => {
    const encoded = encodeURIComponent;
    const places: Readonly<
      Record<string, (address: string) => Promise<{ status: number; headers: Readonly<Record<string, unknown>>; body: unknown }>>
    > = {
      'sign-in': (callbackURL) =>
        new Browser(here.app).post('/auth/sign-in/email', { email: 'ada@example.com', password: 'correct horse battery', callbackURL }),
      'sign-up': (callbackURL) =>
        new Browser(here.app).post('/auth/sign-up/email', {
          email: 'ada@example.com',
          password: 'correct horse battery',
          name: 'x',
          callbackURL,
        }),
      'verification mail': (callbackURL) =>
        new Browser(here.app).post('/auth/send-verification-email', { email: 'ada@example.com', callbackURL }),
      verification: (address) => new Browser(here.app).get(`/auth/verify-email?token=x&callbackURL=${encoded(address)}`),
      'reset mail': (redirectTo) => new Browser(here.app).post('/auth/request-password-reset', { email: 'ada@example.com', redirectTo }),
      reset: (address) => new Browser(here.app).get(`/auth/reset-password/x?callbackURL=${encoded(address)}`),
      'change of the address': (callbackURL) => ada.post('/auth/change-email', { newEmail: 'new@example.com', callbackURL }),
      'deletion of the account': (address) => ada.get(`/auth/delete-user/callback?token=x&callbackURL=${encoded(address)}`),
    };

    test.each(Object.keys(places))('%s', async (place) => {
      for (const address of HOSTILE) {
        const { status, headers, body } = await (places[place] as (typeof places)[string])(address);
        const { url } = (body ?? {}) as { readonly url?: unknown };
        const targets = [headers['location'], url].filter((each) => typeof each === 'string');
        // As a browser on the route's own page would read it.
        for (const target of targets)
          expect([place, address, new URL(target, `${ORIGIN}/auth/x`).origin]).toEqual([place, address, ORIGIN]);
        expect([place, address, status < 500]).toEqual([place, address, true]);
      }
      const backs = here.mails
        .filter(({ kind }) => kind !== 'invitation')
        .map(({ url }) => new URL(url).searchParams.get('callbackURL') ?? '/');
      expect(backs.filter((back) => new URL(back, ORIGIN).origin !== ORIGIN)).toEqual([]);
    });
  });

  test('a login does the same work and answers the same bytes for an unknown address, a wrong password and a user without one', async () => {
    await member(here, 'social@example.com');
    await database.db.query('delete from "account" where "userId" = $1', [await userId(database.db, 'social@example.com')]);
    const seen: string[] = [];
    for (const email of ['nobody@example.com', 'ada@example.com', 'social@example.com']) {
      const before = work.passwords;
      const { status, text, headers } = await new Browser(here.app).signIn(email, 'wrong wrong wrong');
      const names = Object.keys(headers).toSorted();
      seen.push(JSON.stringify({ status, text, names, passwords: work.passwords - before }));
    }
    expect(JSON.parse(seen[0] ?? '')).toMatchObject({ status: 401, passwords: 1 });
    expect(new Set(seen).size).toBe(1);
  });

  test('of twenty requests that accept one invitation, one succeeds: one membership', async () => {
    const created = await ada.post('/auth/organization/create', { name: 'North', slug: 'north' });
    expect(created.status).toBe(200);
    const organizationId = created.body.id as string;
    const bob = await member(here, 'bob@example.com');
    const invited = await ada.post('/auth/organization/invite-member', { email: 'bob@example.com', role: 'member', organizationId });
    expect(invited.status).toBe(200);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => bob.post('/auth/organization/accept-invitation', { invitationId: invited.body.id })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const rows = await database.db.query('select "id" from "member" where "organizationId" = $1 and "userId" = $2', [
      organizationId,
      await userId(database.db, 'bob@example.com'),
    ]);
    expect(rows).toHaveLength(1);
  });

  test('of twenty resets with one link one succeeds; of six logins with one backup code one', async () => {
    const email = 'rita@example.com';
    const rita = await member(here, email);
    await new Browser(here.app).post('/auth/request-password-reset', { email, redirectTo: '/reset' });
    const link = here.mails.findLast(({ kind, to }) => kind === 'reset' && to === email);
    const token = new URL(link?.url ?? '').pathname.split('/').at(-1);
    const passwords = Array.from({ length: 20 }, (_, index) => `a long password ${index}`);
    const resets = await Promise.all(
      passwords.map((newPassword) => new Browser(here.app).post('/auth/reset-password', { newPassword, token })),
    );
    expect(resets.filter(({ status }) => status === 200)).toHaveLength(1);
    expect((await rita.get('/v1/who')).status).toBe(401);
    const password = passwords[resets.findIndex(({ status }) => status === 200)] ?? '';
    expect((await rita.signIn(email, password)).status).toBe(200);

    const { body } = await rita.post('/auth/two-factor/enable', { password });
    const secret = fromBase32((new URL(body.totpURI as string).searchParams.get('secret') ?? '').replaceAll('=', ''));
    expect((await rita.post('/auth/two-factor/verify-totp', { code: totpCode(secret, stepAt(new Date())) })).status).toBe(200);
    const logins = Array.from({ length: 6 }, () => new Browser(here.app));
    for (const login of logins) expect((await login.signIn(email, password)).body).toMatchObject({ twoFactorRedirect: true });
    const code = (body.backupCodes as string[])[0];
    const answers = await Promise.all(logins.map((login) => login.post('/auth/two-factor/verify-backup-code', { code })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const late = new Browser(here.app);
    await late.signIn(email, password);
    expect((await late.post('/auth/two-factor/verify-backup-code', { code })).status).toBe(401);
  });

  test.each([false, true])(
    'sessions in a secondary storage end in the database, too; kept for the audit: %s',
    async (preserveSessionInDatabase) => {
      const store = new Map<string, string>();
      const secondaryStorage = {
        get: (key: string) => store.get(key) ?? null,
        set: (key: string, value: string) => void store.set(key, value),
        delete: (key: string) => void store.delete(key),
      };
      const stored = await startAuthApp(await database.open(), {
        instance: (options) => ({
          ...options,
          secondaryStorage: secondaryStorage as never,
          session: { storeSessionInDatabase: true, preserveSessionInDatabase },
        }),
      });
      const email = `stored-${String(preserveSessionInDatabase)}@example.com`;
      const first = await member(stored, email);
      const second = new Browser(stored.app);
      await second.signIn(email);
      expect((await second.get('/v1/who')).status).toBe(200);
      expect((await first.post('/auth/revoke-other-sessions')).status).toBe(200);
      expect((await second.get('/v1/who')).status).toBe(401);
      const kept = new Map(first.cookies);
      expect((await first.post('/auth/sign-out')).status).toBe(200);
      for (const [name, value] of kept) first.cookies.set(name, value);
      expect((await first.get('/v1/who')).status).toBe(401);
      await stored.app.close();
    },
  );

  test('an invitation, and its organization, are out of reach for members of another one', async () => {
    const owner = await member(here, 'inviting@example.com');
    const other = await member(here, 'curious@example.com');
    const { body: organization } = await owner.post('/auth/organization/create', { name: 'Inviting', slug: 'inviting' });
    await other.post('/auth/organization/create', { name: 'Curious', slug: 'curious' });
    const organizationId = organization.id as string;
    const { body: invitation } = await owner.post('/auth/organization/invite-member', {
      email: 'new@example.com',
      role: 'member',
      organizationId,
    });
    for (const path of [
      `get-invitation?id=${String(invitation.id)}`,
      ...['list-invitations', 'list-members', 'get-full-organization'].map((each) => `${each}?organizationId=${organizationId}`),
    ])
      expect([path, (await other.get(`/auth/organization/${path}`)).status]).toEqual([path, 403]);
    for (const [path, body] of [
      ['accept-invitation', { invitationId: invitation.id }],
      ['cancel-invitation', { invitationId: invitation.id }],
      ['invite-member', { email: 'curious2@example.com', role: 'admin', organizationId }],
      ['set-active', { organizationId }],
      ['update', { organizationId, data: { name: 'Mine' } }],
      ['delete', { organizationId }],
    ] as const) {
      const { status } = await other.post(`/auth/organization/${path}`, body);
      expect([path, status >= 400 && status < 500]).toEqual([path, true]);
    }
    expect((await other.get('/v1/who', { 'x-organization': 'inviting' })).status).toBe(403);
    expect((await owner.get('/v1/who', { 'x-organization': 'inviting' })).body).toMatchObject({ roles: ['owner'] });
    expect((await owner.post('/auth/organization/cancel-invitation', { invitationId: invitation.id })).status).toBe(200);
    const invited = await member(here, 'new@example.com');
    expect((await invited.post('/auth/organization/accept-invitation', { invitationId: invitation.id })).status).toBe(400);
  });

  test('a session cookie counts under its own name only, and not when it is sent twice', async () => {
    const [name, value] = [...ada.cookies].find(([each]) => each.endsWith('session_token')) ?? ['', ''];
    expect(name).toMatch(/^__Secure-/);
    const who = async (cookie: string) => (await here.app.inject({ url: '/v1/who', headers: { cookie } })).statusCode;
    expect(await who(`${name}=${value}`)).toBe(200);
    expect(await who(`${name.replace('__Secure-', '')}=${value}`)).toBe(401);
    const eve = await member(here, 'cookie-eve@example.com');
    const planted = [...eve.cookies].find(([each]) => each.endsWith('session_token'))?.[1];
    // A page of a sibling host can plant a second one, and nobody can tell which is which.
    expect(await who(`${name}=${planted}; ${name}=${value}`)).toBe(401);
  });

  describe('an invitation ends with the rights of its sender:', () => {
    let owner: Browser;
    let organizationId: string;
    let people = 0;
    beforeAll(async () => {
      owner = await member(here, 'sender-owner@example.com');
      organizationId = (await owner.post('/auth/organization/create', { name: 'Senders', slug: 'senders' })).body.id;
    });
    const invite = async (by: Browser, email: string, role: string, more: object = {}) =>
      (await by.post('/auth/organization/invite-member', { email, role, organizationId, ...more })).body.id as string;
    const accept = (by: Browser, invitationId: string) => by.post('/auth/organization/accept-invitation', { invitationId });
    const memberId = async (email: string): Promise<string> =>
      (await owner.get(`/auth/organization/list-members?organizationId=${organizationId}`)).body.members.find(
        (each: { user: { email: string } }) => each.user.email === email,
      ).id;
    /** A new administrator of the organization, and a guest that the administrator has invited. */
    const invited = async (guestRole = 'admin', senderRole = 'admin') => {
      people += 1;
      const [email, guestEmail] = [`sender${people}@example.com`, `sent${people}@example.com`];
      const [sender, guest] = [await member(here, email), await member(here, guestEmail)];
      expect((await accept(sender, await invite(owner, email, senderRole))).status).toBe(200);
      return { email, guestEmail, guest, sender, invitation: await invite(sender, guestEmail, guestRole) };
    };
    const ends: Record<string, (email: string) => Promise<unknown>> = {
      removed: async (email) => owner.post('/auth/organization/remove-member', { memberIdOrEmail: email, organizationId }),
      demoted: async (email) =>
        owner.post('/auth/organization/update-member-role', { memberId: await memberId(email), role: 'member', organizationId }),
      banned: (email) =>
        database.db.query(`update "user" set "banned" = $1 where "email" = $2`, [database.dialect === 'sqlite' ? 1 : true, email]),
      deleted: (email) => database.db.query(`delete from "user" where "email" = $1`, [email]),
    };

    test.each(Object.keys(ends))('of one who is %s', async (what) => {
      const { email, guest, invitation } = await invited();
      await ends[what]?.(email);
      const answer = await accept(guest, invitation);
      expect([answer.status, answer.body.code]).toEqual(
        what === 'deleted' ? [400, 'INVITATION_NOT_FOUND'] : [403, 'INVITER_NO_LONGER_ALLOWED'],
      );
      expect((await guest.get('/v1/who', { 'x-organization': 'senders' })).status).toBe(403);
    });

    test('of one who could no longer give the role, and others stay', async () => {
      const owners = await invited('owner', 'owner');
      const members = await invited('member', 'owner');
      for (const { email } of [owners, members])
        await owner.post('/auth/organization/update-member-role', { memberId: await memberId(email), role: 'admin', organizationId });
      expect((await accept(owners.guest, owners.invitation)).body.code).toBe('INVITER_NO_LONGER_ALLOWED');
      expect((await accept(members.guest, members.invitation)).status).toBe(200);
    });

    test('sent again by somebody who may, it is theirs', async () => {
      const { email, guestEmail, guest, invitation } = await invited('member');
      await ends['removed']?.(email);
      expect((await accept(guest, invitation)).status).toBe(403);
      expect(await invite(owner, guestEmail, 'member', { resend: true })).toBe(invitation);
      expect((await accept(guest, invitation)).status).toBe(200);
      // One that is good stays that of its sender.
      const other = await invited('member');
      await invite(owner, other.guestEmail, 'member', { resend: true });
      await ends['removed']?.(other.email);
      expect((await accept(other.guest, other.invitation)).status).toBe(403);
    });
  });

  describe('roles', () => {
    /** Somebody who has accepted an invitation of `by`, with this role as it was sent. */
    const invited = async (by: Browser, email: string, role: unknown, organizationId: string): Promise<Browser> => {
      const browser = await member(here, email);
      const sent = await by.post('/auth/organization/invite-member', { email, role, organizationId });
      if (sent.status === 200) await browser.post('/auth/organization/accept-invitation', { invitationId: sent.body.id });
      return browser;
    };

    test('an administrator of an organization makes nobody its owner, however the role is written', async () => {
      const owner = await member(here, 'owner@example.com');
      const { body } = await owner.post('/auth/organization/create', { name: 'Roles', slug: 'roles' });
      const admin = await invited(owner, 'admin@example.com', 'admin', body.id as string);
      const of = { 'x-organization': 'roles' };
      expect((await admin.get('/v1/who', of)).body.roles).toEqual(['admin']);
      const spellings = [
        'owner',
        'member,owner',
        'member, owner',
        ' owner',
        'owner ',
        ['member', 'owner'],
        ['member,owner'],
        ['member', ' owner'],
        'OWNER',
      ];
      for (const [index, role] of spellings.entries()) {
        const accomplice = await invited(admin, `accomplice${index}@example.com`, role, body.id as string);
        const { body: seen } = await accomplice.get('/v1/who', of);
        expect([role, seen.roles ?? []]).toEqual([role, expect.not.arrayContaining(['owner'])]);
        // No other role that the routes ask for, either: these are of owners and administrators.
        expect([role, (await accomplice.get('/v1/who/admins', of)).status]).toEqual([role, 403]);
      }
      const memberId = (await admin.get(`/auth/organization/list-members?organizationId=${String(body.id)}`)).body.members.find(
        (each: { role: string }) => each.role === 'admin',
      ).id as string;
      for (const role of spellings) await admin.post('/auth/organization/update-member-role', { memberId, role, organizationId: body.id });
      expect((await admin.get('/v1/who', of)).body.roles).not.toContain('owner');
    });

    test('staff are users whose role is exactly admin, on every database', async () => {
      const browser = await member(here, 'spelled@example.com');
      const set = (role: string) => database.db.query('update "user" set "role" = $1 where "email" = $2', [role, 'spelled@example.com']);
      for (const role of ['Admin', 'ADMIN', 'user, admin', 'admin ', 'administrator', 'super_admin', 'adm%', '', ',']) {
        await set(role);
        expect([role, (await browser.get('/v1/who/staff')).status]).toEqual([role, 403]);
      }
      for (const role of ['admin', 'user,admin', 'admin,user']) {
        await set(role);
        expect([role, (await browser.get('/v1/who/staff')).status]).toEqual([role, 200]);
      }
    });

    test('nobody chooses an id, a role or a ban at sign-up, nor the id of an organization', async () => {
      const visitor = new Browser(here.app);
      const account = { email: 'chooser@example.com', password: 'correct horse battery', name: 'x' };
      await visitor.post('/auth/sign-up/email', { ...account, id: 'chosen', role: 'admin', banned: false, emailVerified: true });
      const [row] = await database.db.query<Record<string, unknown>>('select * from "user" where "email" = $1', [account.email]);
      expect(row?.['id']).not.toBe('chosen');
      expect(row?.['role']).not.toBe('admin');
      expect(Boolean(row?.['emailVerified'])).toBe(false);
      await ada.post('/auth/update-user', { name: 'Ada', role: 'admin', id: 'chosen' });
      expect((await ada.get('/v1/who/staff')).status).toBe(403);
      const created = await ada.post('/auth/organization/create', { name: 'Chosen', slug: 'chosen', id: 'chosen' });
      expect(created.body?.id).not.toBe('chosen');
    });
  });

  describe('a session in which staff act as somebody else ends', () => {
    const acting = async (name: string) => {
      const support = await member(here, `${name}@example.com`);
      await makeAdmin(database.db, `${name}@example.com`);
      expect((await support.post('/auth/admin/impersonate-user', { userId: await userId(database.db, 'ada@example.com') })).status).toBe(
        200,
      );
      expect((await support.get('/v1/who')).body).toMatchObject({ user: 'ada@example.com' });
      const boss = await member(here, `boss-of-${name}@example.com`);
      await makeAdmin(database.db, `boss-of-${name}@example.com`);
      return { support, boss, id: await userId(database.db, `${name}@example.com`) };
    };

    test('when the staff member is banned', async () => {
      const { support, boss, id } = await acting('banned-staff');
      expect((await boss.post('/auth/admin/ban-user', { userId: id })).status).toBe(200);
      expect((await support.get('/v1/who')).status).toBe(401);
      expect((await support.post('/auth/organization/create', { name: 'x', slug: 'x-by-banned' })).status).toBe(401);
    });

    test('when the staff member is banned by another program: nothing but the statement refuses it', async () => {
      const { support, id } = await acting('quiet-staff');
      await database.db.query('update "user" set "banned" = $2 where "id" = $1', [id, database.dialect === 'sqlite' ? 1 : true]);
      expect((await support.get('/v1/who')).status).toBe(401);
    });

    test('when the staff member loses the role, or is deleted', async () => {
      const { support, boss, id } = await acting('demoted-staff');
      expect((await boss.post('/auth/admin/set-role', { userId: id, role: 'user' })).status).toBe(200);
      expect((await support.get('/v1/who')).status).toBe(401);
      const other = await acting('deleted-staff');
      expect((await other.boss.post('/auth/admin/remove-user', { userId: other.id })).status).toBe(200);
      expect((await other.support.get('/v1/who')).status).toBe(401);
    });
  });

  test('whoever acts as a user plants no credential, reads none, and does not end the account', async () => {
    const victim = await member(here, 'victim@example.com');
    const support = await member(here, 'support@example.com');
    await makeAdmin(database.db, 'support@example.com');
    const id = await userId(database.db, 'victim@example.com');
    expect((await support.post('/auth/admin/impersonate-user', { userId: id })).status).toBe(200);
    const password = 'correct horse battery';
    for (const [path, body] of [
      ['change-email', { newEmail: 'evil@example.com' }],
      ['change-password', { currentPassword: password, newPassword: 'chosen by support' }],
      ['two-factor/enable', { password }],
      ['link-social', { provider: 'google', callbackURL: '/' }],
      ['unlink-account', { providerId: 'credential' }],
      ['get-access-token', { providerId: 'google' }],
      ['delete-user', {}],
      ['delete-user', { password }],
    ] as const)
      expect([path, await support.post(`/auth/${path}`, body)]).toMatchObject([
        path,
        { status: 403, body: { code: 'IMPERSONATED_SESSION' } },
      ]);
    // Nor does it lose the mark of what it is.
    await support.post('/auth/update-session', {
      impersonatedBy: null,
      userId: id,
      activeOrganizationId: 'x',
      token: 'x',
      expiresAt: '2099-01-01',
    });
    expect((await support.get('/v1/who')).body).toMatchObject({
      user: 'victim@example.com',
      by: await userId(database.db, 'support@example.com'),
    });
    expect((await victim.get('/v1/who')).status).toBe(200);
    expect((await victim.post('/auth/delete-user', { password })).status).toBe(200);
  });

  test('whoever acts as a user gets no access token in their name, and does not change the user name that they log in with', async () => {
    const app = await startAuthApp(await database.open(), {
      instance: (options) => ({
        ...options,
        plugins: [...options.plugins, jwt(), username(), customSession(async ({ user }) => ({ who: user.email }))],
      }),
    });
    onTestFinished(() => app.app.close());
    const person = await member(app, 'person@example.com');
    const support = await member(app, 'desk@example.com');
    await makeAdmin(database.db, 'desk@example.com');
    // Own tokens are not affected.
    for (const browser of [person, support]) {
      expect((await browser.get('/auth/token')).status).toBe(200);
      expect((await browser.get('/auth/get-session')).headers['set-auth-jwt']).toMatch(/^ey/);
    }
    expect((await person.post('/auth/update-user', { username: 'person' })).status).toBe(200);
    const userIdOf = await userId(database.db, 'person@example.com');
    expect((await support.post('/auth/admin/impersonate-user', { userId: userIdOf })).status).toBe(200);
    const refused = { status: 403, body: { code: 'IMPERSONATED_SESSION' } };
    expect(await support.get('/auth/token')).toMatchObject(refused);
    expect((await support.get('/auth/get-session')).body).toEqual({ who: 'person@example.com' });
    for (const path of ['get-session', 'get-session/', 'get-session?disableCookieCache=true', 'get%2Dsession']) {
      const session = await support.get(`/auth/${path}`);
      expect([path, session.headers['set-auth-jwt']]).toEqual([path, undefined]);
      expect(Object.keys(session.headers).filter((name) => name.startsWith('kit-'))).toEqual([]);
    }
    for (const body of [{ username: 'desk' }, { name: 'Person', username: null }])
      expect(await support.post('/auth/update-user', body)).toMatchObject(refused);
    expect((await support.post('/auth/update-user', { name: 'A person' })).status).toBe(200);
    expect(
      (await new Browser(app.app).post('/auth/sign-in/username', { username: 'person', password: 'correct horse battery' })).status,
    ).toBe(200);
  });

  test('text that no database can store is refused, and is no fault of the server', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const browser = new Browser(here.app);
    for (const [path, body, headers] of [
      ['reset-password', '{"token":"a\\u0000b","newPassword":"correct horse battery"}', {}],
      ['reset-password', '{"token":"a\\ud800b","newPassword":"correct horse battery"}', {}],
      ['reset-password', '{"token":{"\\uDC00":1},"newPassword":"correct horse battery"}', {}],
      ['reset-password', 'token=a%00b&newPassword=correct+horse+battery', form],
    ] as const)
      expect([body, await browser.post(`/auth/${path}`, body, headers)]).toMatchObject([
        body,
        { status: 422, body: { code: 'value_not_storable' } },
      ]);
    // A pair that is written as two escapes is one character, and an escaped backslash is no escape.
    for (const token of ['\\ud83d\\ude00', '\\\\u0000', 'a%00b'])
      expect((await browser.post('/auth/reset-password', `{"token":"${token}","newPassword":"correct horse battery"}`)).body).toMatchObject(
        {
          code: 'INVALID_TOKEN',
        },
      );
    expect((await browser.post('/auth/reset-password', '{"token":"\\u00')).status).toBe(400);
  });

  test('nobody makes a session that of an organization or of another user with update-session', async () => {
    const outsider = await member(here, 'outsider@example.com');
    const owner = await member(here, 'private-owner@example.com');
    const { body } = await owner.post('/auth/organization/create', { name: 'Private', slug: 'private' });
    await outsider.post('/auth/update-session', {
      activeOrganizationId: body.id,
      userId: await userId(database.db, 'private-owner@example.com'),
    });
    expect((await outsider.get('/v1/who')).body).toMatchObject({ user: 'outsider@example.com', tenant: null, roles: null });
  });

  test('the cookie cache of better-auth decides nothing that its routes do', async () => {
    const cached = await startAuthApp(await database.open(), {
      instance: (options) => ({ ...options, session: { cookieCache: { enabled: true, maxAge: 300 } } }),
    });
    const boss = await member(cached, 'cached-boss@example.com');
    await makeAdmin(database.db, 'cached-boss@example.com');
    const target = await member(cached, 'cached-target@example.com');
    const { body } = await target.post('/auth/organization/create', { name: 'Cached', slug: 'cached' });
    const demoted = new Browser(cached.app);
    await demoted.signIn('cached-boss@example.com');
    for (const of of [boss, target, demoted]) await of.get('/auth/get-session');
    expect([...demoted.cookies.keys()].some((name) => name.includes('session_data'))).toBe(true);
    await database.db.query(`update "user" set "role" = 'user' where "email" = $1`, ['cached-boss@example.com']);
    const id = await userId(database.db, 'cached-target@example.com');
    expect((await demoted.post('/auth/admin/ban-user', { userId: id })).status).toBe(403);
    expect((await demoted.post('/auth/admin/impersonate-user', { userId: id })).status).toBe(403);
    // The session is over, and its copy in the cookie invites nobody and shows no members.
    const signedOut = new Map(target.cookies);
    expect((await target.post('/auth/sign-out')).status).toBe(200);
    for (const [name, value] of signedOut) target.cookies.set(name, value);
    const organizationId = body.id as string;
    expect((await target.post('/auth/organization/invite-member', { email: 'x@example.com', role: 'member', organizationId })).status).toBe(
      401,
    );
    expect((await target.get(`/auth/organization/list-members?organizationId=${organizationId}`)).status).toBe(401);
    await cached.app.close();
  });
});
