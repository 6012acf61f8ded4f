import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { chmod, mkdir, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as age from 'age-encryption';
import { beforeAll, describe, expect, test } from 'vitest';
import { newIdentity, seal, writeIdentity, type TestIdentity } from '../../test/age-identity.ts';
import { eventually, SERVER_TOML, startServer, TOKEN, type RunningServer } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { readServerConfig } from '../config/config.ts';
import { synchronousFiles } from '../file-access.ts';
import { loadDocument } from '../section/load.ts';
import { sealDocument } from './files/seal-document.ts';
import { DEFAULT_RULE } from './sops-rules.ts';

let own: TestIdentity;
let other: TestIdentity;

beforeAll(async () => {
  own = await newIdentity();
  other = await newIdentity();
});

const ORDERS = { 'orders.yaml': 'orders:\n  region: eu\n' };
const withSecrets = (lines: string): string => `${SERVER_TOML}\n[server.secrets]\n${lines}\n`;

async function start(billing: string, lines = 'identities = "identity.txt"', identities = [own]): Promise<RunningServer> {
  const folder = await temporaryFolder();
  writeIdentity(folder, 'identity.txt', ...identities);
  return startServer({ folder, toml: withSecrets(lines), files: { ...ORDERS, 'billing.toml': billing } });
}

const documentOf = async (server: RunningServer): Promise<unknown> => (await server.ask('/billing/prod')).json() as unknown;
const sealed = (identity: TestIdentity, value: unknown, key = 'billing.password'): Promise<string> =>
  seal(identity, 'billing.toml', key, value);
const toml = (value: string): string => `[billing]\npassword = "${value}"\n`;

/** Everything that must not hold a value: responses of every other endpoint, the log, the audit log. */
async function elsewhere(server: RunningServer): Promise<string> {
  const paths = ['paths', 'explain/password', 'check', 'status'].map((endpoint) => `/billing/prod/${endpoint}`);
  const replies = await Promise.all([...paths, '/metrics', '/readyz'].map((path) => server.ask(path)));
  return [...replies.map(({ text }) => text), ...server.log, JSON.stringify(server.audit)].join('\n');
}

describe('encrypted values', () => {
  test('are served decrypted, and nothing but the document has them', async () => {
    const server = await start(toml(await sealed(own, 'plain-5ecret')));
    expect(await documentOf(server)).toEqual({ password: 'plain-5ecret' });
    expect((await server.ask('/billing/prod/explain/password')).json().rows[0]).toEqual({
      layer: 'file',
      origin: 'file billing.toml',
      value: '***',
      via: 'age',
    });
    expect((await server.ask('/billing/prod/check')).json()).toMatchObject({ ok: true });
    expect(await elsewhere(server)).not.toMatch(/5ecret|ENC\[/);
  });

  test('without [server.secrets] a file is served as it is', async () => {
    const text = await sealed(own, 'x');
    const server = await startServer({
      files: { ...ORDERS, 'billing.toml': `${toml(text)}ref = "ref+file:///etc/passwd"\n[sops]\nmac = "x"\n` },
    });
    expect(await documentOf(server)).toEqual({ password: text, ref: 'ref+file:///etc/passwd' });
  });

  test('a value that stops decrypting keeps the last document; status and check name file and key, and never the value', async () => {
    const server = await start(toml(await sealed(own, 'first-5ecret')));
    const broken = [await sealed(other, 'x'), await sealed(own, 'moved-5ecret', 'billing.other'), 'ENC[age,AAAA]'];
    for (const [index, text] of broken.entries()) {
      await server.write('billing.toml', toml(text));
      await eventually(async () => (await server.status()).consecutive_failures > index, 'the reload fails');
      expect(await documentOf(server)).toEqual({ password: 'first-5ecret' });
      expect(await server.status()).toMatchObject({
        generation: 1,
        healthy: false,
        last_failure: { kind: 'decrypt', origin: 'file billing.toml', key: 'billing.password' },
      });
      expect((await server.ask('/billing/prod/check')).json().failure).toMatchObject({ kind: 'decrypt', key: 'billing.password' });
      expect((await server.ask('/readyz')).status).toBe(503);
    }
    await server.write('billing.toml', toml(await sealed(own, 'second-5ecret')));
    await eventually(async () => (await server.status()).healthy, 'it recovers');
    expect(await documentOf(server)).toEqual({ password: 'second-5ecret' });
    expect(await elsewhere(server)).not.toMatch(/5ecret|ENC\[/);
  });

  test('a start is refused when a value does not decrypt', async () => {
    await expect(start(toml(await sealed(other, 'x')))).rejects.toThrow(
      /section billing\/prod cannot load: file billing\.toml: key billing\.password does not decrypt with any identity/,
    );
  });

  test('the environment and the merge apply to decrypted values, and a whole table may be encrypted', async () => {
    const folder = await temporaryFolder();
    writeIdentity(folder, 'identity.txt', own);
    const pool = await sealed(own, { size: 5, timeoutMs: 10 }, 'billing.pool');
    const server = await startServer({
      folder,
      toml: withSecrets('identities = "identity.txt"')
        .replace('[server]\n', '[server]\nexplain_lines = true\n')
        .replace('"billing.toml"', '"base.toml", "billing.toml"'),
      files: { ...ORDERS, 'base.toml': '[billing.pool]\nsize = 1\nmin = 2\n', 'billing.toml': `[billing]\npool = "${pool}"\n` },
      environment: { BILLING__POOL__TIMEOUTMS: '99' },
    });
    expect(await documentOf(server)).toEqual({ pool: { size: 5, min: 2, timeoutMs: 99 } });
    const { rows } = (await server.ask('/billing/prod/explain/pool.size')).json();
    expect(rows[0]).toMatchObject({ origin: 'file billing.toml', via: 'age', shadows: ['file base.toml'], line: 2, column: 1 });
  });

  test('values are opened at any depth: below tables, in tables of arrays, beside a mounted one, and under the environment', async () => {
    const folder = await temporaryFolder();
    writeIdentity(folder, 'identity.txt', own);
    await mkdir(join(folder, 'mount'));
    await writeFile(join(folder, 'mount', 'token'), 'mounted-5ecret\n');
    const [password, key] = [await sealed(own, 'deep-5ecret', 'billing.a.b.password'), await sealed(own, 'first', 'billing.list.0.key')];
    const billing = `[billing.a.b]
password = "${password}"
token = "ref+file://${join(folder, 'mount', 'token')}"
size = 5
[[billing.list]]
key = "${key}"
plain = 1
`;
    const server = await startServer({
      folder,
      toml: withSecrets('identities = "identity.txt"\nmounts = "mount"'),
      files: { ...ORDERS, 'billing.toml': billing },
      environment: { BILLING__A__B__SIZE: '6' },
    });
    expect(await documentOf(server)).toEqual({
      a: { b: { password: 'deep-5ecret', token: 'mounted-5ecret', size: 6 } },
      list: [{ key: 'first', plain: 1 }],
    });
    expect(await elsewhere(server)).not.toMatch(/5ecret|ENC\[/);
  });

  test.each([
    ['toml', '[billing.a.b]\npassword = "deep-5ecret"\nsizes = [1, 2]\n[billing.a.c]\nready = true\n'],
    ['yaml', 'billing:\n  a:\n    b:\n      password: deep-5ecret\n      sizes: [1, 2]\n    c:\n      ready: true\n'],
    ['json', '{"billing":{"a":{"b":{"password":"deep-5ecret","sizes":[1,2]},"c":{"ready":true}}}}'],
  ])('a SOPS document in %s with tables in tables is served as it was', async (extension, text) => {
    const folder = await temporaryFolder();
    writeIdentity(folder, 'identity.txt', own);
    const name = `billing.${extension}`;
    const sealing = { age, recipients: [own.recipient], name };
    const server = await startServer({
      folder,
      toml: withSecrets('identities = "identity.txt"').replace('billing.toml', name),
      files: { ...ORDERS, [name]: await sealDocument(join(folder, name), text, DEFAULT_RULE, sealing, new Date()) },
    });
    expect(await documentOf(server)).toEqual({ a: { b: { password: 'deep-5ecret', sizes: [1, 2] }, c: { ready: true } } });
    expect((await server.ask('/billing/prod/explain/a.b.password')).json().rows[0]).toMatchObject({ via: 'sops', value: '***' });
    expect(await elsewhere(server)).not.toMatch(/5ecret|ENC\[/);
  });
});

describe('identities', () => {
  test('rotate live: a new one is added, files are encrypted for it, the old one is removed', async () => {
    const server = await start(toml(await sealed(own, 'one')));
    writeIdentity(server.folder, 'identity.txt', own, other);
    await eventually(() => server.log.some((line) => line.includes('was read again')), 'the identity is read');
    await server.write('billing.toml', toml(await sealed(other, 'two')));
    await eventually(async () => (await server.status()).generation === 2, 'the file for the new identity loads');
    writeIdentity(server.folder, 'identity.txt', other);
    await eventually(() => server.log.filter((line) => line.includes('was read again')).length === 2, 'the old one is gone');
    expect(await documentOf(server)).toEqual({ password: 'two' });
    expect((await server.ask('/readyz')).status).toBe(200);
  });

  test('an identity that is added repairs a section that failed for want of it', async () => {
    const server = await start(toml(await sealed(own, 'one')));
    await server.write('billing.toml', toml(await sealed(other, 'two')));
    await eventually(async () => !(await server.status()).healthy, 'it fails');
    writeIdentity(server.folder, 'identity.txt', own, other);
    await eventually(async () => (await server.status()).generation === 2, 'it recovers');
    expect(await server.status()).toMatchObject({ healthy: true, last_reason: 'recovered' });
  });

  test('an identity that is removed too early fails the section and keeps its document', async () => {
    const server = await start(toml(await sealed(own, 'one')));
    writeIdentity(server.folder, 'identity.txt', other);
    await eventually(async () => !(await server.status()).healthy, 'it fails');
    expect(await documentOf(server)).toEqual({ password: 'one' });
    expect(await server.status('orders/prod', 'orders-token-0123456789-0123456789')).toMatchObject({ healthy: true });
  });

  test('a file that appears in a folder of identities is used', async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, 'keys'), { mode: 0o700 });
    writeIdentity(join(folder, 'keys'), 'one.txt', own);
    const server = await startServer({
      folder,
      toml: withSecrets('identities = "keys"'),
      files: { ...ORDERS, 'billing.toml': toml(await sealed(own, 'one')) },
    });
    await server.write('billing.toml', toml(await sealed(other, 'two')));
    await eventually(async () => !(await server.status()).healthy, 'it fails');
    writeIdentity(join(folder, 'keys'), 'two.txt', other);
    await eventually(async () => (await server.status()).healthy, 'it recovers');
    await unlink(join(folder, 'keys', 'one.txt'));
    await eventually(() => server.log.filter((line) => line.includes('was read again')).length === 2, 'one is gone');
    expect(await documentOf(server)).toEqual({ password: 'two' });
  });

  test('an identity file that is opened to others live keeps the running configuration', async () => {
    const server = await start(toml(await sealed(own, 'one')));
    await chmod(join(server.folder, 'identity.txt'), 0o644);
    await eventually(async () => (await server.ask('/readyz')).status === 503, 'it is noticed');
    expect(await documentOf(server)).toEqual({ password: 'one' });
    await chmod(join(server.folder, 'identity.txt'), 0o400);
    await eventually(async () => (await server.ask('/readyz')).status === 200, 'it is repaired');
  });

  test('every problem is reported with the file and the remedy, and no part of an identity', async () => {
    const folder = await temporaryFolder();
    const check = async (lines: string): Promise<string> => {
      await writeFile(join(folder, 'server.toml'), withSecrets(lines));
      const { problems } = readServerConfig(join(folder, 'server.toml'), {});
      const messages = problems.map(({ key, message }) => `${key}: ${message}`).join('\n');
      expect(messages).not.toContain(own.identity.slice(20));
      return messages;
    };
    writeIdentity(folder, 'good.txt', own);
    expect(await check('identities = "good.txt"')).toBe('');
    expect(await check('identities = ["good.txt", "good.txt"]')).toBe('');
    await writeFile(join(folder, 'open.txt'), `${own.identity}\n`);
    await chmod(join(folder, 'open.txt'), 0o640);
    expect(await check('identities = "open.txt"')).toContain(
      'open.txt is accessible to others than its owner (mode 0640); restrict it with: chmod 0400',
    );
    await writeFile(
      join(folder, 'bad.txt'),
      `# comment\n${own.identity.slice(0, -1)}${own.identity.endsWith('Q') ? 'P' : 'Q'}\n${own.recipient}\n`,
      { mode: 0o600 },
    );
    expect(await check('identities = "bad.txt"')).toMatch(/on line 2[\s\S]*on line 3[\s\S]*has no age identity/);
    await mkdir(join(folder, 'empty'), { mode: 0o700 });
    expect(await check('identities = "empty"')).toContain('empty has no identity file');
    await mkdir(join(folder, 'wide'));
    await chmod(join(folder, 'wide'), 0o755);
    expect(await check('identities = "wide"')).toContain('chmod 0500');
    expect(await check('identities = "missing.txt"')).toContain('cannot be read (ENOENT)');
    await mkdir(join(folder, 'links'), { mode: 0o700 });
    await symlink('nowhere', join(folder, 'links', 'first.txt'));
    expect(await check('identities = "links"')).toContain(`${join('links', 'first.txt')} cannot be read (ENOENT)`);
    expect(await check(`identities = "${own.identity}"`)).toContain('must be a path or an array of paths');
    expect(await check('identities = []')).toContain('must be a path or an array of paths');
    expect(await check('identities = 5')).toContain('must be a path or an array of paths');
    expect(await check('')).toContain('sets neither identities nor mounts');
    expect(await check('identity = "good.txt"')).toContain('is not a known key');
    expect(await check('mounts = "good.txt"')).toContain('is not a folder');
    expect(await check('mounts = "nowhere"')).toContain('cannot be read (ENOENT)');
  });
});

describe('mounted files', () => {
  async function startMounted(value: string, extra: Readonly<Record<string, string>> = {}): Promise<RunningServer> {
    const folder = await temporaryFolder();
    await mkdir(join(folder, 'mount'));
    await writeFile(join(folder, 'mount', 'password'), 'mounted-5ecret\n');
    return startServer({
      folder,
      toml: withSecrets('mounts = "mount"'),
      files: { ...ORDERS, ...extra, 'billing.toml': toml(value.replace('MOUNT', join(folder, 'mount'))) },
    });
  }

  test('a reference is the content of the file without its final line feed; explain shows the reference', async () => {
    const server = await startMounted('ref+file://MOUNT/password');
    expect(await documentOf(server)).toEqual({ password: 'mounted-5ecret' });
    const [row] = (await server.ask('/billing/prod/explain/password')).json().rows;
    expect(row).toEqual({
      layer: 'file',
      origin: 'file billing.toml',
      value: '***',
      via: `ref+file://${join(server.folder, 'mount', 'password')}`,
    });
    expect(await elsewhere(server)).not.toContain('5ecret');
  });

  test('the file is watched: in place, renamed, deleted and created again', async () => {
    const server = await startMounted('ref+file://MOUNT/password');
    const file = join(server.folder, 'mount', 'password');
    await writeFile(file, 'two');
    await eventually(async () => (await server.status()).generation === 2, 'saved in place');
    await writeFile(`${file}.new`, 'three');
    await rename(`${file}.new`, file);
    await eventually(async () => (await server.status()).generation === 3, 'renamed into place');
    await rm(file);
    await eventually(async () => !(await server.status()).healthy, 'deleted');
    expect(await documentOf(server)).toEqual({ password: 'three' });
    expect((await server.status()).last_failure).toMatchObject({ kind: 'reference', origin: 'file billing.toml', key: 'billing.password' });
    await writeFile(file, 'four');
    await eventually(async () => (await server.status()).generation === 4, 'created again');
    expect(await documentOf(server)).toEqual({ password: 'four' });
  });

  test('a Kubernetes swap of ..data is one reload of what both files hold', async () => {
    const folder = await temporaryFolder();
    const mount = join(folder, 'mount');
    for (const version of ['1', '2']) {
      await mkdir(join(mount, `..v${version}`), { recursive: true });
      await writeFile(join(mount, `..v${version}`, 'user'), `user-${version}`);
      await writeFile(join(mount, `..v${version}`, 'password'), `password-${version}`);
    }
    await symlink('..v1', join(mount, '..data'));
    for (const name of ['user', 'password']) await symlink(`..data/${name}`, join(mount, name));
    const billing = `[billing]\nuser = "ref+file://${mount}/user"\npassword = "ref+file://${mount}/password"\n`;
    const server = await startServer({ folder, toml: withSecrets('mounts = "mount"'), files: { ...ORDERS, 'billing.toml': billing } });
    expect(await documentOf(server)).toEqual({ user: 'user-1', password: 'password-1' });
    await symlink('..v2', join(mount, '..new'));
    await rename(join(mount, '..new'), join(mount, '..data'));
    await eventually(async () => (await server.status()).generation === 2, 'swapped');
    expect(await documentOf(server)).toEqual({ user: 'user-2', password: 'password-2' });
    expect((await server.status()).consecutive_failures).toBe(0);
  });

  test('values of two versions of a mount are never served together: one that changes at every read is a failed load', async () => {
    const folder = await temporaryFolder();
    const mount = join(folder, 'mount');
    let version = 0;
    const swap = (): void => {
      version++;
      mkdirSync(join(mount, `..${version}`), { recursive: true });
      for (const name of ['user', 'password']) writeFileSync(join(mount, `..${version}`, name), String(version));
      symlinkSync(`..${version}`, join(mount, '..new'));
      renameSync(join(mount, '..new'), join(mount, '..data'));
    };
    swap();
    for (const name of ['user', 'password']) await symlink(`..data/${name}`, join(mount, name));
    const file = { listed: 'billing.toml', path: join(folder, 'billing.toml'), optional: false };
    await writeFile(file.path, `[billing]\nuser = "ref+file://${mount}/user"\npassword = "ref+file://${mount}/password"\n`);
    const definition = { application: 'billing', profile: 'p', files: [file], wholeDocument: false, envPrefix: 'X__', schema: undefined };
    const load = (swapsMax: number) => {
      let swaps = 0;
      const read = (path: string): Buffer => {
        if (path !== file.path && swaps++ < swapsMax) swap();
        return synchronousFiles.read(path) as Buffer;
      };
      return loadDocument(definition, [], { ...synchronousFiles, read }, { keyring: undefined, mounts: [mount], ownFiles: [] });
    };
    await expect(load(Infinity)).rejects.toMatchObject({
      kind: 'reference',
      key: 'billing.user',
      message: `key billing.user refers to ${mount}/user, which keeps changing while it is read`,
    });
    const { document } = await load(1);
    expect(document).toEqual({ user: String(version), password: String(version) });
  });

  test('a file that a reference no longer names is not watched, and a new one is', async () => {
    const server = await startMounted('ref+file://MOUNT/password');
    const mount = join(server.folder, 'mount');
    await writeFile(join(mount, 'next'), 'next');
    await server.write('billing.toml', toml(`ref+file://${mount}/next`));
    await eventually(async () => (await server.status()).generation === 2, 'the new reference');
    await rm(join(mount, 'password'));
    await writeFile(join(mount, 'next'), 'changed');
    await eventually(async () => (await server.status()).generation === 3, 'the new file changed');
    expect(await server.status()).toMatchObject({ healthy: true });
  });

  test('a reference out of the mounts, through a link, or to a file of the server itself does not load', async () => {
    const server = await startMounted('ref+file://MOUNT/password');
    const mount = join(server.folder, 'mount');
    await symlink('/etc/passwd', join(mount, 'link'));
    await symlink(join(server.folder, 'billing.toml'), join(mount, 'config'));
    await symlink('..', join(mount, 'up'));
    await mkdir(join(mount, 'folder'));
    await writeFile(join(mount, 'binary'), Buffer.from([0xff, 0xfe]));
    await writeFile(join(mount, 'large'), Buffer.alloc(1024 * 1024 + 1, 'x'));
    const hostile: [string, RegExp][] = [
      ['ref+file:///etc/passwd', /not below a folder/],
      [`ref+file://${mount}/../billing.toml`, /dot segments/],
      [`ref+file://${mount}/%2e%2e/billing.toml`, /dot segments/],
      [`ref+file://${mount}//password`, /dot segments/],
      [`ref+file://${mount}x/password`, /not below a folder/],
      [`ref+file://${mount}/link`, /link out of its mount/],
      [`ref+file://${mount}/config`, /link out of its mount/],
      [`ref+file://${mount}/up/server.toml`, /link out of its mount/],
      [`ref+file://${mount}/folder`, /cannot be read \(EISDIR\)/],
      [`ref+file://${mount}/binary`, /not text in UTF-8/],
      [`ref+file://${mount}/large`, /not text in UTF-8/],
      [`ref+file://${mount}/missing`, /does not exist/],
      [`ref+file://${mount}/password?x=1`, /malformed/],
      [`ref+file://${mount}/password#/a`, /malformed/],
      [`ref+file://${mount}/%00`, /malformed/],
      [`ref+file://${mount}/%ff`, /malformed/],
      ['ref+file://password', /malformed/],
      ['ref+vault://secret/db', /unknown kind/],
    ];
    for (const [reference, sentence] of hostile) {
      await server.write('billing.toml', toml(reference));
      await eventually(
        async () => sentence.test((await server.ask('/billing/prod/check')).json().failure?.message ?? ''),
        `${reference} fails as ${String(sentence)}`,
      );
      expect((await server.ask('/billing/prod/check')).json().failure).toMatchObject({ kind: 'reference', key: 'billing.password' });
    }
    expect(await documentOf(server)).toEqual({ password: 'mounted-5ecret' });
  });

  test('identities, tokens and server.toml are not readable by reference, wherever a mount is', async () => {
    const folder = await temporaryFolder();
    writeIdentity(folder, 'identity.txt', own);
    await mkdir(join(folder, 'identities', 'old'), { recursive: true, mode: 0o700 });
    for (const name of ['identities/first.txt', 'identities/.saved', 'identities/old/first.txt']) writeIdentity(folder, name, other);
    const server = await startServer({
      folder,
      toml: withSecrets('mounts = "."\nidentities = ["identity.txt", "identities"]'),
      files: { ...ORDERS, 'billing.toml': '[billing]\n' },
    });
    for (const name of ['identity.txt', 'server.toml', 'identities/first.txt', 'identities/.saved', 'identities/old/first.txt']) {
      await server.write('billing.toml', toml(`ref+file://${folder}/${name}`));
      await eventually(
        async () => /file of the server itself/.test((await server.ask('/billing/prod/check')).json().failure?.message ?? ''),
        name,
      );
    }
    expect(await documentOf(server)).toEqual({});
  });

  test('a section added live with a reference that fails is refused until the file appears', async () => {
    const server = await startMounted('ref+file://MOUNT/password', { 'more.toml': '' });
    await server.write('more.toml', `[billing]\npassword = "ref+file://${join(server.folder, 'mount', 'later')}"\n`);
    const section = '\n[[server.sections]]\napplication = "billing"\nprofile = "test"\nfiles = ["more.toml"]\n';
    await server.write('server.toml', withSecrets('mounts = "mount"') + section);
    await eventually(() => server.log.some((line) => line.includes('which does not exist')), 'the edit is refused');
    await writeFile(join(server.folder, 'mount', 'later'), 'here');
    await eventually(async () => (await server.ask('/billing/test', { token: TOKEN })).status === 200, 'the edit is applied');
    await writeFile(join(server.folder, 'mount', 'later'), 'changed');
    await eventually(async () => (await server.ask('/billing/test')).text.includes('changed'), 'its file is watched');
  });

  test('a mounted value is final: it is not followed, decrypted or interpolated', async () => {
    const server = await startMounted('ref+file://MOUNT/password');
    for (const text of ['ref+file:///etc/passwd', 'ENC[age,AAAA]', '${x}', '']) {
      await writeFile(join(server.folder, 'mount', 'password'), text);
      await eventually(async () => JSON.stringify(await documentOf(server)) === JSON.stringify({ password: text }), text);
    }
  });
});
