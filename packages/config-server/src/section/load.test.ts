import { execFileSync } from 'node:child_process';
import { chmod, mkdir, truncate, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { writeFiles } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { variablesOf } from '../document/environment.ts';
import { explainPath } from '../document/explain.ts';
import { LoadFailure } from '../document/load-failure.ts';
import { synchronousFiles, asynchronousFiles } from '../file-access.ts';
import type { SectionDefinition } from './definition.ts';
import { loadDocument, type LoadedDocument } from './load.ts';

interface Case {
  readonly files: Readonly<Record<string, string>>;
  readonly listed?: readonly (string | { path: string; optional: boolean })[];
  readonly wholeDocument?: boolean;
  readonly schema?: string;
  readonly environment?: Record<string, string>;
}

async function load({ files, listed, wholeDocument = false, schema, environment = {} }: Case): Promise<LoadedDocument> {
  const folder = await temporaryFolder();
  await writeFiles(folder, files);
  const definition: SectionDefinition = {
    application: 'app',
    profile: 'p',
    files: (listed ?? Object.keys(files).filter((name) => name !== schema)).map((entry) =>
      typeof entry === 'string'
        ? { listed: entry, path: resolve(folder, entry), optional: false }
        : { listed: entry.path, path: resolve(folder, entry.path), optional: entry.optional },
    ),
    wholeDocument,
    envPrefix: 'APP__',
    schema: schema === undefined ? undefined : { listed: schema, path: join(folder, schema), optional: false },
  };
  return loadDocument(definition, variablesOf(environment, 'APP__'));
}

async function textOf(given: Case): Promise<string> {
  return JSON.stringify((await load(given)).document);
}

async function failureOf(given: Case): Promise<LoadFailure> {
  const failure: unknown = await load(given).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(LoadFailure);
  return failure as LoadFailure;
}

test('files merge in listed order across formats, the environment last', async () => {
  const files = { 'a.toml': '[app]\nx = 1\ny = 1\nz = 1\n', 'b.yaml': 'app: {y: 2, z: 2}\n', 'c.json': '{"app":{"z":3}}' };
  expect(await textOf({ files, environment: { APP__X: '9' } })).toBe('{"x":9,"y":2,"z":3}');
  expect(await textOf({ files, listed: ['c.json', 'b.yaml', 'a.toml'] })).toBe('{"z":1,"y":1,"x":1}');
});

test('the table of the application is served, exact in case, and what is beside it is not even looked at', async () => {
  const files = { 'a.toml': 'other = 99999999999999999\n[app]\nx = 1\n', 'b.toml': '[App]\nx = 2\n' };
  expect(await textOf({ files })).toBe('{"x":1}');
});

test('with whole_document the whole of each file is the configuration', async () => {
  expect(await textOf({ files: { 'a.toml': 'x = 1\n[app]\ny = 1\n' }, wholeDocument: true })).toBe('{"x":1,"app":{"y":1}}');
});

test('a table that no file has is a failure that names whole_document', async () => {
  const failure = await failureOf({ files: { 'a.toml': 'x = 1\n' } });
  expect([failure.kind, failure.origin]).toEqual(['missing', 'file a.toml']);
  expect(failure.message).toContain('whole_document = true');
});

test('an application key that is no table is a failure', async () => {
  for (const files of [{ 'a.toml': 'app = 1' }, { 'a.yaml': 'app: [1]' }, { 'a.json': '{"app":null}' }, { 'a.toml': 'app = 1979-05-27' }]) {
    expect(await failureOf({ files })).toMatchObject({ kind: 'parse', message: 'key app is not a table' });
  }
});

test('a missing file is a failure unless it is optional', async () => {
  const files = { 'a.toml': '[app]\nx = 1\n' };
  expect(await failureOf({ files, listed: ['a.toml', 'b.toml'] })).toMatchObject({ kind: 'missing', origin: 'file b.toml' });
  expect(
    await textOf({ files, listed: ['a.toml', { path: 'b.toml', optional: true }, { path: 'no/folder/c.toml', optional: true }] }),
  ).toBe('{"x":1}');
});

test('optional files that are all missing leave the environment, and in table mode a failure', async () => {
  const listed = [{ path: 'b.toml', optional: true }];
  expect(await textOf({ files: {}, listed, wholeDocument: true, environment: { APP__A: '1' } })).toBe('{"a":1}');
  expect(await failureOf({ files: {}, listed })).toMatchObject({ kind: 'missing' });
});

test('a file that cannot be read is an io failure', async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, 'a.toml'));
  const path = join(folder, 'a.toml');
  const definition = {
    application: 'app',
    profile: 'p',
    files: [{ listed: 'a.toml', path, optional: false }],
    wholeDocument: true,
    envPrefix: 'APP__',
    schema: undefined,
  };
  await expect(loadDocument(definition, [])).rejects.toMatchObject({
    kind: 'io',
    origin: 'file a.toml',
    message: 'the file cannot be read (EISDIR)',
  });
  await chmod(path, 0o700);
});

test('a pipe in the place of a file is an io failure at once, and a file too large to be meant is not read', async () => {
  const folder = await temporaryFolder();
  execFileSync('mkfifo', [join(folder, 'pipe.toml')]);
  await writeFile(join(folder, 'large.toml'), '');
  await truncate(join(folder, 'large.toml'), 16 * 1024 * 1024 + 1);
  for (const [name, code] of [
    ['pipe.toml', 'not a regular file'],
    ['large.toml', 'larger than 16 MiB'],
  ] as const) {
    const files = [{ listed: name, path: join(folder, name), optional: false }];
    const definition = { application: 'app', profile: 'p', files, wholeDocument: true, envPrefix: 'APP__', schema: undefined };
    for (const access of [asynchronousFiles, synchronousFiles]) {
      await expect(loadDocument(definition, [], access)).rejects.toMatchObject({
        kind: 'io',
        message: `the file cannot be read (${code})`,
      });
    }
  }
});

