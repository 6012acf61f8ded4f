import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InfiniteQueryObserver, MutationObserver, QueryClient, QueryObserver } from '@tanstack/query-core';
import { allowAny } from 'kit';
import { CrudController, resource } from 'kit/crud';
import { createTable, insertMany, migration, model, t, versioned } from 'kit/db';
import { generateClient } from 'kit/openapi';
import { testApp, type TestApp } from 'kit/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { generateTanstack } from '../../packages/kit/src/openapi/clients/generate-client.ts';

const root = join(import.meta.dirname, '../..');
const FIVE_MINUTES = 300_000;

const notes = model('notes', { id: t.uuidv7().pk(), text: t.text(20), number: t.int(), ...versioned() });
const policy = resource(notes, { unscoped: true, version: 'version' });
class NoteController extends CrudController(policy, {
  permission: allowAny,
  page: { style: 'cursor', default: 2, max: 10 },
  ordering: { by: ['number'], default: ['number'] },
  filters: { number: ['gt'] },
  live: true,
}) {}
class PageController extends CrudController(policy, { permission: allowAny, page: { style: 'page', default: 2, max: 10 } }) {}

const folder = mkdtempSync(join(tmpdir(), 'kit-tanstack-'));
let app: TestApp;
let url: string;
// oxlint-disable-next-line typescript/no-explicit-any -- the generated files are not known to the compiler
type Generated = any;
let [api, helpers]: Generated[] = [];

beforeAll(async () => {
  app = await testApp({
    modules: [{ name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('notes', notes.columns)])] }],
    mount: { '/v1': { '/notes': NoteController, '/pages': PageController } },
  });
  await insertMany(
    app.app.db,
    notes,
    Array.from({ length: 5 }, (_, index) => ({ text: `note ${index}`, number: index })),
  );
  url = await app.listen();
  const options = { title: 'Notes', version: '1' };
  writeFileSync(join(folder, 'api.ts'), generateClient(app.app.routes, { language: 'typescript', ...options }));
  writeFileSync(join(folder, 'api.tanstack.ts'), generateTanstack(app.app.routes, './api.ts', options));
  api = await import(join(folder, 'api.ts'));
  helpers = await import(join(folder, 'api.tanstack.ts'));
}, FIVE_MINUTES);
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

const numbersOf = (page: Generated): number[] => page.items.map(({ number }: { number: number }) => number);

test('infinite lists follow cursors and numbers to the last page, and no further', async () => {
  const { connection } = api.createClient({ baseUrl: url });
  for (const [options, last] of [
    [helpers.noteListInfiniteQuery(connection), 3],
    [helpers.pageListInfiniteQuery(connection, { page_size: 2 }), 3],
    [helpers.noteQueryAliasInfiniteQuery(connection, { body: { fields: ['number'] } }), 3],
    [helpers.noteListInfiniteQuery(connection, { number__gt: 2 }), 1],
  ]) {
    const observer = new InfiniteQueryObserver(new QueryClient(), options);
    let result: Generated = await observer.fetchOptimistic(observer.options);
    const close = observer.subscribe(() => undefined);
    while (result.hasNextPage) result = await observer.fetchNextPage();
    expect(result.data.pages).toHaveLength(last);
    const all = result.data.pages.flatMap(numbersOf);
    expect(all.toSorted()).toEqual(last === 1 ? [3, 4] : [0, 1, 2, 3, 4]);
    close();
  }
});

test('a change is shown before its response, is sent with If-Match, and is undone where the server rejects it', async () => {
  const seen = Promise.withResolvers<void>();
  // The first change is sent when the test has seen it in the cache: a fast rejection would undo it before.
  const fetchWhenSeen: typeof fetch = async (input, init) => {
    if (init?.method === 'PATCH') await seen.promise;
    return fetch(input, init);
  };
  const { connection } = api.createClient({ baseUrl: url, fetch: fetchWhenSeen });
  const cache = new QueryClient();
  const list = helpers.noteListQuery(connection, { limit: 1 });
  const { items } = await cache.fetchQuery<Generated>(list);
  const [note] = items;
  const shown = () => cache.getQueryData<Generated>(list.queryKey).items[0];
  const record = helpers.noteRetrieveQuery(connection, { id: note.id });
  await cache.fetchQuery<Generated>(record);

  const mutation = new MutationObserver<Generated, Error, Generated, Generated>(
    cache,
    helpers.notePartialUpdateMutation(connection, cache),
  );
  const sent = mutation.mutate({ id: note.id, body: { text: 'changed', secret: 1 }, ifMatch: note });
  await expect.poll(() => shown().text).toBe('changed');
  expect([cache.getQueryData<Generated>(record.queryKey).text, 'secret' in shown()]).toEqual(['changed', false]);
  seen.resolve();
  // The API has no such field: everything is as it was.
  await expect(sent).rejects.toMatchObject({ code: 'validation_error' });
  expect(shown()).toBe(note);

  const updated = await mutation.mutate({ id: note.id, body: { text: 'second' }, ifMatch: note });
  expect([updated.text, updated.version]).toEqual(['second', note.version + 1]);
  expect(cache.getQueryState(list.queryKey)?.isInvalidated).toBe(true);
  await expect(mutation.mutate({ id: note.id, body: { text: 'third' }, ifMatch: note })).rejects.toMatchObject({ status: 412 });
  expect((await cache.fetchQuery<Generated>({ ...list, staleTime: 0 })).items[0].text).toBe('second');
});

