import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { GIT_FILES, gitToml, testRepository, type TestRepository } from '../../test/git-repository.ts';
import { eventually, startServer, type RunningServer } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';

/** Whether the test is skipped: the program is missing, and this machine is not one where it must be there. */
const isMissing = (program: string): boolean =>
  process.env['KIT_REQUIRE_SIGNING'] === undefined && spawnSync(program, ['--version']).error !== undefined;

const named = async (running: RunningServer) => (await running.ask('/billing/prod')).json().name as string;
const refused = (running: RunningServer, commit: string) =>
  eventually(() => running.log.some((line) => line.includes(`commit ${commit} has no good signature of a trusted key`)), 'the refusal');
const change = (name: string) => ({ 'billing.toml': `[billing]\nname = "${name}"\n` });

function sshKey(folder: string, name: string): string {
  const key = join(folder, name);
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', key]);
  return key;
}

function signed(repository: TestRepository, key: string, files: Readonly<Record<string, string>>): string {
  repository.git('config', 'gpg.format', 'ssh');
  repository.git('config', 'user.signingkey', key);
  return repository.commit(files, '--gpg-sign');
}

test.skipIf(isMissing('ssh-keygen'))(
  'with allowed_signers only commits signed by a listed SSH key are served; the list is watched',
  async () => {
    const repository = await testRepository();
    const folder = await temporaryFolder();
    const [trusted, other] = [sshKey(folder, 'trusted'), sshKey(folder, 'other')];
    const signers = join(folder, 'allowed_signers');
    const line = (key: string): string => `ada@example.com namespaces="git" ${readFileSync(`${key}.pub`, 'utf8')}`;
    writeFileSync(signers, line(trusted));
    const toml = gitToml(repository.folder, `branch = "main"\nallowed_signers = "${signers}"`);
    const first = repository.commit(GIT_FILES);
    await expect(startServer({ toml, files: {} })).rejects.toThrow(
      `git: the repository cannot be read: commit ${first} has no good signature of a trusted key; sign it, or add its key to git.allowed_signers or git.gnupg_home`,
    );
    signed(repository, trusted, change('signed'));
    const running = await startServer({ toml, files: {} });
    expect(await named(running)).toBe('signed');
    await refused(running, repository.commit(change('unsigned')));
    await refused(running, signed(repository, other, change('other')));
    expect(await named(running)).toBe('signed');
    // The configuration of the repository cannot add a signer, nor choose the program that checks.
    repository.git('config', 'gpg.ssh.allowedSignersFile', '/dev/stdin');
    repository.git('config', 'gpg.ssh.program', '/bin/true');
    await running.server.reload();
    expect(await named(running)).toBe('signed');
    repository.git('config', '--unset', 'gpg.ssh.program');
    writeFileSync(signers, line(trusted) + line(other));
    await eventually(async () => (await named(running)) === 'other', 'the newly trusted commit');
    // A tree signed in one commit is not trusted in another.
    const tree = repository.git('rev-parse', 'HEAD^{tree}');
    repository.git('update-ref', 'refs/heads/main', repository.git('commit-tree', '-m', 'copied', tree));
    await refused(running, repository.git('rev-parse', 'main'));
    writeFileSync(signers, line(other));
    repository.git('update-ref', 'refs/heads/main', signed(repository, trusted, change('untrusted')));
    await refused(running, repository.git('rev-parse', 'main'));
    expect(await named(running)).toBe('other');
  },
);

