import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KitProgram, sourceOf } from '../cli/kit-program.ts';

// `kit mcp` as a desktop agent starts it: the real program, the official client on its standard input and output.

let folder = '';
let program: KitProgram;
const keys: Record<string, string> = {};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-mcp-'));
  program = new KitProgram(folder);
  await writeFile(
    join(folder, 'kit.config.ts'),
    `import { writeFileSync } from 'node:fs';
import { Controller, createApp, hasScopes, route } from ${sourceOf('index.ts')};
import { jsonSchema } from ${sourceOf('http/index.ts')};
import { accounts } from ${sourceOf('contrib/accounts/index.ts')};
import { apiKeys } from ${sourceOf('contrib/apikeys/index.ts')};
import { mcp } from ${sourceOf('contrib/mcp/index.ts')};
import { tenants } from ${sourceOf('contrib/tenants/index.ts')};
import { hasRole } from ${sourceOf('permissions/index.ts')};
const text = { type: 'string', maxLength: 20 };
const Echo = jsonSchema({ type: 'object', properties: { text }, required: ['text'], additionalProperties: false });
const facts = { permission: hasScopes(), body: Echo, response: Echo, tool: true };
class EchoController extends Controller {
  say = route.post('/say', { ...facts, scope: 'echo:say', summary: 'Say a text again' }, ({ body }) => body);
  wait = route.post('/wait', { ...facts, scope: 'echo:wait', summary: 'Wait forever' }, async ({ body }) => {
    writeFileSync('waiting', String(process.pid));
    await new Promise(() => setInterval(() => undefined, 1000));
    return body;
  });
  room = route.post('/room', { permission: hasScopes().and(hasRole('owner')), scope: 'echo:room', response: Echo, tool: true }, async ({ caller }) => ({
    text: (await caller()).tenant.slice(0, 8),
  }));
  shout = route.post('/shout', { ...facts, scope: 'echo:shout', summary: 'Say a text loudly' }, ({ body }) => ({ text: body.text.toUpperCase() }));
}
export default createApp({
  title: 'Echo',
  database: 'sqlite:./app.db',
  modules: [accounts(), apiKeys(), tenants(), mcp({ instructions: 'Speak softly.' })],
  mount: { '/v1': { '/echo': EchoController } },
});
`,
  );
  expect(await program.run(['migrate'])).toMatchObject({ code: 0 });
  await program.run(['user', 'create', 'ada', '--no-password']);
  for (const [name, ...scopes] of [
    ['say', 'echo:say'],
    ['all', 'echo:say', 'echo:shout'],
    ['waiter', 'echo:wait'],
    ['roomer', 'echo:room'],
  ]) {
    const created = await program.run([
      'apikey',
      'create',
      '--user',
      'ada',
      '--name',
      name ?? '',
      // Made before there is a tenant, and for all that follow.
      ...(name === 'roomer' ? ['--tenant', '*'] : []),
      ...scopes.flatMap((scope) => ['--scope', scope]),
    ]);
    keys[name ?? ''] = created.stdout.trimEnd().split('\n').at(-1) ?? '';
  }
}, 300_000);
afterAll(async () => {
  await program.close();
  await rm(folder, { recursive: true, force: true });
});

/** All that a program gets from this process; compiled code is kept between the starts. */
const { PATH = '', NODE_COMPILE_CACHE } = process.env;
const BARE = { PATH, ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }) };

async function connected(key: string, ...more: string[]): Promise<Client> {
  const bin = join(import.meta.dirname, '../../bin/kit.js');
  const client = new Client({ name: 'desktop', version: '1' });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ['--conditions=source', bin, 'mcp', ...more],
    cwd: folder,
    env: { ...BARE, KIT_API_KEY: key },
    stderr: 'pipe',
  });
  await client.connect(transport, { timeout: 120_000 });
  return client;
}

test('the official client lists the tools of the key and calls them; errors are those of HTTP', async () => {
  const client = await connected(keys['say'] ?? '');
  expect(client.getInstructions()).toBe('Speak softly.');
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['echo_say']);
  expect((await client.callTool({ name: 'echo_say', arguments: { text: 'hello' } })).structuredContent).toEqual({ text: 'hello' });
  const refused = await client.callTool({ name: 'echo_say', arguments: { text: 'x'.repeat(21), loud: true } });
  expect(refused.isError).toBe(true);
  expect(JSON.stringify(refused)).toMatch(/unknown_field[\s\S]*too_big/);
  await expect(client.callTool({ name: 'echo_shout', arguments: { text: 'x' } })).rejects.toThrow('Unknown tool: echo_shout');
  // The list is that of the moment: a revoked key has no tools with the next message.
  expect((await program.run(['apikey', 'revoke', '--prefix', keys['say']?.split('_')[1] ?? ''])).code).toBe(0);
  await expect(client.listTools()).rejects.toThrow(/invalid|API key|credential/i);
  await client.close();
}, 300_000);

test('another key has other tools', async () => {
  const client = await connected(keys['all'] ?? '');
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['echo_say', 'echo_shout']);
  expect((await client.callTool({ name: 'echo_shout', arguments: { text: 'ah' } })).structuredContent).toEqual({ text: 'AH' });
  await client.close();
}, 300_000);

test('without a key the program says what to do, on standard error only', async () => {
  const { code, stdout, stderr } = await program.spawn(['mcp']);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain('KIT_API_KEY is not set');
  expect(stderr).toContain('kit apikey create');
}, 300_000);

test('the program ends with the agent that started it, also when that is killed during a call', async () => {
  const bin = join(import.meta.dirname, '../../bin/kit.js');
  // The agent: it starts the program, calls a tool that does not return, and waits.
  const call = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'echo_wait', arguments: { text: 'x' } } };
  const initialize = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } },
  };
  await writeFile(
    join(folder, 'agent.mjs'),
    `import { spawn } from 'node:child_process';
const kit = spawn(process.execPath, ['--conditions=source', ${JSON.stringify(bin)}, 'mcp'], { stdio: ['pipe', 'pipe', 'ignore'] });
for (const message of ${JSON.stringify([initialize, { jsonrpc: '2.0', method: 'notifications/initialized' }, call])}) kit.stdin.write(JSON.stringify(message) + '\\n');
kit.stdout.resume();
`,
  );
  const agent = spawn(process.execPath, ['agent.mjs'], {
    cwd: folder,
    env: { ...BARE, KIT_API_KEY: keys['waiter'] ?? '' },
    stdio: 'ignore',
  });
  const started = () => readFile(join(folder, 'waiting'), 'utf8').catch(() => '');
  await expect.poll(started, { timeout: 120_000 }).toMatch(/^\d+$/);
  const pid = Number(await started());
  const isRunning = () => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };
  expect(isRunning()).toBe(true);
  agent.kill('SIGKILL');
  await expect.poll(isRunning, { timeout: 120_000 }).toBe(false);
}, 300_000);

test('--tenant names the tenant of every call', async () => {
  const made = await program.run(['tenant', 'create', 'North', '--owner', 'ada']);
  expect(made).toMatchObject({ code: 0 });
  const id = /id ([0-9a-f-]+)/.exec(made.stdout)?.[1] ?? '';
  const client = await connected(keys['roomer'] ?? '', '--tenant', 'north');
  const { structuredContent } = await client.callTool({ name: 'echo_room', arguments: {} });
  expect(structuredContent).toEqual({ text: id.slice(0, 8) });
  await client.close();
  const nowhere = await connected(keys['roomer'] ?? '', '--tenant', 'south');
  expect((await nowhere.listTools()).tools).toEqual([]);
  await nowhere.close();
});
