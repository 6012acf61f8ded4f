import { expect, test } from 'vitest';
import { z } from 'zod';
import { createApp } from '../../../app/assemble/create-app.ts';
import { resource } from '../../../crud/checks/declare-resource.ts';
import { CrudController } from '../../../crud/serve/controller.ts';
import { model, t } from '../../../db/index.ts';
import { Controller } from '../../../http/compile/controller.ts';
import { route } from '../../../http/declare/route.ts';
import { allowAny } from '../../../permissions/built-ins.ts';
import { toolOf } from '../tools/tool.ts';
import { toolRequest } from './tool-request.ts';

const facts = { permission: allowAny, summary: 'Takes some arguments', response: z.object({ ok: z.boolean() }) } as const;
class ThingController extends Controller {
  whole = route.post(
    '/whole',
    { ...facts, tool: { arguments: { body: 'values' } }, body: z.record(z.string(), z.string()), auth: [] },
    () => ({ ok: true }),
  );
}
const notes = model('notes', { id: t.uuidv7().pk(), title: t.text(50) });
class NoteController extends CrudController(resource(notes, { unscoped: true }), {
  permission: allowAny,
  filters: { title: ['contains'] },
  page: { default: 50, max: 100 },
  operations: { list: { tool: true }, query: { tool: { arguments: { 'query.limit': 'url_limit' } } } },
}) {}
const { routes } = createApp({
  database: 'sqlite::memory:',
  mount: { '/v1': { '/things': ThingController, '/notes': NoteController } },
  log: { level: 'silent' },
});

const requestOf = (operation: string, given: Readonly<Record<string, unknown>>) => {
  const found = routes.find(({ operationId }) => operationId === operation);
  if (found === undefined) throw new Error(operation);
  return toolRequest(toolOf(found), given);
};

test('`next` of a page, as it is, is a cursor; its parameters count where the call does not give them', () => {
  const next = '?cursor=A_b-1.next&title__contains=a%26b&limit=5&fields=id,title';
  expect(requestOf('note_list', { cursor: next }).url).toBe(`/v1/notes${next}`);
  expect(requestOf('note_list', { cursor: next, limit: 7, fields: ['id'] }).url).toBe(
    '/v1/notes?limit=7&fields=id&cursor=A_b-1.next&title__contains=a%26b',
  );
  expect(requestOf('note_query', { cursor: '?cursor=A_b-1&limit=5', where: {} }).url).toBe('/v1/notes?cursor=A_b-1&limit=5');
  expect(requestOf('note_list', { cursor: 'A_b-1' }).url).toBe('/v1/notes?cursor=A_b-1&limit=20');
  // What no page is, is a wrong cursor: nothing of it gets into the URL.
  expect(requestOf('note_list', { cursor: '?cursor=a#b c' }).url).toBe('/v1/notes?cursor=%3Fcursor%3Da%23b%20c&limit=20');
});

test('a cursor or a list as large as a body may be is put into the URL, in little time', () => {
  const [pages, values] = ['cursor=&'.repeat(100_000), Array.from({ length: 300_000 }, () => 'a')];
  const started = performance.now();
  expect(requestOf('note_list', { cursor: `?${pages}` }).url.length).toBeGreaterThan(pages.length);
  expect(requestOf('note_list', { cursor: `?${pages}#` }).url.length).toBeGreaterThan(pages.length);
  expect(requestOf('note_list', { title__contains: values }).url.length).toBeGreaterThan(values.length);
  // An expression that looked for the cursor took minutes.
  expect(performance.now() - started).toBeLessThan(20_000);
});

test('the number of rows that a call gives is not replaced by the default, in whichever part it is', () => {
  expect(requestOf('note_query', { limit: 1 })).toMatchObject({ url: '/v1/notes', body: { limit: 1 } });
  expect(requestOf('note_query', { url_limit: 2 })).toMatchObject({ url: '/v1/notes?limit=2', body: {} });
  expect(requestOf('note_query', {})).toMatchObject({ url: '/v1/notes?limit=20', body: {} });
});

test('a body that is one argument is missing without it', () => {
  expect(requestOf('thing_whole', { values: {} }).body).toEqual({});
  expect(requestOf('thing_whole', {}).body).toBeUndefined();
});