test.skipIf(isMissing('gpg'))('with gnupg_home only commits signed by a key of that keyring are served', async () => {
  const repository = await testRepository();
  const [home, keyring] = [await temporaryFolder(), await temporaryFolder()];
  for (const folder of [home, keyring]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  const gpg = (folder: string, ...args: string[]): Buffer =>
    execFileSync('gpg', ['--batch', '--quiet', '--homedir', folder, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => {
    for (const folder of [home, keyring]) execFileSync('gpgconf', ['--homedir', folder, '--kill', 'all']);
  });
  for (const name of ['trusted', 'other'])
    gpg(home, '--passphrase', '', '--quick-generate-key', `${name}@example.com`, 'ed25519', 'sign', 'never');
  const exported = join(keyring, 'trusted.asc');
  writeFileSync(exported, gpg(home, '--armor', '--export', 'trusted@example.com'));
  gpg(keyring, '--import', exported);
  const sign = (key: string, name: string): string => {
    repository.git('config', 'user.signingkey', key);
    writeFileSync(join(repository.folder, 'billing.toml'), change(name)['billing.toml']);
    repository.gitWith({ GNUPGHOME: home }, 'commit', '--quiet', '--all', '--gpg-sign', '--message', name);
    return repository.git('rev-parse', 'HEAD');
  };
  repository.commit(GIT_FILES);
  sign('trusted@example.com', 'signed');
  const running = await startServer({ toml: gitToml(repository.folder, `branch = "main"\ngnupg_home = "${keyring}"`), files: {} });
  expect(await named(running)).toBe('signed');
  await refused(running, sign('other@example.com', 'other'));
  await refused(running, signed(repository, sshKey(home, 'ssh'), change('by an SSH key')));
  expect(await named(running)).toBe('signed');
  repository.git('config', '--unset', 'gpg.format');
  sign('trusted@example.com', 'again');
  await eventually(async () => (await named(running)) === 'again', 'the signed commit');
  // A check keeps the git process alive and what it has verified with it, but not for a keyring that has changed.
  const enough = new AbortController();
  const checks = (async () => {
    while (!enough.signal.aborted) await running.ask('/billing/prod/check');
  })();
  const [fingerprint] = /(?<=^fpr:*)[0-9A-F]+/m.exec(gpg(keyring, '--with-colons', '--list-keys', 'trusted@example.com').toString())!;
  gpg(keyring, '--yes', '--delete-keys', fingerprint);
  try {
    await eventually(async () => !(await running.status()).healthy, 'the commit of a key that is no longer trusted');
  } finally {
    enough.abort();
    await checks;
  }
});

test.skipIf(isMissing('ssh-keygen'))('a signature that cannot be verified is not reported as a bad one', async () => {
  const repository = await testRepository();
  const folder = await temporaryFolder();
  const key = sshKey(folder, 'key');
  signed(repository, key, GIT_FILES);
  const signers = join(folder, 'allowed_signers');
  writeFileSync(signers, `ada@example.com ${readFileSync(`${key}.pub`, 'utf8')}`);
  const toml = gitToml(repository.folder, `branch = "main"\nallowed_signers = "${signers}"`);
  symlinkSync(join(repository.git('--exec-path'), 'git'), join(folder, 'git'));
  const [PATH, broken] = [process.env['PATH']!, join(folder, 'no-such-folder')];
  for (const [environment, obstacle] of [
    [{ PATH: folder }, 'ssh-keygen cannot be run; install it'],
    [{ PATH, TMPDIR: broken }, 'git cannot create a temporary file; set TMPDIR to a folder that the server can write'],
  ] as const) {
    await expect(startServer({ toml, files: {}, environment })).rejects.toThrow(`cannot be verified: ${obstacle}`);
  }
  const running = await startServer({ toml, files: {}, environment: { PATH } });
  rmSync(signers);
  await eventually(
    () => running.log.some((line) => line.includes('cannot be verified: ssh-keygen cannot read git.allowed_signers')),
    'the missing list',
  );
  writeFileSync(signers, `ada@example.com ${readFileSync(`${key}.pub`, 'utf8')}`);
  await eventually(async () => (await running.status()).healthy as boolean, 'the list that is back');
});

test('gpg that cannot write to its home directory is not reported as a bad signature', async () => {
  const repository = await testRepository();
  repository.commit(GIT_FILES);
  const id = repository.git('commit-tree', '-m', 'signed', 'HEAD^{tree}');
  const raw = repository.git('cat-file', 'commit', id);
  const signature = 'gpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----';
  const input = raw.replace(/^(committer .*)$/m, `$1\n${signature}`);
  const commit = execFileSync('git', ['hash-object', '-t', 'commit', '-w', '--stdin'], { cwd: repository.folder, input }).toString().trim();
  const folder = await temporaryFolder();
  // How the real one ends on a file system that is read-only.
  writeFileSync(join(folder, 'gpg'), `#!/bin/sh\necho "gpg: Fatal: can't create lock for '/x/trustdb.gpg'" >&2\nexit 2\n`, { mode: 0o755 });
  const toml = gitToml(repository.folder, `pin = "${commit}"\ngnupg_home = "${folder}"`);
  const starting = startServer({ toml, files: {}, environment: { PATH: `${folder}:${process.env['PATH']}` } });
  await expect(starting).rejects.toThrow('cannot be verified: gpg cannot write to git.gnupg_home; make it writable, or write');
});
