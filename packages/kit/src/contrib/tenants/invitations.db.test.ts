import { describe, expect, test } from 'vitest';
import type { User } from '../../auth/index.ts';
import { accounts, accountsOf, activateUser, createUser, deactivateUser } from '../accounts/index.ts';
import { jobs, runDueJobs } from '../jobs/index.ts';
import { describeDatabases, type FakeClock, fakeClock } from '../../testing/index.ts';
import { testApp } from '../../testing/test-app.ts';
import { describeTenantApp } from '../../../test/tenants/tenant-app.ts';
import {
  addMember,
  createTenant,
  inviteMember,
  resumeTenant,
  suspendTenant,
  TenantController,
  tenants,
  type InvitationMail,
} from './index.ts';
import { purgeTenants } from './manage/purge.ts';
import { deleteTenant } from './manage/tenants.ts';

let count = 0;
const fresh = (name: string) => `${name}${(count += 1)}`;

describeTenantApp('invitations', { seatsMax: ({ slug }) => (slug === 'small' ? 3 : null) }, (app) => {
  const { call, person, tenantOf, join, clock } = app;
  const management = () => accountsOf(app.kit.app.db).management(null);
  const invite = (who: Parameters<typeof call>[0], tenant: string, email: string | null, roles: readonly string[] = ['member']) =>
    call(who, 'POST', `/tenants/${tenant}/invitations`, { email, roles });
  const accept = (who: Parameters<typeof call>[0], token: string, more: object = {}) =>
    call(who, 'POST', '/tenants/invitations/accept', { token, ...more });

  test('an invitation is accepted once, by the user with its address, in any case of its letters', async () => {
    const [ada, bob, eve] = [await person(fresh('ada')), await person(fresh('bob')), await person(fresh('eve'))];
    const { id } = await tenantOf(ada);
    const { status, body } = await invite(ada, id, bob.email?.toUpperCase() ?? null);
    expect([status, body]).toEqual([201, expect.objectContaining({ email: bob.email, roles: ['member'], token: expect.any(String) })]);
    expect(body).not.toHaveProperty('token_digest');
    expect((await accept(eve, body.token)).body.code).toBe('invitation_for_another_address');
    expect((await accept(bob, body.token)).body).toEqual({
      tenant: expect.objectContaining({ id }),
      user_id: bob.id,
      roles: ['member'],
    });
    expect((await accept(bob, body.token)).body.code).toBe('invalid_invitation');
    expect((await call(ada, 'GET', `/tenants/${id}/invitations`)).body.items).toEqual([]);
  });

  test('only a digest of the token is stored', async () => {
    const ada = await person(fresh('ada'));
    const { id } = await tenantOf(ada);
    const { body } = await invite(ada, id, 'new@example.com');
    const rows = await app.database.db.query('select * from tenant_invitations');
    expect(JSON.stringify(rows)).not.toContain(body.token);
    expect((await call(ada, 'GET', `/tenants/${id}/invitations`)).body.items[0]).not.toHaveProperty('token');
  });

  test('of twenty concurrent acceptances of one token, one succeeds', async () => {
    const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
    const { id } = await tenantOf(ada);
    const { body } = await invite(ada, id, bob.email);
    const tried = await Promise.all(Array.from({ length: 20 }, () => accept(bob, body.token)));
    expect(tried.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(tried.filter(({ status }) => status === 410)).toHaveLength(19);
  });

  test('seats hold when many accept concurrently, and a function decides their number', async () => {
    const ada = await person(fresh('ada'));
    const { id } = await tenantOf(ada, { slug: 'small' });
    const people: User[] = [];
    for (let index = 0; index < 6; index += 1) people.push(await person(fresh('seat')));
    // Open invitations take seats, so more are stored here than can be sent.
    const tokens = [];
    for (const { email } of people.slice(0, 2)) tokens.push((await invite(ada, id, email)).body.token);
    expect((await invite(ada, id, 'third@example.com')).body).toMatchObject({ code: 'seats_taken', seats_max: 3 });
    const added = await Promise.allSettled(
      people.slice(2).map((user) => addMember(app.kit.app.db, { tenant: id, user: user.id, roles: ['member'] })),
    );
    const accepted = await Promise.all(tokens.map((token, index) => accept(people[index] ?? null, token)));
    expect(added.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    expect(accepted.map(({ body }) => body.code)).toEqual(['seats_taken', 'seats_taken']);
    expect((await call(ada, 'GET', `/tenants/${id}/members?limit=100`)).body.items).toHaveLength(3);
  });

  test('an expired invitation is not accepted, and the address can be invited again', async () => {
    const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
    const { id } = await tenantOf(ada);
    const { body } = await invite(ada, id, bob.email);
    expect((await invite(ada, id, bob.email)).body.code).toBe('already_invited');
    clock.advance(7 * 24 * 3_600_000);
    expect((await accept(bob, body.token)).body.code).toBe('invalid_invitation');
    expect((await invite(ada, id, bob.email)).status).toBe(201);
  });

  test('an invitation that is sent again has a new token, and a revoked one has none', async () => {
    const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
    const { id } = await tenantOf(ada);
    const first = (await invite(ada, id, bob.email)).body;
    const again = await call(ada, 'POST', `/tenants/${id}/invitations/${first.id}/resend`);
    expect([again.status, again.body.token === first.token]).toEqual([200, false]);
    expect((await accept(bob, first.token)).status).toBe(410);
    expect((await call(ada, 'DELETE', `/tenants/${id}/invitations/${first.id}`)).status).toBe(204);
    expect((await accept(bob, again.body.token)).status).toBe(410);
  });

  test('members do not see invitations, and admins invite no owners', async () => {
    const [ada, bob, cleo] = [await person(fresh('ada')), await person(fresh('bob')), await person(fresh('cleo'))];
    const { id } = await tenantOf(ada);
    await join(ada, id, bob, ['admin']);
    await join(ada, id, cleo, ['member']);
    const { body } = await invite(ada, id, 'boss@example.com', ['owner']);
    expect((await call(cleo, 'GET', `/tenants/${id}/invitations`)).body.items).toEqual([]);
    expect((await call(cleo, 'DELETE', `/tenants/${id}/invitations/${body.id}`)).status).toBe(404);
    expect((await invite(cleo, id, 'friend@example.com')).body).toMatchObject({
      code: 'manager_required',
      required_roles: ['owner', 'admin'],
    });
    expect((await invite(bob, id, 'friend@example.com', ['owner'])).body).toMatchObject({
      code: 'manager_required',
      required_roles: ['owner'],
    });
    // Nor can an admin make the invitation of an owner its own.
    expect((await call(bob, 'POST', `/tenants/${id}/invitations/${body.id}/resend`)).body.code).toBe('manager_required');
    expect((await invite(bob, id, 'friend@example.com')).status).toBe(201);
    expect((await invite(ada, id, 'not an address')).status).toBe(422);
    expect((await invite(ada, id, 'x@example.com', ['boss'])).status).toBe(422);
  });

  describe('an invitation ends with the rights of its sender:', () => {
    const ways: Readonly<
      Record<
        string,
        (sender: { readonly id: string; readonly row: string; readonly tenant: string; readonly owner: never }) => Promise<unknown>
      >
    > = {
      'who is demoted': ({ row, tenant, owner }) => call(owner, 'PATCH', `/tenants/${tenant}/members/${row}`, { roles: ['member'] }),
      'who is removed': ({ row, tenant, owner }) => call(owner, 'DELETE', `/tenants/${tenant}/members/${row}`),
      'who is removed and comes back': async ({ id, row, tenant, owner }) => {
        await call(owner, 'DELETE', `/tenants/${tenant}/members/${row}`);
        await addMember(app.kit.app.db, { tenant, user: id, roles: ['admin'] });
      },
      'who is deactivated': ({ id }) => deactivateUser(app.kit.app.db, id, management()),
      'who is deactivated and comes back': async ({ id }) => {
        await deactivateUser(app.kit.app.db, id, management());
        await activateUser(app.kit.app.db, id, management());
      },
    };
    test.each(Object.entries(ways))('%s', async (_, end) => {
      const [ada, bob, cleo] = [await person(fresh('ada')), await person(fresh('bob')), await person(fresh('cleo'))];
      const { id } = await tenantOf(ada);
      const row = await join(ada, id, bob, ['admin']);
      const { token } = (await invite(bob, id, cleo.email)).body;
      await end({ id: bob.id, row, tenant: id, owner: ada as never });
      expect((await accept(cleo, token)).body.code).toBe('invalid_invitation');
    });
  });

  test('the sender is asked again when the invitation is accepted, whatever changed the member', async () => {
    const [ada, bob, cleo] = [await person(fresh('ada')), await person(fresh('bob')), await person(fresh('cleo'))];
    const { id } = await tenantOf(ada);
    await join(ada, id, bob, ['admin']);
    const { token } = (await invite(bob, id, cleo.email)).body;
    await app.database.db.query('delete from tenant_members where user_id = $1', [bob.id]);
    expect((await accept(cleo, token)).body.code).toBe('invalid_invitation');
  });

  test('without a mail nobody gets a new account: who invites has seen the token', async () => {
    const ada = await person(fresh('ada'));
    const { id } = await tenantOf(ada);
    const { token } = (await invite(ada, id, 'victim@example.com')).body;
    expect((await accept(null, token)).body.code).toBe('registration_required');
    const { status, body } = await accept(null, token, { username: fresh('thief'), password: 'correct horse battery' });
    expect([status, body.code]).toEqual([403, 'registration_closed']);
  });
});

describeDatabases('invitations by mail', (database) => {
  const open = async (mails: InvitationMail[], signUp: 'invitation' | 'closed' = 'invitation') => {
    const clock = fakeClock('2030-01-01T00:00:00.000Z');
    const kit = await testApp({
      database: database.db,
      clock,
      title: 'Shop',
      modules: [
        accounts({ passwordCost: { logN: 4, r: 8, p: 1 }, signUp }),
        jobs(),
        tenants({
          mail: {
            linkUrl: 'https://shop.example.com/join',
            send: async () => undefined,
            compose: (mail) => {
              mails.push(mail);
              return { subject: 'Join', text: mail.link };
            },
          },
        }),
      ],
      mount: { '/v1': { '/tenants': TenantController } },
    });
    return kit;
  };
  const tokenOf = ({ link }: InvitationMail) => link.slice('https://shop.example.com/join#tenant-invitation='.length);
  const accept = (kit: Awaited<ReturnType<typeof open>>, payload: object) =>
    kit.inject({ method: 'POST', url: '/v1/tenants/invitations/accept', payload });

  test('a person without an account gets one with the address that the mail was sent to', async () => {
    const mails: InvitationMail[] = [];
    await using kit = await open(mails);
    const { db } = kit.app;
    const owner = await createUser(db, { username: fresh('owner') });
    const { id } = await createTenant(db, { name: 'Mailed', owner: owner.id });
    const { token, invitation } = await inviteMember(db, { tenant: id, email: 'New@Example.com', roles: ['admin'] });
    expect([token, invitation.token_digest]).toEqual([null, null]);
    await runDueJobs(db);
    expect(mails).toEqual([
      expect.objectContaining({
        email: 'new@example.com',
        roles: ['admin'],
        title: 'Shop',
        tenant: { id, slug: 'mailed', name: 'Mailed' },
      }),
    ]);
    const sent = { token: tokenOf(mails[0] as InvitationMail) };
    expect((await accept(kit, { ...sent, username: 'newcomer', password: 'short' })).statusCode).toBe(422);
    const username = fresh('newcomer');
    const accepted = await accept(kit, { ...sent, username, password: 'correct horse battery' });
    expect([accepted.statusCode, accepted.json()]).toEqual([200, expect.objectContaining({ roles: ['admin'] })]);
    const [user] = await db.query<{ email: string }>('select email from users where username = $1', [username]);
    expect(user?.email).toBe('new@example.com');
    expect((await accept(kit, { ...sent, username: fresh('another'), password: 'correct horse battery' })).statusCode).toBe(410);
  });

  test('no mail is sent while the tenant is suspended or being deleted: it waits, and is gone with the tenant', async () => {
    const mails: InvitationMail[] = [];
    await using kit = await open(mails);
    const { db, clock } = kit.app;
    const work = async () => {
      // Each look at a job that waits is later than the one before.
      (clock as FakeClock).advance(120_000);
      await runDueJobs(db);
      return mails.map(({ email }) => email);
    };
    const owner = await createUser(db, { username: fresh('owner') });
    const [held, ended] = [
      await createTenant(db, { name: 'Held', owner: owner.id }),
      await createTenant(db, { name: 'Ended', owner: owner.id }),
    ];
    await inviteMember(db, { tenant: held.id, email: 'held@example.com', roles: ['member'] });
    await inviteMember(db, { tenant: ended.id, email: 'ended@example.com', roles: ['member'] });
    await suspendTenant(db, held.id);
    await deleteTenant(db, ended.id);
    expect(await work()).toEqual([]);
    await resumeTenant(db, held.id);
    expect(await work()).toEqual(['held@example.com']);
    (clock as FakeClock).advance(31 * 24 * 3_600_000);
    expect(await purgeTenants(db)).toBe(1);
    expect(await work()).toEqual(['held@example.com']);
    expect(await db.query("select id from jobs where name = 'tenants.send_invitation' and status <> 'succeeded'")).toEqual([]);
  });

  test('no mail is sent for an invitation that was revoked meanwhile', async () => {
    const mails: InvitationMail[] = [];
    await using kit = await open(mails, 'closed');
    const { db } = kit.app;
    const owner = await createUser(db, { username: fresh('owner') });
    const { id } = await createTenant(db, { name: 'Revoked', owner: owner.id });
    const { invitation } = await inviteMember(db, { tenant: id, email: 'gone@example.com', roles: ['member'] });
    await db.query('delete from tenant_invitations where id = $1', [invitation.id]);
    await inviteMember(db, { tenant: id, email: 'stays@example.com', roles: ['member'] });
    await runDueJobs(db);
    expect(mails.map(({ email }) => email)).toEqual(['stays@example.com']);
    // Where sign-up is closed, the mail alone creates no account.
    const sent = { token: tokenOf(mails[0] as InvitationMail), username: fresh('someone'), password: 'correct horse battery' };
    expect((await accept(kit, sent)).json()).toMatchObject({ code: 'registration_closed' });
  });
});
