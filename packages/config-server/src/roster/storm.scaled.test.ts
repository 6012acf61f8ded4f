import { readdirSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { scaled } from '../../../../test/provision/scale.ts';
import { eventually, FILES, SERVER_TOML, startServer, TOKEN, writeFiles } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';

const SAVES = scaled(200, 1_000);

/** A document whose parts must agree: half of one and half of another shows. */
function whole(version: number): string {
  const filler = Array.from({ length: 50 }, (_, index) => `key${index} = ${version}`).join('\n');
  return `[billing]\nfirst = ${version}\n${filler}\nlast = ${version}\n`;
}

test(
  `${SAVES} saves, good and broken in turn, under continuous reads: no failed read, no torn document`,
  { timeout: 300_000 + SAVES * 1_000 },
  async () => {
    const running = await startServer({
      toml: SERVER_TOML.replace('watch_debounce_ms = 20', 'watch_debounce_ms = 1'),
      files: { ...FILES, 'billing.toml': whole(0) },
    });
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    onTestFinished(() => agent.destroy());
    const writer = { done: false };
    let reads = 0;
    const seen = new Set<number>();
    let latest = 0;
    const read = async (): Promise<void> => {
      while (!writer.done) {
        const reply = await running.ask('/billing/prod', { agent });
        const document = reply.json() as Record<string, number>;
        const generation = Number(reply.headers['config-generation']);
        expect(reply.status).toBe(200);
        expect(new Set(Object.values(document)).size).toBe(1);
        expect(Object.keys(document)).toHaveLength(52);
        expect(generation).toBeGreaterThanOrEqual(latest);
        latest = generation;
        seen.add(document['first']!);
        reads++;
      }
    };
    const readers = [read()];
    for (let save = 1; save <= SAVES; save++) {
      const broken = save % 2 === 1;
      const text = broken ? whole(save).slice(0, -3).replace('last', 'last = "') : whole(save);
      if (save % 4 < 2) await running.write('billing.toml', text);
      else {
        await running.write('billing.toml.new', text);
        await rename(join(running.folder, 'billing.toml.new'), join(running.folder, 'billing.toml'));
      }
      if (save % 10 === 0) await eventually(async () => (await running.ask('/billing/prod')).json().first === save, `save ${save}`);
    }
    writer.done = true;
    await Promise.all(readers);
    // Every tenth save was waited for, so at least those were read.
    expect(reads).toBeGreaterThanOrEqual(SAVES / 20);
    expect(seen.size).toBeGreaterThanOrEqual(SAVES / 20);
    await eventually(async () => (await running.status()).healthy, 'the last save to be healthy');
    expect((await running.ask('/billing/prod')).json().first).toBe(SAVES);
  },
);

test('1,000 sections in 1,000 folders are watched through one inotify instance, and a touched file reloads its section alone', async () => {
  const folder = await temporaryFolder();
  const files: Record<string, string> = {};
  let toml = '[server]\nbind = "127.0.0.1:0"\nwatch_debounce_ms = 20\n';
  for (let index = 0; index < 1000; index++) {
    files[`folder-${index}/app.toml`] = `value = ${index}\n`;
    toml += `[[server.sections]]\napplication = "app"\nprofile = "p${index}"\nfiles = ["folder-${index}/app.toml"]\nwhole_document = true\n`;
  }
  toml += `[[server.clients]]\nname = "c"\ntoken = "${TOKEN}"\napplications = ["app"]\n`;
  await writeFiles(folder, files);
  const before = await inotifyInstances();
  const running = await startServer({ folder, toml, files: {} });
  expect((await inotifyInstances()).length - before.length).toBeLessThanOrEqual(1);
  await writeFile(join(folder, 'folder-7/app.toml'), 'value = "changed"\n');
  await writeFile(join(folder, 'folder-999/app.toml'), 'value = "changed"\n');
  await eventually(
    async () => (await running.status('app/p7')).generation === 2 && (await running.status('app/p999')).generation === 2,
    'both reloads',
  );
  const metrics = (await running.ask('/metrics')).text;
  expect(metrics.match(/^config_generation\{.*\} 2$/gm)).toHaveLength(2);
  expect(metrics.match(/^config_generation\{.*\} 1$/gm)).toHaveLength(998);
});

async function inotifyInstances(): Promise<string[]> {
  const instances: string[] = [];
  for (const fd of readdirSync('/proc/self/fd')) {
    const info = await readFile(`/proc/self/fdinfo/${fd}`, 'utf8').catch(() => '');
    if (info.includes('inotify wd:')) instances.push(fd);
  }
  return instances;
}
