import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { createPostgresDatabase, type DatabasePlace } from 'kit/testing';
import { scaled } from '../../../test/provision/scale.ts';

const root = join(import.meta.dirname, '..', '..', '..');

interface Running {
  readonly panel: string;
  readonly commands: readonly string[];
  stop(): Promise<number | null>;
}

/** Runs the example from a copy of its folder beside the original, so that a developer's own data stays as it is. */
async function start(folder: string, databaseUrl: string | undefined): Promise<Running> {
  const env = {
    ...process.env,
    INIT_CWD: root,
    NODE_ENV: 'development',
    ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
  };
  if (databaseUrl === undefined) delete (env as Record<string, string | undefined>)['DATABASE_URL'];
  const child = spawn(process.execPath, ['--conditions=source', 'demo/main.ts'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let err = '';
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  await new Promise<void>((done, failed) => {
    child.once('exit', (code) => failed(new Error(`the demo exited with ${code}: ${err}`)));
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
      if (out.includes('apikey revoke --prefix')) done();
    });
  });
  const exited = new Promise<number | null>((done) => child.once('exit', (code) => done(code)));
  return {
    panel: out,
    commands: [...out.matchAll(/^ {5}(\S.*)$/gm)].map((match) => match[1] ?? ''),
    stop: () => (child.kill('SIGINT'), exited),
  };
}

function shell(command: string, folder: string, databaseUrl: string | undefined): string {
  // The printed commands name the example's own folder; the copy under test has another name.
  const text = command.replaceAll('examples/orders/', `${relative(root, folder)}/`);
  const result = spawnSync('bash', ['-c', text], { cwd: root, encoding: 'utf8', env: { ...process.env, DATABASE_URL: databaseUrl ?? '' } });
  if (result.status !== 0) throw new Error(`${text}\n${result.stdout}${result.stderr}`);
  return result.stdout;
}

// The short run has SQLite, which `npm start` uses; deployment.slow.test.ts runs the same app on PostgreSQL.
const kinds = (['SQLite', 'PostgreSQL'] as const).slice(0, scaled(1, 2));

for (const kind of kinds) {
  let folder: string;
  let database: DatabasePlace | undefined;

  beforeAll(async () => {
    folder = mkdtempSync(join(root, 'examples', '.data-orders-'));
    cpSync(join(root, 'examples/orders'), folder, {
      recursive: true,
      filter: (path) => !path.includes('.data/') && !path.endsWith('.data'),
    });
    if (kind === 'PostgreSQL') database = await createPostgresDatabase(inject('postgresUrl'));
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await database?.remove();
  });

  test(`the ten printed commands do what they say, on ${kind}, and a second start works again`, { timeout: 1_800_000 }, async () => {
    const url = kind === 'PostgreSQL' ? database?.url : undefined;
    const first = await start(folder, url);
    const [
      place = '',
      find = '',
      patch = '',
      share = '',
      received = '',
      delivered = '',
      follow = '',
      change = '',
      explain = '',
      revoke = '',
    ] = first.commands;
    expect(first.commands).toHaveLength(10);
    const metrics = /metrics\s+(http:\S+)/.exec(first.panel)?.[1] ?? '';
    expect(await (await fetch(metrics)).text()).toContain('http_server_request_duration_seconds');
    expect(JSON.parse(shell(place, folder, url))).toMatchObject({ quantity: 3, total: '37.50', status: 'open' });
    expect(JSON.parse(shell(find, folder, url))).toMatchObject({
      items: [{ item: 'Filter paper', total: '37.50', version: 1, invoice: null }],
    });
    expect(JSON.parse(shell(patch, folder, url))).toMatchObject({ quantity: 2, total: '25.00', version: 2 });
    expect(JSON.parse(shell(patch, folder, url))).toMatchObject({ status: 412, code: 'precondition_failed', etag: '"2"' });
    expect(JSON.parse(shell(share, folder, url))).toMatchObject({
      items: [
        { name: 'ada', set: 'viewer', expires_at: null },
        { name: 'support desk', set: 'editor' },
      ],
    });
    const arrivals = (): unknown => JSON.parse(shell(received, folder, url));
    await expect.poll(arrivals, { timeout: 300_000 }).toMatchObject([
      { verified: true, type: 'order.created', data: { quantity: 3 } },
      { verified: true, type: 'order.updated', data: { quantity: 2 } },
    ]);
    const deliveries = (): unknown => JSON.parse(shell(delivered, folder, url));
    await expect.poll(deliveries, { timeout: 300_000 }).toMatchObject({
      items: [
        { status: 'succeeded', event_type: 'order.updated' },
        { status: 'succeeded', event_type: 'order.created' },
      ],
    });

    expect(shell(follow, folder, url)).toMatch(/event: end[\s\S]*"status":"succeeded"/);

    const beside = await start(folder, url).catch((error: Error) => error.message);
    expect(beside).toMatch(/exited with 1: The example is running already, as process \d+: /);

    shell(change, folder, url);
    let placed = 2;
    const refusal = (): string | undefined => {
      const { code } = JSON.parse(shell(place, folder, url)) as { code?: string };
      if (code === undefined) placed++;
      return code;
    };
    await expect.poll(refusal, { timeout: 300_000 }).toBe('quantity_too_large');
    expect(JSON.parse(shell(explain, folder, url))).toMatchObject({
      winner: 'file',
      rows: [{ layer: 'file', origin: 'file orders.toml', value: '***', line: 5, column: 1 }, { layer: 'environment' }],
    });

    shell(revoke, folder, url);
    expect(JSON.parse(shell(delivered, folder, url))).toMatchObject({ status: 401, code: 'invalid_api_key' });
    expect(await first.stop()).toBe(0);

    const second = await start(folder, url);
    expect(JSON.parse(shell(second.commands[0] ?? '', folder, url))).toMatchObject({ quantity: 3 });
    placed++;
    expect((JSON.parse(shell(second.commands[5] ?? '', folder, url)) as { items: unknown[] }).items).toHaveLength(placed);
    expect(await second.stop()).toBe(0);

    writeFileSync(join(folder, '.data/config/orders.toml'), '[orders');
    const refused = await start(folder, url).catch((error: Error) => error.message);
    expect(refused).toContain('orders.toml: the file is not valid TOML');
    expect(refused).not.toMatch(/^ +at /m);
  });
}

test('a database that cannot be used is said in two lines, and leaves the folder free', { timeout: 600_000 }, async () => {
  const folder = mkdtempSync(join(root, 'examples', '.data-orders-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const source = join(root, 'examples/orders');
  cpSync(source, folder, { recursive: true, filter: (path) => !path.includes('.data/') && !path.endsWith('.data') });
  for (const _again of [1, 2]) {
    const refused = await start(folder, 'postgres://ada:hunter2secret@127.0.0.1:1/orders').catch((error: Error) => error.message);
    expect(refused).toBe(
      'the demo exited with 1: The database cannot be used: connect ECONNREFUSED 127.0.0.1:1.\n' +
        'Correct DATABASE_URL, or unset it: without it the example keeps its data in a SQLite file.\n',
    );
  }
});
