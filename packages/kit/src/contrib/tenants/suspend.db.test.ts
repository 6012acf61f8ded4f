import { expect, test } from 'vitest';
import { createApiKey } from '../apikeys/index.ts';
import { job, jobs, runDueJobs, startJob } from '../jobs/index.ts';
import { deliverDue, publish } from '../webhooks/index.ts';
import { Controller, jsonSchema, route } from '../../http/index.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeTenantApp } from '../../../test/tenants/tenant-app.ts';
import { resumeTenant, suspendTenant } from './manage/suspend.ts';

const Json = jsonSchema<object>({});
class Here extends Controller {
  tenant = route.get('/', { permission: isAuthenticated, response: Json }, async ({ caller }) => ({ tenant: (await caller()).tenant }));
  me = route.get('/me', { permission: isAuthenticated, response: Json }, ({ user }) => ({ user: user.id }));
}

const ran: string[] = [];
const report = job('suspend.report', {
  input: jsonSchema<{ for: string }>({ type: 'object', properties: { for: { type: 'string' } } }),
  retry: { attempts: 1 },
  run: ({ input }) => void ran.push(input.for),
});

let count = 0;
const fresh = (name: string) => `${name}${(count += 1)}`;

// That nothing reaches a member by stream, cache, replay, export or MCP: packages/kit/test/tenants/leavers.db.test.ts.
describeTenantApp(
  'a suspended tenant',
  {},
  (app) => {
    const { call, person, tenantOf, join, clock } = app;
    const db = () => app.kit.app.db;

    test('rejects its members with the reason, by every credential, and others as if it did not exist', async () => {
      const [ada, eve] = [await person(fresh('ada')), await person(fresh('eve'))];
      const { id, slug } = await tenantOf(ada);
      const other = await tenantOf(ada);
      const { raw } = await createApiKey(db(), { user: ada, name: 'script', scopes: [], tenant: id });
      await suspendTenant(db(), id, { reason: 'The invoice is not paid.' });
      const named = { 'x-tenant': slug };
      expect((await call(ada, 'GET', '/here', undefined, named)).body).toMatchObject({ status: 403, code: 'tenant_suspended' });
      // A key of the tenant, on a route that needs none.
      expect((await call(null, 'GET', '/here/me', undefined, { 'x-api-key': raw })).body.code).toBe('tenant_suspended');
      expect((await call(eve, 'GET', '/here', undefined, named)).body.code).toBe('not_a_member');
      expect((await call(ada, 'GET', '/here', undefined, { 'x-tenant': other.slug })).body).toEqual({ tenant: other.id });
      const { body } = await call(ada, 'GET', `/tenants/${id}`);
      expect([body.suspended_at, body.suspended_reason]).toEqual([clock.now().toISOString(), 'The invoice is not paid.']);
      await resumeTenant(db(), id);
      expect((await call(ada, 'GET', '/here', undefined, named)).body).toEqual({ tenant: id });
      expect((await call(null, 'GET', '/here/me', undefined, { 'x-api-key': raw })).status).toBe(200);
    });

    test('is not changed by its members, who can leave and delete it', async () => {
      const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
      const { id } = await tenantOf(ada);
      const row = await join(ada, id, bob, ['admin']);
      const cleo = await person(fresh('cleo'));
      const { body: invited } = await call(ada, 'POST', `/tenants/${id}/invitations`, { email: cleo.email, roles: ['member'] });
      await suspendTenant(db(), id);
      for (const [method, path, body] of [
        ['PATCH', `/tenants/${id}`, { name: 'New' }],
        ['POST', `/tenants/${id}/invitations`, { email: 'dan@example.com', roles: ['member'] }],
        ['POST', `/tenants/${id}/invitations/${invited.id}/resend`, undefined],
        ['PATCH', `/tenants/${id}/members/${row}`, { roles: ['member'] }],
      ] as const)
        expect([path, (await call(ada, method, path, body)).body.code]).toEqual([path, 'tenant_suspended']);
      const accepted = await call(cleo, 'POST', '/tenants/invitations/accept', { token: invited.token });
      expect(accepted.body.code).toBe('tenant_suspended');
      expect((await call(bob, 'POST', `/tenants/${id}/leave`)).status).toBe(204);
      await resumeTenant(db(), id);
      // The invitation is still good.
      expect((await call(cleo, 'POST', '/tenants/invitations/accept', { token: invited.token })).status).toBe(200);
      await suspendTenant(db(), id);
      expect((await call(ada, 'DELETE', `/tenants/${id}`)).status).toBe(204);
    });

    test('loses no job and no delivery: they wait, lose no attempt, and go on when it is resumed; those of others do not wait', async () => {
      const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
      const [suspended, other] = [await tenantOf(ada), await tenantOf(bob)];
      const attempts = async (tenant: string) =>
        app.database.db.query<{ status: string; attempts: number }>(
          `select d.status, d.attempts from webhook_deliveries d join webhook_events e on e.id = d.event_id
           where e.tenant_key = $1 and e.type = 'paper.made'`,
          [tenant],
        );
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
      // Each look waits for a while, and none takes an attempt.
      clock.advance(120_000);
      await work();
      expect(ran).toEqual([other.id]);
      expect(await attempts(suspended.id)).toEqual([{ status: 'pending', attempts: 0 }]);
      // Nobody listens there: tried, and tried again later.
      expect((await attempts(other.id))[0]?.attempts).toBeGreaterThan(0);
      await resumeTenant(db(), suspended.id);
      clock.advance(60_000);
      await work();
      expect(ran).toEqual([other.id, suspended.id]);
      expect((await attempts(suspended.id))[0]?.attempts).toBeGreaterThan(0);
    });

    test('is recorded and announced once, and suspending it again replaces the reason', async () => {
      const ada = await person(fresh('ada'));
      const { id } = await tenantOf(ada);
      const before = (await app.audited('tenant')).length;
      await suspendTenant(db(), id, { reason: 'First.' });
      await suspendTenant(db(), id, { reason: 'First.' });
      await suspendTenant(db(), id, { reason: 'Second.' });
      await resumeTenant(db(), id);
      await resumeTenant(db(), id);
      const changes = ['tenant.suspended', 'tenant.suspended', 'tenant.resumed'];
      expect((await app.audited('tenant')).slice(before)).toEqual(changes);
      expect((await app.events(id)).filter((type) => changes.includes(type))).toEqual(changes);
    });
  },
  { modules: [jobs({ jobs: [report] })], mount: { '/v1': { '/here': Here } } },
);
