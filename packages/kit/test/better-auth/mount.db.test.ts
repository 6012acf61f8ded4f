import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApiKey } from '../../src/contrib/apikeys/index.ts';
import { passOnJob } from '../../src/contrib/better-auth/user-changes.ts';
import { jobs, runDueJobs, startJob } from '../../src/contrib/jobs/index.ts';
import { countQueries } from '../../src/db/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { type AuthApp, Browser, makeAdmin, member, ORIGIN, startAuthApp, userId } from './auth-app.ts';

describeDatabases('the routes of better-auth, and ours with its cookie', (database) => {
  let here: AuthApp;
  let ada: Browser;
  beforeAll(async () => {
    here = await startAuthApp(database.db, {
      instance: (options) => ({ ...options, advanced: { ...options.advanced, ipAddress: { ipAddressHeaders: ['x-client-ip'] } } }),
      module: { bodyBytesMax: 2000 },
      app: { trustedProxies: ['10.0.0.0/8'] },
    });
    ada = await member(here, 'ada@example.com');
  });
  afterAll(() => here.app.close());

  describe('an unsafe request with the cookie', () => {
    const changes = (headers: Record<string, string>) => {
      ada.origin = null;
      return ada.post('/v1/who', {}, headers).finally(() => (ada.origin = ORIGIN));
    };
    test.each([
      ['of a trusted page', { origin: ORIGIN }, 200],
      ['of the same origin, without Origin', { 'sec-fetch-site': 'same-origin' }, 200],
      ['with neither header', {}, 403],
      ['of another page', { origin: 'https://evil.example' }, 403],
      ['of another page that says same-origin', { origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' }, 403],
      ['of a page of another port', { origin: `${ORIGIN}:8443` }, 403],
      ['of the page in plain http', { origin: 'http://app.example.com' }, 403],
      ['of a sandboxed page', { origin: 'null' }, 403],
      ['of a sibling host', { 'sec-fetch-site': 'same-site' }, 403],
      ['of another site', { 'sec-fetch-site': 'cross-site' }, 403],
      ['typed by the user', { 'sec-fetch-site': 'none' }, 403],
    ])('%s: %o', async (_name, headers, status) => {
      const answer = await changes(headers);
      expect(answer).toMatchObject({ status, body: status === 403 ? { code: 'csrf_failed' } : { user: 'ada@example.com' } });
    });

    test('reading needs no proof, and a bearer token none either', async () => {
      expect((await ada.get('/v1/who')).status).toBe(200);
      const [value = ''] = [...ada.cookies].filter(([name]) => name.endsWith('session_token')).map(([, each]) => each);
      const program = new Browser(here.app);
      program.origin = null;
      expect((await program.post('/v1/who', {}, { authorization: `Bearer ${value}` })).status).toBe(200);
    });

    test("better-auth's own routes check the origin too", async () => {
      ada.origin = 'https://evil.example';
      expect((await ada.post('/auth/update-user', { name: 'x' })).status).toBe(403);
      ada.origin = ORIGIN;
      expect((await ada.post('/auth/update-user', { name: 'x' })).status).toBe(200);
    });
  });

  test('origins are trusted by the list of better-auth: patterns, and a function of the request', async () => {
    const trusting = async (trustedOrigins: string[] | ((request?: Request) => string[])) => {
      const other = await startAuthApp(await database.open(), { instance: (options) => ({ ...options, trustedOrigins }) });
      const browser = new Browser(other.app);
      for (const [name, value] of ada.cookies) browser.cookies.set(name, value);
      const from = async (origin: string, team = ''): Promise<number> => {
        browser.origin = origin;
        return (await browser.post('/v1/who', {}, { 'x-team': team })).status;
      };
      return { from, close: () => other.app.close() };
    };
    const patterns = await trusting(['https://*.shop.example']);
    expect(await patterns.from('https://a.shop.example')).toBe(200);
    for (const origin of ['https://shop.example.evil.example', 'http://a.shop.example', 'https://evil.example/.shop.example'])
      expect(await patterns.from(origin)).toBe(403);
    await patterns.close();
    const computed = await trusting((request) => (request?.headers.get('x-team') === 'north' ? ['https://north.example'] : []));
    expect(await computed.from('https://north.example', 'north')).toBe(200);
    expect(await computed.from('https://north.example', 'south')).toBe(403);
    expect(await computed.from('https://south.example', 'north')).toBe(403);
    await computed.close();
  });

  test('a body over the limit is refused before better-auth sees it', async () => {
    const visitor = new Browser(here.app);
    const long = { email: 'long@example.com', password: 'p'.repeat(4000), name: 'long' };
    expect(await visitor.post('/auth/sign-up/email', long)).toMatchObject({ status: 413, body: { code: 'body_too_large' } });
    expect((await visitor.call('POST', '/auth/sign-up/email', 'not json', { 'content-type': 'text/plain' })).status).toBeGreaterThanOrEqual(
      400,
    );
  });

  test('the address of a session is that of the connection, whatever headers the client sends', async () => {
    const visitor = new Browser(here.app);
    const password = 'correct horse battery';
    const sent = {
      'x-forwarded-for': '203.0.113.9',
      'x-client-ip': '203.0.113.8',
      'x-forwarded-host': 'evil.example',
      host: 'evil.example',
    };
    expect((await visitor.post('/auth/sign-in/email', { email: 'ada@example.com', password }, sent)).status).toBe(200);
    const rows = await database.db.query<{ ip: string }>('select "ipAddress" as ip from "session" order by "createdAt" desc');
    expect(rows[0]?.ip).toBe('127.0.0.1');
    expect(JSON.stringify(rows)).not.toContain('203.0.113');
    await visitor.post('/auth/request-password-reset', { email: 'ada@example.com', redirectTo: '/reset' }, sent);
    const mail = here.mails.findLast(({ kind }) => kind === 'reset');
    expect(mail?.url.startsWith(`${ORIGIN}/auth/`)).toBe(true);
  });

  test('links lead only to trusted origins', async () => {
    const visitor = new Browser(here.app);
    const reset = { email: 'ada@example.com', redirectTo: 'https://evil.example/reset' };
    expect((await visitor.post('/auth/request-password-reset', reset)).status).toBe(403);
    for (const path of ['/auth//evil.example/x', '/auth/%2F%2Fevil.example'])
      expect(String((await visitor.get(path)).headers['location'] ?? '')).not.toContain('evil.example');
  });

  test('an API key opens no route of better-auth', async () => {
    const { body } = await ada.post('/v1/api-keys', { name: 'script', scopes: [] });
    const program = new Browser(here.app);
    const key = { 'x-api-key': body.key as string, authorization: `Bearer ${String(body.key)}` };
    expect((await program.get('/auth/get-session', key)).body).toBeNull();
    for (const path of ['update-user', 'change-password', 'delete-user', 'organization/create', 'two-factor/enable', 'admin/ban-user'])
      expect(
        (
          await program.post(
            `/auth/${path}`,
            { name: 'x', slug: 'x', password: 'x', currentPassword: 'x', newPassword: 'y'.repeat(12), userId: 'x' },
            key,
          )
        ).status,
      ).toBe(401);
  });

  test('a login takes a new token: a session that was planted before stays what it was', async () => {
    const eve = await member(here, 'eve@example.com');
    const victim = new Browser(here.app);
    for (const [name, value] of eve.cookies) victim.cookies.set(name, value);
    expect((await victim.signIn('ada@example.com')).status).toBe(200);
    expect((await victim.get('/v1/who')).body).toMatchObject({ user: 'ada@example.com' });
    expect((await eve.get('/v1/who')).body).toMatchObject({ user: 'eve@example.com' });
  });

  test('a write of better-auth inside a transaction of the app is part of it', async () => {
    const create = (slug: string) =>
      here.auth.api.signUpEmail({ body: { email: `${slug}@example.com`, password: 'correct horse battery', name: slug } });
    await expect(
      database.db.transaction(async () => {
        await create('rolled-back');
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    await database.db.transaction(() => create('committed'));
    const found = await database.db.query<{ email: string }>(`select "email" as email from "user" where "email" in ($1, $2)`, [
      'rolled-back@example.com',
      'committed@example.com',
    ]);
    expect(found.map(({ email }) => email)).toEqual(['committed@example.com']);
  });

  test('changes that a crash left are passed on when the app starts', async () => {
    const gone = await member(here, 'crashed@example.com');
    const { body } = await gone.post('/v1/api-keys', { name: 'script', scopes: [] });
    const id = await userId(database.db, 'crashed@example.com');
    // Another program, or a process that ended before its hook ran.
    await database.db.query('delete from "user" where "id" = $1', [id]);
    expect((await gone.get('/v1/who', { 'x-api-key': body.key as string })).status).toBe(401);
    expect(await database.db.query('select id from api_keys where owner_id = $1', [id])).toHaveLength(1);
    const second = await startAuthApp(await database.open());
    await second.app.start();
    expect(await database.db.query('select id from api_keys where owner_id = $1', [id])).toEqual([]);
    expect(await database.db.query('select user_id from better_auth_user_changes')).toEqual([]);
    await second.app.close();
  });

  test('the organization may be named by the path, and by nothing else then', async () => {
    const organization = ({ url }: { readonly url: string }) =>
      decodeURIComponent(/[?&]org=([^&]*)/.exec(url)?.[1] ?? '').replaceAll('~', '\0');
    const other = await startAuthApp(await database.open(), { module: { organization } });
    const { body } = await ada.post('/auth/organization/create', { name: 'Path', slug: 'path' });
    await ada.post('/auth/organization/create', { name: 'Active', slug: 'active' });
    const browser = new Browser(other.app);
    for (const [name, value] of ada.cookies) browser.cookies.set(name, value);
    expect((await browser.get('/v1/who/of?org=path')).body).toMatchObject({ tenant: body.id, roles: ['owner'] });
    expect((await browser.get(`/v1/who/of?org=${String(body.id)}`)).body).toMatchObject({ tenant: body.id });
    const active = (await browser.get('/v1/who/of', { 'x-organization': 'path' })).body;
    expect(active).toMatchObject({ roles: ['owner'] });
    expect(active.tenant).not.toBe(body.id);
    for (const strange of ['nowhere', 'PATH', '~', 'path~', 'x'.repeat(5000), "path' or '1'='1", '%25', '%20path'])
      expect(await browser.get(`/v1/who/of?org=${strange}`)).toMatchObject({ status: 403, body: { code: 'not_a_member' } });
    await other.app.close();
  });

  test('a slug does not take over the id of another organization', async () => {
    const { body } = await ada.post('/auth/organization/create', { name: 'First', slug: 'first' });
    const eve = await member(here, 'squatter@example.com');
    const squatted = await eve.post('/auth/organization/create', { name: 'Second', slug: body.id });
    expect(squatted.status).toBe(200);
    expect((await ada.get('/v1/who', { 'x-organization': body.id as string })).body).toMatchObject({ tenant: body.id });
    expect((await eve.get('/v1/who', { 'x-organization': body.id as string })).status).toBe(403);
  });

  test('an organization that was left is not active any more', async () => {
    const owner = await member(here, 'leaving@example.com');
    const { body } = await owner.post('/auth/organization/create', { name: 'Left', slug: 'left' });
    expect((await owner.get('/v1/who')).body.tenant).toBe(body.id);
    await database.db.query('delete from "member" where "organizationId" = $1', [body.id]);
    expect((await owner.get('/v1/who')).body).toMatchObject({ tenant: null, roles: null });
    expect((await owner.get('/v1/who/admins')).status).toBe(403);
  });

  test('a member with several roles has each of them', async () => {
    const many = await member(here, 'many@example.com');
    await many.post('/auth/organization/create', { name: 'Many', slug: 'many' });
    await database.db.query(`update "member" set "role" = 'member,admin' where "userId" = $1`, [
      await userId(database.db, 'many@example.com'),
    ]);
    expect((await many.get('/v1/who')).body.roles).toEqual(['member', 'admin']);
    expect((await many.get('/v1/who/admins')).status).toBe(200);
  });

  test('a session needs a recent login for what hasRecentLogin protects, by the measure of better-auth', async () => {
    expect((await ada.get('/v1/who/recent')).status).toBe(200);
    const old = new Date(Date.now() - 25 * 3_600_000);
    const stored = database.db.dialect === 'sqlite' ? old.toISOString() : old;
    const token = decodeURIComponent([...ada.cookies].find(([name]) => name.endsWith('session_token'))?.[1] ?? '').split('.')[0];
    await database.db.query('update "session" set "createdAt" = $1 where "token" = $2', [stored, token]);
    expect(await ada.get('/v1/who/recent')).toMatchObject({ status: 403, body: { code: 'recent_login_required' } });
    expect(await ada.post('/v1/api-keys', { name: 'late', scopes: [] })).toMatchObject({ status: 403 });
  });

  test('a session is renewed by the route of better-auth, and by no other', async () => {
    const rena = await member(here, 'rena@example.com');
    const token = decodeURIComponent([...rena.cookies].find(([name]) => name.endsWith('session_token'))?.[1] ?? '').split('.')[0];
    const soon = new Date(Date.now() + 3_600_000);
    const stored = (at: Date) => (database.dialect === 'sqlite' ? at.toISOString() : at);
    await database.db.query('update "session" set "expiresAt" = $1 where "token" = $2', [stored(soon), token]);
    const expiry = async (): Promise<number> => {
      const [row] = await database.db.query<{ at: string | Date }>('select "expiresAt" as at from "session" where "token" = $1', [token]);
      return new Date(row?.at ?? 0).getTime();
    };
    expect((await rena.get('/v1/who')).status).toBe(200);
    expect((await rena.post('/v1/who')).status).toBe(200);
    expect(await expiry()).toBe(soon.getTime());
    expect((await rena.get('/auth/get-session')).body.user.email).toBe('rena@example.com');
    expect(await expiry()).toBeGreaterThan(soon.getTime() + 24 * 3_600_000);
    await database.db.query('update "session" set "expiresAt" = $1 where "token" = $2', [stored(new Date(Date.now() - 1000)), token]);
    expect((await rena.get('/v1/who')).status).toBe(401);
    // A session that is over is not renewed.
    expect((await rena.get('/auth/get-session')).body).toBeNull();
    expect((await rena.get('/v1/who')).status).toBe(401);
  });

  test('a cached API key ends with the ban in this process', async () => {
    const caching = await startAuthApp(await database.open(), { apiKeys: { cache: { maxAgeMs: 300_000 } } });
    const keyed = await member(caching, 'keyed@example.com');
    const user = await userId(database.db, 'keyed@example.com');
    const { raw } = await createApiKey(caching.app.db, { user, name: 'script', scopes: [], tenant: '*' });
    const use = () => new Browser(caching.app).get('/v1/who', { 'x-api-key': raw });
    for (let round = 0; round < 3; round += 1) expect((await use()).status).toBe(200);
    expect((await countQueries(use)).queries).toEqual([]);
    const boss = await member(caching, 'caching-boss@example.com');
    await makeAdmin(database.db, 'caching-boss@example.com');
    const { body: organization } = await keyed.post('/auth/organization/create', { name: 'Keyed', slug: 'keyed' });
    const inside = () => new Browser(caching.app).get('/v1/who', { 'x-api-key': raw, 'x-organization': 'keyed' });
    expect((await inside()).body).toMatchObject({ tenant: organization.id });
    // The membership is never cached.
    await database.db.query('delete from "member" where "organizationId" = $1', [organization.id]);
    expect((await inside()).status).toBe(403);
    expect((await boss.post('/auth/admin/ban-user', { userId: user })).status).toBe(200);
    expect((await use()).status).toBe(401);
    await caching.app.close();
  });

  test('the statement of a session finds everything by an index', async () => {
    const db = database.db;
    const counted = await countQueries(() => ada.get('/v1/who', { 'x-organization': 'path' }));
    const text = (counted.queries[0]?.sql ?? '').replaceAll('?', '$1');
    expect(text).toContain('"session"');
    const values = ['token', db.dialect === 'sqlite' ? '2026' : new Date(), 'path'];
    const plan = await db.transaction(async (tx) => {
      if (db.dialect === 'postgres') await tx.query('set local enable_seqscan = off');
      const rows = await tx.query<Record<string, string>>(`${db.dialect === 'sqlite' ? 'explain query plan' : 'explain'} ${text}`, values);
      return rows.map((row) => row['detail'] ?? row['QUERY PLAN'] ?? '');
    });
    expect(plan.filter((line) => /^SCAN (?!CONSTANT)|Seq Scan/.test(line.trim()))).toEqual([]);
    expect(plan.join('\n')).toContain('member_organizationId_userId_uidx');
  });

  test('the job passes on what was left', async () => {
    const db = await database.open();
    const working = await startAuthApp(db, { modules: [jobs()] });
    const gone = await member(working, 'job@example.com');
    await gone.post('/v1/api-keys', { name: 'script', scopes: [] });
    const id = await userId(db, 'job@example.com');
    await db.query('delete from "user" where "id" = $1', [id]);
    await db.transaction((tx) => startJob(tx, passOnJob, {}));
    expect(await runDueJobs(db)).toMatchObject({ succeeded: 1 });
    expect(await db.query('select id from api_keys where owner_id = $1', [id])).toEqual([]);
    await working.app.close();
  });

  test('with a cookie cache better-auth still answers for a banned user, and our routes do not', async () => {
    const db = await database.open();
    const cached = await startAuthApp(db, {
      instance: (options) => ({ ...options, session: { cookieCache: { enabled: true, maxAge: 300 } } }),
    });
    const bob = await member(cached, 'bob@example.com');
    expect((await bob.get('/auth/get-session')).body.user.email).toBe('bob@example.com');
    expect([...bob.cookies.keys()].some((name) => name.endsWith('session_data'))).toBe(true);
    const boss = await member(cached, 'boss@example.com');
    await makeAdmin(db, 'boss@example.com');
    expect((await boss.post('/auth/admin/ban-user', { userId: await userId(db, 'bob@example.com') })).status).toBe(200);
    expect((await bob.get('/auth/get-session')).body.user.email).toBe('bob@example.com');
    const counted = await countQueries(() => bob.get('/v1/who'));
    expect(counted.result.status).toBe(401);
    expect(counted.queries).toHaveLength(1);
    await cached.app.close();
  });
});
