import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { FILES, SERVER_TOML, TOKEN, writeFiles } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { parseBindAddress } from './bind-address.ts';
import { loadServerConfig, readServerConfig } from './config.ts';
import { describeProblem, StartRefusal } from './problem.ts';
import { readTls } from './read-tls.ts';
import { TableReader } from './table-reader.ts';

async function problemsOf(toml: string, files: Record<string, string> = {}): Promise<string[]> {
  const folder = await temporaryFolder();
  await writeFiles(folder, { ...FILES, ...files, 'server.toml': toml });
  return linesOf(folder);
}

/** What a refused start prints, without the path of server.toml. */
function linesOf(folder: string): string[] {
  const path = join(folder, 'server.toml');
  return readServerConfig(path, {}).problems.map((problem) => describeProblem(path, problem).slice(path.length + 2));
}

const SECTION = '[[server.sections]]\napplication = "a"\nprofile = "p"\nfiles = ["a.toml"]\n';
const CLIENT = `[[server.clients]]\nname = "c"\ntoken = "${TOKEN}"\napplications = ["a"]\n`;

function toml(...parts: string[]): string {
  return `[server]\n${parts.join('\n')}`;
}

test('the smallest file gets every default', async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'server.toml'), toml(SECTION, CLIENT));
  const config = loadServerConfig(join(folder, 'server.toml'), {});
  expect(config).toMatchObject({
    bind: { host: '127.0.0.1', port: 8888 },
    healthBind: undefined,
    watchDebounceMs: 250,
    maxStreamConnections: 4096,
    tls: undefined,
    sections: [
      {
        application: 'a',
        profile: 'p',
        wholeDocument: false,
        envPrefix: 'A__',
        files: [{ listed: 'a.toml', path: join(folder, 'a.toml') }],
      },
    ],
  });
  expect(inspect(config, { depth: 9 }) + JSON.stringify(config)).not.toContain(TOKEN);
});

