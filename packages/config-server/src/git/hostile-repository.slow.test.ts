import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { GIT_FILES, gitToml, OPERATOR_TOKEN, testRepository, type TestRepository } from '../../test/git-repository.ts';
import { eventually, startServer, type RunningServer } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { ObjectReader } from './object-reader.ts';
import { gitEnvironment } from './run-environment.ts';

const serve = (repository: TestRepository, table?: string, files?: string): Promise<RunningServer> =>
  startServer({ toml: gitToml(repository.folder, table, files), files: {} });
const failure = (running: RunningServer, part: string) =>
  eventually(() => running.log.some((line) => line.includes('did not reload') && line.includes(part)), part);
const stillServed = async (running: RunningServer): Promise<void> => {
  expect((await running.ask('/billing/prod')).json()).toMatchObject({ name: 'one' });
  expect((await running.status()).healthy).toBe(false);
};

/** Adds a raw entry to the tree of a new commit and moves main there: names and modes that `git add` would not make. */
function commitTree(
  repository: TestRepository,
  entries: readonly (readonly [mode: string, type: string, id: string, name: Buffer])[],
): void {
  const input = Buffer.concat(
    entries.flatMap(([mode, type, id, name]) => [Buffer.from(`${mode} ${type} ${id}\t`), name, Buffer.from('\0')]),
  );
  const tree = execFileSync('git', ['mktree', '-z', '--missing'], { cwd: repository.folder, input }).toString().trim();
  repository.git('update-ref', 'refs/heads/main', repository.git('commit-tree', '-m', 'raw', tree));
}

const blob = (repository: TestRepository, text: string): string =>
  execFileSync('git', ['hash-object', '-w', '--stdin'], { cwd: repository.folder, input: text }).toString().trim();

test('programs that the configuration, hooks, attributes and filters of a repository name never run', async () => {
  const repository = await testRepository();
  repository.commit({ ...GIT_FILES, '.gitattributes': '* filter=evil diff=evil merge=evil\n' });
  const marker = join(repository.folder, 'ran');
  const program = join(repository.folder, 'evil.sh');
  writeFileSync(program, `#!/bin/sh\necho "$0 $*" >> ${marker}\ncat\n`);
  chmodSync(program, 0o755);
  const settings = [
    'core.fsmonitor',
    'core.sshCommand',
    'core.pager',
    'core.editor',
    'core.askPass',
    'core.gitProxy',
    'core.alternateRefsCommand',
  ];
  settings.push('gpg.program', 'gpg.ssh.program', 'gpg.x509.program', 'gpg.ssh.defaultKeyCommand', 'credential.helper', 'diff.external');
  settings.push(
    'filter.evil.smudge',
    'filter.evil.process',
    'diff.evil.textconv',
    'diff.evil.command',
    'merge.evil.driver',
    'uploadpack.packObjectsHook',
  );
  settings.push('alias.cat-file', 'alias.verify-commit', 'pager.cat-file', 'pager.verify-commit');
  const git = join(repository.folder, '.git');
  const lines = settings.map((setting) => {
    const parts = setting.split('.');
    const section = parts.length === 3 ? `[${parts[0]} "${parts[1]}"]` : `[${parts[0]}]`;
    return `${section}\n\t${parts.at(-1)} = ${setting.startsWith('alias') ? `!${program}` : program}\n`;
  });
  const lazy = `[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\tpromisor = true\n\turl = ext::${program}\n\tuploadpack = ${program}\n[protocol]\n\tallow = always\n`;
  writeFileSync(
    join(git, 'config'),
    `${readFileSync(join(git, 'config'), 'utf8')}${lines.join('')}${lazy}[core]\n\thooksPath = ${repository.folder}\n`,
  );
  mkdirSync(join(git, 'hooks'), { recursive: true });
  for (const hook of ['post-checkout', 'reference-transaction', 'post-index-change', 'fsmonitor-watchman', 'pre-auto-gc']) {
    for (const folder of [join(git, 'hooks'), repository.folder]) symlinkSync(program, join(folder, hook));
  }
  // A missing object would be fetched by a program, were the configuration read.
  const missing = '1234567890123456789012345678901234567890';
  const allowed = join(repository.folder, 'allowed');
  writeFileSync(allowed, '');
  const running = await serve(repository);
  expect((await running.ask('/billing/prod')).json()).toMatchObject({ name: 'one' });
  writeFileSync(join(git, 'refs/heads/main'), `${missing}\n`);
  await failure(running, `commit ${missing} is missing from the repository`);
  await running.write(
    'server.toml',
    gitToml(repository.folder, `branch = "main"\nallowed_signers = "${allowed}"\ngnupg_home = "${repository.folder}"`),
  );
  await eventually(() => running.log.some((line) => line.includes('stays in service: ')), 'the refused edit');
  expect(existsSync(marker)).toBe(false);
});

