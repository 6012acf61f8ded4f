import { spawn } from 'node:child_process';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startCli } from './cli-server.ts';
import { folderWith, serverToml, TOKENS } from './served-folder.ts';
import { freePort } from '../../../test/provision/free-port.ts';

interface Report {
  readonly value: string | null;
  readonly origin: 'server' | 'cache' | null;
  readonly error: string | null;
}

const script = join(import.meta.dirname, 'client-process.ts');

/** A service in a process of its own, with everything it reported so far. */
function startClient(url: string, cacheFile: string): { reports: Report[]; last: () => Report | undefined } {
  const child = spawn(process.execPath, [script, url, TOKENS.billing, cacheFile], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const reports: Report[] = [];
  let rest = '';
  child.stdout.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    reports.push(...lines.map((line) => JSON.parse(line) as Report));
  });
  return { reports, last: () => reports.at(-1) };
}

test(
  'a server killed with SIGKILL: clients keep serving, a new one starts from its cache file, all recover by themselves',
  { timeout: 600_000 },
  async () => {
    const bind = `127.0.0.1:${await freePort()}`;
    const sections = [{ application: 'billing', profile: 'production', files: ['billing.toml'] }];
    const folder = await folderWith({
      'billing.toml': '[billing]\nvalue = "first"\n',
      'server.toml': serverToml(sections, 'watch_debounce_ms = 20').replace('127.0.0.1:0', bind),
    });
    const save = async (value: string): Promise<void> => {
      await writeFile(join(folder, 'new.toml'), `[billing]\nvalue = "${value}"\n`);
      await rename(join(folder, 'new.toml'), join(folder, 'billing.toml'));
    };
    const patient = { timeout: 150_000, interval: 20 };

    const server = await startCli(join(folder, 'server.toml'));
    const running = startClient(server.url, join(folder, 'running.cache'));
    const other = startClient(server.url, join(folder, 'other.cache'));
    await expect.poll(() => [running.last()?.value, other.last()?.value], patient).toEqual(['first', 'first']);
    await save('second');
    await expect.poll(() => [running.last()?.value, other.last()?.value], patient).toEqual(['second', 'second']);

    expect(await server.stop('SIGKILL')).toBeNull();
    const killedAt = running.reports.length;
    await expect.poll(() => running.reports.slice(killedAt).some(({ error }) => error === 'remote'), patient).toBe(true);
    await expect.poll(() => running.reports.length, patient).toBeGreaterThan(killedAt + 20);
    expect(new Set(running.reports.slice(killedAt).map(({ value }) => value))).toEqual(new Set(['second']));

    const restarted = startClient(server.url, join(folder, 'other.cache'));
    await expect.poll(() => restarted.reports[0], patient).toMatchObject({ value: 'second', origin: 'cache', error: 'remote' });

    await save('third');
    await startCli(join(folder, 'server.toml'));
    for (const client of [running, other, restarted]) {
      await expect.poll(() => client.last(), patient).toMatchObject({ value: 'third', origin: 'server' });
    }
    // No server ever served anything but a whole document.
    for (const client of [running, other, restarted]) {
      expect(client.reports.every(({ value }) => ['first', 'second', 'third'].includes(value ?? ''))).toBe(true);
    }
  },
);
