import { chmod, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RemoteSource } from '../src/client/index.ts';
import { newIdentity, seal, writeIdentity } from './age-identity.ts';
import { runCli, startCli } from './cli-server.ts';
import { exchange, exchangeRaw } from './http-exchange.ts';
import { folderWith } from './served-folder.ts';

// A value is planted in every place the server reads: files of each format, the environment, tokens, a schema that refuses, and broken
// versions of all of them. Then everything it prints and answers, the document itself aside, is searched for what was planted.

const canary = (name: string): string => `canary${name}5ecret`;
const tokens = { billing: `${canary('tokenA')}-0123456789-0123456789`, orders: `${canary('tokenB')}-0123456789-0123456789` };

const good = {
  'billing.toml': `[billing]\nname = "${canary('toml')}"\nnumber = 730219465\n[billing.pool]\nsize = 5\nlist = ["${canary('list')}"]\n`,
  'billing.yaml': `billing:\n  yaml: ${canary('yaml')}\n  pool:\n    password: "${canary('password')}"\n`,
  'orders.json': JSON.stringify({ json: canary('json'), nested: { deep: canary('deep') } }),
  'orders.schema.json': JSON.stringify({ type: 'object', properties: { json: { type: 'string', minLength: 3 } } }),
};

const toml = `
[server]
bind = "127.0.0.1:0"
watch_debounce_ms = 20
[[server.sections]]
application = "billing"
profile = "production"
files = ["billing.toml", "billing.yaml"]
[[server.sections]]
application = "orders"
profile = "production"
files = ["orders.json"]
whole_document = true
schema = "orders.schema.json"
[[server.clients]]
name = "billing-caller"
token = "${tokens.billing}"
applications = ["billing"]
[[server.clients]]
name = "orders-caller"
token = "${tokens.orders}"
applications = ["orders"]
`;

const env = { BILLING__POOL__SECRET: canary('env'), ORDERS__NESTED__EXTRA: `{"a":"${canary('envjson')}"}` };

/** Each leaves the section failing in another way, with a canary close to the place the parser complains about. */
const broken: readonly [file: keyof typeof good, content: string][] = [
  ['billing.toml', `[billing]\nname = ${canary('bare')}\n`],
  ['billing.toml', `[billing]\nname = "${canary('open')}`],
  ['billing.toml', `[billing]\n"${canary('x')}" = 1\n"${canary('x')}" = 2\n`],
  ['billing.toml', `billing = "${canary('scalar')}"\n`],
  ['billing.toml', `[billing]\nbig = 99999999999999999999\nname = "${canary('big')}"\n`],
  ['billing.yaml', `billing:\n  pool: ${canary('over')}\n`],
  ['billing.yaml', `billing:\n  yaml: [${canary('flow')}\n  x: "${canary('quote')}\n`],
  ['billing.yaml', `billing: {yaml: *${canary('alias')}}\n`],
  ['billing.yaml', `billing:\n\t${canary('tab')}: 1\n`],
  ['billing.yaml', canary('top')],
  ['orders.json', `{"json": "${canary('torn')}`],
  ['orders.json', `{"json": ${canary('word')}}`],
  ['orders.json', JSON.stringify({ json: [canary('schema')] })],
  ['orders.json', JSON.stringify([canary('array')])],
  ['orders.json', JSON.stringify({ nested: canary('nested') })],
  ['orders.schema.json', `{"const": "${canary('const')}"`],
  ['orders.schema.json', JSON.stringify({ properties: { json: { enum: [canary('enum')] }, nested: { not: {} } } })],
  ['orders.schema.json', JSON.stringify({ $ref: `#/${canary('ref')}` })],
];

