import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fromBase32, stepAt, totpCode } from '../../src/auth/request/totp.ts';
import { countQueries, type Database } from '../../src/db/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { type Answer, type AuthApp, Browser, makeAdmin, member, startAuthApp, userId } from './auth-app.ts';
import { auditLog } from '../audit-log.ts';

const PASSWORD = 'correct horse battery';

/** The code of the step now (0), or of the next one (1), which is accepted too. Both stay good for half a minute at least. */
function codeOf(totpURI: string, offset: 0 | 1): string {
  return codeAt(totpURI, stepAt(new Date()) + offset);
}

function codeAt(totpURI: string, step: number): string {
  const secret = new URL(totpURI).searchParams.get('secret') ?? '';
  return totpCode(fromBase32(secret.replaceAll('=', '')), step);
}

/** No code of the next minutes. */
function wrongCode(totpURI: string): string {
  const now = stepAt(new Date());
  const right = new Set(Array.from({ length: 20 }, (_, index) => codeAt(totpURI, now - 2 + index)));
  return Array.from({ length: 30 }, (_, index) => String(111_111 + index)).find((code) => !right.has(code)) ?? '';
}

describeDatabases('better-auth as the login', (database) => {
  let here: AuthApp;
  /** The same database through another handle: what a second process has. */
  let there: AuthApp;
  let db: Database;
  const elsewhere = (browser: Browser): Browser => {
    const other = new Browser(there.app);
    for (const [name, value] of browser.cookies) other.cookies.set(name, value);
    return other;
  };

  beforeAll(async () => {
    db = database.db;
    here = await startAuthApp(db);
    there = await startAuthApp(await database.open());
  });
  afterAll(async () => {
    await here.app.close();
    await there.app.close();
  });

  test('sign-up, verification, login, second factor, organization, invitation, API key, revocation', async () => {
    const ada = new Browser(here.app);
    expect((await ada.signUp('ada@example.com')).status).toBe(200);
    expect((await ada.signIn('ada@example.com')).body).toMatchObject({ code: 'EMAIL_NOT_VERIFIED' });
    expect((await ada.get('/v1/who')).status).toBe(401);
    expect((await ada.follow(here.mails, 'verify', 'ada@example.com')).status).toBe(302);
    expect((await ada.signIn('ada@example.com', 'wrong')).status).toBe(401);
    expect((await ada.signIn('ada@example.com')).status).toBe(200);
    expect((await ada.get('/v1/who')).body).toEqual({ user: 'ada@example.com', scheme: 'session', tenant: null, roles: null, by: null });
    expect((await elsewhere(ada).get('/v1/who')).status).toBe(200);

    const { body } = await ada.post('/auth/two-factor/enable', { password: PASSWORD });
    expect((await ada.post('/auth/two-factor/verify-totp', { code: codeOf(body.totpURI, 0) })).status).toBe(200);
    expect((await ada.get('/v1/who')).status).toBe(200);
    const again = new Browser(here.app);
    expect((await again.signIn('ada@example.com')).body).toMatchObject({ twoFactorRedirect: true });
    expect((await again.get('/v1/who')).status).toBe(401);
    expect((await again.post('/auth/two-factor/verify-totp', { code: wrongCode(body.totpURI) })).status).toBe(401);
    expect((await again.post('/auth/two-factor/verify-totp', { code: codeOf(body.totpURI, 1) })).status).toBe(200);
    expect((await again.get('/v1/who')).status).toBe(200);

    const acme = await ada.post('/auth/organization/create', { name: 'Acme', slug: 'acme' });
    expect(acme.status).toBe(200);
    expect((await ada.get('/v1/who')).body).toMatchObject({ tenant: acme.body.id, roles: ['owner'] });
    expect((await elsewhere(ada).get('/v1/who')).body).toMatchObject({ tenant: acme.body.id, roles: ['owner'] });
    // The other login of the same user has no active organization, and may ask for one.
    expect((await again.get('/v1/who')).body).toMatchObject({ tenant: null, roles: null });
    expect((await again.get('/v1/who', { 'x-organization': 'acme' })).body).toMatchObject({ tenant: acme.body.id, roles: ['owner'] });

    const bob = await member(here, 'bob@example.com');
    expect(await bob.get('/v1/who', { 'x-organization': 'acme' })).toMatchObject({ status: 403, body: { code: 'not_a_member' } });
    expect((await ada.post('/auth/organization/invite-member', { email: 'bob@example.com', role: 'admin' })).status).toBe(200);
    const invitation = here.mails.findLast(({ kind }) => kind === 'invitation');
    const eve = await member(here, 'eve@example.com');
    expect((await eve.post('/auth/organization/accept-invitation', { invitationId: invitation?.url })).status).toBe(403);
    expect((await bob.post('/auth/organization/accept-invitation', { invitationId: invitation?.url })).status).toBe(200);
    expect((await bob.post('/auth/organization/accept-invitation', { invitationId: invitation?.url })).status).toBe(400);
    expect((await bob.get('/v1/who', { 'x-organization': 'acme' })).body).toMatchObject({ tenant: acme.body.id, roles: ['admin'] });
    expect((await bob.get('/v1/who/admins', { 'x-organization': 'acme' })).status).toBe(200);

    const created = await bob.post('/v1/api-keys', { name: 'script', scopes: [] });
    expect(created.status).toBe(201);
    const key = { 'x-api-key': created.body.key as string };
    const program = new Browser(there.app);
    expect((await program.get('/v1/who', { ...key, 'x-organization': 'acme' })).body).toMatchObject({
      scheme: 'api_key',
      roles: ['admin'],
    });
    // The key is bound to the only organization of its owner: a request need not name it, and cannot name another.
    expect((await program.get('/v1/who', key)).body).toMatchObject({ tenant: acme.body.id, roles: ['admin'] });
    expect((await program.get('/v1/who', { ...key, 'x-organization': 'nowhere' })).body.code).toBe('tenant_conflict');

    // Leaving the organization closes it for the session and revokes the key; the user stays.
    const bobMember = (await ada.get('/auth/organization/list-members')).body.members.find(
      (each: { user: { email: string } }) => each.user.email === 'bob@example.com',
    );
    expect((await ada.post('/auth/organization/remove-member', { memberIdOrEmail: bobMember.id })).status).toBe(200);
    for (const of of [bob, elsewhere(bob)]) expect((await of.get('/v1/who', { 'x-organization': 'acme' })).status).toBe(403);
    for (const headers of [key, { ...key, 'x-organization': 'acme' }]) expect((await program.get('/v1/who', headers)).status).toBe(401);
    expect((await bob.get('/v1/who')).status).toBe(200);

    // Revoked sessions are out with the next request, in every process.
    const sessions = (await ada.get('/auth/list-sessions')).body as { token: string }[];
    const other = elsewhere(again);
    expect((await other.get('/v1/who')).status).toBe(200);
    expect((await ada.post('/auth/revoke-other-sessions')).status).toBe(200);
    expect(sessions.length).toBeGreaterThan(1);
    for (const of of [again, other]) expect((await of.get('/v1/who')).status).toBe(401);
    expect((await elsewhere(ada).get('/v1/who')).status).toBe(200);
    const signedOut = elsewhere(ada);
    expect((await ada.post('/auth/sign-out')).status).toBe(200);
    expect((await signedOut.get('/v1/who')).status).toBe(401);
  });

  test('a session is authenticated, with ban, membership and role, by one statement; a forged cookie by none', async () => {
    const carol = await member(here, 'carol@example.com');
    await carol.post('/auth/organization/create', { name: 'One', slug: 'one' });
    const counted = await countQueries(() => carol.get('/v1/who/admins'));
    expect(counted.result.status).toBe(200);
    expect(counted.queries).toHaveLength(1);
    const [name, value] = [...carol.cookies].find(([each]) => each.endsWith('session_token')) ?? ['', ''];
    const token = decodeURIComponent(value).split('.')[0] ?? '';
    for (const forged of [
      token,
      `${token}.`,
      `${token}.${'A'.repeat(43)}=`,
      `${token}x${decodeURIComponent(value).slice(token.length)}`,
      '%',
      'x'.repeat(5000),
    ]) {
      const thief = new Browser(here.app);
      thief.cookies.set(name, forged);
      const none = await countQueries(() => thief.get('/v1/who'));
      expect(none.result.status).toBe(401);
      expect(none.queries).toHaveLength(0);
      const bearer = await countQueries(() => new Browser(here.app).get('/v1/who', { authorization: `Bearer ${forged}` }));
      expect(bearer.result.status).toBe(401);
      expect(bearer.queries.filter(({ sql }) => sql.includes('"session"'))).toHaveLength(0);
    }
    expect((await new Browser(here.app).get('/v1/who', { authorization: `Bearer ${value}` })).body).toMatchObject({
      scheme: 'session_bearer',
    });
  });

  describe('ends with the next request, in every process, when', () => {
    const people = async (name: string) => {
      const browser = await member(here, `${name}@example.com`);
      const { body } = await browser.post('/v1/api-keys', { name: 'script', scopes: [] });
      const key = { 'x-api-key': body.key as string };
      const works = async (of: Browser): Promise<number[]> => [
        (await of.get('/v1/who')).status,
        (await new Browser(of.app).get('/v1/who', key)).status,
      ];
      return { browser, works, id: await userId(db, `${name}@example.com`) };
    };

    test('the user is banned; the keys work again after the ban, and the sessions do not', async () => {
      const { browser, works, id } = await people('banned');
      const other = elsewhere(browser);
      const boss = await member(here, 'boss@example.com');
      expect((await boss.get('/v1/who/staff')).status).toBe(403);
      expect((await boss.post('/auth/admin/ban-user', { userId: id })).status).toBe(403);
      await makeAdmin(db, 'boss@example.com');
      expect((await boss.get('/v1/who/staff')).status).toBe(200);
      expect(await works(other)).toEqual([200, 200]);
      expect((await boss.post('/auth/admin/ban-user', { userId: id })).status).toBe(200);
      expect(await works(browser)).toEqual([401, 401]);
      expect(await works(other)).toEqual([401, 401]);
      const [entry] = await auditLog(db, { target_id: id });
      expect(entry).toMatchObject({ action: 'user.deactivated', actor_name: 'boss@example.com' });
      expect((await boss.post('/auth/admin/unban-user', { userId: id })).status).toBe(200);
      expect(await works(other)).toEqual([401, 200]);
      expect(await db.query('select user_id from better_auth_user_changes')).toEqual([]);
    });

    test('a ban is written by another program: nothing but the statement refuses it', async () => {
      const { browser, works, id } = await people('quiet');
      await db.query('update "user" set "banned" = $2 where "id" = $1', [id, db.dialect === 'sqlite' ? 1 : true]);
      expect(await works(browser)).toEqual([401, 401]);
      const past = new Date(Date.now() - 60_000);
      await db.query('update "user" set "banExpires" = $2 where "id" = $1', [id, db.dialect === 'sqlite' ? past.toISOString() : past]);
      expect(await works(browser)).toEqual([200, 200]);
    });

    test('the user is deleted, and the keys with the user', async () => {
      const { browser, works, id } = await people('gone');
      const other = elsewhere(browser);
      expect((await browser.post('/auth/delete-user', { password: PASSWORD })).status).toBe(200);
      expect(await works(other)).toEqual([401, 401]);
      expect(await db.query('select id from api_keys where owner_id = $1', [id])).toEqual([]);
      expect(await db.query('select user_id from better_auth_user_changes')).toEqual([]);
    });

    test('the password is changed or reset: every other session', async () => {
      const { browser } = await people('changes');
      const second = new Browser(here.app);
      await second.signIn('changes@example.com');
      const change = { currentPassword: PASSWORD, newPassword: 'another long password' };
      expect((await browser.post('/auth/change-password', change)).status).toBe(200);
      expect((await browser.get('/v1/who')).status).toBe(200);
      expect((await second.get('/v1/who')).status).toBe(401);
      expect((await second.signIn('changes@example.com', 'another long password')).status).toBe(200);
      await second.post('/auth/request-password-reset', { email: 'changes@example.com', redirectTo: '/reset' });
      const link = here.mails.findLast(({ kind, to }) => kind === 'reset' && to === 'changes@example.com');
      const token = new URL(link?.url ?? '').pathname.split('/').at(-1);
      expect((await new Browser(there.app).post('/auth/reset-password', { newPassword: 'a third long password', token })).status).toBe(200);
      for (const of of [browser, second, elsewhere(second)]) expect((await of.get('/v1/who')).status).toBe(401);
      expect((await new Browser(there.app).post('/auth/reset-password', { newPassword: 'a fourth long password', token })).status).toBe(
        400,
      );
    });

    test('staff set another password', async () => {
      const { browser, id } = await people('helped');
      const boss = await member(here, 'helper@example.com');
      await makeAdmin(db, 'helper@example.com');
      expect((await boss.post('/auth/admin/set-user-password', { userId: id, newPassword: 'chosen by the staff' })).status).toBe(200);
      expect((await browser.get('/v1/who')).status).toBe(401);
      expect((await boss.get('/v1/who')).status).toBe(200);
    });
  });

  describe('one-time secrets', () => {
    test('a one-time code opens one session, also when two logins use it together', async () => {
      const dora = await member(here, 'dora@example.com');
      const { body } = await dora.post('/auth/two-factor/enable', { password: PASSWORD });
      await dora.post('/auth/two-factor/verify-totp', { code: codeOf(body.totpURI, 0) });
      const logins = [new Browser(here.app), new Browser(there.app), new Browser(here.app), new Browser(there.app)];
      for (const login of logins) expect((await login.signIn('dora@example.com')).body).toMatchObject({ twoFactorRedirect: true });
      const code = codeOf(body.totpURI, 1);
      const answers: Answer[] = await Promise.all(logins.map((login) => login.post('/auth/two-factor/verify-totp', { code })));
      expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 401, 401, 401]);
      expect((await Promise.all(logins.map((login) => login.get('/v1/who')))).filter(({ status }) => status === 200)).toHaveLength(1);
      const late = new Browser(there.app);
      await late.signIn('dora@example.com');
      expect((await late.post('/auth/two-factor/verify-totp', { code })).status).toBe(401);
    });

    test('an invitation is not accepted by an address that is not verified', async () => {
      const owner = await member(here, 'owner@example.com');
      await owner.post('/auth/organization/create', { name: 'Two', slug: 'two' });
      const invited = await member(here, 'invited@example.com');
      await owner.post('/auth/organization/invite-member', { email: 'invited@example.com', role: 'member' });
      const invitationId = here.mails.findLast(({ kind }) => kind === 'invitation')?.url;
      await db.query('update "user" set "emailVerified" = $1 where "email" = $2', [
        db.dialect === 'sqlite' ? 0 : false,
        'invited@example.com',
      ]);
      expect(await invited.post('/auth/organization/accept-invitation', { invitationId })).toMatchObject({ status: 403 });
      expect((await invited.get('/v1/who', { 'x-organization': 'two' })).status).toBe(403);
    });

    test('two acceptances of one invitation make one member', async () => {
      const owner = await member(here, 'owner3@example.com');
      await owner.post('/auth/organization/create', { name: 'Three', slug: 'three' });
      const invited = await member(here, 'twice@example.com');
      await owner.post('/auth/organization/invite-member', { email: 'twice@example.com', role: 'member' });
      const invitationId = here.mails.findLast(({ kind }) => kind === 'invitation')?.url;
      const accept = (of: Browser) => of.post('/auth/organization/accept-invitation', { invitationId });
      await Promise.all([accept(invited), accept(elsewhere(invited)), accept(invited), accept(elsewhere(invited))]);
      const [row, ...others] = await db.query<Record<string, unknown>>('select * from "member" where "userId" = $1', [
        await userId(db, 'twice@example.com'),
      ]);
      expect(others).toEqual([]);
      const again = Object.values({ ...row, id: 'another' });
      // better-auth looks before it inserts; the database decides.
      await expect(db.query('insert into "member" values ($1, $2, $3, $4, $5)', again)).rejects.toThrow(/unique/i);
    });

    test('sign-up answers the same for a known address, and reset for an unknown one', async () => {
      const visitor = new Browser(here.app);
      const shape = ({ body }: Answer) => Object.keys(body.user).toSorted();
      const fresh = await visitor.signUp('fresh@example.com');
      const known = await visitor.signUp('ada@example.com');
      expect(known.status).toBe(fresh.status);
      expect(shape(known)).toEqual(shape(fresh));
      expect(known.body.token).toBe(fresh.body.token);
      const reset = (email: string) => visitor.post('/auth/request-password-reset', { email, redirectTo: '/reset' });
      expect((await reset('nobody@example.com')).text).toBe((await reset('ada@example.com')).text);
    });
  });

  test('who impersonates a user is in the audit line, and cannot create API keys', async () => {
    const target = await member(here, 'target@example.com');
    const { body: kept } = await target.post('/v1/api-keys', { name: 'own', scopes: [] });
    const support = await member(here, 'support@example.com');
    await makeAdmin(db, 'support@example.com');
    const staffId = await userId(db, 'support@example.com');
    expect((await support.post('/auth/admin/impersonate-user', { userId: await userId(db, 'target@example.com') })).status).toBe(200);
    expect((await support.get('/v1/who')).body).toMatchObject({ user: 'target@example.com', by: staffId });
    expect(await support.post('/v1/api-keys', { name: 'planted', scopes: [] })).toMatchObject({
      status: 403,
      body: { code: 'impersonated_session' },
    });
    expect(await support.post(`/v1/api-keys/${kept.id}/rotate`)).toMatchObject({ status: 403, body: { code: 'impersonated_session' } });
    expect((await support.call('DELETE', `/v1/api-keys/${kept.id}`)).status).toBeLessThan(300);
    const entries = await auditLog(db, { target_id: kept.id });
    const revoked = entries.find(({ action }) => action === 'api_key.revoked');
    expect(revoked).toMatchObject({ actor_name: 'target@example.com', metadata: { impersonated_by: staffId } });
    expect((await support.post('/auth/admin/stop-impersonating')).status).toBe(200);
    expect((await support.get('/v1/who')).body).toMatchObject({ user: 'support@example.com', by: null });
  });
});
