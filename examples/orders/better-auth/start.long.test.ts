import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..', '..');

/** The example on its own data and port; what it prints until the last command. */
async function start(folder: string, args: readonly string[]): Promise<{ readonly panel: string; stop(): Promise<number | null> }> {
  const env: Record<string, string | undefined> = {
    ...process.env,
    DATA_FOLDER: folder,
    INIT_CWD: root,
    PORT: '0',
    NODE_ENV: 'development',
  };
  delete env['DATABASE_URL'];
  const child = spawn(process.execPath, ['--conditions=source', join(import.meta.dirname, '..', 'demo', 'start.ts'), ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = new Promise<number | null>((done) => child.once('exit', done));
  let [out, err] = ['', ''];
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  await new Promise<void>((done, failed) => {
    child.once('exit', (code) => failed(new Error(`the example exited with ${code}: ${err}`)));
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
      if (out.includes('remove-member')) done();
    });
  });
  return { panel: out, stop: () => (child.kill('SIGINT'), exited) };
}

test(
  'npm start -- --better-auth: two organizations, an invitation, and every printed command does what it says',
  { timeout: 300_000 },
  async () => {
    const folder = mkdtempSync(join(root, 'examples', '.data-better-auth-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const running = await start(folder, ['--better-auth']);
    const printed = [...running.panel.matchAll(/^ {5}(curl .*)$/gm)].map((match) => match[1] ?? '');
    const run = (command: string) => {
      const { stdout, stderr, status } = spawnSync('bash', ['-c', command], { cwd: root, encoding: 'utf8' });
      if (status !== 0) throw new Error(`${command}\n${stdout}${stderr}`);
      return JSON.parse(stdout);
    };
    try {
      expect(running.panel).toContain('bob@acme.example is invited to Acme');
      expect(printed).toHaveLength(10);
      const answers = printed.map(run);
      expect(answers[0].user.email).toBe('ada@acme.example');
      expect(answers[1]).toMatchObject({ item: 'Scale', total: '25.00' });
      expect(answers[2].code).toBe('not_a_member');
      expect(answers[3].user.email).toBe('bob@acme.example');
      expect(answers[4].code).toBe('not_a_member');
      expect(answers[5].invitation.status).toBe('accepted');
      expect(answers[6].items.map(({ item }: { item: string }) => item)).toEqual(['Scale', 'Grinder', 'Filter paper']);
      expect(answers[7].status).toBe(403);
      expect(answers[8].key).toMatch(/^kit_/);
      expect(answers[9].member.role).toBe('member');
      expect(run(printed[6] ?? '').code).toBe('not_a_member');
    } finally {
      expect(await running.stop()).toBe(0);
    }
    // The second start finds its data, and invites again.
    const again = await start(folder, ['--better-auth']);
    const login = [...again.panel.matchAll(/^ {5}(curl .*)$/gm)].map((match) => match[1] ?? '');
    expect(run(login[3] ?? '').user.email).toBe('bob@acme.example');
    expect(run(login[5] ?? '').invitation.status).toBe('accepted');
    await again.stop();
  },
);

test('an unknown option is an error with the known ones', async () => {
  await expect(start(root, ['--better'])).rejects.toThrow(/Unknown option "--better". Known: --better-auth/);
});
