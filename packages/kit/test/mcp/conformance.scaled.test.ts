import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type OrdersProcess, startOrders } from '../../../../test/clients/orders-process.ts';
import { freePort } from '../../../../test/provision/free-port.ts';
import { scaled } from '../../../../test/provision/scale.ts';
import { BASELINE } from './conformance/baseline.ts';

// The official conformance suite and the official inspector against conformance/serve.ts. `npm test` skips them: they are installed from npm.
const isWanted = process.env['KIT_TEST_LONG'] === '1' || process.env['KIT_REQUIRE_CONFORMANCE'] === '1';
const FIFTEEN_MINUTES = 900_000;
const VERSIONS = { '@modelcontextprotocol/conformance': '0.2.0-alpha.12', '@modelcontextprotocol/inspector': '2.12.0' };

/** Scenarios whose checks must all pass. With nothing listening each of them fails, so that they count. */
const PASSED: Readonly<Record<string, readonly string[]>> = {
  '2026-07-28': [
    'tools-list',
    'tools-call-simple-text',
    'tools-call-error',
    'tools-call-with-progress',
    'resources-list',
    'prompts-list',
    'prompts-get-simple',
    'prompts-get-with-args',
    'dns-rebinding-protection',
    'http-header-validation',
  ],
  '2025-11-25': [
    'server-initialize',
    'ping',
    'tools-list',
    'tools-call-simple-text',
    'tools-call-error',
    'tools-call-with-progress',
    'dns-rebinding-protection',
  ],
};

const EXPECTED = new Set(
  BASELINE.flatMap(({ checks }) => Object.entries(checks).flatMap(([scenario, ids]) => ids.map((id) => `${scenario} ${id}`))),
);

interface Check {
  readonly id: string;
  readonly status: string;
}