test.each([
  ['an unknown key at the top', `extra = 1\n${toml(SECTION, CLIENT)}`, /^extra: is not a known key/],
  ['an unknown key of the server', toml('polling = true', SECTION, CLIENT), /^server\.polling: is not a known key/],
  [
    'an unknown key of a section',
    toml(`${SECTION}extra = 1`, CLIENT),
    /^server\.sections\[0\]\.extra \(section a\/p\): is not a known key/,
  ],
  ['an unknown key of a client', toml(SECTION, `${CLIENT}extra = 1`), /^server\.clients\[0\]\.extra \(client "c"\): is not a known key/],
  ['no section', toml(CLIENT.replace('"a"', '')), /^server\.sections: no section is configured/],
  ['no client', toml(SECTION), /^server\.clients: no client is configured/],
  [
    'a section twice',
    toml(SECTION, SECTION, CLIENT),
    /^server\.sections\[1\]\.profile \(section a\/p\): the section a\/p is configured twice, first at server\.sections\[0\]/,
  ],
  [
    'a client name twice',
    toml(SECTION, CLIENT, CLIENT.replace(TOKEN, `${TOKEN}x`)),
    /^server\.clients\[1\]\.name \(client "c"\): another client has the same name, server\.clients\[0\]/,
  ],
  [
    'a token twice',
    toml(SECTION, CLIENT, CLIENT.replace('"c"', '"d"')),
    /^server\.clients\[1\]\.token \(client "d"\): is the same token as that of client "c" \(server\.clients\[0\]\.token\)/,
  ],
  [
    'a short token',
    toml(SECTION, CLIENT.replace(TOKEN, 'x'.repeat(31))),
    /^server\.clients\[0\]\.token \(client "c"\): is shorter than 32 characters/,
  ],
  [
    'a token no request could carry',
    toml(SECTION, CLIENT.replace(TOKEN, `${TOKEN} `)),
    /^server\.clients\[0\]\.token \(client "c"\): holds control characters or surrounding whitespace/,
  ],
  [
    'a token of another client behind a first one of its own',
    toml(
      SECTION,
      CLIENT,
      `[[server.clients]]\nname = "d"\napplications = []\ntokens = [{ token = "${TOKEN}-own" }, { token = "${TOKEN}" }]\n`,
    ),
    /^server\.clients\[1\]\.tokens\[1\]\.token \(client "d"\): is the same token as that of client "c" \(server\.clients\[0\]\.token\)/,
  ],
  [
    'a token of a rotation with an unknown key',
    toml(SECTION, CLIENT.replace(/token = .*/, `tokens = [{ token = "${TOKEN}", expires = 1 }]`)),
    /^server\.clients\[0\]\.tokens\[0\]\.expires \(client "c"\): is not a known key/,
  ],
  [
    'an empty entry of a rotation',
    toml(SECTION, CLIENT.replace(/token = .*/, `tokens = [{ token = "${TOKEN}" }, {}]`)),
    /^server\.clients\[0\]\.tokens\[1\] \(client "c"\): needs exactly one of token, token_sha256, token_file/,
  ],
  [
    'a short token in a rotation',
    toml(SECTION, CLIENT.replace(/token = .*/, `tokens = [{ token = "${TOKEN}" }, { token = "short" }]`)),
    /^server\.clients\[0\]\.tokens\[1\]\.token \(client "c"\): is shorter than 32 characters/,
  ],
  [
    'a grant of nothing',
    toml(SECTION, CLIENT.replace('["a"]', '["a", "zzz"]')),
    /^server\.clients\[0\]\.applications\[1\] \(client "c"\): grants zzz, an application that no section serves/,
  ],
  [
    'a grant of a profile of nothing',
    toml(SECTION, CLIENT.replace('["a"]', '["a", "zzz/p"]')),
    /^server\.clients\[0\]\.applications\[1\] \(client "c"\): grants zzz, an application that no section serves/,
  ],
  [
    'a grant of a profile that the application does not have',
    toml(SECTION, CLIENT.replace('["a"]', '["a/p", "a/q"]')),
    /^server\.clients\[0\]\.applications\[1\] \(client "c"\): grants a\/q, a profile that no section serves/,
  ],
  [
    'grants that are no names',
    toml(SECTION, CLIENT.replace('["a"]', `["${TOKEN}!"]`)),
    /^server\.clients\[0\]\.applications\[0\] \(client "c"\): must be "application", or "application\/profile"/,
  ],
  [
    'two kinds of token',
    toml(SECTION, `${CLIENT}token_file = "x"`),
    /^server\.clients\[0\] \(client "c"\): needs exactly one of token, token_sha256, token_file/,
  ],
  ['no token', toml(SECTION, CLIENT.replace(/token = .*/, '')), /^server\.clients\[0\] \(client "c"\): needs exactly one of/],
  [
    'an upper-case digest',
    toml(SECTION, CLIENT.replace(/token = .*/, `token_sha256 = "${'A'.repeat(64)}"`)),
    /^server\.clients\[0\]\.token_sha256 \(client "c"\): must be the SHA-256/,
  ],
  [
    'a missing token file',
    toml(SECTION, CLIENT.replace(/token = .*/, 'token_file = "none"')),
    /^server\.clients\[0\]\.token_file \(client "c"\): none cannot be read \(ENOENT\)/,
  ],
  [
    'an unknown file extension',
    toml(SECTION.replace('a.toml', 'a.ini'), CLIENT),
    /^server\.sections\[0\]\.files\[0\] \(section a\/p\): the extension of a\.ini is not supported/,
  ],
  [
    'no files',
    toml(SECTION.replace('["a.toml"]', '[]'), CLIENT),
    /^server\.sections\[0\]\.files \(section a\/p\): must be an array that lists at least one file/,
  ],
  [
    'a file entry with an unknown key',
    toml(SECTION.replace('"a.toml"', '{ path = "a.toml", opt = true }'), CLIENT),
    /^server\.sections\[0\]\.files\[0\]\.opt \(section a\/p\): is not a known key/,
  ],
  ['a bind that is no address', toml('bind = "localhost"', SECTION, CLIENT), /^server\.bind: must be host:port/],
  ['a bind that is a port alone', toml('bind = 8888', SECTION, CLIENT), /^server\.bind: must be host:port/],
  [
    'health on the port of the service',
    toml('health_bind = "127.0.0.1:8888"', SECTION, CLIENT),
    /^server\.health_bind: must differ from bind; choose another port/,
  ],
  ['a negative debounce', toml('watch_debounce_ms = -1', SECTION, CLIENT), /^server\.watch_debounce_ms: must be an integer/],
  [
    'a ceiling that is no integer',
    toml('max_stream_connections = 1.5', SECTION, CLIENT),
    /^server\.max_stream_connections: must be an integer/,
  ],
  [
    'a client with control characters in its name',
    toml(SECTION, CLIENT.replace('"c"', String.raw`"a\nb"`)),
    /^server\.clients\[0\]\.name \(client "a\\nb"\): cannot hold control/,
  ],
  [
    'an application that is no string',
    toml(SECTION.replace('"a"', '7'), CLIENT.replace('"a"', '')),
    /^server\.sections\[0\]\.application: must be a non-empty string/,
  ],
  ['sections that are no tables', toml('sections = 5', CLIENT.replace('"a"', '')), /^server\.sections: must be an array of tables/],
])('refused: %s', async (_what, text, message) => {
  const problems = await problemsOf(text);
  expect(problems.filter((problem) => message.test(problem))).toHaveLength(1);
  expect(problems.join('\n')).not.toContain(TOKEN);
});

