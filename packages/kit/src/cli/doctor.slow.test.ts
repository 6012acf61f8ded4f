import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KitProgram, sourceOf } from '../../test/cli/kit-program.ts';
import { checkDescriptions } from '../app/check/checks.ts';

let folder = '';
let program: KitProgram;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-doctor-'));
  program = new KitProgram(folder, { TRUSTED_PROXIES: 'none' });
  await writeFile(
    join(folder, 'kit.config.ts'),
    `import { createApp } from ${sourceOf('index.ts')};
import { allowAny, isAuthenticated } from ${sourceOf('permissions/index.ts')};
import { Controller, route } from ${sourceOf('index.ts')};
import { clientThrottle } from ${sourceOf('throttle/index.ts')};
import { accounts, AccountController } from ${sourceOf('contrib/accounts/index.ts')};
import { apiKeys, ApiKeyController } from ${sourceOf('contrib/apikeys/index.ts')};
import { webhooks, WebhookEndpointController } from ${sourceOf('contrib/webhooks/index.ts')};
import { jobs, JobController } from ${sourceOf('contrib/jobs/index.ts')};
import { audit, AuditController } from ${sourceOf('contrib/audit/index.ts')};
import { admin } from ${sourceOf('admin/index.ts')};
import { HealthController } from ${sourceOf('middleware/index.ts')};
import { CrudController, resource } from ${sourceOf('crud/index.ts')};
import { createTable, migration, model, softDelete, t } from ${sourceOf('db/index.ts')};
const columns = { id: t.uuidv7().pk(), owner_id: t.uuid().nullable() };
const things = model('things', columns);
const codeColumns = { code: t.text(40).unique(), id: t.uuidv7().pk(), ...softDelete() };
const codes = model('codes', codeColumns);
class ThingController extends CrudController(resource(things, { unscoped: true }), { permission: isAuthenticated }) {}
export class NoteController extends Controller {
  each = route.get('/each', { permission: allowAny, status: 204 }, async ({ db }) => {
    for (let row = 0; row < Number(process.env['ROWS']); row += 1) await db.query('select id from users where username = $1', [String(row)]);
  });
  add = route.post('/', { permission: allowAny, throttles: [clientThrottle('5/min')], status: 204 }, () => undefined);
  contact = route.post('/contact', { permission: allowAny, throttles: [clientThrottle('5/min')], status: 204, metadata: { openWrite: 'a contact form' } }, () => undefined);
}
const own = process.env['OWN'] === '1';
export default createApp({
  database: 'sqlite:app.db',
  modules: [accounts(), audit(), apiKeys(), webhooks(), jobs(), admin(),
    ...(own ? [{ name: 'things', models: [things, codes], migrations: [migration('0001_initial', [createTable('things', columns), createTable('codes', codeColumns)])] }] : [])],
  mount: {
    '/v1': process.env['BARE'] === '1' ? { '/account': AccountController } : { '/account': AccountController, '/api-keys': ApiKeyController, '/webhooks': WebhookEndpointController, '/jobs': JobController, '/audit': AuditController,
      ...(own ? { '/things': ThingController, '/notes': NoteController } : {}) },
    '/': { '/health': HealthController },
  },
  silencedChecks: process.env['SILENCED'] === undefined ? {} : JSON.parse(process.env['SILENCED']),
});
`,
  );
  await program.run(['migrate'], { environment: { OWN: '1' } });
});
afterAll(async () => {
  await program.close();
  await rm(folder, { recursive: true, force: true });
});

const doctor = (args: readonly string[] = [], environment: Readonly<Record<string, string>> = {}) =>
  program.run(['doctor', ...args], { environment });

interface Report {
  readonly findings: readonly { readonly id?: string; readonly subject: string; readonly state: string; readonly detail: string }[];
}

test('an app of the modules of the toolkit alone has no finding about their routes, models and resources', async () => {
  const { findings } = JSON.parse((await doctor(['--json'])).stdout) as Report;
  expect(findings.filter(({ subject, state }) => state !== 'ok' && /^(?:routes|models|resource|app)/.test(subject))).toEqual([]);
});

