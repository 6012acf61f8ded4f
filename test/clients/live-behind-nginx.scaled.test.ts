import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { NGINX, startNginx } from '../provision/balancer.ts';
import { freePort } from '../provision/free-port.ts';
import { scaled } from '../provision/scale.ts';

const TEN_MINUTES = 600_000;
const folder = mkdtempSync(join(tmpdir(), 'kit-live-nginx-'));

/** One of two processes on one database, which is killed: nothing of it is finished. */
class Server {
  readonly port: number;
  #child: ChildProcess | undefined;

  constructor(port: number) {
    this.port = port;
  }

  async start(): Promise<void> {
    const script = join(import.meta.dirname, 'serve-live.ts');
    const options = ['--conditions=source', '--disable-warning=ExperimentalWarning', script, String(this.port), folder];
    const env = { ...process.env, NODE_OPTIONS: '', NODE_ENV: 'development' };
    const child = spawn(process.execPath, options, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child = child;
    const ended = once(child, 'exit').then(() => Promise.reject(new Error('The server ended before it listened.')));
    await Promise.race([once(child.stdout, 'data'), ended]);
    ended.catch(() => undefined);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }
}

// The certificate of the shipped file is one for the test.
const isVerified = process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
beforeEach(() => {
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
});
afterEach(() => {
  if (isVerified === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
  else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = isVerified;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Change {
  readonly event: string;
  readonly key?: string;
  readonly item?: { readonly id: string; readonly title: string; readonly version: number };
}

test.runIf(NGINX !== undefined)(
  'a live list behind nginx with the file that we ship loses no change and has none twice, whichever of two servers is killed',
  { timeout: scaled(TEN_MINUTES, 3_600_000) },
  async () => {
    const servers = [new Server(await freePort()), new Server(await freePort())] as const;
    onTestFinished(() => Promise.all(servers.map((server) => server.kill())).then(() => undefined));
    for (const server of servers) await server.start();
    const balancer = await startNginx([servers[0].port, servers[1].port]);
    onTestFinished(() => balancer.stop());
    const api = await import(join(folder, 'api.ts'));
    const clientOf = (baseUrl: string) => api.createClient({ baseUrl, retries: 100 });

    // A position of a log that never had a change cannot be continued from, on SQLite: the client would get the list again, once.
    await clientOf(`http://127.0.0.1:${servers[0].port}`).notes.create({ body: { title: 'first' } });
    const changes: Change[] = [];
    const following = (async () => {
      for await (const change of clientOf(balancer.url).notes.live({ status: 'open' })) {
        changes.push(change as Change);
        if (change.event === 'upsert' && change.item.title === 'end') return;
      }
    })();
    await expect.poll(() => changes.length, { timeout: TEN_MINUTES }).toBeGreaterThan(0);

    const ids: string[] = [];
    /** Writes at a server that stays: what is lost or doubled is so by the stream. */
    const write = async ({ port }: Server, turn: number): Promise<void> => {
      const { notes } = clientOf(`http://127.0.0.1:${port}`);
      for (let count = 0; count < 5; count += 1) {
        ids.push((await notes.create({ body: { title: `note ${turn} ${count}` } })).id as string);
        const id = ids[(turn * 7 + count) % ids.length] as string;
        await notes.partialUpdate({ id, body: { status: count % 2 === 0 ? 'done' : 'open', title: `changed ${turn} ${count}` } });
      }
    };
    for (let turn = 0; turn < scaled(2, 60); turn += 1) {
      const [killed, staying] = turn % 2 === 0 ? servers : ([servers[1], servers[0]] as const);
      await write(staying, turn);
      await killed.kill();
      await write(staying, turn + 1_000);
      await killed.start();
    }
    const { notes } = clientOf(`http://127.0.0.1:${servers[0].port}`);
    await notes.create({ body: { title: 'end' } });
    await following;

    const list = new Map<string, unknown>();
    const versions = new Set<string>();
    for (const { event, key = '', item } of changes) {
      if (event === 'reset') [list, versions].forEach((each) => each.clear());
      if (event === 'remove') list.delete(key);
      if (event !== 'upsert') continue;
      const version = `${key} ${item?.version}`;
      expect(versions.has(version), `${version} came twice`).toBe(false);
      versions.add(version);
      list.set(key, item);
    }
    const { items } = (await notes.list({ status: 'open', limit: 1000 })) as { items: { id: string }[] };
    expect(Object.fromEntries(list)).toEqual(Object.fromEntries(items.map((item) => [item.id, item])));
    expect(changes.filter(({ event }) => event === 'reset')).toEqual([]);
  },
);
