import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeDatabases } from '../../src/testing/databases.ts';
import { type AuthApp, Browser, member, ORIGIN, plainPasswords, startAuthApp, userId } from './auth-app.ts';

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
});