test.each(['', '.hidden', 'a b', 'a/b', '-a', 'ä', 'a'.repeat(65)])('refused: the name %j, which no route could reach', async (name) => {
  const problems = await problemsOf(toml(SECTION.replace('"p"', JSON.stringify(name)), CLIENT));
  expect(problems).toEqual([expect.stringMatching(/^server\.sections\[0\]\.profile( \(.*\))?: /)]);
});

test.each(['', '/', 'a/', '/p', 'a/p/', 'a/p/q', 'a//p', ' a', 'a /p', 'A/p', '*', 'a/*'])('refused: the grant %j', async (entry) => {
  const problems = await problemsOf(toml(SECTION, CLIENT.replace('"a"', JSON.stringify(entry))));
  expect(problems).toEqual([expect.stringMatching(/^server\.clients\[0\]\.applications\[0\] \(client "c"\): /)]);
});

test('a grant may name an application or one profile of it', async () => {
  expect(await problemsOf(toml(SECTION, CLIENT.replace('"a"', '"a/p"')))).toEqual([]);
  expect(await problemsOf(toml(SECTION, CLIENT.replace('"a"', '"a", "a/p"')))).toEqual([]);
});

test('text that could be a token or a key is not printed, in whatever key of a file it was written', async () => {
  const base64 = `/${'Zm9v'.repeat(10)}+/=`;
  for (const token of [TOKEN, base64]) {
    const problems = await problemsOf(toml(SECTION, CLIENT.replace(/token = .*/, `token_file = "${token}"`)));
    expect(problems).toEqual([expect.stringMatching(/^server\.clients\[0\]\.token_file \(client "c"\): .* cannot be read \(ENOENT\)$/)]);
    expect(problems.join()).not.toContain(token);
  }
  const pem = String.raw`"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"`;
  const problems = await problemsOf(toml(SECTION, CLIENT, `[server.tls]\ncertificate = ${pem}\nkey = ${pem}\nclient_ca = ${pem}\n`));
  expect(problems).toEqual(
    ['certificate', 'key', 'client_ca'].map((key) => `server.tls.${key}: must be the path of a PEM file, not its content`),
  );
});

