import { expect, test } from 'vitest';
import { eventually, startServer, type Reply, type RunningServer } from '../../test/running-server.ts';

const DEVELOPER = 'developer-token-0123456789-0123456789';
const OPERATOR = 'operator-token-0123456789-0123456789';
const MIXED = 'mixed-token-0123456789-0123456789-abc';

const client = (name: string, token: string, applications: readonly string[]): string =>
  `[[server.clients]]\nname = "${name}"\ntoken = "${token}"\napplications = ${JSON.stringify(applications)}\n`;

const section = (application: string, profile: string, extra = ''): string =>
  `[[server.sections]]\napplication = "${application}"\nprofile = "${profile}"\nfiles = ["${application}-${profile}.toml"]\n${extra}`;

const SECTIONS = [section('billing', 'development'), section('billing', 'production'), section('orders', 'production')].join('');

const FILES = {
  'billing-development.toml': '[billing]\npassword = "development"\n',
  'billing-production.toml': '[billing]\npassword = "production"\n',
  'orders-production.toml': '[orders]\nregion = "eu"\n',
};

const toml = (...parts: readonly string[]): string => `[server]\nbind = "127.0.0.1:0"\nwatch_debounce_ms = 20\n${parts.join('')}`;

const CLIENTS = [
  client('developer', DEVELOPER, ['billing/development']),
  client('operator', OPERATOR, ['billing']),
  client('mixed', MIXED, ['billing/development', 'orders']),
];

const start = (...clients: readonly string[]): Promise<RunningServer> =>
  startServer({ toml: toml(SECTIONS, ...(clients.length > 0 ? clients : CLIENTS)), files: FILES });

const ENDPOINTS = ['', '/paths', '/explain/password', '/check', '/status', '/stream'];

/** Everything of an answer that reaches the caller, except its date. */
function bytesOf(reply: Reply): string {
  return JSON.stringify([reply.status, reply.rawHeaders.filter((_, index, all) => all[index - (index % 2)] !== 'Date'), reply.text]);
}

test('a grant of one profile gives that profile and none of the others', async () => {
  const running = await start();
  expect((await running.ask('/billing/development', { token: DEVELOPER })).json()).toEqual({ password: 'development' });
  for (const endpoint of ENDPOINTS.slice(0, -1)) {
    expect([endpoint, (await running.ask(`/billing/development${endpoint}`, { token: DEVELOPER })).status]).toEqual([endpoint, 200]);
  }
  expect((await running.ask('/billing/production', { token: DEVELOPER })).status).toBe(404);
});

test('a grant of an application gives every profile of it', async () => {
  const running = await start();
  for (const profile of ['development', 'production']) {
    expect((await running.ask(`/billing/${profile}`, { token: OPERATOR })).json()).toEqual({ password: profile });
  }
  expect((await running.ask('/orders/production', { token: OPERATOR })).status).toBe(404);
});

test('grants of both kinds are held side by side', async () => {
  const running = await start();
  const status = async (path: string): Promise<number> => (await running.ask(path, { token: MIXED })).status;
  expect([await status('/billing/development'), await status('/billing/production'), await status('/orders/production')]).toEqual([
    200, 404, 200,
  ]);
});

test('a profile that is not granted and one that does not exist are the same 404 on every endpoint', async () => {
  const running = await start();
  const reference = bytesOf(await running.ask('/no/such', { token: DEVELOPER }));
  for (const endpoint of ENDPOINTS) {
    for (const path of ['/billing/production', '/billing/nowhere', '/orders/production', '/orders/development', '/absent/development']) {
      expect([path, endpoint, bytesOf(await running.ask(path + endpoint, { token: DEVELOPER }))]).toEqual([path, endpoint, reference]);
    }
  }
});

test('percent-encoding does not turn one profile into another', async () => {
  const running = await start();
  expect((await running.ask('/billing/%64evelopment', { token: DEVELOPER })).status).toBe(200);
  for (const path of ['/billing/%70roduction', '/billing%2Fdevelopment/production', '/billing/development%2F..%2Fproduction']) {
    expect([path, (await running.ask(path, { token: DEVELOPER })).status]).toEqual([path, 404]);
  }
});

test('a caller with a grant of one profile sees the metrics of that profile only', async () => {
  const running = await start();
  const labels = async (token: string): Promise<string[]> => {
    const { text } = await running.ask('/metrics', { token });
    return [...new Set([...text.matchAll(/\{application="(\w+)",profile="(\w+)"\}/g)].map(([, ...names]) => names.join('/')))];
  };
  expect(await labels(DEVELOPER)).toEqual(['billing/development']);
  expect(await labels(OPERATOR)).toEqual(['billing/development', 'billing/production']);
  expect(await labels(MIXED)).toEqual(['billing/development', 'orders/production']);
});

test('a grant that is narrowed to one profile ends the streams of the others, and only those', async () => {
  const running = await start(client('operator', OPERATOR, ['billing']));
  const ended = running.ask('/billing/production/stream', { token: OPERATOR });
  let kept = true;
  void running.ask('/billing/development/stream', { token: OPERATOR }).then(() => (kept = false));
  await eventually(() => running.server.streams.open === 2, 'open streams');
  await running.write('server.toml', toml(SECTIONS, client('operator', OPERATOR, ['billing/development'])));
  expect((await ended).text).toContain('"profile":"production"');
  expect((await running.ask('/billing/production/stream', { token: OPERATOR })).status).toBe(404);
  expect([kept, running.server.streams.open]).toEqual([true, 1]);
});

test('an edit that removes a profile which is granted by name is refused and keeps the running configuration', async () => {
  const running = await start();
  const without = toml(section('billing', 'production'), section('orders', 'production'), ...CLIENTS);
  await running.write('server.toml', without);
  await eventually(() => running.log.some((line) => line.includes('(client "developer"): grants billing/development')), 'the refusal');
  expect((await running.ask('/billing/development', { token: DEVELOPER })).status).toBe(200);
});

test('the audit line of a profile that is not granted names it and says not-found', async () => {
  const running = await start();
  await running.ask('/billing/production', { token: DEVELOPER });
  expect(running.audit.at(-1)).toMatchObject({
    caller: 'developer',
    application: 'billing',
    profile: 'production',
    outcome: 'not-found',
    generation: null,
  });
});

test('an environment prefix of its own gives a profile values that no other profile gets', async () => {
  const own = (profile: string): string => section('billing', profile, `env_prefix = "BILLING_${profile.toUpperCase()}__"\n`);
  const running = await startServer({
    toml: toml(own('development'), own('production'), client('operator', OPERATOR, ['billing'])),
    files: FILES,
    environment: { BILLING_PRODUCTION__PASSWORD: 'from the environment', BILLING_PRODUCTION__POOL__SIZE: '9', BILLING__PASSWORD: 'shared' },
  });
  expect((await running.ask('/billing/production', { token: OPERATOR })).json()).toEqual({
    password: 'from the environment',
    pool: { size: 9 },
  });
  expect((await running.ask('/billing/development', { token: OPERATOR })).json()).toEqual({ password: 'development' });
  const { rows } = (await running.ask('/billing/production/explain/password', { token: OPERATOR })).json();
  expect(rows[1]).toEqual({ layer: 'environment', origin: 'env BILLING_PRODUCTION__PASSWORD', value: '***' });
});