describe('a path of a section that leads to', () => {
  test.each([
    [
      'a symbolic link out of the repository',
      (target: TestRepository) => symlinkSync('/etc/passwd', join(target.folder, 'billing.toml')),
      'symbolic link',
    ],
    [
      'a symbolic link inside the repository',
      (target: TestRepository) => symlinkSync('more.yaml', join(target.folder, 'billing.toml')),
      'symbolic link',
    ],
    ['a folder', (target: TestRepository) => target.commit({ 'billing.toml/x.toml': 'a = 1' }), 'leads to a folder'],
  ])('%s is a failed load; the last good document stays', async (_name, arrange, part) => {
    const repository = await testRepository();
    repository.commit(GIT_FILES);
    const running = await serve(repository);
    rmSync(join(repository.folder, 'billing.toml'));
    arrange(repository);
    repository.commit({});
    await failure(running, part);
    await stillServed(running);
  });

  test('a submodule, itself or on the way, is a failed load', async () => {
    const repository = await testRepository();
    repository.commit({ ...GIT_FILES, 'sub/billing.toml': '[billing]\nname = "one"\n' });
    const running = await serve(repository, 'branch = "main"', '["sub/billing.toml"]');
    commitTree(repository, [['160000', 'commit', '1'.repeat(40), Buffer.from('sub')]]);
    await failure(running, 'leads to a submodule');
    await stillServed(running);
  });

  test('a huge blob is a failed load', async () => {
    const repository = await testRepository();
    repository.commit(GIT_FILES);
    const running = await serve(repository);
    repository.commit({ 'billing.toml': `[billing]\nname = "${'x'.repeat(17 * 1024 * 1024)}"\n` });
    await failure(running, 'the content of billing.toml is larger than 16 MiB');
    await stillServed(running);
  });
});

test('names that are not UTF-8 stay what they are: bytes that no listed path matches', async () => {
  const repository = await testRepository();
  repository.commit(GIT_FILES);
  const running = await serve(repository, 'branch = "main"', '["billing.toml", { path = "caf\u00e9.toml", optional = true }]');
  const [good, wrong] = [blob(repository, '[billing]\nname = "two"\n'), blob(repository, '[billing]\nname = "wrong"\n')];
  commitTree(repository, [
    ['100644', 'blob', good, Buffer.from('billing.toml')],
    ['100644', 'blob', wrong, Buffer.from('caf\xe9.toml', 'latin1')],
    ['100644', 'blob', wrong, Buffer.from([0xff, 0xfe, 0x0a])],
  ]);
  await eventually(async () => (await running.status()).generation === 2, 'generation 2');
  expect((await running.ask('/billing/prod')).json()).toEqual({ name: 'two' });
  commitTree(repository, [
    ['100644', 'blob', good, Buffer.from('billing.toml')],
    ['100644', 'blob', blob(repository, '[billing]\nname = "three"\n'), Buffer.from('caf\u00e9.toml')],
  ]);
  await eventually(async () => (await running.status()).generation === 3, 'generation 3');
  expect((await running.ask('/billing/prod')).json()).toEqual({ name: 'three' });
});

test('a tree with modes that other programs wrote is read; one with a mode that means nothing is not', async () => {
  const repository = await testRepository();
  repository.commit(GIT_FILES);
  const bytes = (id: string) => Buffer.from(id, 'hex');
  const write = (...entries: readonly (readonly [string, string])[]): string => {
    const input = Buffer.concat(entries.flatMap(([entry, id]) => [Buffer.from(`${entry}\0`), bytes(id)]));
    return execFileSync('git', ['hash-object', '-t', 'tree', '-w', '--literally', '--stdin'], { cwd: repository.folder, input })
      .toString()
      .trim();
  };
  const file = blob(repository, '[billing]\nname = "one"\n');
  const serving = (tree: string) =>
    serve(repository, `pin = "${repository.git('commit-tree', '-m', 'raw', tree)}"`, '["conf/billing.toml"]');
  const running = await serving(write(['040000 conf', write(['100600 billing.toml', file], ['100640 other', file])]));
  expect((await running.ask('/billing/prod')).json()).toEqual({ name: 'one' });
  for (const mode of ['060000', '0', '888888', '10000000100644']) {
    await expect(serving(write(['40000 conf', write([`${mode} billing.toml`, file])]))).rejects.toThrow('cannot be parsed');
  }
});

