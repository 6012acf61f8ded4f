import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { allowAny, Controller, filePart, multipart, route } from 'kit';
import { CrudController, resource } from 'kit/crud';
import { createTable, migration, model, t, versioned } from 'kit/db';
import { responseVersions } from 'kit/middleware';
import { generateClient } from 'kit/openapi';
import { testApp, type TestApp } from 'kit/testing';
import { scaled } from '../provision/scale.ts';
import { runScript } from './run-script.ts';

const root = join(import.meta.dirname, '../..');
const MYPY_CACHE = join(root, 'node_modules/.cache/mypy');
const FIVE_MINUTES = 300_000;
const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, mypy, sys; assert sys.version_info >= (3, 11)']).status === 0,
);

const Json: z.ZodType = z
  .lazy(() => z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(Json), z.record(z.string(), Json)]))
  .meta({ id: 'Extract' });
const Tree = z.strictObject({ value: z.union([z.string(), z.int(), z.null()]), get children() { return z.array(Tree).nullable(); } }).meta({ id: 'Tree' }); // prettier-ignore
const Odd = z
  .strictObject({
    str: z.string(),
    dict: z.record(z.string(), z.number()),
    List: z.array(z.string()),
    class: z.string(),
    'a-b': z.string().optional(),
    a_b: z.string().optional(),
    None: z.null(),
    word: z.enum(['😀', 'a"b', "it's", 'a\\b', 'line\nbreak', '', 'ü', 'a,b', '${x}', '`']),
    mixed: z.literal(['a', 1, true, null]),
    either: z
      .union([z.strictObject({ kind: z.literal('x'), at: z.iso.datetime() }), z.strictObject({ kind: z.literal('y'), tree: Tree })])
      .nullable(),
    tuple: z.tuple([z.string(), z.int()]).rest(z.boolean()),
    json: Json,
  })
  .meta({ id: 'File' });
const odd: z.infer<typeof Odd> = {
  str: 's',
  dict: { a: 1 },
  List: ['a'],
  class: 'c',
  None: null,
  word: '😀',
  mixed: null,
  either: { kind: 'y', tree: { value: null, children: [{ value: 1, children: null }] } },
  tuple: ['a', 1, true],
  json: { a: [1, null] },
};

const query = z.strictObject({
  cursor: z.string().optional(),
  'x-y': z.string().optional(),
  x_y: z.string().optional(),
  'filter[a]': z.string().optional(),
  in: z.array(z.string()).optional(),
  'a b': z.string().optional(),
  lambda: z.enum(['a,b', '😀']).optional(),
});

class ImportController extends Controller {
  static override readonly tags = ['connection'];
  list = route.get(
    '/',
    { permission: allowAny, query, response: z.strictObject({ items: z.array(Odd), next: z.string().nullable(), query: z.string() }) },
    (context) => ({
      items: [odd],
      next: context.query.cursor === undefined ? '/v1/imports?cursor=2' : null,
      query: JSON.stringify(context.query),
    }),
  );
  all = route.post('/all', { permission: allowAny, body: Odd, response: Odd, throttled: false }, ({ body }) => body);
  import = route.post(
    '/import',
    {
      permission: allowAny,
      throttled: false,
      body: multipart(
        {
          file: filePart({ bytesMax: 1000, mediaTypes: ['*/*'] }),
          tags: z.array(z.string()).optional(),
          note: z.string().optional(),
        },
        { bytesMax: 5000 },
      ),
      response: z.strictObject({ bytes: z.int(), tags: z.array(z.string()), note: z.string() }),
    },
    ({ body }) => ({ bytes: body.file.bytes.length, tags: body.tags ?? [], note: body.note ?? 'none' }),
  );
  ticks = route.stream('/ticks', { permission: allowAny, response: z.int() }, async function* () {
    yield { id: '1', data: 1 };
  });
  int = route.get('/int/:id', { permission: allowAny, response: z.string() }, ({ params }) => params.id);
}

const amounts = model('amounts', {
  id: t.uuidv7().pk(),
  kind: t.enum(['a,b', 'c', '']),
  total: t.decimal(20, 4),
  big: t.bigint(),
  ...versioned(),
});
class AmountController extends CrudController(resource(amounts, { unscoped: true, version: 'version' }), {
  permission: allowAny,
  filters: { kind: ['eq', 'in'], total: ['gte'], big: ['in'] },
}) {}

const folder = mkdtempSync(join(tmpdir(), 'kit-odd-clients-'));
let kit: TestApp;
let url: string;
// oxlint-disable-next-line typescript/no-explicit-any -- the generated client is compiled below
let api: any;

beforeAll(async () => {
  kit = await testApp({
    modules: [{ name: 'amounts', models: [amounts], migrations: [migration('0001_initial', [createTable('amounts', amounts.columns)])] }],
    middleware: [
      responseVersions({
        versions: [
          { version: '2' },
          {
            version: '1',
            changes: [{ appliesTo: ({ path }) => path.includes('amounts'), transform: ({ total, ...rest }) => ({ ...rest, sum: total }) }],
          },
        ],
        default: '1',
      }),
    ],
    mount: { '/v1': { '/imports': ImportController, '/amounts': AmountController } },
  });
  url = await kit.listen();
  for (const [language, file] of [
    ['typescript', 'api.ts'],
    ['python', 'api.py'],
  ] as const)
    // prettier-ignore
    writeFileSync(join(folder, file), generateClient(kit.app.routes, { language, title: 'odd', version: '1' }));
  api = await import(join(folder, 'api.ts'));
}, FIVE_MINUTES);
afterAll(async () => {
  await kit.close();
  rmSync(folder, { recursive: true, force: true });
});

