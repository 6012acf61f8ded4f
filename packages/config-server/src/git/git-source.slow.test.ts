import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { GIT_FILES, gitToml, OPERATOR_TOKEN, testRepository, type TestRepository } from '../../test/git-repository.ts';
import { eventually, startServer, type RunningServer } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';

const document = async (running: RunningServer) => (await running.ask('/billing/prod')).json();
const history = async (running: RunningServer) => (await running.ask('/billing/prod/history', { token: OPERATOR_TOKEN })).json();
const atGeneration = (running: RunningServer, generation: number) =>
  eventually(async () => (await running.status()).generation === generation, `generation ${generation}`);
const serve = (repository: TestRepository, table?: string, files?: string, extra?: string) =>
  startServer({ toml: gitToml(repository.folder, table, files, extra), files: {} });

describe('a branch', () => {
  test('is served from its commit, which status, explain and the log show; what is not committed is not served', async () => {
    const repository = await testRepository();
    const first = repository.commit(GIT_FILES);
    writeFileSync(join(repository.folder, 'billing.toml'), '[billing]\nname = "uncommitted"\n');
    const running = await serve(repository, 'branch = "main"', undefined, 'explain_lines = true');
    expect(await document(running)).toEqual({ name: 'one', secret: 'hunter2', pool: { size: 1 } });
    expect(await running.status()).toMatchObject({ generation: 1, commit: first });
    expect((await running.ask('/billing/prod/explain/pool.size')).json().rows[0]).toEqual({
      layer: 'file',
      origin: 'file more.yaml',
      value: '***',
      line: 2,
      column: 11,
      commit: first,
    });
    const second = repository.commit({ 'billing.toml': '[billing]\nname = "two"\nsecret = "hunter2"\n' });
    await atGeneration(running, 2);
    expect(await document(running)).toMatchObject({ name: 'two' });
    expect(await running.status()).toMatchObject({ commit: second, last_reason: 'file-changed', healthy: true });
    expect(running.log).toContain(`config-server: section billing/prod is at generation 2, commit ${second}`);
  });

  test('that moves without a change of the section installs nothing, but is the commit from then on', async () => {
    const repository = await testRepository();
    repository.commit(GIT_FILES);
    const running = await serve(repository);
    const second = repository.commit({ 'other.txt': 'x' });
    await eventually(async () => (await running.status()).commit === second, 'the new commit');
    expect((await running.status()).generation).toBe(1);
    expect((await running.ask('/billing/prod/explain/name')).json().rows[0].commit).toBe(second);
  });

  test('in packed-refs, of a bare repository, with a slash in its name and below a folder, is followed as well', async () => {
    const repository = await testRepository();
    repository.git('checkout', '--quiet', '-b', 'release/2026');
    repository.commit({ 'services/billing/billing.toml': '[billing]\na = 1\n', 'services/shared.yaml': 'billing: {b: 1}\n' });
    const bare = await temporaryFolder();
    repository.git('clone', '--quiet', '--bare', repository.folder, bare);
    const toml = gitToml(bare, 'branch = "release/2026"\npath = "services/billing"', '["billing.toml", "../shared.yaml"]');
    const running = await startServer({ toml, files: {} });
    expect(await document(running)).toEqual({ a: 1, b: 1 });
    repository.commit({ 'services/shared.yaml': 'billing: {b: 2}\n' });
    repository.git('push', '--quiet', bare, 'release/2026');
    await atGeneration(running, 2);
    repository.git('--git-dir', bare, 'pack-refs', '--all', '--prune');
    repository.git('--git-dir', bare, 'gc', '--quiet', '--prune=now');
    repository.commit({ 'services/shared.yaml': 'billing: {b: 3}\n' });
    repository.git('push', '--quiet', bare, 'release/2026');
    await atGeneration(running, 3);
    expect(await document(running)).toEqual({ a: 1, b: 3 });
    expect((await running.status()).healthy).toBe(true);
  });

  test('of a remote is followed by its full name, as git fetch moves it', async () => {
    const upstream = await testRepository();
    upstream.commit(GIT_FILES);
    const clone = await testRepository();
    clone.git('remote', 'add', 'origin', upstream.folder);
    clone.git('fetch', '--quiet', 'origin');
    const running = await serve(clone, 'branch = "refs/remotes/origin/main"');
    upstream.commit({ 'billing.toml': '[billing]\nname = "fetched"\n' });
    clone.git('fetch', '--quiet', 'origin');
    await atGeneration(running, 2);
    expect(await document(running)).toMatchObject({ name: 'fetched' });
  });

  test('in a repository with SHA-256 is served alike', async () => {
    const repository = await testRepository('--object-format=sha256');
    const commit = repository.commit(GIT_FILES);
    expect(commit).toHaveLength(64);
    const running = await serve(repository);
    expect(await document(running)).toMatchObject({ name: 'one' });
    expect((await running.status()).commit).toBe(commit);
  });

  test('whose name is not ASCII is found in packed-refs too', async () => {
    const repository = await testRepository();
    repository.git('checkout', '--quiet', '-b', 'gr\u00f6\u00dfe');
    repository.commit(GIT_FILES);
    repository.git('pack-refs', '--all', '--prune');
    const running = await serve(repository, 'branch = "gr\u00f6\u00dfe"');
    expect(await document(running)).toMatchObject({ name: 'one' });
  });

  test('that is deleted and created again, also as a folder of other branches in between, recovers', async () => {
    const repository = await testRepository();
    const first = repository.commit(GIT_FILES);
    repository.git('checkout', '--quiet', '-b', 'live');
    const running = await serve(repository, 'branch = "live"');
    repository.git('checkout', '--quiet', 'main');
    repository.git('branch', '--delete', '--force', 'live');
    repository.git('branch', 'live/next', first);
    await eventually(async () => !(await running.status()).healthy, 'the failure');
    expect(await document(running)).toMatchObject({ name: 'one' });
    repository.git('branch', '--delete', '--force', 'live/next');
    const second = repository.commit({ 'billing.toml': '[billing]\nname = "two"\n' });
    repository.git('branch', 'live', second);
    await atGeneration(running, 2);
    expect(await running.status()).toMatchObject({ healthy: true, commit: second });
  });

  test('of a clone that borrows its objects, of a shallow clone and of a clone with a detached head is served', async () => {
    const upstream = await testRepository();
    upstream.commit(GIT_FILES);
    upstream.commit({ 'billing.toml': '[billing]\nname = "two"\n' });
    const folder = await temporaryFolder();
    upstream.git('clone', '--quiet', '--shared', upstream.folder, join(folder, 'shared'));
    upstream.git('clone', '--quiet', '--depth=1', `file://${upstream.folder}`, join(folder, 'shallow'));
    upstream.git('checkout', '--quiet', '--detach', 'HEAD^');
    for (const clone of [join(folder, 'shared'), join(folder, 'shallow'), upstream.folder]) {
      const running = await startServer({ toml: gitToml(clone), files: {} });
      expect([clone, (await document(running)).name]).toEqual([clone, 'two']);
    }
  });

  test('is read again by a reload on request, also when its files were not watched', async () => {
    const repository = await testRepository();
    repository.commit(GIT_FILES);
    const running = await serve(repository);
    const commit = repository.commit({ 'billing.toml': '[billing]\nname = "three"\n' });
    await running.server.reload();
    expect(await running.status()).toMatchObject({ generation: 2, commit });
  });
});