test(
  'no value and no token appears in any response but the document, in any printed line, or in any error',
  { timeout: 600_000 },
  async () => {
    const folder = await folderWith({ ...good, 'server.toml': toml });
    const server = await startCli(join(folder, 'server.toml'), { env });
    const seen: string[] = [];
    const look = (label: string, text: string): void => {
      seen.push(`${label}: ${text}`);
    };
    const visit = async (state: string): Promise<void> => {
      for (const application of ['billing', 'orders'] as const) {
        for (const token of [tokens.billing, tokens.orders, `${canary('wrong')}-0123456789-0123456789-01`, undefined]) {
          for (const method of ['GET', 'HEAD', 'POST', 'DELETE']) {
            for (const path of pathsOf(application)) {
              const answer = await exchange(server.url, path, { method, ...(token === undefined ? {} : { token }) });
              look(`${state} ${method} ${path}`, JSON.stringify(answer));
            }
          }
        }
        look(`${state} stream`, await readStream(server.port, application));
        // The one endpoint that may show values is proof that the planted ones are really being served.
        const document = await exchange(server.url, `/${application}/production`, { token: tokens[application] });
        expect(document.body).toContain('canary');
        look('document headers', JSON.stringify(document.headers));
        const source = new RemoteSource({
          url: server.url,
          application,
          profile: 'production',
          token: `${canary('client')}-0123456789-0123456789`,
        });
        look('client', JSON.stringify(await source.refresh()));
      }
    };
    await visit('healthy');
    for (const [file, content] of broken) {
      const application = file.startsWith('billing') ? 'billing' : 'orders';
      const failuresOf = async (): Promise<number> => {
        const { body } = await exchange(server.url, `/${application}/production/status`, { token: tokens[application] });
        return (JSON.parse(body) as { consecutive_failures: number }).consecutive_failures;
      };
      await writeFile(join(folder, file), content);
      await expect.poll(failuresOf, { timeout: 120_000, interval: 10, message: `${file} ${content} must fail` }).toBeGreaterThan(0);
      for (const path of pathsOf(application)) {
        look(`${file} ${content.length}`, JSON.stringify(await exchange(server.url, path, { token: tokens[application] })));
      }
      await writeFile(join(folder, file), good[file]);
      await expect.poll(failuresOf, { timeout: 120_000, interval: 10 }).toBe(0);
    }
    await writeFile(
      join(folder, 'server.toml'),
      toml.replace(/^bind/m, `stray_key = "${canary('keyvalue')}"\ntoken = "${canary('stray')}"\nbind`),
    );
    await expect.poll(async () => (await exchange(server.url, '/readyz')).status, { timeout: 120_000 }).toBe(503);
    await writeFile(join(folder, 'server.toml'), `${toml}\n[[server.clients]]\nname = "x"\ntoken = "${canary('unterminated')}`);
    await visit('server.toml broken');
    for (const bytes of [
      `GET /${canary('path')}%20/production HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${tokens.billing}\r\n\r\n`,
      `GET /billing/${canary('profile')}%00 HTTP/1.1\r\nhost: x\r\nauthorization: Basic ${canary('basic')}\r\n\r\n`,
      `GET / ${canary('line')}\r\n\r\n`,
      `${canary('method')} / HTTP/1.1\r\nhost: x\r\n\r\n`,
      `GET /healthz HTTP/1.1\r\nhost: x\r\n${canary('header')} ${canary('header')}\r\n\r\n`,
    ]) {
      // What a caller sent and the server repeats in its own answer would not be a leak, but it would be in a log.
      look('raw', await exchangeRaw(server.port, bytes, 300));
    }
    expect(await server.stop('SIGTERM')).toBe(0);
    look('printed', server.printed());
    expect(seen.length).toBeGreaterThan(500);
    const leaks = seen.flatMap((text) => text.split('\n')).filter((line) => /canary\w*5ecret|730219465/i.test(line));
    expect(leaks).toEqual([]);
  },
);

const pathsOf = (application: string): string[] => [
  ...['paths', 'check', 'status', 'explain/name', 'explain/pool', 'explain/pool.secret', 'explain/nested.extra.a', 'explain/json'].map(
    (rest) => `/${application}/production/${rest}`,
  ),
  `/${application}/nowhere`,
  '/metrics',
  '/healthz',
  '/readyz',
  '/nothing',
];

function readStream(port: number, application: 'billing' | 'orders'): Promise<string> {
  const head = `GET /${application}/production/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${tokens[application]}\r\n\r\n`;
  return exchangeRaw(port, head, 200);
}

