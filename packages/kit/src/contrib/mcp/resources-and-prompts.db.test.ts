import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Controller, route } from '../../index.ts';
import { CrudController, resource, visibleTo } from '../../crud/index.ts';
import { createTable, insert, migration, model, t } from '../../db/index.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { allowAny, hasScopes, isAuthenticated, isStaff } from '../../permissions/built-ins.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { accounts } from '../accounts/module.ts';
import { accountsOf } from '../accounts/users/accounts.ts';
import { createUser } from '../accounts/users/manage-users.ts';
import { apiKeys } from '../apikeys/module.ts';
import { createApiKey } from '../apikeys/manage/create.ts';
import { mcp } from './module.ts';

const notes = model('notes', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(200), margin: t.int() });
const noteResource = resource(notes, { owner: 'owner_id', fields: { margin: visibleTo(isStaff) } });
const tool = { tool: true } as const;
class NoteController extends CrudController(noteResource, {
  permission: hasScopes({ allowUnscoped: true }),
  scope: 'notes',
  operations: { list: tool, retrieve: tool, create: false, destroy: tool },
}) {}
const answer = jsonSchema<object>({ type: 'object' });
class OtherController extends Controller {
  hello = route.get(
    '/hello/:name',
    { permission: allowAny, response: answer, tool: true, summary: 'Greet someone' },
    ({ params }) => params,
  );
  search = route.get(
    '/search',
    {
      permission: allowAny,
      query: jsonSchema<object>({ type: 'object', properties: { q: { type: 'string' } }, required: ['q'] }),
      response: answer,
      tool: true,
    },
    () => ({}),
  );
  secret = route.get('/secret', { permission: isStaff, response: answer, tool: true }, () => ({}));
  noTool = route.get('/no-tool', { permission: allowAny, response: answer }, () => ({}));
}

