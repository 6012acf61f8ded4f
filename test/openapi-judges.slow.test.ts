import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runScript } from './clients/run-script.ts';
import { unaccepted } from './openapi-judges/accepted.ts';
import { installJudges } from './openapi-judges/install.ts';
import { ordersDocument } from './openapi-judges/orders-document.ts';

const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'kit-judges-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

// The linters and a generator as libraries, in one process: a third of the time of their programs. `npm run test:long` has all judges and both documents.
test('the document of the orders example is accepted by redocly, spectral and openapi-typescript, whose types are strict TypeScript', async (context) => {
  const judges = await installJudges(join(import.meta.dirname, 'openapi-judges/quick')).catch((error: unknown) => {
    if (process.env['KIT_REQUIRE_JUDGES'] === '1') throw error;
    return undefined;
  });
  if (judges === undefined) {
    context.skip('The linters are not installed, and npm does not reach its registry.');
    return;
  }
  const [file, types] = [join(folder, 'orders.json'), join(folder, 'types.ts')];
  writeFileSync(file, await ordersDocument(folder));
  const script = join(import.meta.dirname, 'openapi-judges/quick/judge.ts');
  const { code, stdout, stderr } = await runScript(process.execPath, [script, judges, file, types], folder, { NODE_OPTIONS: '' });
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  const { redocly, spectral } = JSON.parse(stdout) as { readonly redocly: string[]; readonly spectral: string[] };
  expect([unaccepted(redocly), unaccepted(spectral)]).toEqual([[], []]);
  const options = '--noEmit --ignoreConfig --strict --target es2022 --module esnext --moduleResolution bundler'.split(' ');
  const checked = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...options, types], { encoding: 'utf8' });
  expect(checked.stdout).toBe('');
});
