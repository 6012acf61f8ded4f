import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { FILES, SERVER_TOML, TOKEN, writeFiles } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { parseBindAddress } from './bind-address.ts';
import { loadServerConfig, readServerConfig } from './config.ts';
import { StartRefusal } from './problem.ts';
import { readTls } from './read-tls.ts';
import { TableReader } from './table-reader.ts';

async function problemsOf(toml: string, files: Record<string, string> = {}): Promise<string[]> {
  const folder = await temporaryFolder();
  await writeFiles(folder, { ...FILES, ...files, 'server.toml': toml });
  return readServerConfig(join(folder, 'server.toml'), {}).problems.map((problem) => `${problem.key}: ${problem.message}`);
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
  ['an unknown key of a section', toml(`${SECTION}extra = 1`, CLIENT), /^server\.sections\[0\]\.extra: is not a known key/],
  ['an unknown key of a client', toml(SECTION, `${CLIENT}extra = 1`), /^server\.clients\[0\]\.extra: is not a known key/],
  ['no section', toml(CLIENT.replace('"a"', '')), /^server\.sections: no section is configured/],
  ['no client', toml(SECTION), /^server\.clients: no client is configured/],
  ['a section twice', toml(SECTION, SECTION, CLIENT), /^server\.sections\[1\]\.profile: the section a\/p is configured twice/],
  [
    'a client name twice',
    toml(SECTION, CLIENT, CLIENT.replace(TOKEN, `${TOKEN}x`)),
    /^server\.clients\[1\]\.name: another client has the same name/,
  ],
  [
    'a token twice',
    toml(SECTION, CLIENT, CLIENT.replace('"c"', '"d"')),
    /^server\.clients\[1\]\.token: is the same token as that of server\.clients\[0\]/,
  ],
  ['a short token', toml(SECTION, CLIENT.replace(TOKEN, 'x'.repeat(31))), /^server\.clients\[0\]\.token: is shorter than 32 characters/],
  [
    'a token no request could carry',
    toml(SECTION, CLIENT.replace(TOKEN, `${TOKEN} `)),
    /^server\.clients\[0\]\.token: holds control characters or surrounding white space/,
  ],
  [
    'a token of another client behind a first one of its own',
    toml(
      SECTION,
      CLIENT,
      `[[server.clients]]\nname = "d"\napplications = []\ntokens = [{ token = "${TOKEN}-own" }, { token = "${TOKEN}" }]\n`,
    ),
    /^server\.clients\[1\]\.token: is the same token as that of server\.clients\[0\]/,
  ],
  [
    'a token of a rotation with an unknown key',
    toml(SECTION, CLIENT.replace(/token = .*/, `tokens = [{ token = "${TOKEN}", expires = 1 }]`)),
    /^server\.clients\[0\]\.tokens\[0\]\.expires: is not a known key/,
  ],
  [
    'an empty entry of a rotation',
    toml(SECTION, CLIENT.replace(/token = .*/, `tokens = [{ token = "${TOKEN}" }, {}]`)),
    /^server\.clients\[0\]\.tokens\[1\]: needs exactly one of token, token_sha256, token_file/,
  ],
  [
    'a short token in a rotation',
    toml(SECTION, CLIENT.replace(/token = .*/, `tokens = [{ token = "${TOKEN}" }, { token = "short" }]`)),
    /^server\.clients\[0\]\.tokens\[1\]\.token: is shorter than 32 characters/,
  ],
  [
    'a grant of nothing',
    toml(SECTION, CLIENT.replace('["a"]', '["a", "zzz"]')),
    /^server\.clients\[0\]\.applications\[1\]: grants an application that no section serves/,
  ],
  [
    'two kinds of token',
    toml(SECTION, `${CLIENT}token_file = "x"`),
    /^server\.clients\[0\]: needs exactly one of token, token_sha256, token_file/,
  ],
  ['no token', toml(SECTION, CLIENT.replace(/token = .*/, '')), /^server\.clients\[0\]: needs exactly one of/],
  [
    'an upper-case digest',
    toml(SECTION, CLIENT.replace(/token = .*/, `token_sha256 = "${'A'.repeat(64)}"`)),
    /^server\.clients\[0\]\.token_sha256: must be the SHA-256/,
  ],
  [
    'a missing token file',
    toml(SECTION, CLIENT.replace(/token = .*/, 'token_file = "none"')),
    /^server\.clients\[0\]\.token_file: none cannot be read \(ENOENT\)/,
  ],
  [
    'an extension nobody reads',
    toml(SECTION.replace('a.toml', 'a.ini'), CLIENT),
    /^server\.sections\[0\]\.files\[0\]: the extension of a\.ini is not supported/,
  ],
  [
    'no files',
    toml(SECTION.replace('["a.toml"]', '[]'), CLIENT),
    /^server\.sections\[0\]\.files: must be an array that lists at least one file/,
  ],
  [
    'a file entry with an unknown key',
    toml(SECTION.replace('"a.toml"', '{ path = "a.toml", opt = true }'), CLIENT),
    /^server\.sections\[0\]\.files\[0\]\.opt: is not a known key/,
  ],
  ['a bind that is no address', toml('bind = "localhost"', SECTION, CLIENT), /^server\.bind: must be host:port/],
  ['a bind that is a port alone', toml('bind = 8888', SECTION, CLIENT), /^server\.bind: must be host:port/],
  [
    'health on the port of the service',
    toml('health_bind = "127.0.0.1:8888"', SECTION, CLIENT),
    /^server\.health_bind: is the address of bind; choose another port/,
  ],
  ['a negative debounce', toml('watch_debounce_ms = -1', SECTION, CLIENT), /^server\.watch_debounce_ms: must be a whole number/],
  [
    'a ceiling that is no integer',
    toml('max_stream_connections = 1.5', SECTION, CLIENT),
    /^server\.max_stream_connections: must be a whole number/,
  ],
  [
    'a client with control characters in its name',
    toml(SECTION, CLIENT.replace('"c"', String.raw`"a\nb"`)),
    /^server\.clients\[0\]\.name: cannot hold control/,
  ],
  [
    'an application that is no string',
    toml(SECTION.replace('"a"', '7'), CLIENT.replace('"a"', '')),
    /^server\.sections\[0\]\.application: must be a string/,
  ],
  ['sections that are no tables', toml('sections = 5', CLIENT.replace('"a"', '')), /^server\.sections: must be an array of tables/],
])('refused: %s', async (_what, text, message) => {
  const problems = await problemsOf(text);
  expect(problems.filter((problem) => message.test(problem))).toHaveLength(1);
  expect(problems.join('\n')).not.toContain(TOKEN);
});

