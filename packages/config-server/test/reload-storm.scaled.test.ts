import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scaled } from '../../../test/provision/scale.ts';
import { startCli, type CliServer } from './cli-server.ts';
import { exchange } from './http-exchange.ts';
import { folderWith, serverToml, TOKENS } from './served-folder.ts';

const RELOADS = scaled(200, 1_000);

interface Status {
  readonly generation: number;
  readonly healthy: boolean;
  readonly consecutive_failures: number;
}

const statusOf = async (server: CliServer, agent: Agent): Promise<Status> =>
  JSON.parse((await exchange(server.url, '/billing/production/status', { token: TOKENS.billing, agent })).body) as Status;

/** Resolves with the status once it satisfies `reached`; many short looks, because the watcher decides when. */
async function untilStatus(server: CliServer, agent: Agent, reached: (status: Status) => boolean): Promise<Status> {
  for (const end = Date.now() + 60_000; Date.now() < end;) {
    const status = await statusOf(server, agent);
    if (reached(status)) return status;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  throw new Error(`the status was not reached: ${JSON.stringify(await statusOf(server, agent))}`);
}

// A document that tells when parts of two versions are mixed: every copy holds the version's number.
const versionToml = (version: number): string => `[billing]\nversion = ${version}\ncopies = [${Array(400).fill(version).join(',')}]\n`;

async function saveAtomically(folder: string, name: string, content: string): Promise<void> {
  await writeFile(join(folder, `${name}.new`), content);
  await rename(join(folder, `${name}.new`), join(folder, name));
}

test(
  `${RELOADS} reloads alternating good and broken files: no read fails, no document is torn, generations only rise`,
  { timeout: 300_000 + RELOADS * 1_000 },
  async () => {
    const sections = [{ application: 'billing', profile: 'production', files: ['billing.toml'] }];
    const folder = await folderWith({ 'billing.toml': versionToml(0), 'server.toml': serverToml(sections, 'watch_debounce_ms = 1') });
    const server = await startCli(join(folder, 'server.toml'), { logFile: join(folder, 'audit.log') });
    const agent = new Agent({ keepAlive: true });
    const done = new AbortController();
    const reader = async (): Promise<number> => {
      let reads = 0;
      let lastGeneration = 0;
      while (!done.signal.aborted) {
        const { status, headers, body } = await exchange(server.url, '/billing/production', { token: TOKENS.billing, agent });
        expect(status).toBe(200);
        const { version, copies } = JSON.parse(body) as { version: number; copies: number[] };
        expect(copies).toHaveLength(400);
        expect(copies.every((copy) => copy === version)).toBe(true);
        const generation = Number(headers['config-generation']);
        expect(generation).toBeGreaterThanOrEqual(lastGeneration);
        lastGeneration = generation;
        reads += 1;
        // Continuous, but not so greedy that the file watcher's events wait behind reads on a small machine.
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      return reads;
    };
    const readers = [reader(), reader()];
    const broken = ['[billing\n', 'billing = 3\n', '\xff\xfe', '[billing]\nversion = \n', ''];
    for (let round = 1; round <= RELOADS / 2; round += 1) {
      await saveAtomically(folder, 'billing.toml', broken[round % broken.length] ?? '');
      const failing = await untilStatus(server, agent, ({ consecutive_failures: failures }) => failures > 0);
      expect(failing).toMatchObject({ generation: round, healthy: false });
      await saveAtomically(folder, 'billing.toml', versionToml(round));
      await untilStatus(server, agent, ({ generation, healthy }) => healthy && generation === round + 1);
    }
    done.abort();
    const reads = await Promise.all(readers);
    expect(Math.min(...reads)).toBeGreaterThan(RELOADS / 4);
    agent.destroy();
  },
);

test('a Kubernetes ..data swap is one reload: the next generation, with the files of one revision only', { timeout: 600_000 }, async () => {
  const volume = ['one.toml', 'two.toml'];
  const sections = [{ application: 'billing', profile: 'production', files: volume.map((name) => `volume/${name}`) }];
  const folder = await folderWith({ 'server.toml': serverToml(sections, 'watch_debounce_ms = 50') });
  const root = join(folder, 'volume');
  // What the kubelet does: a folder per revision, the link ..data to it, and a link per file through ..data.
  const publish = async (revision: number): Promise<void> => {
    const name = `..revision_${revision}`;
    await mkdir(join(root, name), { recursive: true });
    for (const file of volume) await writeFile(join(root, name, file), `[billing.${file.replace('.toml', '')}]\nrevision = ${revision}\n`);
    await symlink(name, join(root, '..data_tmp'));
    await rename(join(root, '..data_tmp'), join(root, '..data'));
    if (revision > 0) await rm(join(root, `..revision_${revision - 1}`), { recursive: true });
  };
  await publish(0);
  for (const file of volume) await symlink(join('..data', file), join(root, file));
  const server = await startCli(join(folder, 'server.toml'));
  const agent = new Agent({ keepAlive: true });
  for (let revision = 1; revision <= 20; revision += 1) {
    await publish(revision);
    const status = await untilStatus(server, agent, ({ generation }) => generation > revision);
    expect(status).toMatchObject({ generation: revision + 1, healthy: true });
    const { body } = await exchange(server.url, '/billing/production', { token: TOKENS.billing, agent });
    expect(JSON.parse(body)).toEqual({ one: { revision }, two: { revision } });
  }
  agent.destroy();
  const { body } = await exchange(server.url, '/metrics', { token: TOKENS.billing });
  expect(body).toMatch(/config_reload_failures_total\{[^}]*\} 0\n/);
});

test('1,000 sections: a touched file reloads the sections that list it and no other', { timeout: 600_000 }, async () => {
  const files: Record<string, string> = { 'shared.toml': '' };
  const sections = Array.from({ length: 1_000 }, (_, index) => {
    const application = `app-${index}`;
    files[`sections/${application}.toml`] = `[${application}]\nvalue = ${index}\n`;
    // Every hundredth section also lists the shared file.
    return { application, profile: 'production', files: [`sections/${application}.toml`, ...(index % 100 === 0 ? ['shared.toml'] : [])] };
  });
  const reader = 'token-of-everyone-0123456789-0123456789-d';
  const grants = sections.map(({ application }) => application);
  const client = `\n[[server.clients]]\nname = "everyone"\ntoken = "${reader}"\napplications = ${JSON.stringify(grants)}\n`;
  const folder = await folderWith({ ...files, 'server.toml': serverToml(sections, 'watch_debounce_ms = 50') + client });
  const server = await startCli(join(folder, 'server.toml'));
  const generations = async (): Promise<Record<string, string>> => {
    const { body } = await exchange(server.url, '/metrics', { token: reader });
    return Object.fromEntries(
      [...body.matchAll(/^config_generation\{application="([^"]+)".*\} (\d+)$/gm)].map(([, name, value]) => [name!, value!]),
    );
  };
  expect(Object.keys(await generations())).toHaveLength(1_000);
  await writeFile(join(folder, 'sections/app-7.toml'), '[app-7]\nvalue = "touched"\n');
  await expect.poll(async () => (await generations())['app-7'], { timeout: 10_000 }).toBe('2');
  await writeFile(join(folder, 'shared.toml'), grants.map((name) => `[${name}]\nshared = true\n`).join(''));
  await expect.poll(async () => (await generations())['app-900'], { timeout: 10_000 }).toBe('2');
  const moved = Object.entries(await generations()).filter(([, generation]) => generation !== '1');
  expect(moved.map(([name]) => name).sort()).toEqual(['app-7', ...Array.from({ length: 10 }, (_, index) => `app-${index * 100}`)].sort());
});
