import { mkdtemp, rm, writeFile } from 'node:fs/promises';
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
    `import { Controller, createApp, hasScopes, route } from ${sourceOf('index.ts')};
import { jsonSchema } from ${sourceOf('http/index.ts')};
import { accounts } from ${sourceOf('contrib/accounts/index.ts')};
import { apiKeys } from ${sourceOf('contrib/apikeys/index.ts')};
import { mcp } from ${sourceOf('contrib/mcp/index.ts')};
const text = { type: 'string', maxLength: 20 };
const Echo = jsonSchema({ type: 'object', properties: { text }, required: ['text'], additionalProperties: false });
const facts = { permission: hasScopes(), body: Echo, response: Echo, tool: true };
class EchoController extends Controller {
  say = route.post('/say', { ...facts, scope: 'echo:say', summary: 'Say a text again' }, ({ body }) => body);
  shout = route.post('/shout', { ...facts, scope: 'echo:shout', summary: 'Say a text loudly' }, ({ body }) => ({ text: body.text.toUpperCase() }));
}
export default createApp({
  title: 'Echo',
  database: 'sqlite:./app.db',
  modules: [accounts(), apiKeys(), mcp({ instructions: 'Speak softly.' })],
  mount: { '/v1': { '/echo': EchoController } },
});
`,
  );
  expect(await program.run(['migrate'])).toMatchObject({ code: 0 });
  await program.run(['user', 'create', 'ada', '--no-password']);
  for (const [name, ...scopes] of [
    ['say', 'echo:say'],
    ['all', 'echo:*'],
  ]) {
    const created = await program.run([
      'apikey',
      'create',
      '--user',
      'ada',
      '--name',
      name ?? '',
      ...scopes.flatMap((scope) => ['--scope', scope]),
    ]);
    keys[name ?? ''] = created.stdout.trimEnd().split('\n').at(-1) ?? '';
  }
}, 300_000);
afterAll(async () => {
  await program.close();
  await rm(folder, { recursive: true, force: true });
});

async function connected(key: string): Promise<Client> {
  const bin = join(import.meta.dirname, '../../bin/kit.js');
  const client = new Client({ name: 'desktop', version: '1' });
  const { PATH = '' } = process.env;
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ['--conditions=source', bin, 'mcp'],
    cwd: folder,
    env: { PATH, KIT_API_KEY: key },
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