describe.skipIf(!isWanted)('the official tools of the protocol', () => {
  let folder = '';
  let results = '';
  let url = '';
  let server: ReturnType<typeof spawn>;
  const seen = new Set<string>();

  beforeAll(async () => {
    folder = join(import.meta.dirname, '../../../../node_modules/.cache/mcp-conformance', Object.values(VERSIONS).join('-'));
    if (!existsSync(join(folder, 'installed'))) {
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies: VERSIONS }));
      const { status, stderr } = spawnSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'], {
        cwd: folder,
        encoding: 'utf8',
      });
      if (status !== 0) throw new Error(`The conformance suite could not be installed: ${stderr}`);
      writeFileSync(join(folder, 'installed'), '');
    }
    results = mkdtempSync(join(tmpdir(), 'kit-conformance-'));
    server = spawn(process.execPath, ['--conditions=source', join(import.meta.dirname, 'conformance/serve.ts')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    url = await new Promise<string>((done, failed) => {
      server.once('exit', (code) => failed(new Error(`the server exited with ${code}`)));
      server.stdout?.on('data', (chunk: Buffer) => done(chunk.toString().trim()));
    });
  });
  afterAll(() => {
    server.kill();
    rmSync(results, { recursive: true, force: true });
  });

  const run = (program: string, args: readonly string[]) =>
    spawnSync(process.execPath, [join(folder, 'node_modules/.bin', program), ...args], { encoding: 'utf8', cwd: folder });

  function checksOf(version: string): ReadonlyMap<string, readonly Check[]> {
    const found = readdirSync(join(results, version)).map((name): [string, readonly Check[]] => {
      const scenario = /^server-(.*)-20\d\d-/.exec(name)?.[1] ?? name;
      return [scenario, JSON.parse(readFileSync(join(results, version, name, 'checks.json'), 'utf8')) as Check[]];
    });
    return new Map(found);
  }

  test.for(Object.keys(PASSED))(
    'the conformance suite passes what is offered of %s, and what fails is known',
    { timeout: FIFTEEN_MINUTES },
    (version) => {
      run('conformance', ['server', '--url', url, '--requirements', version, '-o', join(results, version)]);
      const checks = checksOf(version);
      const failed = (scenario: string) => (checks.get(scenario) ?? []).filter(({ status }) => status === 'FAILURE').map(({ id }) => id);
      for (const scenario of PASSED[version] ?? []) {
        expect([scenario, failed(scenario)]).toEqual([scenario, []]);
        expect([scenario, (checks.get(scenario) ?? []).some(({ status }) => status === 'SUCCESS')]).toEqual([scenario, true]);
      }
      const all = [...checks.keys()].flatMap((scenario) => failed(scenario).map((id) => `${scenario} ${id}`));
      for (const name of all) seen.add(name);
      expect(all.filter((name) => !EXPECTED.has(name))).toEqual([]);
    },
  );

  test('the baseline has no check that passes', () => {
    expect([...EXPECTED].filter((name) => !seen.has(name))).toEqual([]);
  });

  test.for(['legacy', 'modern'])(
    'the inspector lists the tools of a %s server strictly, and calls one',
    { timeout: FIFTEEN_MINUTES },
    (era) => {
      const inspect = (...args: string[]) => run('inspector', ['--cli', url, '--transport', 'http', '--protocol-era', era, ...args]);
      const listed = inspect('--method', 'tools/list', '--strict');
      expect([listed.status, listed.stderr]).toEqual([0, '']);
      expect(listed.stdout).toContain('test_simple_text');
      const called = inspect('--method', 'tools/call', '--tool-name', 'test_simple_text', '--tool-args-json', '{}');
      expect([called.status, called.stdout]).toEqual([0, expect.stringContaining('This is a simple text response')]);
    },
  );

  describe('the orders example', () => {
    let orders: OrdersProcess;
    beforeAll(async () => {
      orders = await startOrders(join(results, 'orders'), await freePort());
    }, FIFTEEN_MINUTES);
    afterAll(() => orders.kill());

    type Result = { readonly isError?: boolean; readonly structuredContent?: { readonly id?: string; readonly quantity?: number } };
    type Call = (name: string, args: Readonly<Record<string, unknown>>) => Promise<Result>;

    /** One call of each tool. A tool that is added to the example needs a line here. */
    async function callAll(names: readonly string[], call: Call): Promise<void> {
      const placed = await call('order_create', { item: 'Beans', quantity: 2 });
      const id = placed.structuredContent?.id;
      const results: Readonly<Record<string, Result>> = {
        order_create: placed,
        order_list: await call('order_list', { limit: 1 }),
        order_retrieve: await call('order_retrieve', { id }),
        order_partial_update: await call('order_partial_update', { id, quantity: 3 }),
      };
      expect(names.toSorted()).toEqual(Object.keys(results).toSorted());
      for (const [name, { isError }] of Object.entries(results)) expect([name, isError ?? false]).toEqual([name, false]);
      expect(results['order_partial_update']?.structuredContent).toMatchObject({ id, quantity: 3 });
    }

    test.for(['legacy', 'auto'] as const)(
      'the official client (%s) lists and calls every tool',
      { timeout: FIFTEEN_MINUTES },
      async (mode) => {
        const client = new Client({ name: 'test-client', version: '1' }, { versionNegotiation: { mode } });
        const requestInit = { headers: { authorization: `Bearer ${orders.key}` } };
        await client.connect(new StreamableHTTPClientTransport(new URL(`${orders.url}/mcp`), { requestInit }));
        const { tools } = await client.listTools();
        await callAll(
          tools.map(({ name }) => name),
          async (name, args) => (await client.callTool({ name, arguments: { ...args } })) as unknown as Result,
        );
        await client.close();
      },
    );

    // Each call of it takes a second; the tools of the other server are called in both eras.
    test.for(['legacy', 'modern'].slice(-scaled(1, 2)))(
      'the inspector (%s) lists every tool strictly, and calls it',
      { timeout: FIFTEEN_MINUTES },
      async (era) => {
        const inspect = (...args: string[]): string => {
          const header = `Authorization: Bearer ${orders.key}`;
          const common = ['--cli', `${orders.url}/mcp`, '--transport', 'http', '--protocol-era', era, '--header', header];
          const { status, stdout, stderr } = run('inspector', [...common, ...args]);
          expect([status, stderr]).toEqual([0, '']);
          return stdout;
        };
        const { tools } = JSON.parse(inspect('--method', 'tools/list', '--strict')) as { tools: { name: string }[] };
        await callAll(
          tools.map(({ name }) => name),
          async (name, args) =>
            JSON.parse(inspect('--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args))) as Result,
        );
      },
    );
  });
});
