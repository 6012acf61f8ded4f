import { afterAll, beforeAll, expect, test } from 'vitest';
import { jobs, runDueJobs, startJob } from '../../src/contrib/jobs/index.ts';
import { passOnJob } from '../../src/contrib/better-auth/user-changes.ts';
import { publish, WebhookEndpointController, webhooks } from '../../src/contrib/webhooks/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { auditLog } from '../audit-log.ts';
import { type AuthApp, type Browser, member, startAuthApp, userId, WhoController } from './auth-app.ts';

class Hooks extends WebhookEndpointController {
  static override readonly tenantField = 'tenant_key';
}

describeDatabases('webhook endpoints in organizations', (database) => {
  let here: AuthApp;
  let owner: Browser;
  let organization = '';
  beforeAll(async () => {
    here = await startAuthApp(database.db, {
      modules: [webhooks({ jitter: false }), jobs()],
      app: { mount: { '/v1': { '/who': WhoController, '/hooks': Hooks } } },
    });
    owner = await member(here, 'owner@example.com');
    organization = (await owner.post('/auth/organization/create', { name: 'North', slug: 'north' })).body.id as string;
  });
  afterAll(() => here.app.close());

  const as = { 'x-organization': 'north' };
  const hook = async (browser: Browser, name: string, headers: Record<string, string> = as): Promise<string> => {
    const { status, body, text } = await browser.post('/v1/hooks', { url: `https://hooks.example.com/${name}`, events: ['*'] }, headers);
    expect([status, status === 201 ? '' : text]).toEqual([201, '']);
    return body.id as string;
  };
  const join = async (name: string): Promise<Browser> => {
    const browser = await member(here, `${name}@example.com`);
    const { body } = await owner.post('/auth/organization/invite-member', {
      email: `${name}@example.com`,
      role: 'member',
      organizationId: organization,
    });
    expect((await browser.post('/auth/organization/accept-invitation', { invitationId: body.id })).status).toBe(200);
    return browser;
  };
  /** The endpoints that an event of the organization is sent to. */
  const receivers = async (): Promise<string[]> => {
    const { id } = await database.db.transaction((tx) => publish(tx, 'paper.written', {}, { tenantKey: organization }));
    const rows = await database.db.query<{ endpoint_id: string }>('select endpoint_id from webhook_deliveries where event_id = $1', [id]);
    return rows.map((row) => row.endpoint_id).toSorted();
  };

  test('a member who leaves, is removed, or is removed by another program gets no more events of the organization', async () => {
    const kept = await hook(owner, 'owner');
    const [leaving, removed, deleted] = [await join('leaving'), await join('removed'), await join('deleted')];
    const [left, out, gone] = [await hook(leaving, 'leaving'), await hook(removed, 'removed'), await hook(deleted, 'deleted')];
    // The same person in another organization keeps that endpoint.
    const { body: other } = await leaving.post('/auth/organization/create', { name: 'Other', slug: 'other' });
    const elsewhere = await hook(leaving, 'elsewhere', { 'x-organization': other.id as string });
    expect(await receivers()).toEqual([kept, left, out, gone].toSorted());

    expect((await leaving.post('/auth/organization/leave', { organizationId: organization })).status).toBe(200);
    expect(await receivers()).toEqual([kept, out, gone].toSorted());
    const memberIdOrEmail = 'removed@example.com';
    expect((await owner.post('/auth/organization/remove-member', { memberIdOrEmail, organizationId: organization })).status).toBe(200);
    expect(await receivers()).toEqual([kept, gone].toSorted());
    const entries = await auditLog(database.db, { target_id: out });
    expect(entries.find(({ action }) => action === 'webhook_endpoint.deleted')).toMatchObject({ actor_name: 'owner@example.com' });

    await database.db.query('delete from "member" where "userId" = $1', [await userId(database.db, 'deleted@example.com')]);
    await database.db.transaction((tx) => startJob(tx, passOnJob, {}));
    await runDueJobs(database.db);
    expect(await receivers()).toEqual([kept]);
    const remaining = await database.db.query<{ id: string }>('select id from webhook_endpoints where owner_id = $1', [
      await userId(database.db, 'leaving@example.com'),
    ]);
    expect(remaining.map(({ id }) => id)).toEqual([elsewhere]);
    expect(await database.db.query('select user_id from better_auth_member_changes')).toEqual([]);
  });

  test('whoever is a member again before the change was passed on keeps the endpoints', async () => {
    const back = await join('back');
    const id = await hook(back, 'back');
    const [row] = await database.db.query<Record<string, unknown>>('select * from "member" where "userId" = $1', [
      await userId(database.db, 'back@example.com'),
    ]);
    await database.db.query('delete from "member" where "id" = $1', [row?.['id']]);
    await database.db.query('insert into "member" ("id", "organizationId", "userId", "role", "createdAt") values ($1, $2, $3, $4, $5)', [
      row?.['id'],
      row?.['organizationId'],
      row?.['userId'],
      row?.['role'],
      row?.['createdAt'],
    ]);
    await database.db.transaction((tx) => startJob(tx, passOnJob, {}));
    await runDueJobs(database.db);
    expect(await receivers()).toContain(id);
  });

  test('a deleted organization has no endpoints', async () => {
    expect((await owner.post('/auth/organization/delete', { organizationId: organization })).status).toBe(200);
    expect(await receivers()).toEqual([]);
    expect(await database.db.query('select id from webhook_endpoints where tenant_key = $1', [organization])).toEqual([]);
  });
});
