import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../provision/free-port.ts';
import { scaled } from '../provision/scale.ts';
import { BreakingProxy } from './breaking-proxy.ts';
import { runScript } from './run-script.ts';

const TEN_MINUTES = 600_000;
const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, sys; assert sys.version_info >= (3, 11)']).status === 0,
);
const folder = mkdtempSync(join(tmpdir(), 'kit-live-client-'));

// oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler
type Generated = any;
let api: Generated;
let port: number;
let server: ChildProcess;

async function startServer(): Promise<void> {
  const script = join(import.meta.dirname, 'serve-live.ts');
  const options = ['--conditions=source', '--disable-warning=ExperimentalWarning', script, String(port), folder];
  const env = { ...process.env, NODE_OPTIONS: '', NODE_ENV: 'development' };
  server = spawn(process.execPath, options, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(server, 'exit').then(() => Promise.reject(new Error('The server ended before it listened.')));
  await Promise.race([once(server.stdout!, 'data'), ended]);
  ended.catch(() => undefined);
}

async function killServer(): Promise<void> {
  const exited = once(server, 'exit');
  server.kill('SIGKILL');
  await exited;
}

beforeAll(async () => {
  port = await freePort();
  await startServer();
  api = await import(join(folder, 'api.ts'));
}, TEN_MINUTES);
afterAll(async () => {
  await killServer();
  rmSync(folder, { recursive: true, force: true });
});

interface Change {
  readonly event: 'upsert' | 'remove' | 'reset' | 'ready';
  readonly key?: string;
  readonly item?: { readonly id: string; readonly version: number };
}

/** What a client got until the list had a note with the title `end`: its changes, and its list in order. */
interface Followed {
  readonly changes: readonly Change[];
  readonly list: readonly unknown[];
}

const followers: Readonly<Record<string, (url: string) => Promise<Followed>>> = {
  async typescript(baseUrl) {
    const client = api.createClient({ baseUrl });
    const changes: Change[] = [];
    const following = (async () => {
      for await (const change of client.notes.live({ status: 'open' })) {
        changes.push(change);
        if (change.item?.title === 'end') break;
      }
    })();
    for await (const list of client.notes.liveList({ status: 'open', ordering: ['total', '-title'] })) {
      if (!list.some(({ title }: { title: string }) => title === 'end')) continue;
      await following;
      return { changes, list };
    }
    throw new Error('The list ended.');
  },
  async python(baseUrl) {
    const script = `import asyncio, json, sys, threading
import api

changes: list[dict[str, object]] = []

def follow() -> None:
    with api.Client(sys.argv[1]) as client:
        for change in client.notes.live(status="open"):
            if change.event == "upsert":
                changes.append({"event": "upsert", "key": change.key, "item": api.to_dict(change.item)})
                if change.item.title == "end":
                    return
            else:
                changes.append({"event": change.event, **({"key": change.key} if change.event == "remove" else {})})

async def main() -> list[api.Note]:
    async with api.AsyncClient(sys.argv[1]) as client:
        async for notes in client.notes.live_list(status="open", ordering=["total", "-title"]):
            if any(note.title == "end" for note in notes):
                return notes
    raise RuntimeError("The list ended.")

thread = threading.Thread(target=follow)
thread.start()
notes = asyncio.run(main())
thread.join()
print(json.dumps({"changes": changes, "list": [api.to_dict(note) for note in notes]}))
`;
    writeFileSync(join(folder, 'main.py'), script);
    const { stdout, stderr } = await runScript(PYTHON!, ['main.py', baseUrl], folder, {});
    expect(stderr).toBe('');
    return JSON.parse(stdout) as Followed;
  },
};

/** Random writes, and what happens to servers and connections meanwhile. */
async function disturb(proxy: BreakingProxy, turns: number): Promise<void> {
  const { notes } = api.createClient({ baseUrl: `http://127.0.0.1:${port}`, retries: 100 });
  const ids: string[] = [];
  const amounts = ['-3.50', '0.00', '10.00', '9.00', '100.00', null];
  const write = async (count: number) => {
    for (let index = 0; index < count; index += 1) {
      const id = ids[Math.floor(Math.random() * ids.length)];
      const action = Math.random();
      if (id === undefined || action < 0.5) {
        const body = { title: `note ${Math.floor(Math.random() * 50)}`, total: amounts[Math.floor(Math.random() * amounts.length)] };
        ids.push((await notes.create({ body })).id as string);
      } else if (action < 0.9)
        await notes.partialUpdate({ id, body: { status: action < 0.7 ? 'done' : 'open', title: `changed ${index}` } });
      else await notes.destroy({ id: ids.splice(ids.indexOf(id), 1)[0] });
    }
  };
  await write(10);
  for (let turn = 0; turn < turns; turn += 1) {
    await expect.poll(() => proxy.responses, { timeout: 60_000 }).toBe(2);
    await write(5);
    if (turn % 3 === 0) await killServer();
    else if (turn % 3 === 1) proxy.endAll();
    else proxy.resetAll();
    if (turn % 3 === 0) {
      await delay(Math.random() * 100);
      await startServer();
    }
    await write(5);
  }
  await notes.create({ body: { title: 'end', total: '1.00' } });
}

/** Changes that were sent again although nothing had been lost. */
function doubled(changes: readonly Change[]): string[] {
  const seen = new Set<string>();
  const found: string[] = [];
  for (const { event, key, item } of changes) {
    if (event === 'reset') seen.clear();
    if (event !== 'upsert') continue;
    const place = `${key} ${item?.version}`;
    if (seen.has(place)) found.push(place);
    seen.add(place);
  }
  return found;
}

test.for(Object.keys(followers))(
  '%s: a live list whose server is killed and whose connections end or break loses no change, has none twice, and is in order',
  { timeout: scaled(TEN_MINUTES, 3_600_000) },
  async (language, context) => {
    context.skip(
      language === 'python' && PYTHON === undefined && process.env['KIT_REQUIRE_PYTHON'] === undefined,
      'Python with httpx is not installed',
    );
    const { notes } = api.createClient({ baseUrl: `http://127.0.0.1:${port}` });
    for await (const { id } of notes.all()) await notes.destroy({ id });
    const proxy = await BreakingProxy.start(port);
    onTestFinished(() => proxy.stop());
    const [{ changes, list }] = await Promise.all([followers[language]!(proxy.url), disturb(proxy, scaled(3, 60))]);
    const { items } = await notes.list({ status: 'open', ordering: ['total', '-title'], limit: 1000 });
    expect(list).toEqual(items);
    expect(doubled(changes)).toEqual([]);
    const followed = new Map<string, unknown>();
    for (const { event, key = '', item } of changes) {
      if (event === 'upsert') followed.set(key, item);
      else if (event === 'remove') followed.delete(key);
      else if (event === 'reset') followed.clear();
    }
    expect(Object.fromEntries(followed)).toEqual(Object.fromEntries(items.map((item: { id: string }) => [item.id, item])));
  },
);

test('an abort ends a live list; a refusal does, too, and says which', { timeout: TEN_MINUTES }, async () => {
  const client = api.createClient({ baseUrl: `http://127.0.0.1:${port}` });
  const stop = new AbortController();
  const follow = async () => {
    for await (const _list of client.notes.liveList({}, { signal: stop.signal })) stop.abort();
  };
  await expect(follow()).rejects.toMatchObject({ name: 'AbortError' });
  const refused = client.notes.live({ colour: 'red', ordering: ['nothing'] });
  await expect(refused.next()).rejects.toMatchObject({ name: 'Problem', status: 422, code: 'validation_error' });
  const nobody = api.createClient({ baseUrl: `http://127.0.0.1:${await freePort()}`, retries: 1 });
  await expect(nobody.notes.live().next()).rejects.toMatchObject({ name: 'ConnectionFailed' });
});