test.each([
  ['equal', 'pay-roll', 'pay_roll', ''],
  ['one the start of the other', 'pay', 'pay-', ''],
  ['set by hand', 'pay', 'zzz', 'env_prefix = "PAY__X"'],
])('refused: environment prefixes that overlap: %s', async (_what, first, second, extra) => {
  const sections = `[[server.sections]]\napplication = "${first}"\nprofile = "p"\nfiles = ["a.toml"]\n[[server.sections]]\napplication = "${second}"\nprofile = "p"\nfiles = ["a.toml"]\n${extra}\n`;
  const problems = await problemsOf(toml(sections, CLIENT.replace('"a"', '')));
  expect(problems).toEqual([expect.stringMatching(/^server\.sections: the environment prefixes of .* overlap; set env_prefix/)]);
  for (const application of [first, second]) expect(problems[0]).toContain(`section ${application}/p (`);
});

test.each([
  ['BILLING__PROD__', undefined],
  [undefined, 'BILLING__P'],
  ['BILLING_PROD__', 'BILLING_PROD__DEV__'],
])('refused: a prefix of one profile that reaches into another profile: %s and %s', async (production, development) => {
  const section = (profile: string, prefix: string | undefined): string =>
    `${SECTION.replace('"a"', '"billing"').replace('"p"', `"${profile}"`)}${prefix === undefined ? '' : `env_prefix = "${prefix}"\n`}`;
  const problems = await problemsOf(
    toml(section('production', production), section('development', development), CLIENT.replace('"a"', '"billing"')),
  );
  expect(problems).toEqual([expect.stringMatching(/^server\.sections: the environment prefixes of .* overlap; set env_prefix/)]);
  for (const profile of ['production', 'development']) expect(problems[0]).toContain(`section billing/${profile} (`);
});

test.each([
  ['sections outside of [server]', toml(CLIENT).concat(SECTION.replace('server.', '')), ['sections', 'server.sections']],
  ['a section in single brackets', toml(SECTION.replace('[[server.sections]]', '[server.sections]'), CLIENT), ['server.sections']],
  ['a client in single brackets', toml(SECTION, CLIENT.replace('[[server.clients]]', '[server.clients]')), ['server.clients']],
])('a mistake is reported once, without others that only follow from it: %s', async (_what, text, keys) => {
  expect((await problemsOf(text)).map((problem) => problem.split(/: | \(/)[0])).toEqual(keys);
});

test('profiles of one application share their prefix, or have one each', async () => {
  const own = (profile: string): string => `${SECTION.replace('"p"', `"${profile}"`)}env_prefix = "A_${profile.toUpperCase()}__"\n`;
  expect(await problemsOf(toml(own('p'), own('q'), SECTION.replace('"p"', '"r"'), CLIENT))).toEqual([]);
  expect(await problemsOf(toml(SECTION, SECTION.replace('"p"', '"q"'), CLIENT))).toEqual([]);
});

test('every problem is reported in one run, and none of them quotes a token', async () => {
  const secret = 'tiny-secret';
  const problems = await problemsOf(
    toml(
      'bind = "x"',
      'typo = 1',
      SECTION.replace('a.toml', 'a.ini'),
      CLIENT.replace(TOKEN, secret).replace('"a"', '"b"'),
      CLIENT.replace(TOKEN, secret),
    ),
  );
  expect(problems.map((problem) => problem.split(/:| \(/)[0])).toEqual([
    'server.sections[0].files[0]',
    'server.clients[0].token',
    'server.clients[0].applications[0]',
    'server.clients[1].token',
    'server.clients[1].name',
    'server.bind',
    'server.typo',
  ]);
  expect(problems.join('\n')).not.toContain(secret);
});

test('a file that is missing or not TOML is refused by place, not by content', async () => {
  const folder = await temporaryFolder();
  const path = join(folder, 'server.toml');
  expect(() => loadServerConfig(path, {})).toThrow(`${path}: cannot be read (ENOENT)`);
  await writeFile(path, `[server]\ntoken = "${TOKEN}\n`);
  expect(() => loadServerConfig(path, {})).toThrow(/server\.toml: is not valid TOML \(line 2, column \d+\)$/);
  await writeFile(path, Buffer.from(SERVER_TOML.replace('billing-token', 'caf\u00e9-token'), 'latin1'));
  expect(() => loadServerConfig(path, {})).toThrow(`${path}: is not valid UTF-8; save it in that encoding`);
  await writeFile(path, '');
  expect(() => loadServerConfig(path, {})).toThrow(StartRefusal);
});

test('a token may be given as digest or in a file', async () => {
  const folder = await temporaryFolder();
  const digest = createHash('sha256').update(TOKEN).digest();
  await writeFiles(folder, {
    'a.token': `${TOKEN}\n`,
    'server.toml': toml(
      SECTION,
      CLIENT.replace(/token = .*/, 'token_file = "a.token"'),
      CLIENT.replace('"c"', '"d"').replace(/token = .*/, `token_sha256 = "${createHash('sha256').update('other').digest('hex')}"`),
    ),
  });
  const config = loadServerConfig(join(folder, 'server.toml'), {});
  expect(config.clients[0]!.digests).toEqual([digest]);
  expect(config.inputs).toEqual([join(folder, 'server.toml'), join(folder, 'a.token')]);
});

test('a key of server.toml cannot forge a line of the refusal', async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'server.toml'), toml(String.raw`"a\nconfig-server: refusing to start: b\u001b[2J" = 1`, SECTION, CLIENT));
  const refusal = (() => {
    try {
      return loadServerConfig(join(folder, 'server.toml'), {});
    } catch (error) {
      return error as StartRefusal;
    }
  })() as StartRefusal;
  expect(refusal.lines).toHaveLength(1);
  expect(refusal.lines[0]).not.toMatch(/\p{Cc}/u);
  expect(refusal.message).not.toMatch(/\p{Cc}/u);
});

