import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, lstatSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { scaled } from '../../../../../test/provision/scale.ts';
import { newIdentity, writeIdentity, type TestIdentity } from '../../../test/age-identity.ts';
import { runCli } from '../../../test/cli-server.ts';
import { runProgram, type ProgramRun } from '../../../test/program-runs.ts';
import { serverToml } from '../../../test/served-folder.ts';
import { temporaryFolder } from '../../../test/temporary-folder.ts';

const bin = join(import.meta.dirname, '../../../bin/config-secrets.js');
const KILLS = scaled(3, 60);
const TOML = '# production\n[billing]\ncurrency = "EUR"\npassword = "correct-5ecret" # rotate yearly\n';

interface Place {
  readonly folder: string;
  readonly file: string;
  readonly own: TestIdentity;
  readonly other: TestIdentity;
}

async function place(text = TOML): Promise<Place> {
  const folder = await temporaryFolder();
  const [own, other] = [await newIdentity(), await newIdentity()];
  writeIdentity(folder, 'identity.txt', own);
  writeIdentity(folder, 'other.txt', other);
  mkdirSync(join(folder, 'production'));
  writeFileSync(join(folder, '.age-recipients'), `# the server\n${own.recipient}\n`);
  const file = join(folder, 'production', 'billing.toml');
  writeFileSync(file, text);
  return { folder, file, own, other };
}

function environment(folder: string, env: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'],
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
    CONFIG_SECRETS_IDENTITY: join(folder, 'identity.txt'),
    XDG_RUNTIME_DIR: folder,
    ...env,
  };
}