test('a commit that does not load keeps the last good document in service, and the next good one recovers', async () => {
  const repository = await testRepository();
  const good = repository.commit(GIT_FILES);
  const running = await serve(repository);
  repository.commit({ 'billing.toml': '[billing]\nname = "secret-value\n' });
  await eventually(async () => !(await running.status()).healthy, 'the failure');
  expect(await running.status()).toMatchObject({ commit: good, last_failure: { kind: 'parse', origin: 'file billing.toml' } });
  expect((await running.ask('/readyz')).status).toBe(503);
  repository.commit({ 'billing.toml': null });
  await eventually(async () => (await running.status()).last_failure.kind === 'missing', 'the missing file');
  expect(await document(running)).toMatchObject({ name: 'one' });
  const recovered = repository.commit({ 'billing.toml': '[billing]\nname = "back"\n' });
  await atGeneration(running, 2);
  expect(await running.status()).toMatchObject({ healthy: true, last_reason: 'recovered', commit: recovered });
  expect(running.log.join('\n')).not.toContain('secret-value');
});

test('a pinned commit is served whatever the branch does; an edit of the pin takes effect live', async () => {
  const repository = await testRepository();
  const first = repository.commit(GIT_FILES);
  const second = repository.commit({ 'billing.toml': '[billing]\nname = "two"\n' });
  const running = await serve(repository, `branch = "main"\npin = "${first}"`);
  expect(await document(running)).toMatchObject({ name: 'one' });
  repository.commit({ 'billing.toml': '[billing]\nname = "three"\n' });
  await running.server.reload();
  expect(await running.status()).toMatchObject({ generation: 1, commit: first });
  await running.write('server.toml', gitToml(repository.folder, `pin = "${second}"`));
  await atGeneration(running, 2);
  expect(await document(running)).toMatchObject({ name: 'two' });
});

