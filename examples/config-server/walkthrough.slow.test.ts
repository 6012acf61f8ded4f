import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const here = import.meta.dirname;
const files = ['README.md', 'server.toml', 'server-mtls.toml', 'make-certificates.sh', 'main.ts', 'config'];

/** The page's commands and what each is said to print. */
function blocksOf(page: string): { command: string; output: string }[] {
  return [...page.matchAll(/```sh\n([\s\S]*?)```\s+```text\n([\s\S]*?)```/g)].map(([, command = '', output = '']) => ({ command, output }));
}

/** Three ports nobody uses, in place of the three the page names. */
async function freePorts(): Promise<number[]> {
  const servers: Server[] = [];
  for (let count = 0; count < 3; count += 1) {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    servers.push(server);
  }
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

const escapeRegExp = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);

/** A copy with other ports, two folders deeper; nothing else differs from what a reader has. */
async function copyExample(): Promise<string> {
  await mkdir(join(here, '.data'), { recursive: true });
  const folder = await mkdtemp(join(here, '.data', 'walk-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const file of files) await cp(join(here, file), join(folder, file), { recursive: true });
  const ports = await freePorts();
  for (const file of ['README.md', 'server.toml', 'server-mtls.toml', 'main.ts']) {
    const content = await readFile(join(folder, file), 'utf8');
    const adapted = content.replaceAll(/127\.0\.0\.1:88(88|89|90)/g, (_, last: string) => `127.0.0.1:${ports[Number(last) - 88]}`);
    await writeFile(join(folder, file), adapted.replace('$PWD/../../node_modules', '$PWD/../../../../node_modules'));
  }
  return folder;
}

test('every command of the walk-through prints what the page says', { timeout: 180_000 }, async () => {
  const folder = await copyExample();
  const blocks = blocksOf(await readFile(join(folder, 'README.md'), 'utf8'));
  expect(blocks.length).toBeGreaterThan(10);
  expect((await readFile(join(here, 'README.md'), 'utf8')).match(/```sh/g)).toHaveLength(blocks.length);
  const marker = '=====end of block=====';
  const script = blocks.map(({ command }) => `${command}\necho; echo "${marker}"`).join('\n');
  // A process group of its own, so that whatever the page started ends with the test.
  const shell = spawn('timeout', ['120', 'bash', '-c', script], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  onTestFinished(() => {
    try {
      process.kill(-(shell.pid ?? 0), 'SIGKILL');
    } catch {
      // It has ended already.
    }
  });
  let printed = '';
  let complaints = '';
  shell.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  shell.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()));
  await new Promise((resolve) => shell.once('exit', resolve));
  const actual = printed.split(marker).slice(0, -1);
  for (const [index, { command, output }] of blocks.entries()) {
    const pattern = output.trim().split('…').map(escapeRegExp).join('[^\\n]*');
    const shown = { command, printed: actual[index]?.trim() ?? `(nothing)\n${complaints}` };
    expect(shown).toEqual({ command, printed: expect.stringMatching(new RegExp(`^${pattern}$`)) });
  }
});

test('the client of the example is ten lines', async () => {
  expect((await readFile(join(here, 'main.ts'), 'utf8')).trimEnd().split('\n')).toHaveLength(10);
});
