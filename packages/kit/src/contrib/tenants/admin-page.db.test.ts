import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../../test/admin/admin-app.ts';
import { insert } from '../../db/rows/repository.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { uuidv7 } from '../../db/values/uuidv7.ts';
import { jsonSchema } from '../../http/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { objectActions, objectGrants } from '../grants/index.ts';
import { grantModel } from '../grants/models.ts';
import { job, jobs, startJob } from '../jobs/index.ts';
import { requests } from '../requests/index.ts';
import { requestLog, requestUsage } from '../requests/models.ts';
import { diskStore, uploads } from '../uploads/index.ts';
import { uploadRecords } from '../uploads/models.ts';
import { createTenant, inviteMember, tenants } from './index.ts';

const tidy = job('plans.tidy', { input: jsonSchema<object>({ type: 'object' }), run: () => undefined });
const columns = { id: t.uuidv7().pk(), tenant_id: t.uuid().readOnly(), name: t.text(80) };
const plans = model('plans', columns);
const planActions = objectActions(plans, { actions: ['view'], sets: {}, subjects: [] });

describeDatabases('all of a tenant in the admin site', (database) => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-tenant-page-'));
  let site: AdminApp;
  let staff: Browser;

  beforeAll(async () => {
    site = await new AdminApp(database.db, [
      jobs({ jobs: [tidy] }),
      uploads({ store: diskStore({ folder }) }),
      objectGrants({ objects: [planActions] }),
      requests(),
      tenants({ seatsMax: ({ slug }) => (slug.startsWith('north') ? 5 : null) }),
      { name: 'plans', models: [plans], migrations: [migration('0001_initial', [createTable('plans', columns)])] },
    ]).ready();
    // Staff sees grants on objects that it sees: a superuser sees all.
    staff = await site.browser({ username: 'operator', is_staff: true, is_superuser: true });
  });
  afterAll(async () => {
    await site.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const get = async (path: string) => (await site.get(staff, path)).body;

  test('seats and use are in the list; the page has its jobs, uploads, grants and requests, and nothing of another', async () => {
    const { app, clock } = site;
    const made: Record<string, string> = {};
    for (const name of ['Northern', 'Southern']) {
      const mark = name.toLowerCase();
      const owner = await site.newUser({ username: `${mark}-owner` });
      const { id: tenant } = await createTenant(app.db, { name, slug: mark, owner: owner.id });
      made[mark] = tenant;
      const at = clock.now();
      await app.db.transaction((tx) => startJob(tx, tidy, {}, { owner: owner.id, tenantKey: tenant, uniqueKey: `${mark}-job` }));
      await insert(app.db, uploadRecords, {
        id: uuidv7(clock),
        owner_id: owner.id,
        tenant_key: tenant,
        state: 'complete',
        pending_key: mark,
        final_key: null,
        etag: null,
        version_id: null,
        received_at: null,
        multipart_id: null,
        filename: `${mark}.txt`,
        content_type: 'text/plain',
        size: 5n,
        checksum_sha256: null,
        part_size: null,
        reason: null,
        created_at: at,
        expires_at: at,
        complete_by: at,
        completed_at: at,
        scan_due_at: null,
        scan_attempts: 0,
      });
      await insert(app.db, grantModel, {
        subject: `user:${owner.id}`,
        object_type: 'plans',
        object_id: `${mark}-plan`,
        tenant_key: tenant,
        actions: ',view,',
        granted_by: null,
        created_at: at,
        expires_at: null,
        object_deleted_at: null,
      });
      const call = { method: 'GET', route: `/v1/${mark}`, owner_id: owner.id, tenant_key: tenant, deprecated: false, via: 'http' as const };
      for (const minutes of [2, 1])
        await insert(app.db, requestLog, {
          ...call,
          finished_at: new Date(at.getTime() - minutes * 60_000),
          duration_ms: 1,
          path: `/v1/${mark}`,
          status: 200,
          failed: false,
          aborted: false,
          error_code: null,
          scheme: 'session',
          key_id: null,
          request_id: null,
          version: null,
        });
      for (const [daysAgo, requests] of [
        [0, 7n],
        [29, 5n],
        [31, 100n],
      ] as const)
        await insert(app.db, requestUsage, {
          ...call,
          id: crypto.randomUUID(),
          day: new Date(at.getTime() - daysAgo * 86_400_000).toISOString().slice(0, 10),
          version: '',
          key_id: '',
          requests,
          failures: 0n,
        });
    }
    const { items } = await get('resources/tenants?search=ern');
    const values = Object.fromEntries(items.map((item: { title: string; values: object }) => [item.title, item.values]));
    const last = new Date(clock.now().getTime() - 60_000).toISOString();
    expect(values).toMatchObject({
      Northern: { members: 1, seats: 5, requests: 12, last_request_at: last },
      Southern: { members: 1, seats: null, requests: 12, last_request_at: last },
    });
    const page = await get(`resources/tenants/${made['northern']}`);
    const text = JSON.stringify(page);
    for (const shown of ['plans.tidy', 'northern.txt', 'plans/northern-plan', '/v1/northern']) expect(text).toContain(shown);
    expect(text).not.toMatch(/southern/i);
    const titles: string[] = page.sections.map(({ title }: { title?: string }) => title ?? '');
    // Each once: lists are found by what their columns refer to.
    expect(titles.toSorted()).toEqual([...new Set(titles)].toSorted());
    expect(titles).toEqual(expect.arrayContaining(['Jobs', 'Uploads', 'Grants', 'Requests', 'Who calls what', 'Members']));
    expect(page.actions).toEqual(['suspend']);
  });

  test('staff invites a person and sends the invitation again: the token is shown once, and depends on no member', async () => {
    const owner = await site.newUser({ username: 'inviter' });
    const { id: tenant } = await createTenant(site.app.db, { name: 'Western', owner: owner.id });
    const form = { tenant, email: 'Zoe@Example.com', roles: ['member'] };
    const invited = await site.send(staff, 'POST', 'resources/tenant-invitations', form);
    expect([invited.status, invited.body.secret.label]).toEqual([201, 'Token of the invitation']);
    const again = await site.send(staff, 'POST', 'resources/tenant-invitations', form);
    expect([again.status, again.body.errors[0]]).toEqual([
      422,
      expect.objectContaining({ code: 'already_invited', location: ['body', 'email'] }),
    ]);
    const wrong = await site.send(staff, 'POST', 'resources/tenant-invitations', { ...form, email: 'x@example.com', roles: ['king'] });
    expect([wrong.status, wrong.body.errors[0].location]).toEqual([422, ['body', 'roles']]);
    const nobody = await site.send(staff, 'POST', 'resources/tenant-invitations', { ...form, email: 'no address' });
    expect([nobody.status, nobody.body.errors[0].location]).toEqual([422, ['body', 'email']]);

    const byMember = await inviteMember(site.app.db, { tenant, email: 'max@example.com', roles: ['member'], by: owner });
    const resent = await site.act(staff, 'tenant-invitations', 'resend', [byMember.invitation.id]);
    expect([resent.status, resent.body.secret.value]).toEqual([200, expect.not.stringMatching(byMember.token ?? '')]);
    const [row] = await site.app.db.query('select invited_by from tenant_invitations where id = $1', [byMember.invitation.id]);
    expect(row).toEqual({ invited_by: null });
    const read = JSON.stringify(await get(`resources/tenant-invitations/${byMember.invitation.id}`));
    expect(read).not.toContain(resent.body.secret.value);
  });
});
