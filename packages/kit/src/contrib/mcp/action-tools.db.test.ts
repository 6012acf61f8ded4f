import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { CrudController, resource, visibleTo } from '../../crud/index.ts';
import { createTable, insert, migration, model, t, versioned } from '../../db/index.ts';
import { hasScopes, isStaff } from '../../permissions/built-ins.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { accounts } from '../accounts/module.ts';
import { accountsOf } from '../accounts/users/accounts.ts';
import { createUser } from '../accounts/users/manage-users.ts';
import { apiKeys } from '../apikeys/module.ts';
import { createApiKey } from '../apikeys/manage/create.ts';
import { mcp } from './module.ts';

const notes = model('notes', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  title: t.text(200),
  margin: t.int().dbDefault(3),
  ...versioned(),
});
const noteResource = resource(notes, {
  owner: 'owner_id',
  version: 'version',
  fields: { margin: visibleTo(isStaff) },
  actions: {
    stamp: {
      on: 'selection',
      input: z.object({ text: z.string().min(2) }),
      run: ({ row, input }, next) => next({ title: `${input.text} ${row.title}` }),
    },
  },
});
class NoteController extends CrudController(noteResource, {
  permission: hasScopes({ allowUnscoped: true }),
  scope: 'notes',
  operations: { stamp: { tool: true }, stampMany: { tool: true } },
}) {}

describeDatabases('actions as tools', (database) => {
  let kit: TestApp;
  let client: Client;
  let owner: string;
  beforeAll(async () => {
    const own = { name: 'notes', models: [notes], migrations: [migration('0001_notes', [createTable('notes', notes.columns)])] };
    kit = await testApp({
      database: database.db,
      title: 'Notes',
      modules: [accounts(), apiKeys(), own, mcp()],
      mount: { '/v1': { '/notes': NoteController } },
    });
    const person = await createUser(kit.app.db, { username: 'ada' }, accountsOf(kit.app.db).management(null));
    owner = person.id;
    const { raw } = await createApiKey(kit.app.db, { user: person, name: 'writer', scopes: ['notes:*'] });
    client = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { authorization: `Bearer ${raw}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', await kit.listen()), { requestInit }));
  });
  afterAll(async () => {
    await client.close();
    await kit.close();
  });

  test('one tool for a record and one for many, without the fields that the caller cannot see', async () => {
    const { tools } = await client.listTools();
    expect(tools.map(({ name, description }) => [name, description])).toEqual([
      ['note_stamp', 'Does "stamp" for a note.'],
      ['note_stamp_many', expect.stringContaining('Does "stamp" for several notes.')],
    ]);
    expect(JSON.stringify(tools)).toContain('dry_run');
    expect(JSON.stringify(tools)).not.toContain('margin');
  });

  test('they run on the rows of the caller, and try what they would do', async () => {
    const id = (await insert(kit.app.db, notes, { owner_id: owner, title: 'own' })).id;
    const foreign = (await insert(kit.app.db, notes, { owner_id: '01890000-0000-7000-8000-000000000000', title: 'foreign' })).id;
    const call = async (name: string, args: Record<string, unknown>) =>
      (await client.callTool({ name, arguments: args })) as { isError?: boolean; structuredContent?: unknown };
    const many = { ids: [id, foreign], input: { text: 'old' } };
    const results = [
      { index: 0, status: 200, data: { title: 'old own' } },
      { index: 1, status: 404 },
    ];
    expect((await call('note_stamp_many', { ...many, dry_run: true })).structuredContent).toMatchObject({ dry_run: true, results });
    expect((await call('note_stamp_many', many)).structuredContent).toMatchObject({ dry_run: false, results });
    expect((await call('note_stamp', { id, text: 'very' })).structuredContent).toMatchObject({ title: 'very old own' });
    expect((await call('note_stamp', { id: foreign, text: 'very' })).isError).toBe(true);
  });
});