test('a pin to a commit that is not fetched yet is refused, and takes effect with the fetch', async () => {
  const upstream = await testRepository();
  upstream.commit(GIT_FILES);
  const clone = await testRepository();
  clone.git('remote', 'add', 'origin', upstream.folder);
  clone.git('fetch', '--quiet', 'origin');
  const branch = 'branch = "refs/remotes/origin/main"';
  const running = await serve(clone, branch);
  const pinned = upstream.commit({ 'billing.toml': '[billing]\nname = "pinned"\n' });
  upstream.commit({ 'billing.toml': '[billing]\nname = "newer"\n' });
  await running.write('server.toml', gitToml(clone.folder, `${branch}\npin = "${pinned}"`));
  await eventually(() => running.log.some((line) => line.includes(`commit ${pinned} is missing from the repository`)), 'the refusal');
  clone.git('fetch', '--quiet', 'origin');
  await eventually(async () => (await running.status()).commit === pinned, 'the pinned commit');
  expect(await document(running)).toEqual({ name: 'pinned', pool: { size: 1 } });
  expect((await running.ask('/readyz')).status).toBe(200);
});

test('a commit that arrives while an edit looks for it is not missed', async () => {
  const upstream = await testRepository();
  upstream.commit(GIT_FILES);
  const clone = await testRepository();
  clone.git('fetch', '--quiet', '--update-head-ok', upstream.folder, 'main:main');
  const folder = await temporaryFolder();
  const [go, asked] = [join(folder, 'go'), join(folder, 'asked')];
  // Answers the first question as it is now, but not before `go` is there.
  const real = clone.git('--exec-path');
  const script = `#!/bin/sh
if [ ! -e ${go} ]; then
  answer=$(head -n 1 | ${real}/git "$@")
  : > ${asked}
  while [ ! -e ${go} ]; do sleep 0.05; done
  printf '%s\\n' "$answer"
fi
exec ${real}/git "$@"
`;
  writeFileSync(join(folder, 'git'), script, { mode: 0o755 });
  writeFileSync(go, '');
  const environment = { PATH: `${folder}:${process.env['PATH']}` };
  const running = await startServer({ toml: gitToml(clone.folder), files: {}, environment });
  rmSync(go);
  const pinned = upstream.commit({ 'billing.toml': '[billing]\nname = "pinned"\n' });
  await running.write('server.toml', gitToml(clone.folder, `pin = "${pinned}"`));
  await eventually(() => existsSync(asked), 'the question');
  clone.git('fetch', '--quiet', upstream.folder, 'main');
  writeFileSync(go, '');
  await eventually(async () => (await running.status()).commit === pinned, 'the pinned commit');
});

test('absolute paths are files of the machine, beside those of the repository', async () => {
  const repository = await testRepository();
  repository.commit(GIT_FILES);
  const folder = await temporaryFolder();
  const secrets = join(folder, 'secrets.json');
  writeFileSync(secrets, '{"billing":{"secret":"mounted"}}');
  const running = await serve(repository, 'branch = "main"', `["billing.toml", "${secrets}", { path = "none.toml", optional = true }]`);
  expect(await document(running)).toEqual({ name: 'one', secret: 'mounted' });
  const { rows } = (await running.ask('/billing/prod/explain/secret')).json();
  expect(rows[0]).toEqual({ layer: 'file', origin: `file ${secrets}`, value: '***', shadows: ['file billing.toml'] });
  writeFileSync(secrets, '{"billing":{"secret":"rotated"}}');
  await atGeneration(running, 2);
  expect(await document(running)).toEqual({ name: 'one', secret: 'rotated' });
});

