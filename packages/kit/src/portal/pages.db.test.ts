import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { AdminApp, type Browser, cookieOf, PASSWORD, siteFolder } from '../../test/admin/admin-app.ts';
import { ApiKeyController, apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { mcp } from '../contrib/mcp/index.ts';
import { RequestController, requests } from '../contrib/requests/index.ts';
import { requestLogs } from '../contrib/requests/log/log.ts';
import { eventType, WebhookEndpointController, webhooks } from '../contrib/webhooks/index.ts';
import { Controller } from '../http/compile/controller.ts';
import { route } from '../http/declare/route.ts';
import { hasScopes, isStaff } from '../permissions/built-ins.ts';
import { describeDatabases } from '../testing/databases.ts';
import { portal, portalLink } from './index.ts';

const OrderPaid = eventType('order.paid', z.object({ id: z.number() }), { description: 'An order was paid.', example: { id: 7 } });
const Sum = z.object({ sum: z.number() });

class SumController extends Controller {
  add = route.post(
    '/add',
    {
      summary: 'Add two <b>numbers</b>',
      permission: hasScopes(),
      scope: 'sums:write',
      tool: true,
      body: z.object({ a: z.int() }),
      response: Sum,
    },
    ({ body }) => ({ sum: body.a }),
  );
  close = route.post('/close', { summary: 'Close the books', permission: isStaff, tool: true, response: Sum }, () => ({ sum: 0 }));
}

describeDatabases('pages of the portal that are not lists', (database) => {
  const files = siteFolder();
  let app: AdminApp;
  let ada: Browser;

  beforeAll(async () => {
    app = await new AdminApp(
      database.db,
      [apiKeys(), webhooks({ eventTypes: [OrderPaid] }), requests(), mcp(), portal({ site: files.url, title: 'Acme' })],
      {
        title: 'Acme Orders',
        mount: {
          '/v1': {
            '/api-keys': ApiKeyController,
            '/hooks': WebhookEndpointController,
            '/requests': RequestController,
            '/sums': SumController,
          },
        },
      },
    ).ready();
    ada = await logIn();
  });
  afterAll(async () => {
    await app.close();
    files.remove();
  });

  async function logIn(given: { is_staff?: boolean } = {}): Promise<Browser> {
    const user = await app.newUser(given);
    const answer = await app.call('POST', '/portal/api/login', {}, { login: user.username, password: PASSWORD });
    const [cookie = ''] = String(answer.headers['set-cookie']).split(';', 1);
    return { userId: user.id, cookie, csrf: answer.body.csrf_token };
  }
  /** Of a browser only its cookie; other headers as they are. */
  const get = (path: string, { cookie, 'x-api-key': key }: { cookie?: string; 'x-api-key'?: string } = ada) =>
    app.call('GET', `/portal/${path}`, { ...(cookie === undefined ? {} : { cookie }), ...(key === undefined ? {} : { 'x-api-key': key }) });

  test('the session names them, each in its group', async () => {
    const { pages } = (await get('api/session')).body.site;
    expect(pages.map(({ name, group, href }: { name: string; group: string; href?: string }) => [name, group, href])).toEqual(
      expect.arrayContaining([
        ['agents', 'API', undefined],
        ['signature-check', 'Webhooks', undefined],
        ['reference', 'API', 'reference'],
      ]),
    );
    expect((await get('api/pages/nothing')).status).toBe(404);
    for (const path of ['api/pages/agents', 'openapi.json']) expect((await get(path, {})).status, `path ${path}`).toBe(401);
    const { raw } = await createApiKey(database.db, { user: await app.newUser(), name: 'x', scopes: ['sums:write'] });
    for (const path of ['api/pages/agents', 'openapi.json'])
      expect((await get(path, { 'x-api-key': raw })).status, `a key for ${path}`).toBe(401);
  });

  test('agents: the address, what the usual clients want, and the tools of this person’s keys', async () => {
    const { sections } = (await get('api/pages/agents')).body;
    const [connection] = sections;
    expect(connection.values.url).toMatch(/^http:\/\/[^/]+\/mcp$/);
    const texts = sections.filter(({ kind }: { kind: string }) => kind === 'text');
    expect(texts).toHaveLength(4);
    for (const { text } of texts) expect(text).toContain(connection.values.url);
    const tools = sections.find(({ title }: { title: string }) => title === 'Tools');
    expect(tools.rows.map(({ values }: { values: object }) => values)).toEqual([
      { name: 'sum_add', does: 'Add two <b>numbers</b>.', changes: { value: 'changes', tone: 'warning' }, scope: 'sums:write' },
    ]);
    expect(tools.rows[0].details[0].value.properties).toHaveProperty('a');
  });

  test('the reference has what this person or a key of theirs could call, and nothing of staff', async () => {
    const { body } = await get('openapi.json');
    expect(Object.keys(body.paths)).toEqual(expect.arrayContaining(['/v1/sums/add', '/v1/hooks', '/v1/api-keys', '/v1/requests']));
    expect(Object.keys(body.paths)).not.toContain('/v1/sums/close');
    expect(Object.keys(body.paths).filter((path) => path.startsWith('/portal'))).toEqual([]);
    expect((await app.call('GET', '/openapi.json')).body.paths).toHaveProperty('/v1/sums/close');
    const { headers, text } = await app.call('GET', '/portal/reference');
    expect(text).toContain('reference/reference.js');
    expect(headers).toMatchObject({ 'x-frame-options': 'DENY' });
    expect(String(headers['content-security-policy'])).not.toContain('unsafe');
    expect((await get('reference/facts.json')).body).toMatchObject({ session: '/portal/api/session', home: { href: './', title: 'Acme' } });
  });

  test('generated clients have what this person or a key of theirs could call, and are downloads', async () => {
    for (const [file, call] of [
      ['client.ts', /^export /m],
      ['client.py', /^class /m],
    ] as const) {
      const { status, headers, text } = await get(`reference/clients/${file}`);
      expect([file, status]).toEqual([file, 200]);
      expect(headers).toMatchObject({ 'content-disposition': `attachment; filename="${file}"`, 'x-content-type-options': 'nosniff' });
      expect(text).toMatch(call);
      expect(text).toContain('/v1/sums/add');
      expect(text).not.toContain('/v1/sums/close');
      expect(text).not.toContain('/portal/');
      expect((await app.call('GET', `/portal/reference/clients/${file}`)).status).toBe(401);
    }
    expect((await get('reference/clients/client.rb')).status).toBe(422);
    const { body } = await get('reference/facts.json');
    expect(body.downloads).toEqual([
      { href: 'reference/clients/client.ts', title: 'TypeScript' },
      { href: 'reference/clients/client.py', title: 'Python' },
    ]);
  });

  test('a link shows its pages alone: no reference, no agents, no names, charts and acts of other pages', async () => {
    const { raw, apiKey: key } = await createApiKey(database.db, {
      user: ada.userId,
      name: 'hidden name',
      scopes: ['requests:read', 'webhooks:write'],
    });
    expect((await app.call('GET', '/v1/requests', { 'x-api-key': raw })).status).toBe(200);
    const made = await app.call('POST', '/v1/hooks', { 'x-api-key': raw }, { url: 'https://hooks.example.com/a', events: ['*'] });
    expect(made.status).toBe(201);
    await requestLogs.of(database.db).flush();
    const enter = async (pages?: readonly string[]) => {
      const { token } = await portalLink(database.db, { user: ada.userId, manage: true, ...(pages === undefined ? {} : { pages }) });
      const cookie = cookieOf(await app.call('POST', '/portal/link', {}, { token }));
      return { cookie, csrf: (await get('api/session', { cookie })).body.csrf_token as string };
    };
    const refused = async (path: string, { cookie }: { cookie: string }) => (await get(path, { cookie })).body.code;

    const few = await enter(['requests', 'event-types']);
    for (const path of [
      'openapi.json',
      'reference/clients/client.ts',
      'api/pages/agents',
      'api/pages/signature-check',
      'api/resources/api-keys',
    ])
      expect(await refused(path, few), `path ${path}`).toBe('portal_page_not_shown');
    const { items } = (await get('api/resources/requests', few)).body;
    expect(items[0].values.key_id).toBe(key.id);
    const told = [
      await get('api/resources/requests', few),
      await get(`api/resources/requests/${items[0].id}`, few),
      await get('api/overview', few),
    ];
    for (const { text } of told) expect(text).not.toContain('hidden name');
    expect(told[2]!.body.parts.flatMap((part: { steps?: { title: string }[] }) => part.steps ?? [])).toEqual([]);
    expect((await get('api/resources/event-types/order.paid', few)).body.actions).toEqual([]);
    const acted = await app.call(
      'POST',
      '/portal/api/resources/event-types/actions/send-example',
      { cookie: few.cookie, 'x-csrf-token': few.csrf },
      { ids: ['order.paid'], fields: { other: made.body.id } },
    );
    expect(acted).toMatchObject({ status: 403, body: { code: 'portal_page_not_shown' } });

    const keysOnly = await enter(['api-keys']);
    const { sections } = (await get(`api/resources/api-keys/${key.id}`, keysOnly)).body;
    expect(sections.map(({ kind }: { kind: string }) => kind)).toEqual(['facts']);
    const all = await enter();
    expect((await get('openapi.json', all)).body.paths).toHaveProperty('/v1/requests');
    expect((await get('api/pages/agents', all)).status).toBe(200);
    expect((await get('api/resources/requests', all)).body.items[0].values.key_id.text).toBe('hidden name');
  });

  test('a person with more rights has another document', async () => {
    const { cookie } = await logIn({ is_staff: true });
    const { body } = await get('openapi.json', { cookie });
    expect(body.paths).toHaveProperty('/v1/sums/close');
    expect((await get('openapi.json')).body.paths).not.toHaveProperty('/v1/sums/close');
    expect((await get('reference/clients/client.py', { cookie })).text).toContain('/v1/sums/close');
    expect((await get('reference/clients/client.py')).text).not.toContain('/v1/sums/close');
  });
});
