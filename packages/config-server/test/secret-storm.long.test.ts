import { rename, rm, writeFile, mkdir } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import * as age from 'age-encryption';
import { expect, test } from 'vitest';
import { sealDocument } from '../src/secrets/files/seal-document.ts';
import { newIdentity, seal, writeIdentity } from './age-identity.ts';
import { startCli, type CliServer } from './cli-server.ts';
import { exchange } from './http-exchange.ts';
import { folderWith, serverToml, TOKENS } from './served-folder.ts';

const ROUNDS = 400;
const KILLS = 20;

interface Status {
  readonly generation: number;
  readonly consecutive_failures: number;
  readonly last_failure: { readonly kind: string; readonly key?: string } | null;
}

/**
 * A document of which every copy has the version's number: two encrypted values, single or of a SOPS document in turn, and one mounted
 * file each time. Broken sources in turn: for another identity, moved, truncated, a SOPS document without its MAC, one that was dated
 * back, a mounted file that is gone.
 */
test(
  `${ROUNDS} reloads of encrypted and mounted values, good and broken in turn, with ${KILLS} kills: no read fails, no document is torn`,
  { timeout: 300_000 + (ROUNDS + KILLS) * 5_000 },
  async () => {
    const [own, other] = [await newIdentity(), await newIdentity()];
    const sections = [{ application: 'billing', profile: 'production', files: ['billing.toml'] }];
    const secrets = '\n[server.secrets]\nidentities = "identity.txt"\nmounts = "mount"\n';
    const folder = await folderWith({ 'server.toml': serverToml(sections, 'watch_debounce_ms = 1') + secrets });
    writeIdentity(folder, 'identity.txt', own);
    await mkdir(join(folder, 'mount'));
    const save = async (name: string, text: string): Promise<void> => {
      await writeFile(join(folder, 'new'), text);
      await rename(join(folder, 'new'), join(folder, name));
    };
    const sealed = (value: unknown, key: string, identity = own): Promise<string> => seal(identity, 'billing.toml', key, value);
    const reference = (version: number): string => `ref+file://${join(folder, 'mount', `version-${version}`)}`;
    const single = async (version: number): Promise<string> => {
      const copies = await sealed(Array(50).fill(version), 'billing.copies');
      return `[billing]\nversion = "${await sealed(version, 'billing.version')}"\ncopies = "${copies}"\nmounted = "${reference(version)}"\n`;
    };
    const sops = (version: number): Promise<string> => {
      const plain = `[billing]\nversion = ${version}\ncopies = [${Array(50).fill(version).join(', ')}]\nmounted = "${reference(version)}"\n`;
      const sealing = { age, recipients: [own.recipient], name: 'billing.toml' };
      return sealDocument('billing.toml', plain, { name: 'encrypted_regex', pattern: '^(version|copies)$' }, sealing, new Date());
    };
    const good = async (version: number): Promise<void> => {
      await save(`mount/version-${version}`, String(version));
      await save('billing.toml', await (version % 2 === 0 ? single : sops)(version));
    };
    const broken: ((version: number) => Promise<void>)[] = [
      async (version) => save('billing.toml', `[billing]\nversion = "${await sealed(version, 'billing.version', other)}"\n`),
      async (version) => save('billing.toml', `[billing]\nversion = "${await sealed(version, 'billing.copies')}"\n`),
      async (version) => save('billing.toml', `[billing]\nversion = "${(await sealed(version, 'billing.version')).slice(0, 200)}"\n`),
      async () => save('billing.toml', '[billing]\nversion = 1\n[sops]\nversion = "3.9.0"\n'),
      async (version) => save('billing.toml', (await sops(version)).replace(/(?<=lastmodified = ")[^"]*/, '2020-01-01T00:00:00Z')),
      async (version) => rm(join(folder, 'mount', `version-${version - 1}`)),
    ];
    const agent = new Agent({ keepAlive: true });
    const ask = (server: CliServer, path: string) => exchange(server.url, `/billing/production${path}`, { token: TOKENS.billing, agent });
    const until = async (server: CliServer, reached: (status: Status) => boolean): Promise<Status> => {
      for (const end = Date.now() + 60_000; Date.now() < end;) {
        const status = JSON.parse((await ask(server, '/status')).body) as Status;
        if (reached(status)) return status;
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      throw new Error('the status was not reached');
    };
    await good(0);
    let server = await startCli(join(folder, 'server.toml'));
    let current = { server, done: false };
    const read = async (place: { readonly server: CliServer; readonly done: boolean }): Promise<void> => {
      while (!place.done) {
        const { status, body } = await ask(place.server, '').catch(() => ({ status: 0, body: '' }));
        // A killed server refuses connections; one that runs never fails.
        if (status === 0 && place.done) return;
        expect(status).toBe(200);
        const { version, copies, mounted } = JSON.parse(body) as { version: number; copies: number[]; mounted: string };
        expect([...new Set([...copies, Number(mounted), version])]).toEqual([version]);
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    };
    let reading = read(current);
    for (let round = 1; round <= ROUNDS; round++) {
      await broken[round % broken.length]!(round);
      const failed = await until(server, ({ consecutive_failures: failures }) => failures > 0);
      expect(failed.last_failure?.kind).toMatch(/^(decrypt|reference)$/);
      await good(round);
      await until(server, ({ consecutive_failures: failures }) => failures === 0);
      if (round % Math.ceil(ROUNDS / KILLS) !== 0) continue;
      // Killed in the middle of a reload, and started again on the same files.
      await good(round);
      current.done = true;
      await server.stop('SIGKILL');
      await reading;
      server = await startCli(join(folder, 'server.toml'));
      current = { server, done: false };
      reading = read(current);
    }
    current.done = true;
    await reading;
    expect(JSON.parse((await ask(server, '')).body)).toMatchObject({ version: ROUNDS, mounted: String(ROUNDS) });
    expect(server.printed()).not.toMatch(/ENC\[|AGE-SECRET/);
  },
);
