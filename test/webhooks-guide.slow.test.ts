import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, relative } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { codeBlocks, root } from './docs/pages.ts';

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((listening) => probe.listen(0, '127.0.0.1', listening));
  const { port } = probe.address() as { port: number };
  await new Promise((closed) => probe.close(closed));
  return port;
}

test('the guide to a first webhook works as it is written', { timeout: 180_000 }, async () => {
  // Beside the example, so that `kit` and `zod` are found.
  const folder = mkdtempSync(join(root, 'examples', '.data-guide-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const blocks = codeBlocks('docs/guide/webhooks.md');
  writeFileSync(join(folder, 'kit.config.ts'), blocks.find(({ language }) => language === 'ts')?.text ?? '');
  const [set = '', endpoint = '', listen = '', order = ''] = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text);

  const [api, receiver] = [await freePort(), await freePort()];
  const kit = `${process.execPath} ${relative(folder, join(root, 'packages/kit/bin/kit.js'))}`;
  const here = (text: string): string =>
    text.replaceAll('npx kit', kit).replaceAll('127.0.0.1:3000', `127.0.0.1:${api}`).replaceAll('8787', String(receiver));
  const env = { PATH: process.env['PATH'], HOME: folder, PORT: String(api), NODE_ENV: 'development' };
  const bash = (text: string): string => {
    const result = spawnSync('bash', ['-ec', here(text)], { cwd: folder, env, encoding: 'utf8' });
    if (result.status !== 0) throw new Error(`${text}\n${result.stdout}${result.stderr}`);
    return result.stdout;
  };
  const running = (text: string, input = ''): { output: () => string } => {
    const child = spawn('bash', ['-ec', `exec ${here(text)}`], { cwd: folder, env });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stdin.end(input);
    onTestFinished(() => void child.kill('SIGTERM'));
    return { output: () => output };
  };

  const [prepared = '', started = ''] = set.split(/^(?=npx kit start)/m);
  const key = bash(`${prepared}\necho "$KEY"`).trim().split('\n').at(-1) ?? '';
  const server = running(started.replace('&', '').trim());
  await expect.poll(() => server.output(), { timeout: 60_000 }).toContain('listens on');
  const created = JSON.parse(bash(`KEY=${key}\n${endpoint}`)) as { secret: string };
  const listener = running(listen.replace(/^NODE_ENV=\w+ /, ''), `${created.secret}\n`);
  await expect.poll(() => listener.output(), { timeout: 60_000 }).toContain('Listening');
  expect(bash(`KEY=${key}\n${order}`)).toContain('succeeded=1');
  await expect.poll(() => listener.output(), { timeout: 10_000 }).toMatch(/verified msg_\S+ \{"type":"order\.created"/);
});