test('rewritten history is followed, also when the old commits are pruned; history keeps what was served', async () => {
  const repository = await testRepository();
  const first = repository.commit(GIT_FILES);
  const running = await serve(repository);
  repository.git('checkout', '--quiet', '--orphan', 'fresh');
  const second = repository.commit({ 'billing.toml': '[billing]\nname = "rewritten"\n' });
  repository.git('branch', '--force', 'main', 'fresh');
  await eventually(async () => (await running.status()).generation === 2, 'generation 2');
  repository.git('reflog', 'expire', '--expire=now', '--all');
  repository.git('gc', '--quiet', '--prune=now');
  expect(() => repository.git('cat-file', '-e', first)).toThrow('Command failed');
  await running.server.reload();
  expect(await running.status()).toMatchObject({ generation: 2, commit: second, healthy: true });
});

test('an object whose content was replaced does not pass for the original: not a blob, a tree or a commit', async () => {
  const repository = await testRepository();
  repository.commit(GIT_FILES);
  const running = await serve(repository);
  repository.commit({ 'billing.toml': '[billing]\nname = "two"\nfresh = true\n' });
  await eventually(async () => (await running.status()).generation === 2, 'generation 2');
  for (const object of ['HEAD:billing.toml', 'HEAD^{tree}', 'HEAD']) {
    const id = repository.git('rev-parse', object);
    const type = repository.git('cat-file', '-t', id);
    const path = join(repository.folder, '.git/objects', id.slice(0, 2), id.slice(2));
    const original = readFileSync(path);
    const forged = Buffer.from('[billing]\nname = "forged"\n');
    chmodSync(path, 0o644);
    writeFileSync(path, deflateSync(Buffer.concat([Buffer.from(`${type} ${forged.length}\0`), forged])));
    running.log.length = 0;
    // A reload within 100 ms still uses what the one before has read and verified: on a fast machine, a row of them for all time.
    await eventually(async () => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      await running.server.reload();
      return running.log.some((line) => /did not reload \(git\).*(is damaged|ended unexpectedly|cannot be parsed)/.test(line));
    }, `the forged ${type}`);
    expect((await running.ask('/billing/prod')).json()).toMatchObject({ name: 'two' });
    writeFileSync(path, original);
  }
  await eventually(async () => {
    await running.server.reload();
    return (await running.status()).healthy as boolean;
  }, 'the original');
});

test('replacement refs are ignored', async () => {
  const repository = await testRepository();
  const first = repository.commit(GIT_FILES);
  const second = repository.commit({ 'billing.toml': '[billing]\nname = "replacement"\n' });
  repository.git('replace', first, second);
  const running = await serve(repository, `pin = "${first}"`);
  expect((await running.ask('/billing/prod')).json()).toMatchObject({ name: 'one' });
});

test('a ref that is a symbolic ref, garbage, or gone is a failed load that quotes nothing', async () => {
  const repository = await testRepository();
  repository.commit(GIT_FILES);
  const running = await serve(repository);
  const ref = join(repository.folder, '.git/refs/heads/main');
  writeFileSync(ref, 'ref: refs/heads/other\n');
  await failure(running, 'is a symbolic ref');
  writeFileSync(ref, '');
  await failure(running, 'does not contain a commit id');
  running.log.length = 0;
  writeFileSync(ref, 'canary-text that is no id\n');
  await failure(running, 'does not contain a commit id');
  rmSync(ref);
  await failure(running, 'refs/heads/main does not exist; fetch it, or correct git.branch');
  expect(running.log.join('\n')).not.toContain('canary');
  await stillServed(running);
});

test('a ref that a crash left empty does not give way to the older value in packed-refs', async () => {
  const repository = await testRepository();
  repository.commit({ 'billing.toml': '[billing]\nname = "older"\n', 'more.yaml': '' });
  repository.git('pack-refs', '--all');
  repository.commit(GIT_FILES);
  const running = await serve(repository);
  writeFileSync(join(repository.folder, '.git/refs/heads/main'), '');
  await failure(running, 'does not contain a commit id');
  await stillServed(running);
});

test('a tag in place of a commit is refused with the command that prints its commit', async () => {
  const repository = await testRepository();
  repository.commit(GIT_FILES);
  repository.git('tag', '--annotate', '--message', 'one', 'v1');
  for (const table of ['branch = "refs/tags/v1"', `pin = "${repository.git('rev-parse', 'v1')}"`]) {
    await expect(serve(repository, table)).rejects.toThrow('is a tag; set the commit that git rev-parse <tag>^{commit} prints');
  }
});

