import { expect, test } from 'vitest';
import { createApp } from '../../../app/assemble/create-app.ts';
import { CrudController } from '../../../crud/serve/controller.ts';
import { resource } from '../../../crud/checks/declare-resource.ts';
import { createTable, migration, model, t } from '../../../db/index.ts';
import { hasScopes } from '../../../permissions/built-ins.ts';
import { mcp } from '../module.ts';
import { readMcpOptions } from '../options.ts';
import { toolRoutes } from './tool-table.ts';
import { toolOf } from './tool.ts';

const notes = model('notes', { id: t.uuidv7().pk(), title: t.text(20) });
class NoteController extends CrudController(resource(notes, { unscoped: true }), {
  permission: hasScopes({ allowUnscoped: true }),
  filters: { title: ['eq'] },
  operations: { query: { tool: true } },
}) {}

test('a QUERY with a tree of conditions can be a tool, and its alias is none', async () => {
  const own = { name: 'notes', models: [notes], migrations: [migration('0001_notes', [createTable('notes', notes.columns)])] };
  const app = createApp({
    database: 'sqlite::memory:',
    log: { level: 'silent' },
    modules: [own, mcp()],
    mount: { '/v1': { '/notes': NoteController } },
  });
  await app.ready();
  const tools = toolRoutes(app.routes, readMcpOptions({})).map((route) => toolOf(route));
  expect(tools.map(({ entry }) => [entry.name, entry.description])).toEqual([
    ['note_query', 'Finds notes by a tree of conditions, a page at a time.'],
  ]);
  expect(Object.keys(tools[0]!.entry.inputSchema['properties'] as object)).toEqual(expect.arrayContaining(['where', 'limit', 'cursor']));
  await app.close();
});
