import { afterAll, beforeAll, expect, test } from 'vitest';
import { jwtBearer } from '../../src/contrib/jwt/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { Provider } from '../jwt/provider.ts';
import { type AuthApp, Browser, member, startAuthApp, userId } from './auth-app.ts';

describeDatabases('access tokens beside better-auth', (database) => {
  const provider = new Provider();
  let here: AuthApp;
  beforeAll(async () => {
    await provider.start();
    const tokens = jwtBearer({
      issuer: provider.url,
      audience: 'orders',
      tenant: 'org',
      find: ({ sub }, db) => here.app.users?.findById(db, String(sub)) ?? null,
    });
    here = await startAuthApp(database.db, { app: { authenticators: [tokens] } });
  });
  afterAll(async () => {
    await here.app.close();
    await provider.stop();
  });

  test('the claim that names an organization is a wish: the membership is proved, for tokens as for sessions', async () => {
    const ada = await member(here, 'ada@example.com');
    const eve = await member(here, 'eve@example.com');
    const { body } = await ada.post('/auth/organization/create', { name: 'North', slug: 'north' });
    const who = async (email: string, org: string | undefined, headers: Record<string, string> = {}) => {
      const token = await provider.token(new Date(), { aud: 'orders', sub: await userId(database.db, email), org });
      return new Browser(here.app).get('/v1/who', { authorization: `Bearer ${token}`, ...headers });
    };
    expect((await who('ada@example.com', body.id as string)).body).toMatchObject({ scheme: 'jwt', tenant: body.id, roles: ['owner'] });
    expect((await who('ada@example.com', 'north')).body).toMatchObject({ tenant: body.id, roles: ['owner'] });
    expect((await who('ada@example.com', undefined)).body).toMatchObject({ tenant: null, roles: null });
    expect(await who('eve@example.com', body.id as string)).toMatchObject({ status: 403, body: { code: 'not_a_member' } });
    expect((await who('eve@example.com', undefined, { 'x-organization': 'north' })).status).toBe(403);
    await database.db.query('delete from "member"');
    expect((await who('ada@example.com', body.id as string)).status).toBe(403);
    // A ban ends tokens, too: the user is the one of the view.
    await database.db.query('update "user" set "banned" = $1', [database.dialect === 'sqlite' ? 1 : true]);
    expect((await who('ada@example.com', undefined)).status).toBe(401);
    expect((await eve.get('/v1/who')).status).toBe(401);
  });
});
