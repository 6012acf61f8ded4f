import { expect, test } from 'vitest';
import { ApiKeyController, createApiKey, rotateApiKey, updateApiKey } from '../apikeys/index.ts';
import { unboundKeysCheck } from '../apikeys/manage/unbound-keys-check.ts';
import { Controller, jsonSchema, route } from '../../http/index.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeTenantApp } from '../../../test/tenants/tenant-app.ts';
import type { User } from '../../auth/index.ts';

const Json = jsonSchema<object>({});
class Here extends Controller {
  tenant = route.get('/', { permission: isAuthenticated, response: Json }, async ({ caller }) => ({ tenant: (await caller()).tenant }));
  /** A route that has nothing to do with tenants. */
  me = route.get('/me', { permission: isAuthenticated, response: Json }, ({ user }) => ({ user: user.id }));
}

let count = 0;
const fresh = (name: string) => `${name}${(count += 1)}`;

describeTenantApp(
  'API keys belong to a tenant',
  {},
  (app) => {
    const { call, person, tenantOf, join } = app;
    const make = (user: User, tenant?: string | null) => createApiKey(app.kit.app.db, { user, name: 'script', scopes: [], tenant });
    const by = (key: string, headers: Record<string, string> = {}, path = '/here') =>
      call(null, 'GET', path, undefined, { 'x-api-key': key, ...headers });
    /** As one that was stored before keys had tenants. */
    const old = async (user: User) => {
      const made = await make(user, null);
      await app.database.db.query('update api_keys set tenant_id = null where id = $1', [made.apiKey.id]);
      return made;
    };

    test('a key of a member of one tenant is bound to it: it needs no name there, and acts in no other, even after the owner joins one', async () => {
      const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
      const [own, other] = [await tenantOf(ada), await tenantOf(bob)];
      const { apiKey, raw } = await make(ada);
      expect(apiKey.tenant_id).toBe(own.id);
      await join(bob, other.id, ada, ['admin']);
      expect((await by(raw)).body).toEqual({ tenant: own.id });
      expect((await by(raw, { 'x-tenant': own.slug })).body).toEqual({ tenant: own.id });
      for (const name of [other.id, other.slug, 'nobody']) expect((await by(raw, { 'x-tenant': name })).body.code).toBe('tenant_conflict');
    });

    test('an owner in several tenants names the one of a new key, by slug or id; a tenant of others is rejected like an unknown one', async () => {
      const [ada, eve] = [await person(fresh('ada')), await person(fresh('eve'))];
      const [first, second] = [await tenantOf(ada), await tenantOf(ada)];
      const others = await tenantOf(eve);
      await expect(make(ada)).rejects.toMatchObject({ code: 'tenant_required' });
      expect((await make(ada, first.slug)).apiKey.tenant_id).toBe(first.id);
      expect((await make(ada, second.id)).apiKey.tenant_id).toBe(second.id);
      for (const name of [others.slug, others.id, 'nobody']) await expect(make(ada, name)).rejects.toMatchObject({ code: 'not_a_member' });
    });

    test('a key of an owner in no tenant, or made for none, acts in none, also when the owner joins one', async () => {
      const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
      const before = await make(bob);
      const { id, slug } = await tenantOf(ada);
      await join(ada, id, bob, ['member']);
      for (const { raw } of [before, await make(bob, null)]) {
        expect((await by(raw)).body).toEqual({ tenant: null });
        expect((await by(raw, {}, '/here/me')).body).toEqual({ user: bob.id });
        expect([(await by(raw, { 'x-tenant': slug })).body.code, (await by(raw, { 'x-tenant': 'nobody' })).body.code]).toEqual([
          'not_a_member',
          'not_a_member',
        ]);
      }
    });

    test('a key that a program makes for every tenant acts in all of the owner, and in no other', async () => {
      const [ada, eve] = [await person(fresh('ada')), await person(fresh('eve'))];
      const [first, second, others] = [await tenantOf(ada), await tenantOf(ada), await tenantOf(eve)];
      const { raw } = await make(ada, '*');
      expect((await by(raw)).body).toEqual({ tenant: null });
      for (const { id, slug } of [first, second]) expect((await by(raw, { 'x-tenant': slug })).body).toEqual({ tenant: id });
      expect((await by(raw, { 'x-tenant': others.slug })).body.code).toBe('not_a_member');
      expect(await unboundKeysCheck.run(app.kit.app)).toEqual([]);
    });

    test('over HTTP a key is made for the tenant of the request, shows it, and is told apart in the audit entry', async () => {
      const ada = await person(fresh('ada'));
      const [, second] = [await tenantOf(ada), await tenantOf(ada)];
      const body = { name: 'made', scopes: [], expires_at: null };
      expect((await call(ada, 'POST', '/keys', body)).body.code).toBe('tenant_required');
      const { status, body: made } = await call(ada, 'POST', '/keys', body, { 'x-tenant': second.slug });
      expect([status, made.tenant_id]).toEqual([201, second.id]);
      expect((await by(made.key)).body).toEqual({ tenant: second.id });
    });

    test('a key from before acts as it did until it is bound or rotated, and startup lists it', async () => {
      const ada = await person(fresh('ada'));
      const [first, second] = [await tenantOf(ada), await tenantOf(ada)];
      const { db } = app.kit.app;
      const [bound, rotated] = [await old(ada), await old(ada)];
      const found = async () => (await unboundKeysCheck.run(app.kit.app)).map(({ id, message }) => [id, message]);
      expect(await found()).toEqual([['W039', expect.stringContaining(bound.apiKey.prefix)]]);
      for (const { raw } of [bound, rotated]) {
        expect((await by(raw)).body).toEqual({ tenant: null });
        for (const { id, slug } of [first, second]) expect((await by(raw, { 'x-tenant': slug })).body).toEqual({ tenant: id });
      }
      await updateApiKey(db, bound.apiKey, { tenant: first.slug });
      expect((await by(bound.raw)).body).toEqual({ tenant: first.id });
      await expect(updateApiKey(db, bound.apiKey, { tenant: second.slug })).rejects.toMatchObject({ code: 'tenant_conflict' });
      await expect(rotateApiKey(db, rotated.apiKey)).rejects.toMatchObject({ code: 'tenant_required' });
      // Nothing was rotated.
      expect((await by(rotated.raw, { 'x-tenant': first.slug })).status).toBe(200);
      const { raw } = await rotateApiKey(db, rotated.apiKey, { tenant: second.id });
      expect((await by(raw)).body).toEqual({ tenant: second.id });
      expect(await found()).toEqual([]);
    });

    test('a key stops with the membership of its owner, on every route and permanently; the keys in other tenants go on', async () => {
      const [ada, bob] = [await person(fresh('ada')), await person(fresh('bob'))];
      const [own, other] = [await tenantOf(bob), await tenantOf(ada)];
      const row = await join(ada, other.id, bob, ['member']);
      const [here, there] = [await make(bob, own.id), await make(bob, other.id)];
      expect((await by(there.raw, {}, '/here/me')).status).toBe(200);
      await call(ada, 'DELETE', `/tenants/${other.id}/members/${row}`);
      expect((await by(there.raw, {}, '/here/me')).body.code).toBe('invalid_api_key');
      expect((await by(here.raw, {}, '/here/me')).status).toBe(200);
      await join(ada, other.id, bob, ['member']);
      expect((await by(there.raw, {}, '/here/me')).body.code).toBe('invalid_api_key');
      expect(await app.audited('api_key')).toContain('api_key.revoked');
    });

    test('a key works on no route while its tenant is being deleted, and again once it is restored', async () => {
      const ada = await person(fresh('ada'));
      const { id } = await tenantOf(ada);
      const { raw } = await make(ada);
      await call(ada, 'DELETE', `/tenants/${id}`);
      expect((await by(raw, {}, '/here/me')).body.code).toBe('not_a_member');
      await call(ada, 'POST', `/tenants/${id}/undelete`);
      expect((await by(raw, {}, '/here/me')).status).toBe(200);
    });
  },
  { mount: { '/v1': { '/here': Here, '/keys': ApiKeyController } } },
);
