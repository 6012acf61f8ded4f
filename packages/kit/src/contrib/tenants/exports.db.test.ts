import { expect, test } from 'vitest';
import { jobs, runDueJobs } from '../jobs/index.ts';
import { createApiKey } from '../apikeys/index.ts';
import { describeTenantApp } from '../../../test/tenants/tenant-app.ts';
import { unzip } from '../../../test/personal/unzip.ts';
import { insert } from '../../db/rows/repository.ts';
import { storedExports } from './manage/exports.ts';
import { tenantExportParts } from './models.ts';
import { resumeTenant, suspendTenant } from './manage/suspend.ts';
import { changeMember } from './manage/members.ts';

const DAY_MS = 86_400_000;
let count = 0;
const fresh = (name: string) => `${name}${(count += 1)}`;

describeTenantApp(
  'the export of a tenant over HTTP',
  {},
  (app) => {
    const { call, person, tenantOf, join, clock } = app;
    const db = () => app.kit.app.db;
    const download = async (user: Awaited<ReturnType<typeof person>>, id: string) => {
      const { statusCode, rawPayload } = await app.kit.as(user).inject({ method: 'GET', url: `/v1/tenants/${id}/export/archive` });
      return { status: statusCode, files: statusCode === 200 ? unzip(rawPayload) : new Map<string, string>(), bytes: rawPayload.length };
    };

    test('is for owners alone: asked for, written by a job with progress, downloaded until it expires, recorded for the tenant', async () => {
      const [ada, bob, eve] = [await person(fresh('ada')), await person(fresh('bob')), await person(fresh('eve'))];
      const [{ id }, other] = [await tenantOf(ada, { name: 'Exported studio' }), await tenantOf(eve, { name: 'Other studio' })];
      await join(ada, id, bob, ['admin']);
      expect((await call(ada, 'GET', `/tenants/${id}/export`)).body.code).toBe('export_not_found');
      for (const [user, status] of [
        [bob, 403],
        [eve, 404],
      ] as const)
        for (const [method, path] of [
          ['POST', 'export'],
          ['GET', 'export'],
          ['GET', 'export/archive'],
        ] as const)
          expect([path, (await call(user, method, `/tenants/${id}/${path}`)).status]).toEqual([path, status]);
      const asked = await call(ada, 'POST', `/tenants/${id}/export`);
      expect([asked.status, asked.body.state, asked.body.percent]).toEqual([202, 'waiting', 0]);
      // Twice is once.
      await call(ada, 'POST', `/tenants/${id}/export`);
      expect(await db().query("select id from jobs where name = 'tenants.export' and tenant_key = $1", [id])).toHaveLength(1);
      expect((await call(ada, 'GET', `/tenants/${id}/export/archive`)).body.code).toBe('export_not_ready');
      await runDueJobs(db());
      const { body: state } = await call(ada, 'GET', `/tenants/${id}/export`);
      expect(state).toMatchObject({ state: 'ready', percent: 100 });
      expect(Date.parse(state.expires_at) - Date.parse(state.requested_at)).toBeGreaterThanOrEqual(7 * DAY_MS);
      const { status, files, bytes } = await download(ada, id);
      expect([status, bytes]).toEqual([200, state.bytes]);
      const text = [...files].map(([name, content]) => name + content).join('\n');
      for (const shown of ['Exported studio', 'tenant_members.jsonl', bob.id, 'manifest.json']) expect(text).toContain(shown);
      for (const hidden of ['Other studio', other.id, eve.id]) expect(text).not.toContain(hidden);
      expect((await download(bob, id)).status).toBe(403);
      expect((await download(eve, id)).status).toBe(404);
      expect(await app.audited('tenant')).toContain('tenant.exported');
      await db().query('update tenant_exports set expires_at = $1', [new Date(Date.now() - 1)]);
      expect((await download(ada, id)).status).toBe(404);
      expect(await storedExports.removeExpired(db())).toBe(1);
      expect(await db().query('select number from tenant_export_parts')).toEqual([]);
    });

    test('that is replaced while it is sent ends with an error, and its length is told before', async () => {
      const ada = await person(fresh('ada'));
      const { id } = await tenantOf(ada);
      await call(ada, 'POST', `/tenants/${id}/export`);
      await runDueJobs(db());
      const path = `/v1/tenants/${id}/export/archive`;
      for (const method of ['GET', 'HEAD'] as const) {
        const { headers } = await app.kit.as(ada).inject({ method, url: path });
        expect(Number(headers['content-length'])).toBe((await call(ada, 'GET', `/tenants/${id}/export`)).body.bytes);
      }
      // In several parts, as a large one is.
      const [stored] = await db().query<{ data: Uint8Array; attempt: string }>(
        'select data, attempt from tenant_export_parts where tenant_id = $1',
        [id],
      );
      const { data, attempt } = stored as { data: Uint8Array; attempt: string };
      await insert(db(), tenantExportParts, { tenant_id: id, attempt, number: 2, data });
      await db().query('update tenant_exports set bytes = bytes * 2 where tenant_id = $1', [id]);
      const found = await storedExports.find(db(), id);
      const pieces = storedExports.bytes(db(), id, found!);
      expect((await pieces.next()).value).toEqual(data);
      await db().transaction((tx) => storedExports.request(tx, id));
      await expect(pieces.next()).rejects.toMatchObject({ code: 'conflict' });
    });

    test('is out of reach for keys, also those of an owner with every scope', async () => {
      const ada = await person(fresh('ada'));
      const { id } = await tenantOf(ada);
      const { raw } = await createApiKey(db(), { user: ada, name: 'all', scopes: ['*'], tenant: id });
      for (const [method, path] of [
        ['POST', 'export'],
        ['GET', 'export'],
        ['GET', 'export/archive'],
      ] as const)
        expect((await call(null, method, `/tenants/${id}/${path}`, undefined, { 'x-api-key': raw })).status).toBe(403);
    });

    test('waits while the tenant is suspended, and is not given out then', async () => {
      const ada = await person(fresh('ada'));
      const { id } = await tenantOf(ada);
      await call(ada, 'POST', `/tenants/${id}/export`);
      await suspendTenant(db(), id);
      clock.advance(120_000);
      await runDueJobs(db());
      for (const path of ['export', 'export/archive'])
        expect((await call(ada, 'GET', `/tenants/${id}/${path}`)).body.code).toBe('tenant_suspended');
      expect((await call(ada, 'POST', `/tenants/${id}/export`)).body.code).toBe('tenant_suspended');
      expect(await db().query('select state from tenant_exports where tenant_id = $1', [id])).toEqual([{ state: 'waiting' }]);
      await resumeTenant(db(), id);
      clock.advance(120_000);
      await runDueJobs(db());
      expect((await call(ada, 'GET', `/tenants/${id}/export`)).body.state).toBe('ready');
      expect((await download(ada, id)).status).toBe(200);
    });

    test('is not written for an owner who has left, and another owner asks again', async () => {
      const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
      const { id } = await tenantOf(ada);
      await join(ada, id, bob, ['owner']);
      await call(ada, 'POST', `/tenants/${id}/export`);
      expect((await call(ada, 'POST', `/tenants/${id}/leave`)).status).toBe(204);
      await runDueJobs(db());
      expect((await call(bob, 'GET', `/tenants/${id}/export`)).body.state).toBe('failed');
      expect((await call(bob, 'POST', `/tenants/${id}/export`)).body.state).toBe('waiting');
      await runDueJobs(db());
      expect((await download(bob, id)).status).toBe(200);
      // Nor by a person who owns it no longer while the bytes are on their way.
      const cleo = await person(fresh('cleo'));
      await join(bob, id, cleo, ['owner']);
      await changeMember(db(), { tenant: id, user: bob.id, roles: ['member'] });
      expect((await download(bob, id)).status).toBe(403);
    });

    test('is written again after a process that was killed, and has no part of it', async () => {
      const ada = await person(fresh('ada'));
      const { id } = await tenantOf(ada);
      await call(ada, 'POST', `/tenants/${id}/export`);
      // A run that wrote a part and is gone.
      const first = await storedExports.claim(db(), id);
      await db().query('insert into tenant_export_parts (tenant_id, attempt, number, data) values ($1, $2, 1, $3)', [
        id,
        first?.attempt,
        Buffer.from('half'),
      ]);
      await runDueJobs(db());
      const { status, files } = await download(ada, id);
      expect([status, files.has('manifest.json')]).toEqual([200, true]);
      expect(
        await db().query('select number from tenant_export_parts where tenant_id = $1 and attempt = $2', [id, first?.attempt]),
      ).toEqual([]);
    });
  },
  { modules: [jobs()] },
);
