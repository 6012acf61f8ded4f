import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Authenticator } from '../../src/auth/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { CrudController, resource, visibleTo } from '../../src/crud/index.ts';
import { createTable, migration, model, t } from '../../src/db/index.ts';
import { Controller, route } from '../../src/http/index.ts';
import { hasRule, isAuthenticated } from '../../src/permissions/index.ts';
import { testApp } from '../../src/testing/test-app.ts';

const somebody: Authenticator = {
  name: 'somebody',
  securityScheme: { type: 'http', scheme: 'bearer' },
  authenticate: () => ({
    user: {
      id: '01890000-0000-7000-8000-000000000001',
      username: 'ada',
      email: null,
      is_active: true,
      is_staff: false,
      is_superuser: false,
    },
    scheme: 'somebody',
    scopes: null,
  }),
};
const failing = hasRule(() => {
  throw new Error('the service of the rule is down');
});
const Ok = z.object({ ok: z.boolean() });
class ThingController extends Controller {
  ask = route.get('/ask', { permission: failing, tool: true, summary: 'Ask a rule that fails', response: Ok }, () => ({ ok: true }));
  read = route.get('/', { permission: isAuthenticated, tool: true, summary: 'Read the thing', response: Ok }, () => ({ ok: true }));
}
const columns = { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(50), margin: t.int().nullable() };
const notes = model('notes', columns);
class NoteController extends CrudController(resource(notes, { owner: 'owner_id', fields: { margin: visibleTo(failing) } }), {
  permission: isAuthenticated,
  operations: { list: { tool: true } },
}) {}

test('a tool whose permission, or whose rule about a field, fails is left out of the list and unknown; the others are there', async () => {
  await using kit = await testApp({
    authenticators: [somebody],
    modules: [mcp(), { name: 'notes', models: [notes], migrations: [migration('0001_notes', [createTable('notes', columns)])] }],
    mount: { '/v1': { '/notes': NoteController, '/things': ThingController } },
  });
  const ask = async (method: string, params: object) =>
    (
      await kit.inject({
        method: 'POST',
        url: '/mcp',
        headers: { host: 'localhost', accept: 'application/json, text/event-stream' },
        payload: { jsonrpc: '2.0', id: 1, method, params },
      })
    ).body;
  expect(Array.from((await ask('tools/list', {})).matchAll(/"name":"(\w+)"/g), ([, name]) => name)).toEqual(['thing_read']);
  for (const name of ['note_list', 'thing_ask']) expect(await ask('tools/call', { name })).toContain(`Unknown tool: ${name}`);
  expect(kit.records.filter(({ level }) => level === 50).map(({ operation }) => operation)).toEqual([
    'note_list',
    'thing_ask',
    'note_list',
    'thing_ask',
  ]);
});
