import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LoadFailure } from '../src/document/load-failure.ts';
import { parseFile, toDocumentTable } from '../src/document/formats.ts';
import { startCli } from './cli-server.ts';
import { exchange } from './http-exchange.ts';
import { folderWith, serverToml, TOKENS } from './served-folder.ts';

const tokens = [
  '{',
  '}',
  '[',
  ']',
  '[[',
  ']]',
  '"',
  '"""',
  "'",
  ':',
  '- ',
  '? ',
  '|',
  '>',
  '&a',
  '*a',
  '<<: ',
  '!!',
  '!!binary',
  '=',
  ',',
  '#',
  '\n',
  '\t',
  '\\u',
  '\\x',
  '.',
  '%YAML 1.1\n',
  '---\n',
  '...',
  'null',
  'true',
  '0x',
  '1e999',
  '-0',
  'nan',
  'inf',
  '2026-01-01T00:00:00Z',
  'billing',
  '\u0000',
  '\ufeff',
  '💥',
  '__proto__',
];
const soup = fc.array(fc.oneof(fc.constantFrom(...tokens), fc.string({ maxLength: 4 })), { maxLength: 40 }).map((parts) => parts.join(''));
const bytes = fc.oneof(
  soup.map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 60 }).map((array) => Buffer.from(array)),
);

/** What reading a file's bytes says when it refuses them, or undefined. An error that is not a LoadFailure passes through. */
function refusalOf(name: string, content: Buffer): string | undefined {
  try {
    JSON.stringify(toDocumentTable(parseFile(name, content, 'file f'), 'file f'));
    return undefined;
  } catch (error) {
    if (error instanceof LoadFailure) return error.message;
    throw error;
  }
}

test('whatever a file holds, reading it gives a document or a LoadFailure that quotes no value of it', { timeout: 900_000 }, () => {
  fc.assert(
    fc.property(fc.constantFrom('f.toml', 'f.yaml', 'f.json'), bytes, (name, content) => {
      const value = Buffer.from(' = "x9canary9x" : "x9canary9x" x9canary9x\n');
      expect(refusalOf(name, content) ?? '').not.toMatch(/\n/);
      expect(refusalOf(name, Buffer.concat([content, value, content])) ?? '').not.toContain('x9canary9x');
    }),
    { numRuns: 50_000 },
  );
});

const deep = (open: string, close: string, depth = 50_000): string => open.repeat(depth) + close.repeat(depth);

/** Contents chosen to hurt: depth, expansion, size, encodings, and things that are not files. */
const nasty: readonly [name: string, content: string | Buffer][] = [
  ['billing.json', deep('[', ']')],
  ['billing.json', deep('{"a":', '}').replace(':}', ':1}')],
  ['billing.toml', `[billing]\na = ${deep('[', ']')}`],
  ['billing.toml', `[billing]\na${'.a'.repeat(20_000)} = 1`],
  ['billing.toml', `[billing${'.a'.repeat(20_000)}]`],
  ['billing.yaml', deep('[', ']')],
  ['billing.yaml', `${Array.from({ length: 5_000 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n')} 1`],
  [
    'billing.yaml',
    `a0: &a0 [x]\n${Array.from({ length: 30 }, (_, level) => `a${level + 1}: &a${level + 1} [*a${level},*a${level},*a${level},*a${level}]`).join('\n')}`,
  ],
  ['billing.yaml', 'billing: &loop\n  a: *loop\n'],
  ['billing.yaml', 'billing:\n  ? {complex: key}\n  : 1\n  ? [list, key]\n  : 2\n'],
  ['billing.yaml', 'billing: !!js/function "function(){}"\n'],
  ['billing.yaml', 'a: 1\n---\nb: 2\n'],
  ['billing.yaml', 'billing: {<<: {a: 1}, __proto__: {b: 2}}\n'],
  ['billing.toml', `[billing]\n${'"""'.repeat(3_000)}`],
  ['billing.toml', `[billing]\na = "${'x'.repeat(5_000_000)}"`],
  ['billing.toml', `[billing]\na = ${'9'.repeat(100_000)}`],
  ['billing.toml', '[billing]\na = 1e999999999\nb = nan\nc = -inf'],
  ['billing.json', `{"billing": {"a": ${'9'.repeat(100_000)}}}`],
  ['billing.json', '{"billing": {"a": 1, "a": 2, "__proto__": {"x": 1}}}'],
  ['billing.json', `{"billing": {"\\ud800": "\\udfff"}}`],
  ['billing.json', Buffer.from([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00])],
  ['billing.json', ''],
  ['billing.toml', '\0'.repeat(1_000)],
  ['billing.toml', randomBytes(100_000)],
];

test('no file content and no kind of file ends the process or the reads', { timeout: 900_000 }, async () => {
  const names = ['billing.toml', 'billing.yaml', 'billing.json'];
  const good = { 'billing.toml': '[billing]\nsteady = true\n', 'billing.yaml': '', 'billing.json': '{}' };
  const sections = [{ application: 'billing', profile: 'production', files: names }];
  const folder = await folderWith({ ...good, 'server.toml': serverToml(sections, 'watch_debounce_ms = 1') });
  const server = await startCli(join(folder, 'server.toml'), { nodeArgs: ['--max-old-space-size=256'] });
  let over = false;
  void server.exited.then(() => (over = true));
  const settle = async (): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 25));
    const { status } = await exchange(server.url, '/billing/production', { token: TOKENS.billing });
    expect(status).toBe(200);
    const check = await exchange(server.url, '/billing/production/check', { token: TOKENS.billing });
    expect(check.status).toBe(200);
    expect(over).toBe(false);
  };
  for (const [name, content] of nasty) {
    await writeFile(join(folder, name), content);
    await settle();
    await writeFile(join(folder, name), good[name as keyof typeof good]);
  }
  for (const content of fc.sample(bytes, { numRuns: 150, seed: 7 })) {
    const name = names[content.length % names.length] ?? '';
    await writeFile(join(folder, name), content);
    await settle();
  }
  // Not a file at all: a folder, a link to itself, a link to nothing, devices, a pipe.
  const path = join(folder, 'billing.yaml');
  const replacements = [
    () => mkdir(path),
    () => symlink(path, path),
    () => symlink(join(folder, 'gone'), path),
    () => symlink('/dev/null', path),
    () => symlink('/dev/zero', path),
    async () => void execFileSync('mkfifo', [path]),
  ];
  for (const replace of replacements) {
    await rm(path, { recursive: true, force: true });
    await replace();
    await settle();
  }
  await rm(path, { recursive: true, force: true });
  for (const name of names) {
    await writeFile(join(folder, 'new'), name === 'billing.toml' ? '[billing]\nrecovered = true\n' : good[name as keyof typeof good]);
    await rename(join(folder, 'new'), join(folder, name));
  }
  await expect
    .poll(async () => (await exchange(server.url, '/billing/production', { token: TOKENS.billing })).body, { timeout: 10_000 })
    .toBe('{"recovered":true}');
  expect((await exchange(server.url, '/readyz')).status).toBe(200);
});