test.each(['', '.hidden', 'a b', 'a/b', '-a', 'ä', 'a'.repeat(65)])('refused: the name %j, which no route could reach', async (name) => {
  const problems = await problemsOf(toml(SECTION.replace('"p"', JSON.stringify(name)), CLIENT));
  expect(problems).toEqual([expect.stringMatching(/^server\.sections\[0\]\.profile: /)]);
});

test.each([
  ['equal', 'pay-roll', 'pay_roll', ''],
  ['one the start of the other', 'pay', 'pay-', ''],
  ['set by hand', 'pay', 'zzz', 'env_prefix = "PAY__X"'],
])('refused: environment prefixes that overlap: %s', async (_what, first, second, extra) => {
  const sections = `[[server.sections]]\napplication = "${first}"\nprofile = "p"\nfiles = ["a.toml"]\n[[server.sections]]\napplication = "${second}"\nprofile = "p"\nfiles = ["a.toml"]\n${extra}\n`;
  const problems = await problemsOf(toml(sections, CLIENT.replace('"a"', '')));
  expect(problems).toEqual([expect.stringMatching(/^server\.sections: the environment prefixes of .* overlap; set env_prefix/)]);
});

test.each([
  ['sections outside of [server]', toml(CLIENT).concat(SECTION.replace('server.', '')), ['sections', 'server.sections']],
  ['a section in single brackets', toml(SECTION.replace('[[server.sections]]', '[server.sections]'), CLIENT), ['server.sections']],
  ['a client in single brackets', toml(SECTION, CLIENT.replace('[[server.clients]]', '[server.clients]')), ['server.clients']],
])('a mistake is told once, without others that only follow from it: %s', async (_what, text, keys) => {
  expect((await problemsOf(text)).map((problem) => problem.split(': ')[0])).toEqual(keys);
});

test('profiles of one application share their prefix', async () => {
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
  expect(problems.map((problem) => problem.split(':')[0])).toEqual([
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

test('a token file that is no text is refused: its bytes would be replaced by ones that can be guessed', async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'a.token'), Buffer.alloc(64, 0xff));
  await writeFile(join(folder, 'server.toml'), toml(SECTION, CLIENT.replace(/token = .*/, 'token_file = "a.token"')));
  expect(() => loadServerConfig(join(folder, 'server.toml'), {})).toThrow(
    /server\.clients\[0\]\.token_file: a\.token is not text in UTF-8/,
  );
});

test('a token file is held to the same length as a token', async () => {
  const short = toml(SECTION, CLIENT.replace(/token = .*/, 'token_file = "a.token"'));
  expect(await problemsOf(short, { 'a.token': `${'x'.repeat(31)}\n` })).toEqual([
    expect.stringMatching(/^server\.clients\[0\]\.token_file: is shorter than 32 characters/),
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
    'token_file: pipe.toml cannot be read (not a regular file)',
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