test('a live list in the cache changes with the rows, is not begun again by a change, and ends with its last observer', async () => {
  const signals: AbortSignal[] = [];
  const watched: typeof fetch = (input, init) => {
    if (new Headers(init?.headers).get('accept') === 'text/event-stream') signals.push(init!.signal!);
    return fetch(input, init);
  };
  const { connection, note } = api.createClient({ baseUrl: url, fetch: watched });
  const cache = new QueryClient();
  const observer = new QueryObserver<Generated>(cache, helpers.noteListLiveQuery(connection, cache, { number__gt: 100 }));
  const close = observer.subscribe(() => undefined);
  const shown = () => observer.getCurrentResult().data?.map(({ text }: { text: string }) => text);
  await expect.poll(shown).toEqual([]);
  const creating = new MutationObserver<Generated, Error, Generated, Generated>(cache, helpers.noteCreateMutation(connection, cache));
  const second = await creating.mutate({ body: { text: 'second', number: 102 } });
  await creating.mutate({ body: { text: 'first', number: 101 } });
  await expect.poll(shown).toEqual(['first', 'second']);
  await note.destroy({ id: second.id });
  await expect.poll(shown).toEqual(['first']);
  expect([signals.length, signals[0]?.aborted]).toEqual([1, false]);
  close();
  expect(signals[0]?.aborted).toBe(true);
  for await (const { id } of note.all({ number__gt: 100 })) await note.destroy({ id });
});

test('the helpers are strict TypeScript for the hooks of React, and import nothing but the client', { timeout: FIVE_MINUTES }, () => {
  const text = generateTanstack(app.app.routes, './api.ts', { title: 'Notes', version: '1' });
  expect(text.match(/^import .* from "(.*)";$/gm)).toHaveLength(1);
  writeFileSync(
    join(folder, 'use.ts'),
    `import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { createClient } from './api.ts';
import { keys, noteCreateMutation, noteListInfiniteQuery, noteListLiveQuery, noteListQuery, notePartialUpdateMutation } from './api.tanstack.ts';
const { connection } = createClient();
export function useNotes(): void {
  const cache = useQueryClient();
  const { data } = useQuery(noteListQuery(connection, { fields: ['text'] }));
  const text: string | undefined = data?.items[0]?.text;
  // @ts-expect-error Not among the fields.
  void data?.items[0]?.number;
  const pages = useInfiniteQuery(noteListInfiniteQuery(connection));
  const number: number | undefined = pages.data?.pages[0]?.items[0]?.number;
  const live = useQuery(noteListLiveQuery(connection, cache, { number__gt: 1, fields: ['text'] }));
  const shown: string | undefined = live.data?.[0]?.text;
  // @ts-expect-error Not among the fields.
  void live.data?.[0]?.number;
  const { mutate } = useMutation(notePartialUpdateMutation(connection, cache));
  mutate({ id: 'x', body: { text: 'a' } });
  // @ts-expect-error There is no such field.
  mutate({ id: 'x', body: { txt: 'a' } });
  const { mutateAsync } = useMutation(noteCreateMutation(connection, cache));
  void mutateAsync({ body: { text: 'a', number: 1 } }).then((note) => note.id.length);
  void cache.invalidateQueries({ queryKey: keys.note });
  void [text, number, shown];
}
`,
  );
  const paths = { '@tanstack/*': [join(root, 'node_modules/@tanstack/*')], react: [join(root, 'node_modules/@types/react')] };
  const compilerOptions = {
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noUnusedLocals: true,
    isolatedDeclarations: true,
    declaration: true,
    erasableSyntaxOnly: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    target: 'es2023',
    module: 'esnext',
    moduleResolution: 'bundler',
    lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'],
    types: [],
    paths,
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts', 'api.tanstack.ts'] }));
  const checked = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder], { encoding: 'utf8' });
  expect(checked.stdout).toBe('');
});