test('a token file that is not text is refused: its bytes would be replaced by ones that can be guessed', async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'a.token'), Buffer.alloc(64, 0xff));
  await writeFile(join(folder, 'server.toml'), toml(SECTION, CLIENT.replace(/token = .*/, 'token_file = "a.token"')));
  expect(() => loadServerConfig(join(folder, 'server.toml'), {})).toThrow(
    /server\.clients\[0\]\.token_file \(client "c"\): a\.token is not text in UTF-8/,
  );
});

test('a token file is held to the same length as a token', async () => {
  const short = toml(SECTION, CLIENT.replace(/token = .*/, 'token_file = "a.token"'));
  expect(await problemsOf(short, { 'a.token': `${'x'.repeat(31)}\n` })).toEqual([
    expect.stringMatching(/^server\.clients\[0\]\.token_file \(client "c"\): the token in a\.token is shorter than 32 characters/),
  ]);
  expect(await problemsOf(short, { 'a.token': `${'x'.repeat(32)}\n` })).toEqual([]);
});

test('a pipe in the place of server.toml, of a token or of a certificate is refused, not waited for', async () => {
  const folder = await temporaryFolder();
  execFileSync('mkfifo', [join(folder, 'pipe.toml')]);
  const loading = (text: string) => async () => {
    await writeFile(join(folder, 'server.toml'), text);
    return loadServerConfig(join(folder, 'server.toml'), {});
  };
  expect(() => loadServerConfig(join(folder, 'pipe.toml'), {})).toThrow('cannot be read (not a regular file)');
  await expect(loading(toml(SECTION, CLIENT.replace(/token = .*/, 'token_file = "pipe.toml"')))).rejects.toThrow(
    'token_file (client "c"): pipe.toml cannot be read (not a regular file)',
  );
  await expect(loading(toml(SECTION, CLIENT, '[server.tls]\ncertificate = "pipe.toml"\nkey = "pipe.toml"\n'))).rejects.toThrow(
    /tls\.certificate: .*cannot be read \(not a regular file\)/,
  );
});

test('a tls table on a Node without TLS is refused', () => {
  const problems: { key: string; message: string }[] = [];
  readTls(new TableReader('server', { tls: {} }, problems), '/', { tls: false, modes: true });
  expect(problems[0]).toEqual({ key: 'server.tls', message: expect.stringContaining('built without TLS') as string });
});