const SCHEMA = JSON.stringify({
  type: 'object',
  required: ['pool', 'constructor'],
  properties: {
    pool: {
      type: 'object',
      properties: { max: { type: 'integer', maximum: 10 }, kind: { enum: ['a', 'b'] } },
      additionalProperties: false,
    },
  },
});

test('a document that fits its schema is loaded', async () => {
  const files = { 'a.json': '{"app":{"pool":{"max":5,"kind":"a"},"constructor":1}}', 's.json': SCHEMA };
  expect(await textOf({ files, schema: 's.json' })).toContain('"max":5');
});

test('a document that does not fit is refused by key and keyword, without a value', async () => {
  const files = { 'a.json': '{"app":{"pool":{"max":"canary","kind":"canary","canary-key":1}}}', 's.json': SCHEMA };
  const failure = await failureOf({ files, schema: 's.json' });
  expect([failure.kind, failure.origin]).toEqual(['schema', 'schema s.json']);
  expect(failure.message).toMatch(/pool\.max fails "type"/);
  expect(failure.message).toMatch(/the document fails "required"/);
  expect(failure.message.replaceAll('canary-key', '')).not.toContain('canary');
});

test('a byte order mark is no part of a file, be it a document or a schema', async () => {
  const files = {
    'a.json': '\uFEFF{"app":{"pool":{"max":5},"constructor":1}}',
    'b.toml': '\uFEFF[app]\nx = 1\n',
    's.json': `\uFEFF${SCHEMA}`,
  };
  expect(await textOf({ files, schema: 's.json' })).toBe('{"pool":{"max":5},"constructor":1,"x":1}');
});

test('the environment is checked by the schema too', async () => {
  const files = { 'a.json': '{"app":{"pool":{"max":5},"constructor":1}}', 's.json': SCHEMA };
  expect(await failureOf({ files, schema: 's.json', environment: { APP__POOL__MAX: '11' } })).toMatchObject({ kind: 'schema' });
});

test('a schema that is missing, no JSON, of an unknown draft or beyond the validator is a failure', async () => {
  const document = '{"app":{}}';
  expect(await failureOf({ files: { 'a.json': document }, listed: ['a.json'], schema: 's.json' })).toMatchObject({
    kind: 'missing',
    origin: 'file s.json',
  });
  const pattern = '{"properties":{"a":{"pattern":"("}}}';
  for (const text of [
    '{',
    '[]',
    '{"$schema":"http://example.com/other"}',
    '{"$schema":5}',
    '{"$ref":"http://example.com/x"}',
    '{"$dynamicRef":"#a"}',
    pattern,
  ]) {
    const files = { 'a.json': '{"app":{"a":"b"}}', 's.json': text };
    expect([text, (await failureOf({ files, schema: 's.json' })).kind]).toEqual([text, 'schema']);
  }
});

test('explanations follow the merge: a later scalar takes away what earlier files said below it', async () => {
  const files = { 'a.toml': '[app.pool]\nmax = 1\n', 'b.toml': '[app]\npool = 5\n', 'c.toml': '[app.pool]\nmin = 1\n' };
  const { layers, document } = await load({ files });
  expect(JSON.stringify(document)).toBe('{"pool":{"min":1}}');
  expect(explainPath(layers, ['pool', 'max'])).toMatchObject({ winner: null });
  expect(explainPath(layers, ['pool', 'min']).rows[0]).toEqual({ layer: 'file', origin: 'file c.toml', value: '***' });
  expect(explainPath(layers, ['pool']).rows[0]).toEqual({
    layer: 'file',
    origin: 'file c.toml',
    value: '***',
    shadows: ['file a.toml', 'file b.toml'],
  });
});

test('a JSON object in a variable answers for the keys in it and for no others', async () => {
  const { layers } = await load({ files: { 'a.toml': '[app.pool]\nmax = 1\nmin = 1\n' }, environment: { APP__POOL: '{"max":2}' } });
  expect(explainPath(layers, ['pool', 'max'])).toMatchObject({ winner: 'environment' });
  expect(explainPath(layers, ['pool', 'min'])).toMatchObject({ winner: 'file' });
});

test('what a JSON object in a variable puts in the place of a table has nothing below it, whatever the files say', async () => {
  const files = { 'a.toml': '[app.a.pool]\nmax = 1\n[app.a.list]\nx = 1\n' };
  const { layers, document } = await load({ files, environment: { APP__A: '{"pool":null,"list":[1]}' } });
  expect(JSON.stringify(document)).toBe('{"a":{"pool":null,"list":[1]}}');
  const nothing = {
    winner: null,
    rows: [
      { origin: null, value: null },
      { origin: null, value: null },
    ],
  };
  for (const path of [
    ['a', 'pool', 'max'],
    ['a', 'list', 'x'],
    ['a', 'pool', 'max', 'deeper'],
  ])
    expect([path, explainPath(layers, path)]).toMatchObject([path, nothing]);
  expect(explainPath(layers, ['a', 'pool'])).toMatchObject({ winner: 'environment' });
});
