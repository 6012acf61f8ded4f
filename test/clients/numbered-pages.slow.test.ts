import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allowAny } from 'kit';
import { CrudController, resource } from 'kit/crud';
import { createTable, insertMany, migration, model, t } from 'kit/db';
import { generateClient } from 'kit/openapi';
import { testApp, type TestApp } from 'kit/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runScript } from './run-script.ts';

const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, sys; assert sys.version_info >= (3, 11)']).status === 0,
);
const FIVE_MINUTES = 300_000;

const books = model('books', { id: t.uuidv7().pk(), title: t.text(20), number: t.int() });
class BookController extends CrudController(resource(books, { unscoped: true }), {
  permission: allowAny,
  page: { style: 'page', default: 50, max: 100 },
  ordering: { by: ['number'], default: ['number'] },
  filters: { number: ['gt'] },
}) {}

const folder = mkdtempSync(join(tmpdir(), 'kit-numbered-'));
let app: TestApp;
let url: string;

beforeAll(async () => {
  app = await testApp({
    modules: [{ name: 'books', models: [books], migrations: [migration('0001_initial', [createTable('books', books.columns)])] }],
    mount: { '/v1': { '/books': BookController } },
  });
  await insertMany(
    app.app.db,
    books,
    Array.from({ length: 120 }, (_, index) => ({ title: `book ${index}`, number: index })),
  );
  url = await app.listen();
  for (const [language, file] of [
    ['typescript', 'api.ts'],
    ['python', 'api.py'],
  ] as const)
    writeFileSync(join(folder, file), generateClient(app.app.routes, { language, title: 'Books', version: '1' }));
});
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The numbers of the items that follow, with and without a page to begin at and a size. */
const EXPECTED = [
  [120, 0, 119],
  [120, 0, 119],
  [70, 50, 119],
  [20, 100, 119],
  [0, null, null],
  [100, 20, 119],
];

test('all() of the TypeScript client follows the numbers of pages to the last one', async () => {
  let requests = 0;
  // oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler
  const { createClient }: any = await import(join(folder, 'api.ts'));
  const counted = (...args: Parameters<typeof fetch>) => {
    requests += 1;
    return fetch(...args);
  };
  const client = createClient({ baseUrl: url, fetch: counted });
  const found = [];
  for (const args of [undefined, { page_size: 1_000 }, { page: 2 }, { page: 3 }, { page: 9 }, { number__gt: 19, page_size: 20 }]) {
    const items: { readonly number: number }[] = [];
    for await (const item of client.book.all(args)) items.push(item);
    found.push([items.length, items[0]?.number ?? null, items.at(-1)?.number ?? null]);
  }
  expect(found).toEqual(EXPECTED);
  requests = 0;
  for await (const _item of client.book.all());
  expect(requests).toBe(3);
});

test('all() of the Python client does the same', { timeout: FIVE_MINUTES }, async (context) => {
  context.skip(PYTHON === undefined && process.env['KIT_REQUIRE_PYTHON'] === undefined, 'Python with httpx is not installed');
  const script = `import asyncio, json, os, api
given = [{}, {"page_size": 1000}, {"page": 2}, {"page": 3}, {"page": 9}, {"number__gt": 19, "page_size": 20}]
ends = lambda items: [len(items), items[0].number if items else None, items[-1].number if items else None]
client = api.Client(os.environ["URL"])
print(json.dumps([ends(list(client.book.all(**args))) for args in given]))

async def main() -> None:
    async with api.AsyncClient(os.environ["URL"]) as own:
        print(json.dumps([ends([each async for each in own.book.all(**args)]) for args in given]))

asyncio.run(main())
`;
  writeFileSync(join(folder, 'main.py'), script);
  const { stdout, stderr } = await runScript(PYTHON!, ['main.py'], folder, { URL: url });
  expect([
    stderr,
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ]).toEqual(['', [EXPECTED, EXPECTED]]);
});