test('addresses', () => {
  expect(parseBindAddress('127.0.0.1:80')).toEqual({ host: '127.0.0.1', port: 80 });
  expect(parseBindAddress('[::1]:0')).toEqual({ host: '::1', port: 0 });
  expect(parseBindAddress('config.internal:8888')).toEqual({ host: 'config.internal', port: 8888 });
  for (const text of [
    '',
    ':80',
    '127.0.0.1',
    '127.0.0.1:',
    '127.0.0.1:65536',
    '::1:80',
    '[::1]',
    '[127.0.0.1]:80',
    'a b:80',
    'http://x:80',
  ]) {
    expect([text, parseBindAddress(text)]).toEqual([text, undefined]);
  }
});

test('the example of the tests is itself valid', async () => {
  expect(await problemsOf(SERVER_TOML)).toEqual([]);
});

test.each([
  ['no repository', 'branch = "main"', /^git\.repository: is missing/],
  [
    'a folder that is not a repository',
    'repository = "."\nbranch = "main"',
    /^git\.repository: .* is not a Git repository; clone one there/,
  ],
  ['neither branch nor pin', 'repository = "r"', /^git\.branch: is missing; set the branch to read, or pin a commit$/],
  ['a branch that leads out', 'repository = "r"\nbranch = "../../x"', /^git\.branch: is not a branch name/],
  ['a short pin', 'repository = "r"\npin = "abc123"', /^git\.pin: must be a whole commit id/],
  ['a path that leads out', 'repository = "r"\nbranch = "main"\npath = "a/../.."', /^git\.path: must be a folder inside the repository$/],
  ['an absolute path', 'repository = "r"\nbranch = "main"\npath = "/etc"', /^git\.path: must be a folder inside the repository$/],
  ['signers that are missing', 'repository = "r"\nbranch = "main"\nallowed_signers = "s"', /^git\.allowed_signers: .* is not a file$/],
  ['a keyring that is a file', 'repository = "r"\nbranch = "main"\ngnupg_home = "server.toml"', /^git\.gnupg_home: .* is not a folder$/],
  ['an unknown key', 'repository = "r"\nbranch = "main"\nremote = "x"', /^git\.remote: is not a known key/],
  [
    'a linked worktree',
    'repository = "w"\nbranch = "main"',
    /^git\.repository: .* is a linked worktree, a submodule or a clone with a separate Git directory; set /,
  ],
  ['a reftable', 'repository = "t"\nbranch = "main"', /^git\.repository: .* stores its refs as a reftable/],
])('a [git] table with %s is one problem, and its sections are not another', async (_name, table, expected) => {
  const folder = await temporaryFolder();
  for (const path of ['r/objects', 'w', 't/objects', 't/reftable']) await mkdir(join(folder, path), { recursive: true });
  for (const path of ['r/HEAD', 't/HEAD', 'w/.git']) await writeFile(join(folder, path), 'x');
  await writeFile(join(folder, 'server.toml'), `[git]\n${table}\n${toml(SECTION, CLIENT)}`);
  const { problems } = readServerConfig(join(folder, 'server.toml'), {});
  expect(problems.map(({ key, message }) => `${key}: ${message}`)).toEqual([expect.stringMatching(expected)]);
});

test('a file of a section cannot lead out of the repository', async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, 'r/objects'), { recursive: true });
  await writeFile(join(folder, 'r/HEAD'), 'x');
  const section = SECTION.replace('"a.toml"', '"../../a.toml"');
  await writeFile(join(folder, 'server.toml'), `[git]\nrepository = "r"\nbranch = "main"\npath = "x"\n${toml(section, CLIENT)}`);
  const { problems } = readServerConfig(join(folder, 'server.toml'), {});
  expect(problems).toEqual([
    expect.objectContaining({
      key: 'server.sections[0].files[0]',
      message: expect.stringMatching(/^\.\.\/\.\.\/a\.toml leads out/) as string,
    }),
  ]);
});