test('a schema in the repository guards the document of the same commit', async () => {
  const repository = await testRepository();
  const schema = (type: string) => JSON.stringify({ properties: { name: { type } } });
  repository.commit({ ...GIT_FILES, 'schema.json': schema('string') });
  const running = await serve(repository, 'branch = "main"', '["billing.toml"]\nschema = "schema.json"');
  repository.commit({ 'schema.json': schema('integer') });
  await eventually(async () => (await running.status()).last_failure?.kind === 'schema', 'the schema failure');
  repository.commit({ 'schema.json': schema('integer'), 'billing.toml': '[billing]\nname = 5\n' });
  await atGeneration(running, 2);
});

describe('history', () => {
  test('lists generations with commit, author, time and changed key paths, never values', async () => {
    const repository = await testRepository();
    const first = repository.commit(GIT_FILES);
    const running = await serve(repository);
    const second = repository.commit(
      { 'billing.toml': '[billing]\nname = "one"\nsecret = "changed-secret"\nadded = 1\n', 'more.yaml': 'billing: {}\n' },
      '--author',
      'Grace <grace@example.com>',
      '--date=2026-01-02T03:04:05Z',
    );
    await atGeneration(running, 2);
    const reply = await running.ask('/billing/prod/history', { token: OPERATOR_TOKEN });
    expect(reply.json()).toEqual({
      application: 'billing',
      profile: 'prod',
      generations: [
        {
          generation: 2,
          installed_at: expect.stringMatching(/Z$/) as string,
          reason: 'file-changed',
          commit: second,
          author: 'Grace <grace@example.com>',
          committed_at: expect.stringMatching(/^20\d\d-.*Z$/) as string,
          changed: ['secret', 'pool.size', 'added'],
          changed_total: 3,
        },
        expect.objectContaining({ generation: 1, reason: 'initial', commit: first, changed: null, changed_total: 0 }) as object,
      ],
    });
    expect(reply.text).not.toMatch(/hunter2|changed-secret/);
    expect(running.audit.at(-1)).toMatchObject({ caller: 'operator', endpoint: 'history', outcome: 'served', generation: 2 });
  });

  test('is hidden from a caller who is not an operator, with the bytes of any other 404', async () => {
    const repository = await testRepository();
    repository.commit(GIT_FILES);
    const running = await serve(repository);
    const hidden = await running.ask('/billing/prod/history');
    const unknown = await running.ask('/nowhere/prod/history');
    expect(hidden.status).toBe(404);
    expect([hidden.text, hidden.rawHeaders.filter((_header, index) => index < 8)]).toEqual([
      unknown.text,
      unknown.rawHeaders.filter((_header, index) => index < 8),
    ]);
    expect((await running.ask('/billing/prod/history', { token: null })).status).toBe(401);
    expect((await running.ask('/billing/prod/history', { token: OPERATOR_TOKEN, method: 'POST' })).status).toBe(405);
  });

  test('does not exist without an operator, and needs no Git', async () => {
    const running = await startServer();
    expect((await running.ask('/billing/prod/history')).status).toBe(404);
    expect((await running.ask('/billing/prod/history', { method: 'POST' })).status).toBe(404);
    expect(running.audit.at(-1)).toMatchObject({ endpoint: 'none', outcome: 'not-found' });
    const toml = gitToml('x').replace(/\[git\][^[]*/, '');
    const files = await startServer({ toml, files: { ...GIT_FILES } });
    await files.write('billing.toml', '[billing]\nname = "two"\n');
    await atGeneration(files, 2);
    expect((await history(files)).generations[0]).toMatchObject({ generation: 2, commit: null, author: null, changed: ['name', 'secret'] });
  });

  test('keeps the last hundred generations and a thousand paths of each', async () => {
    const running = await startServer({ toml: gitToml('x').replace(/\[git\][^[]*/, ''), files: { ...GIT_FILES } });
    for (let round = 2; round <= 104; round++) {
      const keys = Array.from({ length: round === 104 ? 1_500 : 1 }, (_, index) => `k${index} = ${round}`).join('\n');
      await running.write('billing.toml', `[billing]\n${keys}\n`);
      await running.server.reload();
    }
    const { generations } = await history(running);
    expect(generations).toHaveLength(100);
    expect(generations[0].changed).toHaveLength(1_000);
    expect(generations[0].changed_total).toBe(1_500);
  });
});
