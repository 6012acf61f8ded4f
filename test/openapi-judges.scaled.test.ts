import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openApiDocument } from '../packages/kit/src/openapi/document.ts';
import { runScript } from './clients/run-script.ts';
import { kitchenSink } from './kitchen-sink/app.ts';
import { installJudges } from './openapi-judges/install.ts';
import { ordersDocument } from './openapi-judges/orders-document.ts';
import { unaccepted } from './openapi-judges/accepted.ts';

// All judges and both documents: `npm run test:long`. `npm test` has the quick ones, see openapi-judges.slow.test.ts.
const isLong = process.env['KIT_TEST_LONG'] === '1';
const FIFTEEN_MINUTES = 900_000;

const folder = mkdtempSync(join(tmpdir(), 'kit-judges-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const node = (cwd: string, ...args: string[]) => runScript(process.execPath, args, cwd, { NODE_OPTIONS: '', CI: '1' });

function sinkDocument(): string {
  const app = kitchenSink({ folder: join(folder, 'uploads') });
  const { title, version, description } = app;
  return JSON.stringify(openApiDocument(app.routes, { title, version, description, spec: '3.1' }));
}

const DOCUMENTS: [name: string, document: () => string | Promise<string>][] = [
  ['orders', () => ordersDocument(folder)],
  ['kitchen-sink', sinkDocument],
];

describe.skipIf(!isLong).each(DOCUMENTS)('the document of %s is accepted by', (name, documentOf) => {
  let judges: string;
  const file = join(folder, `${name}.json`);
  const out = join(folder, name);
  const judge = (program: string, ...args: string[]) => node(folder, join(judges, 'node_modules/.bin', program), ...args);
  beforeAll(async () => {
    judges = await installJudges();
    writeFileSync(file, await documentOf());
    mkdirSync(out, { recursive: true });
  }, FIFTEEN_MINUTES);

  test('redocly', { timeout: FIFTEEN_MINUTES }, async () => {
    const { stdout } = await judge('redocly', 'lint', file, '--extends=recommended', '--format=json');
    const { problems } = JSON.parse(stdout.slice(stdout.indexOf('{'))) as {
      problems: { ruleId: string; message: string; location: { pointer?: string }[] }[];
    };
    expect(unaccepted(problems.map(({ ruleId, message, location }) => `${ruleId} ${message} ${location[0]?.pointer}`))).toEqual([]);
  });

  test('spectral', { timeout: FIFTEEN_MINUTES }, async () => {
    const rules = join(folder, '.spectral.yaml');
    writeFileSync(rules, 'extends: ["spectral:oas"]\n');
    const { stdout } = await judge('spectral', 'lint', file, '-r', rules, '-f', 'json');
    const problems = JSON.parse(stdout.slice(stdout.indexOf('['), stdout.lastIndexOf(']') + 1)) as {
      code: string;
      message: string;
      path: string[];
    }[];
    expect(unaccepted(problems.map(({ code, message, path }) => `${code} ${message} ${path.join('/')}`))).toEqual([]);
  });

  test('openapi-typescript, hey-api and orval, whose results are strict TypeScript', { timeout: FIFTEEN_MINUTES }, async () => {
    const results = [
      await judge('openapi-typescript', file, '-o', join(out, 'types.ts')),
      await judge('openapi-ts', '-i', file, '-o', join(out, 'hey'), '-s'),
      await judge('orval', '--input', file, '--output', join(out, 'orval.ts'), '--client', 'fetch'),
    ];
    for (const { code, stderr } of results) expect([code, stderr.slice(-2000)]).toMatchObject([0, expect.any(String)]);
    const options =
      '--noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution bundler --lib es2022,dom,dom.iterable'.split(
        ' ',
      );
    const files = ['types.ts', 'hey/index.ts', 'hey/client.gen.ts', 'orval.ts'].map((each) => join(out, each));
    expect((await judge('tsc', ...options, ...files)).stdout).toBe('');
  });
});
