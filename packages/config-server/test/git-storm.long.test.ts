import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startCli, type CliServer } from './cli-server.ts';
import { gitToml, SERVICE_TOKEN, testRepository, type TestRepository } from './git-repository.ts';
import { exchange } from './http-exchange.ts';
import { temporaryFolder } from './temporary-folder.ts';

const ROUNDS = 1_000;

// Two files of one commit: a document with different numbers mixes two commits.
const files = (version: number): Record<string, string> => ({
  'billing.toml': `[billing]\nfirst = ${version}\ncopies = [${Array(200).fill(version).join(',')}]\n`,
  'more.yaml': `billing:\n  second: ${version}\n`,
});
const BROKEN = ['[billing\n', 'billing = 3\n', '\0', ''];

const read = async (server: CliServer): Promise<{ first: number; second: number; copies: number[] }> => {
  const { status, body } = await exchange(server.url, '/billing/prod', { token: SERVICE_TOKEN });
  expect(status).toBe(200);
  return JSON.parse(body) as { first: number; second: number; copies: number[] };
};

async function untilServed(server: CliServer, version: number): Promise<void> {
  for (const end = Date.now() + 120_000; Date.now() < end;) {
    if ((await read(server)).first === version) return;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  throw new Error(`version ${version} was not served:\n${server.printed().slice(-2_000)}`);
}

/** git processes that read the repository, also those whose parent is gone. */
function gitProcesses(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`GIT_OBJECT_DIRECTORY=${join(folder, '.git/objects')}`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** A process that ended after it was found cannot be killed. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** One step of somebody who works on the branch, or of the machine around it. */
function disturb(round: number, repository: TestRepository, server: CliServer): void {
  switch (round % 6) {
    case 0:
      repository.commit({ 'billing.toml': BROKEN[round % BROKEN.length] ?? '' });
      return;
    case 1:
      repository.commit(files(-round), '--amend');
      return;
    case 2:
      repository.git('pack-refs', '--all', '--prune');
      return;
    case 3:
      repository.git('gc', '--quiet', '--prune=now');
      return;
    case 4:
      process.kill(server.pid, 'SIGHUP');
      return;
    default:
      for (const pid of gitProcesses(repository.folder)) killIfThere(pid);
  }
}

test(
  `${ROUNDS} moves of a branch with broken commits, rewritten history, gc, signals and kills: every document is one commit, the last one wins`,
  { timeout: 600_000 + ROUNDS * 3_000 },
  async () => {
    const repository = await testRepository();
    repository.commit(files(0));
    const folder = await temporaryFolder();
    const toml = join(folder, 'server.toml');
    writeFileSync(toml, gitToml(repository.folder).replace('watch_debounce_ms = 20', 'watch_debounce_ms = 5'));
    let server = await startCli(toml, { logFile: join(folder, 'audit.log') });
    const done = new AbortController();
    const mixed: string[] = [];
    const reader = (async () => {
      let reads = 0;
      while (!done.signal.aborted) {
        const target = server;
        const body = await read(target).catch((error: unknown) => {
          // Only a server that was killed on purpose may fail a read.
          if (target === server && !done.signal.aborted) throw error;
          return undefined;
        });
        if (body !== undefined) reads++;
        if (body !== undefined && new Set([body.first, body.second, ...body.copies]).size !== 1) mixed.push(JSON.stringify(body));
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      return reads;
    })();
    for (let round = 1; round <= ROUNDS; round++) {
      disturb(round, repository, server);
      repository.commit(files(round));
      if (round % 10 === 0) {
        const killed = server;
        server = await startCli(toml, { logFile: join(folder, 'audit.log') });
        await killed.stop('SIGKILL');
      }
      if (round % 3 === 0) await untilServed(server, round);
    }
    await untilServed(server, ROUNDS);
    done.abort();
    expect(await reader).toBeGreaterThan(ROUNDS);
    expect(mixed).toEqual([]);
    await server.stop('SIGKILL');
    await expect.poll(() => gitProcesses(repository.folder), { timeout: 60_000 }).toEqual([]);
  },
);
