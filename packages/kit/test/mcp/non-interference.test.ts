import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApp, migrateApp, type App } from '../../src/app/index.ts';
import { accounts, createUser } from '../../src/contrib/accounts/index.ts';
import { apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { CrudController, resource, visibleTo, writableBy } from '../../src/crud/index.ts';
import { createTable, migration, model, t } from '../../src/db/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { hasScopes, isStaff } from '../../src/permissions/index.ts';
import { fetchThrough } from './fetch-through.ts';

// Two worlds that differ only in what a caller must not know: rows of others, a field, an operation. The caller cannot tell them apart.

const SECRET = 'zebra-42';

function worldOf(isRich: boolean) {
  const plain = { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(50) };
  const columns = isRich ? { ...plain, margin: t.int().nullable() } : plain;
  const indexes = [{ columns: ['owner_id', '-id'] }];
  const notes = model('notes', columns, { indexes });
  const fields = isRich ? { fields: { margin: { ...visibleTo(isStaff), ...writableBy(isStaff) } } } : {};
  class NoteController extends CrudController(resource(notes, { owner: 'owner_id', ...fields } as never), {
    permission: hasScopes(),
    scope: 'notes',
    filters: { title: ['eq', 'contains'] },
    operations: {
      list: { tool: true },
      retrieve: { tool: true },
      create: { tool: true },
      partialUpdate: { tool: true },
      destroy: { tool: true },
    },
  }) {}
  class AuditController extends Controller {
    margins = route.get(
      '/margins',
      {
        permission: isStaff,
        tool: { name: `${SECRET}_margins` },
        summary: `Margins of the ${SECRET} account`,
        response: jsonSchema<object>({ type: 'object' }),
      },
      () => ({}),
    );
  }
  return {
    notes,
    controllers: { '/notes': NoteController, ...(isRich ? { '/audits': AuditController } : {}) },
    migrations: [migration('0001_initial', [createTable('notes', columns, { indexes })])],
  };
}

interface World {
  readonly app: App;
  readonly key: string;
  readonly hidden: string;
}

describe('what a caller must not know', () => {
  let poor: World;
  let rich: World;

  async function start(isRich: boolean): Promise<World> {
    const { notes, controllers, migrations } = worldOf(isRich);
    const app = createApp({
      database: 'sqlite::memory:',
      title: 'Notes',
      modules: [accounts(), apiKeys(), mcp(), { name: 'notes', models: [notes], migrations }],
      mount: { '/v1': controllers },
      log: { level: 'silent' },
    });
    await migrateApp(app);
    await app.ready();
    const { db } = app;
    const user = await createUser(db, { username: 'ada' });
    const other = await createUser(db, { username: 'eve' });
    const { raw } = await createApiKey(db, { user, name: 'agent', scopes: ['notes:*'] });
    const hidden = '01890000-0000-7000-8000-0000000000ff';
    if (isRich) await db.query('insert into notes (id, owner_id, title, margin) values ($1, $2, $3, 7)', [hidden, other.id, SECRET]);
    return { app, key: raw, hidden };
  }

  beforeAll(async () => {
    [poor, rich] = [await start(false), await start(true)];
  });
  afterAll(async () => {
    await poor.app.close();
    await rich.app.close();
  });

  const ask = async ({ app, key }: World, method: string, params: object): Promise<string> => {
    const response = await fetchThrough(app)('http://localhost/mcp', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', authorization: `Bearer ${key}` },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const text = `${response.status} ${await response.text()}`;
    // What differs between any two requests.
    return text
      .replaceAll(/(for if_match: \\")[\w-]+/g, '$1<digest of the record, with its id>')
      .replaceAll(/(\\?"request_id\\?":\\?")[^"\\]*/g, '$1…')
      .replaceAll(/0[0-9a-f]{7}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>');
  };

  test('shows in no list of tools, description, schema, hint or instruction', async () => {
    const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
    for (const [method, params] of [
      ['initialize', initialize],
      ['tools/list', {}],
      ['ping', {}],
    ] as const) {
      const [first, second] = [await ask(poor, method, params), await ask(rich, method, params)];
      expect(second).toBe(first);
      expect(second).not.toMatch(/zebra|margin/);
    }
  });

  test('shows in no result and no error: rows of others, hidden fields, tools of others', async () => {
    const id = rich.hidden;
    const calls: [string, object][] = [
      ['note_list', {}],
      ['note_list', { title__contains: 'zebra' }],
      ['note_list', { title: SECRET }],
      ['note_list', { margin: 7 }],
      ['note_list', { ordering: ['margin'] }],
      ['note_list', { fields: ['margin'] }],
      ['note_retrieve', { id }],
      ['note_retrieve', { id, fields: ['margin'] }],
      ['note_partial_update', { id, title: 'mine now' }],
      ['note_partial_update', { id, margin: 1 }],
      ['note_destroy', { id }],
      ['note_create', { title: 'x', margin: 1 }],
      ['note_create', { title: 'x', owner_id: id }],
      ['note_create', { title: SECRET }],
      [`${SECRET}_margins`, {}],
      ['audit_margins', {}],
      ['nothing', {}],
    ];
    for (const [name, args] of calls) {
      const params = { name, arguments: args };
      expect([name, args, await ask(rich, 'tools/call', params)]).toEqual([name, args, await ask(poor, 'tools/call', params)]);
    }
  });

  test('is there for who may know it: the test could fail', async () => {
    const staff = await createUser(rich.app.db, { username: 'grace', is_staff: true });
    const { raw } = await createApiKey(rich.app.db, { user: staff, name: 'staff', scopes: ['*'] });
    const seen = await ask({ ...rich, key: raw }, 'tools/list', {});
    expect(seen).toContain(`${SECRET}_margins`);
    expect(seen).toContain('"margin"');
  });
});
