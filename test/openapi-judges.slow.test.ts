import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openApiDocument } from '../packages/kit/src/openapi/document.ts';
import { startDesk } from '../packages/kit/test/crud/desk.ts';

/** The judges are installed when they are asked for: together they are larger than everything else a clone needs. */
const JUDGES = [
  '@redocly/cli@2.77.0',
  '@stoplight/spectral-cli@6.16.3',
  'orval@7.13.2',
  '@hey-api/openapi-ts@0.95.0',
  'openapi-typescript@7.13.0',
  'typescript@5.9.3',
];
const isWanted = process.env['KIT_REQUIRE_JUDGES'] !== undefined || process.env['KIT_TEST_LONG'] !== undefined;
const FIFTEEN_MINUTES = 900_000;
const BYTES_MAX = 130_000;

/** Warnings that stay, each with its reason. */
const ACCEPTED: Readonly<Record<string, string>> = {
  'info-license': 'The licence of an API is a decision of its author, and `info` has no place for "none".',
  'info-contact': 'So is whom to ask.',
};

const folder = mkdtempSync(join(tmpdir(), 'kit-judges-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(command: string, args: readonly string[], cwd = folder): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, NODE_OPTIONS: '', npm_config_loglevel: 'error', CI: '1' } });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.once('error', reject);
    child.once('exit', (code) => resolve({ code, stdout, stderr }));
  });
}

const judge = (name: string, ...args: string[]) => run(process.execPath, [join(folder, 'node_modules/.bin', name), ...args]);

async function ordersDocument(): Promise<string> {
  const root = join(import.meta.dirname, '..');
  const file = join(folder, 'orders.json');
  const { code, stderr } = await run(
    process.execPath,
    ['--conditions=source', join(root, 'packages/kit/bin/kit.js'), 'openapi', '--spec', '3.1', '--out', file],
    join(root, 'examples/orders'),
  );
  if (code !== 0) throw new Error(stderr);
  return readFileSync(file, 'utf8');
}

async function deskDocument(): Promise<string> {
  const desk = await startDesk();
  try {
    return JSON.stringify(openApiDocument(desk.app.routes, { title: 'Desk', version: '1', spec: '3.1' }));
  } finally {
    await desk.close();
  }
}

test('the document of the orders example has at most 130 kB', async () => {
  const compact = JSON.stringify(JSON.parse(await ordersDocument()));
  expect(Buffer.byteLength(compact)).toBeLessThanOrEqual(BYTES_MAX);
});

describe.skipIf(!isWanted).each([
  ['the orders example', ordersDocument],
  ['an application with every feature of generic CRUD', deskDocument],
])('the document of %s is accepted by', (name, documentOf) => {
  const file = `${name.replaceAll(/\W+/g, '-')}.json`;
  const target = (part: string) => join(folder, `${file}.${part}`);
  beforeAll(async () => {
    writeFileSync(join(folder, file), await documentOf());
    if (existsSync(join(folder, 'node_modules'))) return;
    writeFileSync(join(folder, 'package.json'), '{"private":true}');
    const { code, stderr } = await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', ...JUDGES]);
    if (code !== 0) throw new Error(stderr);
  }, FIFTEEN_MINUTES);

  const rest = (found: readonly string[]) => found.filter((line) => ACCEPTED[line.split(' ')[0]!] === undefined);

  test('redocly', { timeout: FIFTEEN_MINUTES }, async () => {
    const { stdout } = await judge('redocly', 'lint', file, '--extends=recommended', '--format=json');
    const { problems } = JSON.parse(stdout.slice(stdout.indexOf('{'))) as {
      problems: { ruleId: string; message: string; location: { pointer?: string }[] }[];
    };
    expect(rest(problems.map(({ ruleId, message, location }) => `${ruleId} ${message} ${location[0]?.pointer}`))).toEqual([]);
  });

  test('spectral', { timeout: FIFTEEN_MINUTES }, async () => {
    writeFileSync(join(folder, '.spectral.yaml'), 'extends: ["spectral:oas"]\n');
    const { stdout } = await judge('spectral', 'lint', file, '-r', '.spectral.yaml', '-f', 'json');
    const problems = JSON.parse(stdout.slice(stdout.indexOf('['), stdout.lastIndexOf(']') + 1)) as {
      code: string;
      message: string;
      path: string[];
    }[];
    expect(rest(problems.map(({ code, message, path }) => `${code} ${message} ${path.join('/')}`))).toEqual([]);
  });

  test('openapi-typescript, hey-api and orval, whose results are strict TypeScript', { timeout: FIFTEEN_MINUTES }, async () => {
    mkdirSync(target('out'), { recursive: true });
    const results = [
      await judge('openapi-typescript', file, '-o', join(target('out'), 'types.ts')),
      await judge('openapi-ts', '-i', file, '-o', join(target('out'), 'hey'), '-s'),
      await judge('orval', '--input', file, '--output', join(target('out'), 'orval.ts'), '--client', 'fetch'),
    ];
    for (const { code, stderr } of results) expect([code, stderr.slice(-2000)]).toMatchObject([0, expect.any(String)]);
    const options =
      '--noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution bundler --lib es2022,dom,dom.iterable'.split(
        ' ',
      );
    const files = ['types.ts', 'hey/index.ts', 'hey/client.gen.ts', 'orval.ts'].map((each) => join(target('out'), each));
    expect((await judge('tsc', ...options, ...files)).stdout).toBe('');
  });
});