test('a commit whose time zone has more than four digits is served', async () => {
  const repository = await testRepository();
  repository.commit(GIT_FILES);
  const person = 'Ada <ada@example.com> 1700000000 +051800';
  const input = `tree ${repository.git('rev-parse', 'HEAD^{tree}')}\nauthor ${person}\ncommitter ${person}\n\nold\n`;
  const commit = execFileSync('git', ['hash-object', '-t', 'commit', '-w', '--literally', '--stdin'], { cwd: repository.folder, input });
  const running = await serve(repository, `pin = "${commit.toString().trim()}"`);
  const { generations } = (await running.ask('/billing/prod/history', { token: OPERATOR_TOKEN })).json();
  expect(generations[0]).toMatchObject({ author: 'Ada <ada@example.com>', committed_at: '2023-11-14T22:13:20.000Z' });
});

describe('a git program that', () => {
  const read = (environment: Readonly<Record<string, string>>) => {
    const reader = new ObjectReader({ repository: 'r', environment, deadlineMs: 60_000 });
    return () => reader.read('1'.repeat(40), 'commit', 'the commit');
  };

  test('cannot be started fails every read, and none waits for the answer to another', async () => {
    // Linux allows 128 KiB for one variable, so starting it throws.
    const reading = read({ TOO_LARGE: 'x'.repeat(4 * 1024 * 1024) });
    for (let attempt = 1; attempt <= 2; attempt++) await expect(reading()).rejects.toThrow('git cannot be run (E2BIG)');
  });

  test('cannot be started for want of file descriptors fails the read', () => {
    const script = `
      const { openSync } = await import('node:fs');
      const { ObjectReader } = await import(${JSON.stringify(import.meta.resolve('./object-reader.ts'))});
      const reader = new ObjectReader({ repository: 'r', environment: {}, deadlineMs: 60_000 });
      try { for (;;) openSync('/dev/null'); } catch {}
      await reader.read('1'.repeat(40), 'commit', 'the commit').catch((error) => console.log(error.kind, error.message));
      process.exit();`;
    const command = 'ulimit -n 64; exec "$@"';
    const printed = execFileSync('sh', ['-c', command, 'sh', process.execPath, '--input-type=module', '-e', script]).toString();
    expect(printed.trim()).toBe('git git cannot be run (EMFILE); install git 2.36 or later');
  });

  test('leaves another process behind is not listened to any more', async () => {
    const folder = await temporaryFolder();
    const pid = join(folder, 'pid');
    writeFileSync(join(folder, 'git'), `#!/bin/sh\ncat /dev/zero &\necho $! > ${pid}\nwait\n`, { mode: 0o755 });
    await expect(read({ PATH: `${folder}:${process.env['PATH']}` })()).rejects.toThrow('git sent something that is not an object');
    // Nobody reads what it writes: it ends.
    await eventually(() => {
      try {
        process.kill(Number(readFileSync(pid, 'utf8')), 0);
        return false;
      } catch {
        return true;
      }
    }, 'the end of the other process');
  });
});

test('git that does not respond is ended at the deadline', async () => {
  const repository = await testRepository();
  const commit = repository.commit(GIT_FILES);
  const objects = join(repository.folder, '.git/objects');
  const path = join(objects, commit.slice(0, 2), commit.slice(2));
  rmSync(path);
  execFileSync('mkfifo', [path]);
  const reader = new ObjectReader({ repository: 'r', environment: gitEnvironment(objects, commit, {}), deadlineMs: 200 });
  await expect(reader.read(commit, 'commit', 'the commit')).rejects.toThrow('git did not respond in time');
});

test('a git process that is killed fails the reads in flight, and the next read starts another', async () => {
  const repository = await testRepository();
  const commit = repository.commit(GIT_FILES);
  const objects = join(repository.folder, '.git/objects');
  const reader = new ObjectReader({ repository: 'r', environment: gitEnvironment(objects, commit, {}) });
  await reader.read(commit, 'commit', 'the commit');
  const children = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(process.pid)]).toString();
  const pid = Number(/(\d+) git cat-file/.exec(children)?.[1]);
  process.kill(pid, 'SIGSTOP');
  const reading = reader.read(commit, 'commit', 'the commit');
  process.kill(pid, 'SIGKILL');
  await expect(reading).rejects.toThrow('git ended unexpectedly');
  expect((await reader.read(commit, 'commit', 'the commit')).toString()).toContain('author Ada');
});
