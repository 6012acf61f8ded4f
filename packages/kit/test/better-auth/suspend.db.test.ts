import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApiKey } from '../../src/contrib/apikeys/index.ts';
import { resumeTenant, suspendTenant } from '../../src/contrib/better-auth/index.ts';
import { job, jobs, runDueJobs, startJob } from '../../src/contrib/jobs/index.ts';
import { deliverDue, publish, webhooks } from '../../src/contrib/webhooks/index.ts';
import { createEndpoint } from '../../src/contrib/webhooks/endpoints/create-endpoint.ts';
import { jsonSchema } from '../../src/http/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { auditLog } from '../audit-log.ts';
import { LOOPBACK } from '../webhooks/outbox.ts';
import { type Receiver, startReceiver } from '../webhooks/receiver.ts';
import { type AuthApp, type Browser, member, startAuthApp, userId } from './auth-app.ts';

const ran: string[] = [];
const report = job('suspend.report', {
  input: jsonSchema<{ for: string }>({ type: 'object', properties: { for: { type: 'string' } } }),
  run: ({ input }) => void ran.push(input.for),
});

// That nothing reaches a member by stream, cache, replay, export or MCP: packages/kit/test/tenants/leavers.db.test.ts.
const clock = fakeClock();
describeDatabases(
  'a suspended organization',
  (database) => {
    let here: AuthApp;
    let receiver: Receiver;
    let count = 0;
    beforeAll(async () => {
      receiver = await startReceiver();
      here = await startAuthApp(database.db, {
        modules: [webhooks({ jitter: false, urlPolicy: LOOPBACK }), jobs({ jobs: [report] })],
        app: { clock },
      });
    });
    afterAll(async () => {
      await here.app.close();
      await receiver.close();
    });
    const db = () => here.app.db;
    const person = (name: string): Promise<Browser> => member(here, `${name}${(count += 1)}@example.com`);
    const idOf = async (browser: Browser) => userId(db(), (await browser.get('/v1/who')).body.user as string);
    const organizationOf = async (owner: Browser) => {
      const slug = `org-${(count += 1)}`;
      const { body } = await owner.post('/auth/organization/create', { name: slug, slug });
      return { id: body.id as string, slug, named: { 'x-organization': slug } };
    };

    test('rejects its members by every credential, and others as if it did not exist', async () => {
      const [ada, eve] = [await person('ada'), await person('eve')];
      const { id, named } = await organizationOf(ada);
      const other = await organizationOf(ada);
      const { raw } = await createApiKey(db(), { user: { id: await idOf(ada) }, name: 'script', scopes: [], tenant: id });
      await suspendTenant(db(), id, { reason: 'The invoice is not paid.' });
      expect((await ada.get('/v1/who', named)).body).toMatchObject({ status: 403, code: 'tenant_suspended' });
      const program = await person('program');
      program.cookies.clear();
      expect((await program.get('/v1/who', { 'x-api-key': raw })).body.code).toBe('tenant_suspended');
      expect((await eve.get('/v1/who', named)).body.code).toBe('not_a_member');
      expect((await ada.get('/v1/who', other.named)).body.tenant).toBe(other.id);
      await resumeTenant(db(), id);
      expect((await ada.get('/v1/who', named)).body.tenant).toBe(id);
      expect((await program.get('/v1/who', { 'x-api-key': raw })).status).toBe(200);
    });

    test('is not changed by its members through better-auth, who can leave and delete it; an invitation is still good afterwards', async () => {
      const [ada, bob, cleo] = [await person('ada'), await person('bob'), await person('cleo')];
      const emails = await Promise.all([ada, bob, cleo].map(async (each) => (await each.get('/v1/who')).body.user as string));
      const { id } = await organizationOf(ada);
      const invite = (email: string | undefined) =>
        ada.post('/auth/organization/invite-member', { email, role: 'member', organizationId: id });
      const accept = (browser: Browser, invitation: string) =>
        browser.post('/auth/organization/accept-invitation', { invitationId: invitation });
      const [forBob, forCleo] = [await invite(emails[1]), await invite(emails[2])];
      expect((await accept(bob, forBob.body.id)).status).toBe(200);
      const members = async () => db().query('select "userId", "role" from "member" where "organizationId" = $1 order by 1', [id]);
      const before = await members();
      await suspendTenant(db(), id);
      const row = (await ada.get(`/auth/organization/get-full-organization?organizationId=${id}`)).body.members.find(
        ({ user }: { user: { email: string } }) => user.email === emails[1],
      ).id as string;
      for (const [path, body] of [
        ['update', { organizationId: id, data: { name: 'New' } }],
        // The active organization.
        ['update', { data: { name: 'New' } }],
        ['invite-member', { email: 'dan@example.com', role: 'member', organizationId: id }],
        ['cancel-invitation', { invitationId: forCleo.body.id }],
        ['update-member-role', { memberId: row, role: 'admin', organizationId: id }],
        ['remove-member', { memberIdOrEmail: row, organizationId: id }],
      ] as const) {
        const refused = await ada.post(`/auth/organization/${path}`, body);
        expect([path, refused.status, refused.body.code]).toEqual([path, 403, 'TENANT_SUSPENDED']);
      }
      expect((await accept(cleo, forCleo.body.id)).body.code).toBe('TENANT_SUSPENDED');
      expect(await members()).toEqual(before);
      expect((await bob.post('/auth/organization/leave', { organizationId: id })).status).toBe(200);
      await resumeTenant(db(), id);
      expect((await accept(cleo, forCleo.body.id)).status).toBe(200);
      await suspendTenant(db(), id);
      expect((await ada.post('/auth/organization/delete', { organizationId: id })).status).toBe(200);
    });

    test('loses no job and no delivery: they wait, and go on when it is resumed; those of others do not wait', async () => {
      const ada = await person('ada');
      const [suspended, other] = [await organizationOf(ada), await organizationOf(ada)];
      const owner = await idOf(ada);
      for (const { id: tenantKey, slug } of [suspended, other])
        await db().transaction((tx) => createEndpoint(tx, { owner, tenantKey, url: receiver.url(`/${slug}`), events: ['paper.*'] }));
      await suspendTenant(db(), suspended.id);
      ran.length = 0;
      for (const { id: tenantKey } of [suspended, other])
        await db().transaction(async (tx) => {
          await startJob(tx, report, { for: tenantKey }, { tenantKey });
          await publish(tx, 'paper.made', { n: 1 }, { tenantKey });
        });
      const work = async () => {
        await runDueJobs(db());
        await deliverDue(db());
      };
      await work();
      clock.advance(120_000);
      await work();
      expect(ran).toEqual([other.id]);
      expect([receiver.of(`/${suspended.slug}`).length, receiver.of(`/${other.slug}`).length]).toEqual([0, 1]);
      await resumeTenant(db(), suspended.id);
      clock.advance(60_000);
      await work();
      expect(ran).toEqual([other.id, suspended.id]);
      expect(receiver.of(`/${suspended.slug}`)).toHaveLength(1);
    });

    test('is recorded and announced once, and suspending it again replaces the reason; one that nobody has is not found', async () => {
      const { id } = await organizationOf(await person('ada'));
      await suspendTenant(db(), id, { reason: 'First.', by: 'billing' });
      await suspendTenant(db(), id, { reason: 'First.' });
      await suspendTenant(db(), id, { reason: 'Second.' });
      await resumeTenant(db(), id);
      await resumeTenant(db(), id);
      const entries = await auditLog(db(), { target_id: id });
      expect(entries.map(({ action }) => action).toSorted()).toEqual(['tenant.resumed', 'tenant.suspended', 'tenant.suspended']);
      const events = await db().query<{ type: string }>('select type from webhook_events where tenant_key = $1', [id]);
      expect(events.map(({ type }) => type).toSorted()).toEqual(['tenant.resumed', 'tenant.suspended', 'tenant.suspended']);
      await expect(suspendTenant(db(), 'nobody')).rejects.toMatchObject({ code: 'not_found' });
      // @ts-expect-error -- a name that is not known
      await expect(suspendTenant(db(), id, { why: 'x' })).rejects.toThrow(/why/);
    });
  },
  { database: { clock } },
);
