import { crudTests, testApp } from 'kit/testing';
import { expect, test } from 'vitest';
import { appOptions } from '../src/app.ts';
import { ProjectController } from '../src/projects.ts';
import { company, people } from './company.ts';

const website = { title: 'A new website' };

test('members share the projects of their company; only managers finish and delete them', async () => {
  await using here = await company();
  const created = await here.bob.post('/v1/projects', website);
  expect(created.statusCode).toBe(201);
  const url = `/v1/projects/${created.json<{ id: string }>().id}`;
  expect((await here.ada.get(url)).json()).toMatchObject({ ...website, status: 'open', created_by: here.people.bob.id });
  expect((await here.bob.post(`${url}/finish`)).statusCode).toBe(403);
  expect((await here.bob.delete(url)).statusCode).toBe(403);
  expect((await here.ada.post(`${url}/finish`)).json()).toMatchObject({ status: 'done' });
  expect((await here.ada.delete(url)).statusCode).toBe(204);
});

test('another company sees nothing, and nobody acts in a company without being a member', async () => {
  await using here = await company();
  const { id } = (await here.ada.post('/v1/projects', website)).json<{ id: string }>();
  expect((await here.eve.get(`/v1/projects/${id}`)).statusCode).toBe(404);
  expect((await here.eve.get('/v1/projects')).json()).toMatchObject({ items: [] });
  const inAcme = here.app.as(here.people.eve, { tenant: 'acme' });
  expect((await inAcme.get('/v1/projects')).json()).toMatchObject({ status: 403, code: 'not_a_member' });
  expect((await here.app.as(here.people.ada).get('/v1/projects')).json()).toMatchObject({ code: 'tenant_required' });
});

test('the endpoint of a company receives its events, whoever has caused them, and no others', async () => {
  await using here = await company();
  for (const [path, owner] of [
    ['/acme', here.ada],
    ['/rival', here.eve],
  ] as const) {
    const created = await owner.post('/v1/webhooks', { url: here.receiver.url(path), events: ['*'] });
    here.receiver.trust(path, created.json<{ secret: string }>().secret);
  }
  expect((await here.bob.get('/v1/webhooks')).statusCode).toBe(403);
  const { id } = (await here.bob.post('/v1/projects', website)).json<{ id: string }>();
  await here.ada.post(`/v1/projects/${id}/finish`);
  expect(await here.received('/acme')).toEqual(['project.created', 'project.finish']);
  expect(await here.received('/rival')).toEqual([]);
});

test('owners and admins see what was done in their company, and nothing of another', async () => {
  await using here = await company();
  await here.bob.post('/v1/projects', website);
  const seen = (await here.ada.get('/v1/audit')).json<{ items: { action: string; actor_id: string }[] }>().items;
  expect(seen[0]).toMatchObject({ action: 'project.created', actor_id: here.people.bob.id });
  expect((await here.bob.get('/v1/audit')).statusCode).toBe(403);
  const others = (await here.eve.get('/v1/audit')).json<{ items: { action: string }[] }>().items;
  expect(others.map(({ action }) => action)).not.toContain('project.created');
});

test('a key belongs to the company of its owner: it needs no header, and agents use it, too', async () => {
  await using here = await company();
  const key = { 'x-api-key': await here.key(here.people.bob, ['projects:read', 'projects:write']) };
  const created = await here.app.inject({ method: 'POST', url: '/v1/projects', headers: key, payload: website });
  expect(created.statusCode).toBe(201);
  expect((await here.app.inject({ url: '/v1/projects', headers: { ...key, 'x-tenant': 'rival' } })).statusCode).toBe(400);
  const listed = await here.app.inject({
    method: 'POST',
    url: '/mcp',
    headers: { ...key, host: 'localhost', accept: 'application/json, text/event-stream' },
    payload: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'project_list', arguments: {} } },
  });
  expect(listed.body).toContain('A new website');
});

test('an invited person makes an account with the link of the mail, and is a member', async () => {
  await using here = await company();
  await here.ada.post(`/v1/tenants/${here.acme}/invitations`, { email: 'zoe@example.com', roles: ['member'] });
  const [, token] = /#tenant-invitation=(\S+)/.exec((await here.mailed())?.text ?? '') ?? [];
  const accepted = await here.app.inject({
    method: 'POST',
    url: '/v1/tenants/invitations/accept',
    payload: { token, username: 'zoe', password: 'correct horse battery' },
  });
  expect(accepted.json()).toMatchObject({ tenant: { slug: 'acme' }, roles: ['member'] });
});

test('the pages are there', async () => {
  await using here = await company();
  const page = await here.app.inject('/account/sign-in');
  expect([page.statusCode, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
});

const mail = { send: () => Promise.resolve() };

// What generic CRUD guarantees, tried on this resource: another company sees nothing on any route. With KIT_TEST_POSTGRES_URL on PostgreSQL, too.
crudTests(ProjectController, {
  app: (database) => testApp({ ...appOptions(mail), database: database.db }),
  callers: async (app) => {
    const { ada, eve } = await people(app);
    return { owner: { id: ada.id, tenant: 'acme' }, stranger: { id: eve.id, tenant: 'rival' } };
  },
});
