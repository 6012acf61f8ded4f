import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newIdentity, seal, writeIdentity } from '../../test/age-identity.ts';
import { gitToml, testRepository } from '../../test/git-repository.ts';
import { eventually, startServer } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';

test('an encrypted value of a repository is bound to its path there, and a reference beside it is followed', async () => {
  const own = await newIdentity();
  const folder = await temporaryFolder();
  writeIdentity(folder, 'identity.txt', own);
  await mkdir(join(folder, 'mount'));
  await writeFile(join(folder, 'mount', 'user'), 'ann');
  const repository = await testRepository();
  const text = async (value: string, file = 'production/billing.toml'): Promise<string> =>
    `[billing]\nsecret = "${await seal(own, file, 'billing.secret', value)}"\nuser = "ref+file://${join(folder, 'mount', 'user')}"\n`;
  const first = repository.commit({ 'production/billing.toml': await text('one') });
  const secrets = '\n[server.secrets]\nidentities = "identity.txt"\nmounts = "mount"\n';
  const toml = gitToml(repository.folder, 'branch = "main"', '["production/billing.toml"]', 'explain_lines = true') + secrets;
  const running = await startServer({ folder, toml, files: {} });
  expect((await running.ask('/billing/prod')).json()).toEqual({ secret: 'one', user: 'ann' });
  const [row] = (await running.ask('/billing/prod/explain/secret')).json().rows;
  expect(row).toMatchObject({ line: 2, column: 1, commit: first, via: 'age' });
  repository.commit({ 'production/billing.toml': await text('two', 'development/billing.toml') });
  await eventually(async () => (await running.status()).last_failure?.kind === 'decrypt', 'a value of another folder does not load');
  const third = repository.commit({ 'production/billing.toml': await text('three') });
  await eventually(async () => (await running.status()).commit === third, 'the next commit loads');
  await writeFile(join(folder, 'mount', 'user'), 'bob');
  await eventually(async () => (await running.ask('/billing/prod')).json().user === 'bob', 'the mounted file is watched');
  expect((await running.ask('/billing/prod')).json()).toEqual({ secret: 'three', user: 'bob' });
});
