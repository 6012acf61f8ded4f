import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../../test/provision/free-port.ts';
import { NGINX, startNginx } from '../../../../test/provision/nginx.ts';
import { KitProgram, sourceOf } from '../../test/cli/kit-program.ts';

// `.ci/run` installs the package.
test('nginx is installed where everything must be tested', () => {
  expect(NGINX !== undefined || process.env['KIT_REQUIRE_NGINX'] === undefined).toBe(true);
});

const CONFIG = `import { createApp, Controller, route } from ${sourceOf('index.ts')};
import { setTimeout as delay } from 'node:timers/promises';
import { HealthController } from ${sourceOf('middleware/index.ts')};
import { allowAny } from ${sourceOf('permissions/index.ts')};
class WorkController extends Controller {
  read = route.get('/', { permission: allowAny }, () => undefined);
  write = route.post('/', { permission: allowAny, csrf: false }, () => delay(Math.random() * 20));
}
export default createApp({ database: 'sqlite:./app.db', mount: { '/': { '/work': WorkController, '/health': HealthController } }, log: { level: 'silent' } });
`;

const CLIENTS = 12;
const STOPS = 4;

describe.runIf(NGINX !== undefined)('behind nginx that keeps connections to the app', () => {
  let folder: string;
  let program: KitProgram;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-proxy-'));
    await writeFile(join(folder, 'kit.config.ts'), CONFIG);
    program = new KitProgram(folder);
    expect((await program.run(['migrate'])).code).toBe(0);
  });
  afterAll(async () => {
    await program.close();
    await rm(folder, { recursive: true, force: true });
  });

  async function startApp(port: number): Promise<() => Promise<number | null>> {
    const child = program.start(['start', '--port', String(port)]);
    let printed = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (printed += text.toString()));
    const exit = new Promise<number | null>((done) => child.once('close', done));
    onTestFinished(() => void child.kill('SIGKILL'));
    const isUp = () => child.exitCode !== null || printed.includes('listens on');
    await expect.poll(isUp, { timeout: 300_000 }).toBe(true);
    expect(printed).toContain('listens on');
    return () => {
      child.kill('SIGTERM');
      return exit;
    };
  }

  test('no request is lost while processes are stopped and started again: zero 502', async () => {
    const ports = [await freePort(), await freePort()];
    const processes = await Promise.all(ports.map(startApp));
    const proxy = await startNginx(ports);
    onTestFinished(() => proxy.stop());

    const answers = new Map<number | string, number>();
    const over = new AbortController();
    const client = async (index: number): Promise<void> => {
      for (let sent = index; !over.signal.aborted; sent += 1) {
        const answer = await fetch(`${proxy.url}/work`, { method: sent % 3 === 0 ? 'GET' : 'POST' }).then(
          ({ status }) => status,
          (error: Error) => error.message,
        );
        answers.set(answer, (answers.get(answer) ?? 0) + 1);
        // Some connections are idle at each moment, for times of any length.
        await delay(Math.random() * 30 * index);
      }
    };
    const clients = Array.from({ length: CLIENTS }, (_, index) => client(index));
    for (let stop = 0; stop < STOPS; stop += 1) {
      const which = stop % 2;
      await delay(300);
      expect(await processes[which]?.()).toBe(0);
      processes[which] = await startApp(ports[which] as number);
    }
    over.abort();
    await Promise.all(clients);
    expect([...answers.keys()]).toEqual([204]);
    expect(answers.get(204)).toBeGreaterThan(100);
    await Promise.all(processes.map((stop) => stop()));
  });
});