test(
  'reserved words, odd characters and recursive types are strict TypeScript, and arrive as they were sent',
  { timeout: FIVE_MINUTES },
  async () => {
    const options =
      '--noEmit --ignoreConfig --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --noUnusedLocals --isolatedDeclarations --declaration --erasableSyntaxOnly --verbatimModuleSyntax --target es2023 --module esnext --moduleResolution bundler --lib es2023,dom,dom.iterable,dom.asynciterable';
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    expect((await runScript(process.execPath, [tsc, ...options.split(' '), join(folder, 'api.ts')], folder, {})).stdout).toBe('');
    const { import: imports, amount } = api.createClient({ baseUrl: url });
    const sent = { 'x-y': '1', x_y: '2', 'filter[a]': 'f', in: ['a,b', 'c'], 'a b': 's', lambda: 'a,b' };
    expect(JSON.parse((await imports.list(sent)).query)).toEqual(sent);
    const items = [];
    for await (const item of imports.listAll()) items.push(item);
    expect(items).toEqual([odd, odd]);
    expect(await imports.all({ body: odd })).toEqual(odd);
    const file = new Blob(['x'], { type: 'text/plain' });
    expect(await imports.import({ body: { file, tags: ['a', 'b'], note: null } })).toEqual({ bytes: 1, tags: ['a', 'b'], note: 'none' });
    for (const kind of ['a,b', 'c', '']) await amount.create({ body: { kind, total: '1234567890123456.1234', big: '9007199254740993' } });
    const { items: rows } = await amount.list({
      kind__in: ['a,b', ''],
      total__gte: '1234567890123456.1234',
      big__in: ['9007199254740993', '1'],
    });
    expect(rows).toHaveLength(2);
    expect(rows[0]).toMatchObject({ total: '1234567890123456.1234', big: '9007199254740993' });
    await amount.partialUpdate({ id: rows[0].id, body: { kind: 'c' } }, { ifMatch: rows[0] });
    await expect(amount.partialUpdate({ id: rows[0].id, body: { kind: 'c' } }, { ifMatch: rows[0] })).rejects.toMatchObject({
      status: 412,
    });
  },
);

test.skipIf(PYTHON === undefined)('… and strict Python', { timeout: FIVE_MINUTES }, async () => {
  // Cold, mypy takes a minute: `npm run test:long` asks it.
  const types = ['-m', 'mypy', '--strict', '--no-error-summary', '--cache-dir', MYPY_CACHE, 'api.py'];
  const checked = scaled(0, 1) === 0 ? { stdout: '' } : await runScript(PYTHON!, types, folder, {});
  expect(checked.stdout).toBe('');
  writeFileSync(
    join(folder, 'main.py'),
    `import json, os, api
client = api.Client(os.environ["URL"])
imports = client.import_
print(json.loads(imports.list(x_y="1", x_y_2="2", filter_a_="f", in_=["a,b", "c"], a_b="s", lambda_="a,b").query))
items = list(imports.list_all())
print(len(items), imports.all(body=api.to_dict(items[0])) == items[0], items[0].word == "\\U0001f600")
print(imports.import_(body={"file": b"xyz", "tags": ["a", "b"], "note": None}))
for id in ("", ".", ".."):
    try:
        imports.int_(id=id)
    except ValueError as error:
        print(error)
print(imports.int_(id="a/../b?c"))
row = client.amount.create(body={"kind": "a,b", "total": "1.0000", "big": "9007199254740993"})
print(row.total, row.big, len(client.amount.list(kind__in=["a,b"], limit=1).items))
print([event.data for event in api.Client(os.environ["BUSY"]).import_.ticks()])
print(api._wait_of({"retry-after": "soon"}), api._wait_of({"retry-after": "2"}))
`,
  );
  let requests = 0;
  const busy = createServer((_request, response) => {
    requests += 1;
    if (requests === 1) response.writeHead(429, { 'retry-after': '0' }).end('{}');
    else response.writeHead(200, { 'content-type': 'text/event-stream' }).end('id: 1\ndata: 7\n\n');
  });
  await new Promise<void>((listening) => busy.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void busy.close());
  const BUSY = `http://127.0.0.1:${(busy.address() as AddressInfo).port}`;
  const { stdout, stderr } = await runScript(PYTHON!, ['main.py'], folder, { URL: url, BUSY });
  expect([stderr, stdout.trim().split('\n')]).toEqual([
    '',
    [
      "{'x-y': '1', 'x_y': '2', 'filter[a]': 'f', 'in': ['a,b', 'c'], 'a b': 's', 'lambda': 'a,b'}",
      '2 True True',
      "ImportImportOutput(bytes=3, tags=['a', 'b'], note='none')",
      "id is '', which cannot be part of a URL.",
      "id is '.', which cannot be part of a URL.",
      "id is '..', which cannot be part of a URL.",
      'a/../b?c',
      '1.0000 9007199254740993 1',
      '[7]',
      'None 2.0',
    ],
  ]);
});
