import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { FILES, SERVER_TOML, TOKEN, writeFiles } from '../../test/running-server.ts';
import { runProgram } from '../../test/program-runs.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../../..');

async function types(...args: readonly string[]): Promise<{ code: number; printed: string }> {
  const { status, printed } = await runProgram('cli/types-main.ts', args);
  return { code: status, printed };
}

test('config-types writes types that compile, notices that they are out of date, and prints no value', { timeout: 600_000 }, async () => {
  const folder = await temporaryFolder();
  await writeFiles(folder, { ...FILES, 'server.toml': SERVER_TOML });
  const [toml, out] = [join(folder, 'server.toml'), join(folder, 'types')];
  expect(await types(toml, '--out', out)).toEqual({ code: 0, printed: `config-types: 4 of 4 files written to ${out}\n` });
  expect(readdirSync(out).sort()).toEqual(['billing.schema.json', 'billing.ts', 'orders.schema.json', 'orders.ts']);
  expect(await types(toml, '--out', out)).toEqual({ code: 0, printed: `config-types: 0 of 4 files written to ${out}\n` });
  expect(await types(toml, '--out', out, '--check')).toEqual({ code: 0, printed: '' });
  const written = readdirSync(out)
    .map((name) => readFileSync(join(out, name), 'utf8'))
    .join('\n');
  expect(written).not.toMatch(/correct horse|invoices/);
  expect(written).not.toContain(TOKEN);

  const program = join(folder, 'program.ts');
  writeFileSync(
    program,
    `import type { Billing } from './types/billing.ts';
declare const billing: Billing;
export const size: number = billing.pool.maxSize;
// @ts-expect-error -- there is no such key
export const none = billing.pool.minSize;
`,
  );
  const flags = ['--noEmit', '--strict', '--allowImportingTsExtensions', '--module', 'nodenext', '--target', 'es2024', '--types', ''];
  await run(join(root, 'node_modules/.bin/tsc'), [...flags, program], { cwd: folder });

  writeFileSync(join(folder, 'billing.toml'), '[billing]\nadded = 1\n');
  expect(await types(toml, '--out', out, '--check')).toEqual({
    code: 1,
    printed: ['billing.ts', 'billing.schema.json']
      .map((name) => `config-types: ${join(out, name)} is out of date; run config-types without --check\n`)
      .join(''),
  });
  writeFileSync(join(folder, 'billing.toml'), '[billing\nsecret = "canary-value"\n');
  const refused = await types(toml, '--out', out);
  expect(refused.code).toBe(1);
  expect(refused.printed).toMatch(/^config-types: .*section billing\/prod cannot load: file billing\.toml: the file is not valid TOML/);
  expect(refused.printed).not.toContain('canary');
  expect((await types(toml)).code).toBe(2);
  expect((await types(toml, '--out', join(folder, 'server.toml'))).code).toBe(1);
  const { stdout } = await run(process.execPath, [
    '--conditions=source',
    join(import.meta.dirname, '../../bin/config-types.js'),
    '--version',
  ]);
  expect(stdout).toMatch(/^\d+\.\d+\.\d+/);
});
