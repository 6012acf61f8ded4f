import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KitProgram } from '../packages/kit/test/cli/kit-program.ts';
import { root } from './architecture/module-graph.ts';

let folder = '';
let program: KitProgram;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-plugin-'));
  program = new KitProgram(folder);
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(
    join(folder, 'kit.config.ts'),
    `import { createApp } from 'kit';
import { featureFlags } from 'example-feature-flags';
export default createApp({ database: 'sqlite:./app.db', modules: [featureFlags({ flags: { new_checkout: 'The new checkout' } })], mount: {} });
`,
  );
});
afterAll(async () => {
  await program.close();
  await rm(folder, { recursive: true, force: true });
});

test('the commands, migrations and settings of a plugin from another package are those of the kit program', async () => {
  expect((await program.run(['--help'])).stdout).toMatch(/Commands of feature_flags:\n +flags +list feature flags/);
  expect((await program.run(['migrate'])).stdout).toContain('feature_flags/0001_initial');
  expect(await program.run(['flags', 'set', 'new_checkout', '25'])).toMatchObject({
    code: 0,
    stdout: 'new_checkout is on for 25 % of the users.\n',
  });
  expect((await program.run(['flags', 'set', 'new_checkout', '30', '--json'])).stdout).toBe('{"name":"new_checkout","percentage":30}\n');
  expect((await program.run(['flags', 'list'])).stdout).toBe('new_checkout  30 %  The new checkout\n');
  expect(await program.run(['flags', 'set', 'old', '1'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('There is no flag "old"') as string,
  });
  const unusable = await program.run(['check'], { environment: { FEATURE_FLAGS_ON: 'old' } });
  expect(unusable).toMatchObject({ code: 1, stderr: expect.stringContaining('E_FLAGS_1') as string });
});