function run({ folder }: Place, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<ProgramRun> {
  return runProgram('secrets/cli/main.ts', args, { cwd: folder, environment: environment(folder, env) });
}

const check = async ({ folder }: Place): Promise<string> => {
  const sections = [{ application: 'billing', profile: 'production', files: ['production/billing.toml'] }];
  writeFileSync(join(folder, 'server.toml'), `${serverToml(sections)}\n[server.secrets]\nidentities = "identity.txt"\n`);
  return (await runCli(['--check', join(folder, 'server.toml')])).printed;
};

test('a file is encrypted, served, edited, encrypted for others and decrypted in place', async () => {
  const files = await place();
  const { file, own, other, folder } = files;
  chmodSync(file, 0o640);
  expect(await run(files, ['encrypt', file, '--encrypted-regex', '^password$'])).toMatchObject({ status: 0 });
  const sealed = readFileSync(file, 'utf8');
  expect(sealed).toContain('currency = "EUR"');
  expect(sealed).toContain('# rotate yearly');
  expect(sealed).not.toContain('5ecret');
  expect(statSync(file).mode & 0o777).toBe(0o640);
  expect(await check(files)).toContain('is valid: 1 section, 3 clients, plaintext, 1 identity');

  expect(await run(files, ['edit', file], { VISUAL: '', EDITOR: 'sed -i s/correct/other/' })).toMatchObject({ status: 0 });
  const edited = readFileSync(file, 'utf8');
  expect(
    edited
      .split('\n')
      .filter((line) => !sealed.includes(line))
      .map((line) => line.split(' ')[0])
      // Its unit is a second: the same one where the edit came right after the encryption.
      .filter((name) => name !== 'lastmodified'),
  ).toEqual(['password', 'mac']);
  expect((await run(files, ['decrypt', file, '--stdout'])).stdout).toBe(TOML.replace('correct', 'other'));

  expect(await run(files, ['rekey', file, '--recipient', own.recipient, '--recipient', other.recipient])).toMatchObject({ status: 0 });
  expect(await run(files, ['rekey', file, '--recipient', other.recipient])).toMatchObject({ status: 0 });
  expect(await check(files)).toContain('no identity of the server can decrypt the document');
  expect(await run(files, ['decrypt', file])).toMatchObject({ status: 1 });
  expect(await run(files, ['decrypt', file, '--identity', join(folder, 'other.txt')])).toMatchObject({ status: 0 });
  expect(readFileSync(file, 'utf8')).toBe(TOML.replace('correct', 'other'));
  expect(readdirSync(join(folder, 'production'))).toEqual(['billing.toml']);
  expect(readdirSync(folder).filter((name) => name.startsWith('config-secrets-'))).toEqual([]);
});

test('a single value is bound to the path below .age-recipients, and stays a link where the file is one', async () => {
  const files = await place();
  const { folder, file } = files;
  expect((await run(files, ['encrypt', 'production/billing.toml', '--key', 'billing.password'])).stdout).toContain(
    'bound to production/billing.toml',
  );
  expect(await check(files)).toContain('is valid');
  mkdirSync(join(folder, 'development'));
  const copy = join(folder, 'development', 'billing.toml');
  writeFileSync(copy, readFileSync(file));
  expect(await run(files, ['decrypt', copy])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('encrypted for another key or file') as string,
  });
  symlinkSync('production/billing.toml', join(folder, 'link.toml'));
  expect(await run(files, ['rekey', 'link.toml'])).toMatchObject({ status: 1 });
  expect(await run(files, ['edit', 'production/billing.toml', '--key', 'billing.currency'], { EDITOR: 'true' })).toMatchObject({
    status: 0,
  });
  expect(readFileSync(file, 'utf8').match(/ENC\[age,/g)).toHaveLength(2);
  symlinkSync(file, join(folder, 'production', 'same.toml'));
  expect(lstatSync(join(folder, 'production', 'same.toml')).isSymbolicLink()).toBe(true);
});

test('a mistake is a sentence, exit code 1 and an unchanged file; no value is printed', async () => {
  const files = await place();
  const { folder, file, own } = files;
  const broken = join(folder, 'broken.toml');
  writeFileSync(broken, '[billing]\npassword = "correct-5ecret\n');
  const sealedFile = join(folder, 'production', 'sealed.toml');
  writeFileSync(sealedFile, TOML);
  await run(files, ['encrypt', sealedFile]);
  writeFileSync(join(folder, 'tampered.toml'), readFileSync(sealedFile, 'utf8').replace('data:', 'data:A'));
  chmodSync(join(folder, 'other.txt'), 0o644);
  const nested = join(folder, 'nested.json');
  writeFileSync(nested, '{"a":{"b":"correct-5ecret"}}');
  const single = join(folder, 'production', 'single.toml');
  writeFileSync(single, TOML);
  await run(files, ['encrypt', single, '--key', 'billing.password']);
  const mistakes: [readonly string[], RegExp, Record<string, string>?][] = [
    [['encrypt', broken], /not valid TOML \(line 2/],
    [['encrypt', join(folder, 'missing.toml')], /ENOENT/],
    [['encrypt', join(folder, 'identity.txt')], /only \.toml/],
    [['encrypt', file, '--key', 'billing.nothing'], /no value at key billing\.nothing/],
    [['encrypt', file, '--key', 'billing'], /inline table/],
    [['encrypt', file, '--recipient', own.identity], /--recipient: the recipient is not a public key/],
    [['encrypt', file, '--recipients-file', join(folder, 'nothing')], /recipients file .*nothing cannot be read \(ENOENT\)/],
    [['encrypt', file, '--recipients-file', join(folder, 'identity.txt')], /identity\.txt, line 2: the recipient is not a public key/],
    [['encrypt', file, '--key', 'billing.password', '--encrypted-regex', 'x'], /use one of them/],
    [['encrypt', file, '--encrypted-regex', '('], /not supported/],
    [['encrypt', nested, '--key', 'a', '--key', 'a.b'], /key a\.b is inside key a,/],
    [['edit', single], /has the value of key billing\.password/, { EDITOR: 'sed -i s/password/renamed/' }],
    [['encrypt', sealedFile], /already/],
    [['decrypt', file], /no encrypted value/],
    [['decrypt', join(folder, 'tampered.toml')], /does not decrypt/],
    [['decrypt', sealedFile, '--identity', join(folder, 'other.txt')], /chmod 0400/],
    [['decrypt', sealedFile, '--identity', join(folder, 'nothing')], /ENOENT/],
    [['edit', sealedFile], /the editor failed/, { EDITOR: 'false' }],
    [['edit', sealedFile], /not valid TOML/, { EDITOR: 'sed -i s/=/==/' }],
    [['edit', sealedFile], /left an empty file/, { EDITOR: 'truncate -s 0' }],
    [['edit', single], /left an empty file/, { EDITOR: 'truncate -s 0' }],
    [['edit', single], /not valid UTF-8; nothing was written/, { EDITOR: String.raw`sed -i s/5ecret/5ecret\\xe9/` }],
  ];
  for (const [args, sentence, env] of mistakes) {
    const target = args[1]!;
    const before = existsSync(target) ? readFileSync(target) : undefined;
    const { status, printed } = await run(files, args, env);
    expect({ args, status, printed }).toEqual({ args, status: 1, printed: expect.stringMatching(sentence) as string });
    expect(printed).not.toMatch(/5ecret|AGE-SECRET|ENC\[/);
    expect(before === undefined || before.equals(readFileSync(target))).toBe(true);
  }
  for (const args of [
    [],
    ['encrypt'],
    ['help', file],
    ['encrypt', file, '--nothing'],
    ['encrypt', file, file],
    ['encrypt', file, '--encrypted-regex', 'a', '--encrypted-suffix', 'b'],
    ['encrypt', file, '--stdout'],
    ['decrypt', single, '--key', 'billing.password'],
    ['rekey', single, '--name', 'x'],
  ]) {
    expect(await run(files, args)).toMatchObject({ status: 2, stderr: expect.stringContaining('usage:') as string });
  }
  expect(await run(files, ['--help'])).toMatchObject({ status: 0, stdout: expect.stringContaining('usage:') as string });
  expect(readdirSync(folder).filter((name) => name.startsWith('config-secrets-'))).toEqual([]);
});

test('a file that changes while it is edited is not overwritten', async () => {
  const files = await place();
  await run(files, ['encrypt', files.file]);
  const { status, stderr } = await run(files, ['edit', files.file], {
    EDITOR: `sh -c 'sed -i s/correct/mine/ "$1"; echo >> ${files.file}' x`,
  });
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('changed by somebody else') as string });
});

test('killed at any moment, the program leaves the old file or the new one, and no plain text beside it', async () => {
  const files = await place(`[billing]\n${Array.from({ length: 200 }, (_, index) => `key${index} = "value-${index}-5ecret"\n`).join('')}`);
  const { folder, file, own, other } = files;
  expect(await run(files, ['encrypt', file])).toMatchObject({ status: 0 });
  const plain = (await run(files, ['decrypt', file, '--stdout'])).stdout;
  const began = performance.now();
  const whole = spawnSync(process.execPath, ['--conditions=source', bin, 'rekey', file], { cwd: folder, env: environment(folder) });
  expect(whole.status).toBe(0);
  const takes = performance.now() - began;
  for (let kill = 0; kill < KILLS; kill++) {
    const recipients = kill % 2 === 0 ? [own.recipient, other.recipient] : [own.recipient];
    const child = spawn(
      process.execPath,
      ['--conditions=source', bin, 'rekey', file, ...recipients.flatMap((recipient) => ['--recipient', recipient])],
      {
        env: environment(folder),
        stdio: 'ignore',
      },
    );
    const exited = new Promise((resolve) => child.once('exit', resolve));
    await sleep(takes * (0.4 + (0.6 * kill) / KILLS));
    child.kill('SIGKILL');
    await exited;
    expect(await run(files, ['decrypt', file, '--stdout'])).toMatchObject({ status: 0, stdout: plain });
    for (const name of readdirSync(join(folder, 'production'))) {
      expect(readFileSync(join(folder, 'production', name), 'utf8')).not.toContain('5ecret');
    }
  }
});
