import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApiKey } from '../../src/contrib/apikeys/index.ts';
import { describeDatabases } from '../../src/testing/index.ts';
import { type AuthApp, member, startAuthApp, userId } from './auth-app.ts';

// The same rules as packages/kit/src/contrib/tenants/keys.db.test.ts has for tenants().

describeDatabases('API keys belong to an organization', (database) => {
  let here: AuthApp;
  beforeAll(async () => {
    here = await startAuthApp(database.db, { module: { organization: [{ header: 'X-Team' }] } });
  });
  afterAll(() => here.app.close());

  test('a key acts in the organization that it was made for, in no other, and stops when its owner leaves', async () => {
    const [ada, bob] = [await member(here, 'ada@example.com'), await member(here, 'bob@example.com')];
    const create = async (slug: string) => (await ada.post('/auth/organization/create', { name: slug, slug })).body.id as string;
    const [north, south] = [await create('north'), await create('south')];
    const user = await userId(database.db, 'bob@example.com');
    // The types of the instance do not know the plugins that it has.
    const api = here.auth.api as unknown as { addMember(given: { body: object }): Promise<unknown> };
    const join = (organizationId: string) => api.addMember({ body: { userId: user, organizationId, role: 'member' } });
    await join(north);
    const { raw, apiKey } = await createApiKey(here.app.db, { user, name: 'script', scopes: [] });
    expect(apiKey.tenant_id).toBe(north);
    await join(south);
    await expect(createApiKey(here.app.db, { user, name: 'script', scopes: [] })).rejects.toMatchObject({ code: 'tenant_required' });
    const other = await createApiKey(here.app.db, { user, name: 'script', scopes: [], tenant: 'south' });
    bob.cookies.clear();
    const as = async (key: string, team?: string) =>
      (await bob.get('/v1/who', { 'x-api-key': key, ...(team === undefined ? {} : { 'x-team': team }) })).body;
    expect([(await as(raw)).tenant, (await as(raw, 'north')).tenant, (await as(raw, 'south')).code]).toEqual([
      north,
      north,
      'tenant_conflict',
    ]);
    expect((await as(other.raw)).tenant).toBe(south);
    await ada.post('/auth/organization/remove-member', { memberIdOrEmail: 'bob@example.com', organizationId: north });
    expect([(await as(raw)).code, (await as(other.raw)).tenant]).toEqual(['invalid_api_key', south]);
  });
});
