import { afterAll, beforeAll, expect, test } from 'vitest';
import { openApiDocument } from '../../src/openapi/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { hasRole, isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/index.ts';
import { type AuthApp, member, startAuthApp, WhoController } from './auth-app.ts';

// The same questions as packages/kit/src/contrib/tenants/naming.db.test.ts asks of tenants().

const Json = jsonSchema<object>({});
const Params = jsonSchema<{ team: string }>({ type: 'object', properties: { team: { type: 'string' } }, required: ['team'] });
class Place extends Controller {
  mine = route.get('/:team/mine', { permission: isAuthenticated, params: Params, response: Json }, async ({ caller }) => ({
    tenant: (await caller()).tenant,
  }));
  admins = route.get('/admins', { permission: hasRole('owner'), response: Json }, () => ({}));
}

describeDatabases('a request names its organization', (database) => {
  let here: AuthApp;
  beforeAll(async () => {
    here = await startAuthApp(database.db, {
      module: { organization: [{ header: 'X-Team' }, { path: 'team' }, { subdomainOf: 'example.com' }] },
      app: { mount: { '/v1': { '/who': WhoController, '/t': Place } } },
    });
  });
  afterAll(() => here.app.close());

  test('by slug or id, in a header, the path or the host name, which must agree', async () => {
    const ada = await member(here, 'ada@example.com');
    const bob = await member(here, 'bob@example.com');
    const create = async (who: typeof ada, slug: string) =>
      (await who.post('/auth/organization/create', { name: slug, slug })).body.id as string;
    const [north, south, others] = [await create(ada, 'north'), await create(ada, 'south'), await create(bob, 'others')];
    await ada.post('/auth/organization/set-active', { organizationId: south });
    for (const [path, headers] of [
      ['/v1/who', { 'x-team': 'north' }],
      ['/v1/who', { 'x-team': north }],
      ['/v1/who', { host: 'north.example.com' }],
      ['/v1/t/north/mine', {}],
      ['/v1/t/north/mine', { 'x-team': north, host: 'north.example.com' }],
    ] as const)
      expect([path, headers, (await ada.get(path, headers)).body.tenant]).toEqual([path, headers, north]);
    // The active organization is the default of requests that name none.
    expect((await ada.get('/v1/who')).body.tenant).toBe(south);
    for (const name of ['south', others, 'others', 'nobody'])
      expect((await ada.get(`/v1/t/${name}/mine`, { 'x-team': 'north' })).body).toMatchObject({ status: 400, code: 'tenant_conflict' });
    const bytes = async (name: string) => ({ ...(await ada.get('/v1/who', { 'x-team': name })).body, request_id: '' });
    expect(await bytes('others')).toEqual(await bytes('nobody'));
    expect(await bytes(others)).toEqual(expect.objectContaining({ code: 'not_a_member' }));
  });

  test('the error for a missing organization, and the document, say how to name one', async () => {
    const cleo = await member(here, 'cleo@example.com');
    expect((await cleo.get('/v1/t/admins')).body).toMatchObject({
      code: 'tenant_required',
      detail:
        'A tenant is required. Name one that you are a member of in the header `X-Team`, in the path as `:team` or in the host name as `<slug>.example.com`, by its slug or id.',
    });
    const document = JSON.stringify(openApiDocument(here.app.routes, { title: 'Teams', version: '1' }).paths['/v1/t/admins']);
    expect(document).toContain('#/components/parameters/XTeam');
  });
});
