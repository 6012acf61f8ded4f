import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, createApp, migrateApp } from '../../src/app/index.ts';
import type { User } from '../../src/auth/index.ts';
import { AccountController, accounts, accountsOf, createUser, type MailMessage } from '../../src/contrib/accounts/index.ts';
import { ApiKeyController, apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { audit, TenantAuditController } from '../../src/contrib/audit/index.ts';
import { jobs, runDueJobs } from '../../src/contrib/jobs/index.ts';
import { suspendTenant, TenantController, tenants } from '../../src/contrib/tenants/index.ts';
import { TenantWebhookController, URLPolicy, webhooks } from '../../src/contrib/webhooks/index.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { createTable, migration, model, t } from '../../src/db/index.ts';
import { hasScopes, isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/index.ts';

// Over HTTP, with sessions, against a server: what a member, a former member and the owner of another tenant try.

const PASSWORD = 'correct horse battery';
const columns = { id: t.uuidv7().pk(), tenant_id: t.uuid().readOnly(), title: t.text(80) };
const indexes = [{ columns: ['tenant_id', '-id'] }];
const plans = model('plans', columns, { indexes });
class PlanController extends CrudController(resource(plans, { tenant: 'tenant_id', audit: true }), {
  permission: hasScopes({ allowUnscoped: true }),
  scope: 'plans',
  operations: { create: { idempotent: true } },
}) {}

interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever was answered
  readonly body: any;
  readonly text: string;
}

type Headers = Readonly<Record<string, string>>;

describeDatabases('hostile members, former members and owners of other tenants', (database) => {
  const mails: MailMessage[] = [];
  let app: App;
  let address = '';

  beforeAll(async () => {
    const mail = { send: async (message: MailMessage) => void mails.push(message), linkUrl: 'https://app.example.com/link' };
    app = createApp({
      database: database.db,
      modules: [
        accounts({ signUp: 'invitation', mail, passwordCost: { logN: 4, r: 8, p: 1 }, secureCookies: false }),
        apiKeys(),
        audit(),
        jobs(),
        webhooks({ urlPolicy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }) }),
        tenants({ create: isAuthenticated, mail }),
        { name: 'plans', models: [plans], migrations: [migration('0001_initial', [createTable('plans', columns, { indexes })])] },
      ],
      mount: {
        '/v1': {
          '/account': AccountController,
          '/tenants': TenantController,
          '/api-keys': ApiKeyController,
          '/webhooks': TenantWebhookController,
          '/audit': TenantAuditController,
          '/plans': PlanController,
        },
      },
      settings: { trustedProxies: ['127.0.0.1'] },
      log: { level: 'silent' },
    });
    await app.openDatabases();
    await migrateApp(app);
    address = await app.listen({ port: 0 });
  });
  afterAll(() => app.close());

  /** Somebody at a browser: the cookie of the session, and its token. */
  class Person {
    readonly name: string;
    readonly id: string;
    cookie = '';
    csrf = '';
    constructor(name: string, id: string) {
      [this.name, this.id] = [name, id];
    }
    get email(): string {
      return `${this.name}@example.com`;
    }
    send(method: string, path: string, body?: unknown, headers: Headers = {}): Promise<Answer> {
      return send(method, path, body, { cookie: this.cookie, 'x-csrf-token': this.csrf, ...headers });
    }
    async logIn(): Promise<this> {
      const response = await fetch(`${address}/v1/account/login`, {
        method: 'POST',
        // Of an address of its own: an address tries to log in ten times a minute.
        headers: { 'content-type': 'application/json', 'x-forwarded-for': `10.0.0.${(count += 1) % 250}` },
        body: JSON.stringify({ login: this.name, password: PASSWORD }),
      });
      expect(response.status).toBe(200);
      this.cookie = response.headers
        .getSetCookie()
        .map((line) => line.split(';', 1)[0])
        .join('; ');
      this.csrf = ((await response.json()) as { csrf_token: string }).csrf_token;
      return this;
    }
  }

  const send = async (method: string, path: string, body?: unknown, headers: Headers = {}): Promise<Answer> => {
    const response = await fetch(`${address}/v1${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text), text };
  };

  let count = 0;
  const person = async (name: string): Promise<Person> => {
    const username = `${name}${(count += 1)}`;
    const user = { username, email: `${username}@example.com`, password: PASSWORD };
    const { id } = await createUser(app.db, user, accountsOf(app.db).management(null));
    return new Person(username, id).logIn();
  };
  const found = async (owner: Person): Promise<{ readonly id: string; readonly slug: string }> => {
    const { status, body } = await owner.send('POST', '/tenants', { name: `Tenant of ${owner.name}` });
    expect(status).toBe(201);
    return body;
  };
  /** The token of the newest mail to an address. */
  const mailed = async (email: string): Promise<string> => {
    await runDueJobs(app.db);
    const [, token = ''] = /#tenant-invitation=(\S+)/.exec(mails.findLast(({ to }) => to === email)?.text ?? '') ?? [];
    expect(token).not.toBe('');
    return token;
  };
  const invite = async (by: Person, tenant: string, email: string, roles: readonly string[] = ['member']): Promise<string> => {
    expect((await by.send('POST', `/tenants/${tenant}/invitations`, { email, roles })).status).toBe(201);
    return mailed(email);
  };
  const join = async (by: Person, tenant: string, who: Person, roles: readonly string[] = ['member']): Promise<string> => {
    const token = await invite(by, tenant, who.email, roles);
    expect((await who.send('POST', '/tenants/invitations/accept', { token })).status).toBe(200);
    return token;
  };
  const memberOf = async (owner: Person, tenant: string, who: Person): Promise<string> => {
    const { items } = (await owner.send('GET', `/tenants/${tenant}/members?limit=100`)).body;
    return items.find((each: { user_id: string }) => each.user_id === who.id).id;
  };
  const keyOf = async (who: Person, tenant: string, scopes: readonly string[]): Promise<Headers> => {
    const { status, body } = await who.send('POST', '/api-keys', { name: 'script', scopes, expires_at: null }, { 'x-tenant': tenant });
    expect(status).toBe(201);
    return { 'x-api-key': body.key };
  };
  const userOf = async ({ id }: Person) => (await app.users?.findById(app.db, id)) as User;
  /** Two tenants that have nothing to do with each other. */
  const strangers = async () => {
    const [ada, eve] = [await person('ada'), await person('eve')];
    return { ada, eve, acme: await found(ada), rival: await found(eve) };
  };

  test('an invitation is good for one person and one time: not for another, not again, not after the member was removed', async () => {
    const { ada, eve, acme } = await strangers();
    const bob = await person('bob');
    const token = await invite(ada, acme.id, bob.email);
    const accept = (who: Person, given: unknown = token) => who.send('POST', '/tenants/invitations/accept', { token: given });
    expect((await accept(eve)).body.code).toBe('invitation_for_another_address');
    // A person who is logged in gets no new account with the address of the invitation.
    const disguised = await eve.send('POST', '/tenants/invitations/accept', { token, username: `${eve.name}x`, password: PASSWORD });
    expect(disguised.body.code).toBe('invitation_for_another_address');
    for (const wrong of ['', ' ', token.slice(1), `${token} `, token.toUpperCase(), '0'.repeat(token.length), 'x'.repeat(5_000)])
      expect([422, 410]).toContain((await accept(bob, wrong)).status);
    for (const wrong of [null, 1, [token], { token }]) expect((await accept(bob, wrong)).status).toBe(422);
    expect((await accept(bob)).status).toBe(200);
    expect((await accept(bob)).body.code).toBe('invalid_invitation');
    const membership = await memberOf(ada, acme.id, bob);
    expect((await ada.send('DELETE', `/tenants/${acme.id}/members/${membership}`)).status).toBe(204);
    expect((await accept(bob)).body.code).toBe('invalid_invitation');
  });

  test('an address that a person only asks for is not the address of the person', async () => {
    const { ada, eve, acme } = await strangers();
    const victim = `victim${(count += 1)}@example.com`;
    const token = await invite(ada, acme.id, victim);
    expect((await eve.send('POST', '/account/email', { email: victim })).status).toBeLessThan(300);
    expect((await eve.send('POST', '/tenants/invitations/accept', { token })).body.code).toBe('invitation_for_another_address');
    // The other way round: who was invited and has another address since is somebody else.
    const bob = await person('bob');
    const second = await invite(ada, acme.id, bob.email);
    await app.db.query('update users set email = $1 where id = $2', [`new-${bob.email}`, bob.id]);
    expect((await bob.send('POST', '/tenants/invitations/accept', { token: second })).body.code).toBe('invitation_for_another_address');
  });

  test('nobody gives more than they have, whatever the body says', async () => {
    const { ada, eve, acme, rival } = await strangers();
    const [bob, max] = [await person('bob'), await person('max')];
    await join(ada, acme.id, bob, ['admin']);
    await join(ada, acme.id, max);
    const [own, owners] = [await memberOf(ada, acme.id, bob), await memberOf(ada, acme.id, ada)];
    expect((await bob.send('PATCH', `/tenants/${acme.id}/members/${own}`, { roles: ['owner'] })).body.code).toBe('manager_required');
    expect((await bob.send('PATCH', `/tenants/${acme.id}/members/${owners}`, { roles: ['member'] })).body.code).toBe('manager_required');
    expect((await bob.send('DELETE', `/tenants/${acme.id}/members/${owners}`)).body.code).toBe('manager_required');
    expect((await bob.send('POST', `/tenants/${acme.id}/transfer`, { user_id: bob.id })).body.code).toBe('manager_required');
    expect((await bob.send('PATCH', `/tenants/${acme.id}`, { slug: 'mine-now' })).body.code).toBe('manager_required');
    expect((await bob.send('DELETE', `/tenants/${acme.id}`)).body.code).toBe('manager_required');
    for (const roles of [['owner'], ['member', 'owner'], ['member,owner'], ['OWNER'], []]) {
      const { status } = await bob.send('POST', `/tenants/${acme.id}/invitations`, { email: 'x@example.com', roles });
      expect([403, 422]).toContain(status);
    }
    // Fields of the server are not the client's.
    for (const more of [{ tenant_id: rival.id }, { invited_by: ada.id }, { expires_at: '2099-01-01T00:00:00Z' }])
      expect(
        (await bob.send('POST', `/tenants/${acme.id}/invitations`, { email: 'y@example.com', roles: ['member'], ...more })).status,
      ).toBe(422);
    for (const more of [{ tenant_id: rival.id }, { user_id: eve.id }])
      expect((await bob.send('PATCH', `/tenants/${acme.id}/members/${own}`, { roles: ['admin'], ...more })).status).toBe(422);
    for (const body of [{ state: 'active' }, { suspended_at: null }, { id: rival.id }])
      expect((await ada.send('PATCH', `/tenants/${acme.id}`, body)).status).toBe(422);
    expect((await max.send('DELETE', `/tenants/${acme.id}/members/${own}`)).body.code).toBe('manager_required');
  });

  test('members and invitations of another tenant cannot be reached through one’s own', async () => {
    const { ada, eve, acme, rival } = await strangers();
    const bob = await person('bob');
    await join(ada, acme.id, bob);
    await invite(ada, acme.id, `guest${(count += 1)}@example.com`);
    const foreign = await memberOf(ada, acme.id, bob);
    const [invitation] = (await ada.send('GET', `/tenants/${acme.id}/invitations`)).body.items;
    for (const [method, path, body] of [
      ['PATCH', `members/${foreign}`, { roles: ['owner'] }],
      ['DELETE', `members/${foreign}`, undefined],
      ['DELETE', `invitations/${invitation.id}`, undefined],
      ['POST', `invitations/${invitation.id}/resend`, {}],
    ] as const)
      for (const tenant of [rival.id, acme.id]) {
        const answer = await eve.send(method, `/tenants/${tenant}/${path}`, body);
        expect([path, answer.status]).toEqual([path, 404]);
      }
    // Filters of a list narrow it, and never widen it.
    for (const query of [
      `tenant_id=${acme.id}`,
      `tenant_id[in]=${acme.id},${rival.id}`,
      'expand=tenant',
      'expand=sender',
      'fields=token_digest',
      'ordering=token_digest',
    ]) {
      const answer = await eve.send('GET', `/tenants/${rival.id}/invitations?${query}`);
      expect(answer.text).not.toContain(invitation.email);
      expect(answer.text).not.toMatch(/token_digest":/);
    }
    for (const path of [`/tenants/${acme.id}`, `/tenants/${acme.id}/members`, `/tenants/${acme.id}/invitations`]) {
      const [there, nowhere] = [await eve.send('GET', path), await eve.send('GET', path.replace(acme.id, crypto.randomUUID()))];
      expect([there.status, there.text.includes(acme.id)]).toEqual([nowhere.status, false]);
    }
    expect((await eve.send('POST', `/tenants/${rival.id}/transfer`, { user_id: bob.id })).body.code).toBe('member_not_found');
    expect((await eve.send('POST', `/tenants/${acme.id}/choose`)).status).toBe(404);
    expect((await eve.send('POST', `/tenants/${acme.id}/leave`)).status).toBe(404);
  });

  test('the tenant of a row is that of the request, and two names are an error', async () => {
    const { ada, eve, acme, rival } = await strangers();
    const named = (slug: string) => ({ 'x-tenant': slug });
    const made = await ada.send('POST', '/plans', { title: 'secret plan' }, named(acme.slug));
    expect(made.status).toBe(201);
    expect((await eve.send('POST', '/plans', { title: 'x', tenant_id: acme.id }, named(rival.slug))).status).toBe(422);
    expect((await eve.send('PATCH', `/plans/${made.body.id}`, { title: 'x' }, named(rival.slug))).status).toBe(404);
    for (const name of [
      acme.slug,
      acme.id,
      acme.id.toUpperCase(),
      `${rival.slug}, ${acme.slug}`,
      `${rival.slug},${acme.slug}`,
      `${acme.slug} `,
      '*',
      '%',
    ]) {
      const answer = await eve.send('GET', '/plans', undefined, named(name));
      expect([name, answer.status >= 400, answer.text.includes('secret plan')]).toEqual([name, true, false]);
    }
    for (const path of ['/audit', '/webhooks']) {
      expect((await eve.send('GET', path, undefined, named(acme.slug))).body.code).toBe('not_a_member');
      expect((await eve.send('GET', path, undefined, named(rival.slug))).text).not.toContain(acme.id);
    }
    const hook = await ada.send('POST', '/webhooks', { url: 'http://127.0.0.1:9/', events: ['*'] }, named(acme.slug));
    for (const [method, path] of [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/rotate-secret'],
    ] as const)
      expect(
        (await eve.send(method, `/webhooks/${hook.body.id}${path}`, method === 'PATCH' ? {} : undefined, named(rival.slug))).status,
      ).toBe(404);
  });

  test('a former member is out: session with the tenant chosen, key, kept response, undelete', async () => {
    const { ada, acme } = await strangers();
    const bob = await person('bob');
    await join(ada, acme.id, bob, ['owner']);
    expect((await bob.send('POST', `/tenants/${acme.id}/choose`)).status).toBeLessThan(300);
    const key = await keyOf(bob, acme.slug, ['plans:read', 'plans:write', 'tenants:read', 'tenants:write']);
    const once = { 'idempotency-key': `once-${bob.id}` };
    expect((await bob.send('POST', '/plans', { title: 'kept' }, once)).status).toBe(201);
    expect((await send('GET', '/plans', undefined, key)).status).toBe(200);
    const membership = await memberOf(ada, acme.id, bob);
    expect((await ada.send('DELETE', `/tenants/${acme.id}/members/${membership}`)).status).toBe(204);
    for (const [method, path, body, headers] of [
      ['GET', '/plans', undefined, {}],
      ['POST', '/plans', { title: 'kept' }, once],
      ['GET', '/plans', undefined, { 'x-tenant': acme.slug }],
      ['GET', '/audit', undefined, { 'x-tenant': acme.id }],
    ] as const) {
      const answer = await bob.send(method, path, body, headers);
      expect([path, answer.status, answer.text.includes('kept')]).toEqual([path, 403, false]);
    }
    for (const path of ['/plans', '/tenants', `/tenants/${acme.id}`]) expect((await send('GET', path, undefined, key)).status).toBe(401);
    expect((await bob.send('GET', '/tenants')).body.items).toEqual([]);
    expect((await ada.send('DELETE', `/tenants/${acme.id}`)).status).toBe(204);
    expect((await bob.send('POST', `/tenants/${acme.id}/undelete`)).status).toBe(404);
    expect((await ada.send('POST', `/tenants/${acme.id}/undelete`)).status).toBeLessThan(300);
  });

  test('a key of a tenant does nothing outside of it: it neither makes nor joins nor leaves another', async () => {
    const { ada, eve, acme, rival } = await strangers();
    await join(eve, rival.id, ada);
    const key = await keyOf(ada, acme.slug, ['plans:read', 'tenants:read', 'tenants:write']);
    const other = await person('other');
    const third = await found(other);
    const token = await invite(other, third.id, ada.email);
    expect((await send('POST', '/tenants', { name: 'By a key' }, key)).body).toMatchObject({ status: 403 });
    expect((await send('POST', '/tenants/invitations/accept', { token }, key)).body).toMatchObject({ status: 403 });
    expect((await send('POST', `/tenants/${rival.id}/leave`, undefined, key)).status).toBe(404);
    expect((await send('GET', `/tenants/${rival.id}/members`, undefined, key)).body.items ?? []).toEqual([]);
    expect((await send('GET', '/tenants', undefined, key)).body.items.map(({ id }: { id: string }) => id)).toEqual([acme.id]);
    expect((await send('GET', '/plans', undefined, { ...key, 'x-tenant': rival.slug })).body.code).toBe('tenant_conflict');
    expect((await send('POST', `/tenants/${acme.id}/choose`, undefined, key)).status).toBe(409);
    expect((await send('DELETE', `/tenants/${acme.id}`, undefined, key)).status).toBe(403);
    expect((await send('POST', `/tenants/${acme.id}/transfer`, { user_id: eve.id }, key)).status).toBe(403);
    // A key that acts in no tenant sees none.
    const { raw } = await createApiKey(app.db, { user: await userOf(ada), name: 'none', scopes: ['*'], tenant: null });
    const unbound = { 'x-api-key': raw };
    expect((await send('GET', '/tenants', undefined, unbound)).body.items).toEqual([]);
    expect((await send('PATCH', `/tenants/${acme.id}`, { name: 'x' }, unbound)).status).toBe(404);
    expect((await send('POST', '/tenants', { name: 'x' }, unbound)).status).toBe(403);
    // The person is not bound by it.
    expect((await ada.send('POST', '/tenants/invitations/accept', { token })).status).toBe(200);
  });

  test('a session cannot be used by another site', async () => {
    const { ada, acme } = await strangers();
    for (const [method, path, body] of [
      ['POST', '/tenants', { name: 'x' }],
      ['POST', `/tenants/${acme.id}/leave`, undefined],
      ['POST', `/tenants/${acme.id}/choose`, undefined],
      ['DELETE', `/tenants/${acme.id}`, undefined],
      ['POST', `/tenants/${acme.id}/invitations`, { email: 'x@example.com', roles: ['owner'] }],
      ['POST', '/tenants/invitations/accept', { token: 'x' }],
    ] as const)
      expect([path, (await ada.send(method, path, body, { 'x-csrf-token': '' })).body.code]).toEqual([path, 'csrf_failed']);
  });

  test('the members of a suspended tenant change nothing in it, and cannot resume it', async () => {
    const { ada, acme } = await strangers();
    const bob = await person('bob');
    await join(ada, acme.id, bob, ['admin']);
    const token = await invite(ada, acme.id, `late${(count += 1)}@example.com`);
    await suspendTenant(app.db, acme.id, { reason: 'not paid' });
    const named = { 'x-tenant': acme.slug };
    for (const [method, path, body] of [
      ['GET', '/plans', undefined],
      ['POST', '/plans', { title: 'x' }],
      ['GET', '/audit', undefined],
      ['GET', '/webhooks', undefined],
      ['POST', '/api-keys', { name: 'x', scopes: [] }],
      ['PATCH', `/tenants/${acme.id}`, { name: 'x' }],
      ['POST', `/tenants/${acme.id}/invitations`, { email: 'x@example.com', roles: ['member'] }],
      ['POST', `/tenants/${acme.id}/transfer`, { user_id: bob.id }],
    ] as const)
      expect([path, (await ada.send(method, path, body, named)).body.code]).toEqual([path, 'tenant_suspended']);
    for (const path of ['resume', 'suspend']) expect((await ada.send('POST', `/tenants/${acme.id}/${path}`)).status).toBe(404);
    const late = { token, username: `late${count}`, password: PASSWORD };
    expect((await send('POST', '/tenants/invitations/accept', late)).body.code).toBe('tenant_suspended');
    expect((await ada.send('GET', `/tenants/${acme.id}`)).body).toMatchObject({ suspended_reason: 'not paid' });
  });

  test('of an owner who leaves and another who is demoted at the same moment, one stays', async () => {
    const { ada, acme } = await strangers();
    const bob = await person('bob');
    await join(ada, acme.id, bob, ['owner']);
    const membership = await memberOf(ada, acme.id, bob);
    const tried = await Promise.all([
      ada.send('POST', `/tenants/${acme.id}/leave`),
      ada.send('PATCH', `/tenants/${acme.id}/members/${membership}`, { roles: ['member'] }),
      bob.send('POST', `/tenants/${acme.id}/leave`),
    ]);
    expect(tried.every(({ status }) => status < 500)).toBe(true);
    const owners = await app.db.query<{ roles: unknown }>('select roles from tenant_members where tenant_id = $1', [acme.id]);
    expect(owners.filter(({ roles }) => JSON.stringify(roles).includes('owner')).length).toBeGreaterThan(0);
  });
});
