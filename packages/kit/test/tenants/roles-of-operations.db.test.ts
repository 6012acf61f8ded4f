import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Authenticator } from '../../src/auth/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { createTable, migration, model, softDelete, t } from '../../src/db/index.ts';
import { hasRole, isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';

// An operation that looks at the permission of another one, for the same caller: both must decide alike.

const bearer: Authenticator = {
  name: 'bearer',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate({ headers }) {
    const name = String(headers['authorization'] ?? '').replace('Bearer ', '');
    const user = { id: name, username: name, email: null, is_active: true, is_staff: false, is_superuser: false };
    return name === '' ? null : { user, scheme: 'bearer', credentialId: name, scopes: null };
  },
};
const roles: Readonly<Record<string, string>> = { ada: 'admin', bob: 'member' };
const admins = hasRole('admin');

const columns = {
  id: t.uuidv7().pk(),
  tenant_id: t.text(20).readOnly(),
  title: t.text(50),
  state: t.enum(['open', 'closed']).default('open').readOnly(),
  ...softDelete(),
};
const indexes = [{ columns: ['tenant_id', '-id'] }];
const notes = model('notes', columns, { indexes });
const noteResource = resource(notes, {
  tenant: 'tenant_id',
  softDelete: true,
  state: 'state',
  transitions: { close: { from: ['open'], to: 'closed' } },
});
class NoteController extends CrudController(noteResource, {
  permission: isAuthenticated,
  restore: true,
  meta: true,
  operations: { list: { tool: true }, restore: { permission: admins }, close: { permission: admins } },
}) {}
describeDatabases('roles in a tenant', (database) => {
  let kit: TestApp;
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      authenticators: [bearer],
      tenant: ({ headers }) => (headers['x-tenant'] as string | undefined) ?? null,
      membership: async ({ user, tenant }) =>
        tenant === 'acme' && roles[user.id] !== undefined ? { roles: [roles[user.id] as string] } : null,
      modules: [
        mcp(),
        { name: 'notes', models: [notes], migrations: [migration('0001_notes', [createTable('notes', columns, { indexes })])] },
      ],
      mount: { '/v1': { '/notes': NoteController } },
    });
  });
  afterAll(() => kit.close());

  const send = (who: string, method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object) =>
    kit.inject({
      method,
      url,
      headers: { authorization: `Bearer ${who}`, 'x-tenant': 'acme' },
      ...(payload === undefined ? {} : { payload }),
    });
  const ask = async (who: string, method: string, params: object, headers: Record<string, string> = {}) => {
    const { body } = await kit.inject({
      method: 'POST',
      url: '/mcp',
      headers: { host: 'localhost', authorization: `Bearer ${who}`, accept: 'application/json, text/event-stream', ...headers },
      payload: { jsonrpc: '2.0', id: 1, method, params },
    });
    return (JSON.parse(body.slice(body.indexOf('{'))) as { result: unknown }).result;
  };
  interface Tool {
    readonly name: string;
    readonly inputSchema: { readonly properties: object };
  }
  const tools = async (who: string, headers?: Record<string, string>) =>
    ((await ask(who, 'tools/list', {}, headers)) as { readonly tools: Tool[] }).tools;

  test('who may restore by a role sees what was deleted, and who may change the state is told so', async () => {
    const { id } = (await send('bob', 'POST', '/v1/notes', { title: 'a' })).json() as { id: string };
    const transitions = async (who: string) => (await send(who, 'GET', `/v1/notes/${id}/transitions`)).json() as unknown;
    expect(JSON.stringify(await transitions('ada'))).toContain('"close"');
    expect(JSON.stringify(await transitions('bob'))).not.toContain('"close"');
    const operations = async (who: string): Promise<string[]> => (await send(who, 'GET', '/v1/notes/meta')).json().operations;
    expect(await operations('ada')).toEqual(expect.arrayContaining(['restore', 'close']));
    expect((await operations('bob')).filter((name) => name === 'restore' || name === 'close')).toEqual([]);
    await send('bob', 'DELETE', `/v1/notes/${id}`);
    const deleted = await send('ada', 'GET', '/v1/notes?deleted=only');
    expect([deleted.statusCode, deleted.json().count]).toEqual([200, 1]);
    expect((await send('bob', 'GET', '/v1/notes?deleted=only')).statusCode).toBe(422);
    const list = async (who: string) => (await tools(who, { 'x-tenant': 'acme' })).find(({ name }) => name === 'note_list');
    expect(Object.keys((await list('ada'))?.inputSchema.properties ?? {})).toContain('deleted');
    expect(Object.keys((await list('bob'))?.inputSchema.properties ?? {})).not.toContain('deleted');
  });
});