test('a unique index beside soft deletion and an owner that nothing scopes by are found, each with an id that the page explains', async () => {
  const { stdout, code } = await doctor([], { OWN: '1' });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^warning models: W018 the unique index \S+ of codes \(code\) also counts soft-deleted rows\./m);
  expect(stdout).toMatch(
    /^warning resource thing: W019 every caller of ThingController sees every row of things, which has the column owner_id\./m,
  );
  const { findings } = JSON.parse((await doctor(['--json'], { OWN: '1' })).stdout) as Report;
  const ids = findings.flatMap(({ id }) => id ?? []);
  expect(ids.filter((id) => checkDescriptions[id] === undefined)).toEqual([]);
  expect(findings.filter(({ state, id }) => state !== 'ok' && id === undefined)).toEqual([]);
});

test('a write that needs no credential is found, unless its route says why it is open', async () => {
  const { stdout } = await doctor([], { OWN: '1' });
  expect(stdout.match(/W027 .*/g)).toEqual([
    "W027 NoteController.add: anyone on the network may POST /v1/notes, without a credential. Set a permission, or say why it is open: metadata: { openWrite: 'a contact form' }.",
  ]);
});

test('a request that repeated a statement in the last test run is found, and no longer once the tests pass without it', async () => {
  await writeFile(
    join(folder, 'requests.ts'),
    `import { testApp } from ${sourceOf('testing/index.ts')};
import { accounts } from ${sourceOf('contrib/accounts/index.ts')};
import { NoteController } from './kit.config.ts';
await using app = await testApp({ modules: [accounts()], mount: { '/v1': { '/notes': NoteController } } });
for (let request = 0; request < 2; request += 1) if ((await app.inject('/v1/notes/each')).statusCode !== 204) process.exit(1);
`,
  );
  const runTests = (rows: number) =>
    promisify(execFile)(process.execPath, ['--conditions=source', 'requests.ts'], {
      cwd: folder,
      env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ROWS: String(rows) },
    });
  const found = async (environment: Readonly<Record<string, string>> = {}) =>
    (await doctor([], { OWN: '1', ...environment })).stdout.match(/^.* W030 .*/gm);
  expect(await found()).toBeNull();
  await runTests(6);
  expect(await found()).toEqual([
    expect.stringMatching(
      /^warning tests: W030 NoteController\.each \(GET \/v1\/notes\/each\) ran the same statement on "users" 5 times or more in one request/,
    ),
  ]);
  expect(await found({ SILENCED: JSON.stringify({ W030: 'five rows at most' }) })).toEqual([
    expect.stringMatching(/^silenced tests: W030/),
  ]);
  // Without the route there is nothing to repair.
  expect(await found({ OWN: '0' })).toBeNull();
  await runTests(4);
  expect(await found()).toBeNull();
});

test('clients that are counted by address, without a word about proxies, are found', async () => {
  expect((await doctor([], { TRUSTED_PROXIES: '' })).stdout).toMatch(/^warning proxies: W014 /m);
  expect((await doctor([], { TRUSTED_PROXIES: '10.0.0.1' })).stdout).not.toContain('W014');
});

test('a process that stops without giving its proxy time to notice is found', async () => {
  expect((await doctor([], { TRUSTED_PROXIES: '10.0.0.1' })).stdout).toMatch(/^warning proxies: W044 .+ Set SHUTDOWN_DELAY_MS /m);
  for (const environment of [{ TRUSTED_PROXIES: '10.0.0.1', SHUTDOWN_DELAY_MS: '2000' }, { TRUSTED_PROXIES: 'none' }])
    expect((await doctor([], environment)).stdout).not.toContain('W044');
});

test('in production, a missing pepper and secrets stored in plain text are found', async () => {
  const found = async (environment: Readonly<Record<string, string>>): Promise<string[]> =>
    ((await doctor([], environment)).stdout.match(/^warning \w+: W028/gm) ?? []).map((line) => line.split(/[ :]/)[1]!);
  expect(await found({})).toEqual([]);
  expect(await found({ NODE_ENV: 'production' })).toEqual(['apikeys', 'webhooks']);
  const key = `${Buffer.alloc(32, 7).toString('base64url')}=`;
  expect(await found({ NODE_ENV: 'production', API_KEY_PEPPER: 'p'.repeat(40), WEBHOOK_SECRET_KEYS: key })).toEqual([]);
});

