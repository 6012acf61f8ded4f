import { chmod, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RemoteSource } from '../src/client/index.ts';
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