describeDatabases('resources and prompts of mcp()', (database) => {
  let kit: TestApp;
  let client: Client;
  let other: Client;
  let notesOfAda: string[];
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      modules: [
        accounts(),
        apiKeys(),
        { name: 'notes', models: [notes], migrations: [migration('0001_notes', [createTable('notes', notes.columns)])] },
        mcp({
          prompts: [
            {
              name: 'late_notes',
              description: 'Find notes that wait for somebody.',
              permission: isAuthenticated,
              arguments: { person: { description: 'Whose notes', required: true }, tone: { description: 'How to write' } },
              text: ({ person, tone = 'friendly' }, { user }) => `Write to ${person} in a ${tone} tone, for ${user?.username}.`,
            },
            { name: 'close_month', description: 'Close the month.', permission: isStaff, text: () => 'Close it.' },
          ],
        }),
      ],
      mount: { '/v1': { '/notes': NoteController, '/other': OtherController } },
    });
    const address = await kit.listen();
    const connect = async (username: string) => {
      const user = await createUser(kit.app.db, { username }, accountsOf(kit.app.db).management(null));
      const { raw } = await createApiKey(kit.app.db, { user, name: 'reader', scopes: ['notes:read'] });
      const made = new Client({ name: 'test', version: '1' });
      await made.connect(
        new StreamableHTTPClientTransport(new URL('/mcp', address), { requestInit: { headers: { authorization: `Bearer ${raw}` } } }),
      );
      return { made, user };
    };
    const ada = await connect('ada');
    client = ada.made;
    other = (await connect('eve')).made;
    notesOfAda = [];
    for (const title of ['one', 'two']) notesOfAda.push((await insert(database.db, notes, { owner_id: ada.user.id, title, margin: 3 })).id);
  });
  afterAll(async () => {
    await client?.close();
    await other?.close();
    await kit?.close();
  });

  const text = async (uri: string, by = client): Promise<unknown> => {
    const { contents } = await by.readResource({ uri });
    const [first] = contents as { uri: string; mimeType?: string; text: string }[];
    expect(first).toMatchObject({ uri, mimeType: 'application/json' });
    return JSON.parse(first?.text ?? '');
  };

  describe('resources', () => {
    test('are the reads that the caller has as tools: those without a parameter, and templates of the others', async () => {
      expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(['kit://v1/notes']);
      expect((await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
        'kit://v1/notes/{id}',
        'kit://v1/other/hello/{name}',
      ]);
    });

    test('are read by the request of their tool, with the fields and rows of the caller', async () => {
      const [id = ''] = notesOfAda;
      expect(await text(`kit://v1/notes/${id}`)).toEqual({ id, owner_id: expect.any(String), title: 'one' });
      expect(await text('kit://v1/notes')).toMatchObject({ items: [{ title: 'two' }, { title: 'one' }] });
      expect(await text('kit://v1/notes', other)).toMatchObject({ items: [] });
      expect(await text('kit://v1/other/hello/J%C3%BCrgen%2F1')).toEqual({ name: 'Jürgen/1' });
    });

    test('that do not exist, that the caller does not see and that are no tool are the same error', async () => {
      const [id = ''] = notesOfAda;
      const errorOf = async (uri: string, by: Client) => {
        const error = (await by.readResource({ uri }).catch((each: unknown) => each)) as { code: number; message: string; data: unknown };
        expect(error.data).toEqual({ uri });
        return [error.code, error.message.replaceAll(uri, '…')];
      };
      const missing = await errorOf('kit://v1/nothing', client);
      const uris = [
        'kit://v1/other/secret',
        'kit://v1/other/no-tool',
        'kit://v1/other/search',
        'kit://v1/notes/x%',
        'kit:/v1/notes',
        'https://example.com/',
        'kit://v1/notes/',
        `kit://v1/notes/${id}/`,
        `kit://v1/other/../notes/${id}`,
        `kit://v1/notes//${id}`,
        `kit://v1/notes%2f${id}`,
        `kit://V1/notes/${id}`,
        `kit://v1/notes/${id}?fields=margin`,
        `kit://v1/notes/${id}#x`,
        'kit://v1/notes?limit=1000',
        'kit://v1/notes/%2e%2e%2fother%2fsecret',
        'kit://user@v1/notes',
        'KIT://v1/notes',
      ];
      for (const uri of uris) expect(await errorOf(uri, client)).toEqual(missing);
      expect(await errorOf(`kit://v1/notes/${id}`, other)).toEqual(missing);
      expect(await errorOf('kit://v1/notes/00000000-0000-7000-8000-000000000000', client)).toEqual(missing);
    });
  });

  describe('prompts', () => {
    test('are listed to those who may use them', async () => {
      expect((await client.listPrompts()).prompts).toEqual([
        {
          name: 'late_notes',
          description: 'Find notes that wait for somebody.',
          arguments: [
            { name: 'person', description: 'Whose notes', required: true },
            { name: 'tone', description: 'How to write', required: false },
          ],
        },
      ]);
    });

    test('are filled in for their caller', async () => {
      const { messages } = await client.getPrompt({ name: 'late_notes', arguments: { person: 'Bob' } });
      expect(messages).toEqual([{ role: 'user', content: { type: 'text', text: 'Write to Bob in a friendly tone, for ada.' } }]);
    });

    test.each([
      ['nothing given', { name: 'late_notes' }, '"person" is required'],
      ['an unknown argument', { name: 'late_notes', arguments: { person: 'Bob', size: '1' } }, '"size" is not an argument'],
      ['a long argument', { name: 'late_notes', arguments: { person: 'x'.repeat(10_001) } }, '"person" has more than 10000 characters'],
      ['the prompt of others', { name: 'close_month' }, 'Unknown prompt: close_month'],
      ['no prompt', { name: 'none' }, 'Unknown prompt: none'],
    ])('that cannot be filled in, or that the caller does not have, say so: %s', async (_, given, message) => {
      await expect(client.getPrompt(given)).rejects.toThrow(message);
    });
  });
});

test('a prompt without a permission does not start', () => {
  expect(() => mcp({ prompts: [{ name: 'x', description: 'x', text: () => '' } as never] })).toThrow(/prompts\[0\]\.permission/);
});