test('--fail-on warn fails on warnings; silenced ones do not count, and keep their reason', async () => {
  expect((await doctor(['--fail-on', 'warn'], { OWN: '1' })).code).toBe(1);
  const silenced = JSON.stringify({ W018: 'codes are never used again', W019: 'a shared catalog', W027: 'a demo' });
  const { code, stdout } = await doctor(['--fail-on', 'warn'], { OWN: '1', SILENCED: silenced });
  expect(stdout).toMatch(/^silenced models: W018 .* Silenced: codes are never used again$/m);
  expect([code, stdout.match(/^warning.*/gm)]).toEqual([0, null]);
  expect((await doctor(['--fail-on', 'errors'])).code).toBe(1);
});

test('only warnings that exist can be silenced, and only with a reason', async () => {
  const { stderr } = await program.run(['inspect'], {
    environment: { SILENCED: JSON.stringify({ E006: 'because', W018: '', W0189: 'because' }) },
  });
  expect(stderr).toContain('silencedChecks.E006": only warnings (W…) can be silenced.');
  expect(stderr).toContain('silencedChecks.W018": has no reason.');
  expect(stderr).toContain('silencedChecks.W0189": there is no such check. Did you mean "W018"?');
});

test('SARIF has a rule for every result, and the reason of what is silenced', async () => {
  const { stdout } = await doctor(['--format', 'sarif'], { OWN: '1', SILENCED: JSON.stringify({ W019: 'a shared catalog' }) });
  const { version, runs } = JSON.parse(stdout) as {
    version: string;
    runs: { tool: { driver: { rules: { id: string }[] } }; results: { ruleId: string; level: string; suppressions?: object[] }[] }[];
  };
  expect(version).toBe('2.1.0');
  expect(runs[0]?.tool.driver.rules.map(({ id }) => id)).toEqual([...new Set(runs[0]?.results.map(({ ruleId }) => ruleId))].sort());
  expect(runs[0]?.results).toContainEqual(expect.objectContaining({ ruleId: 'W018', level: 'warning' }));
  expect(runs[0]?.results).toContainEqual(
    expect.objectContaining({ ruleId: 'W019', level: 'note', suppressions: [{ kind: 'inSource', justification: 'a shared catalog' }] }),
  );
});

test('kit inspect shows a resource with its policy, operations and the SQL of its rows', async () => {
  const { stdout } = await program.run(['inspect', 'things', '--sql'], { environment: { OWN: '1' } });
  expect(stdout).toContain('thing (table things, ThingController)\n├─ rows\n│  └─ every row (unscoped)\n├─ fields\n│  ├─ id: visible to ');
  expect(stdout).toMatch(
    /^│ {2}├─ create: POST \/v1\/things\n│ {2}│ {2}├─ permission: isAuthenticated\n│ {2}│ {2}├─ idempotency key: accepted\n│ {2}│ {2}└─ statements: /m,
  );
  expect(stdout).toMatch(/^└─ sql of the list\n {3}└─ select .*"owner_id".* from "things" .*limit/m);
  const [described] = JSON.parse((await program.run(['inspect', 'things', '--json', '--sql'], { environment: { OWN: '1' } })).stdout) as {
    sql: string[];
    relations: object[];
    operations: { name: string; idempotency: string }[];
  }[];
  expect(described).toMatchObject({ relations: [], sql: [expect.stringContaining('from "things"') as string] });
  expect(described?.operations.find(({ name }) => name === 'create')).toMatchObject({
    idempotency: 'accepted',
    throttles: [],
    transaction: false,
  });
  const refused = (args: string[], environment: Record<string, string>) =>
    program.run(['inspect', ...args, '--sql'], { environment }).then(({ code, stderr }) => [code, stderr]);
  expect(await refused([], { OWN: '1' })).toEqual([1, 'error: --sql is for one resource: kit inspect things --sql.\n']);
  expect(await refused(['zzzzzz'], { OWN: '1' })).toEqual([
    1,
    expect.stringMatching(/^error: There is no resource "zzzzzz"\. Known: things, thing, /),
  ]);
  expect(await refused(['audit_entry'], {})).toEqual([0, '']);
  expect(await refused(['nothing'], { BARE: '1' })).toEqual([1, 'error: --sql is for a resource; the app has none.\n']);
});