test('no decrypted value, mounted secret or identity appears outside the document, whatever is broken', { timeout: 600_000 }, async () => {
  const [own, other] = [await newIdentity(), await newIdentity()];
  const sealed = await seal(own, 'billing.toml', 'billing.enc', canary('enc'));
  const folder = await folderWith({ 'mounts/secret': canary('mounted'), outside: canary('outside'), 'server.toml': '' });
  const section = (enc: string, mounted = 'secret'): string =>
    `[billing]\nname = "plain"\nenc = "${enc}"\nmounted = "ref+file://${join(folder, 'mounts', mounted)}"\n`;
  writeIdentity(folder, 'identity.txt', own);
  const secrets = '[server.secrets]\nidentities = "identity.txt"\nmounts = "mounts"\n';
  const [head = ''] = toml.split('[[server.sections]]\napplication = "orders"');
  const clients = `[[server.clients]]\nname = "billing-caller"\ntoken = "${tokens.billing}"\napplications = ["billing"]\noperator = true\n`;
  const serverFile = head.replace('[[', `explain_lines = true\n${secrets}[[`).replace(', "billing.yaml"', '') + clients;
  await writeFile(join(folder, 'server.toml'), serverFile);
  await writeFile(join(folder, 'billing.toml'), section(sealed));
  await symlink(join(folder, 'outside'), join(folder, 'mounts/link'));
  await writeFile(join(folder, 'mounts/binary'), Buffer.concat([Buffer.from(canary('binary')), Buffer.from([0xff, 0xfe])]));
  const server = await startCli(join(folder, 'server.toml'), { env: {} });
  const seen: string[] = [];
  const get = async (path: string) => exchange(server.url, `/billing/production${path}`, { token: tokens.billing });
  const look = async (state: string): Promise<void> => {
    for (const path of ['/paths', '/check', '/status', '/history', '/explain/enc', '/explain/mounted', '/explain/name'])
      seen.push(`${state} ${path} ${JSON.stringify(await get(path))}`);
    for (const path of ['/metrics', '/healthz', '/readyz'])
      seen.push(`${state} ${path} ${JSON.stringify(await exchange(server.url, path))}`);
    seen.push(`${state} --check ${(await runCli(['--check', join(folder, 'server.toml')], { env: {} })).printed}`);
  };
  const { body } = await get('');
  expect(JSON.parse(body)).toEqual({ name: 'plain', enc: canary('enc'), mounted: canary('mounted') });
  await look('healthy');
  const failures = async (): Promise<number> =>
    (JSON.parse((await get('/status')).body) as { consecutive_failures: number }).consecutive_failures;
  const broken = {
    'of another key': section(await seal(own, 'billing.toml', 'billing.name', canary('moved'))),
    'of another file': section(await seal(own, 'orders.toml', 'billing.enc', canary('file'))),
    'for somebody else': section(await seal(other, 'billing.toml', 'billing.enc', canary('other'))),
    'cut off': section(`${sealed.slice(0, -60)}]`),
    'a link that leads out': section(sealed, 'link'),
    'not text': section(sealed, 'binary'),
    'not there': section(sealed, 'nothing'),
  };
  for (const [name, content] of Object.entries(broken)) {
    await writeFile(join(folder, 'billing.toml'), content);
    await expect.poll(failures, { timeout: 120_000, interval: 10, message: `a value ${name} must fail` }).toBeGreaterThan(0);
    await look(name);
    await writeFile(join(folder, 'billing.toml'), section(sealed));
    await expect.poll(failures, { timeout: 120_000, interval: 10 }).toBe(0);
  }
  await writeFile(join(folder, 'identity.txt'), own.identity.slice(0, -1));
  await expect.poll(async () => (await exchange(server.url, '/readyz')).status, { timeout: 120_000 }).toBe(503);
  await look('a broken identity');
  expect(await server.stop('SIGTERM')).toBe(0);
  seen.push(server.printed());
  expect(seen.length).toBeGreaterThan(90);
  const secret = own.identity.slice(20, 60);
  expect(
    seen
      .join('\n')
      .split('\n')
      .filter((line) => /canary\w*5ecret/i.test(line) || line.toUpperCase().includes(secret.toUpperCase())),
  ).toEqual([]);
});

test('a refused start prints no token, value or key byte', { timeout: 600_000 }, async () => {
  const key = `-----BEGIN PRIVATE KEY-----\n${canary('keybytes')}\n-----END PRIVATE KEY-----\n`;
  const short = canary('short').slice(0, 20);
  const files = { ...good, 'server.key': key, 'server.pem': canary('pem'), 'token.txt': short };
  const refused: Record<string, string> = {
    'not TOML near a token': toml.replace(tokens.billing, `${tokens.billing}"`),
    'a short token': toml.replace(tokens.billing, short),
    'a short token in a file': toml.replace(`token = "${tokens.billing}"`, 'token_file = "token.txt"'),
    'a token of the wrong type': toml.replace(`token = "${tokens.billing}"`, `token = ["${tokens.billing}"]`),
    'a digest that is a token': toml.replace(`token = "${tokens.billing}"`, `token_sha256 = "${tokens.billing}"`),
    'two kinds of token': toml.replace(`token = "${tokens.billing}"`, `token = "${tokens.billing}"\ntoken_file = "token.txt"`),
    'a shared token': toml.replace(tokens.billing, tokens.orders),
    'an unknown key with a token in it': toml.replace('[server]', `[server]\npassword = "${canary('unknown')}"`),
    'a key that is not one': `${toml}[server.tls]\ncertificate = "server.pem"\nkey = "server.key"\n`,
    'a section that does not parse': toml.replace('"orders.json"', '"bad.json"'),
    'a section below a scalar': toml,
  };
  for (const [name, content] of Object.entries(refused)) {
    const folder = await folderWith({ ...files, 'bad.json': `{"a": ${canary('badjson')}`, 'server.toml': content });
    await chmod(join(folder, 'server.key'), 0o600);
    const overridden = name === 'a section below a scalar' ? { BILLING__NAME__BELOW: canary('below') } : {};
    for (const args of [[join(folder, 'server.toml')], ['--check', join(folder, 'server.toml')]]) {
      const { code, printed } = await runCli(args, { env: { ...env, ...overridden } });
      expect({ name, code }).toEqual({ name, code: 1 });
      expect(printed).toContain('config-server: refusing to start');
      expect(printed.match(/canary\w*5ecret|canaryshort/gi)).toBeNull();
    }
    await rm(folder, { recursive: true, force: true });
  }
});
