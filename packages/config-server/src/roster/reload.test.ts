import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, rename, rm, symlink, unlink, utimes, writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ask, eventually, FILES, OTHER_TOKEN, SERVER_TOML, startServer, TOKEN, type RunningServer } from '../../test/running-server.ts';
import { testRepository } from '../../test/git-repository.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { systemClock } from '../clock.ts';

const BROKEN = '[billing]\npassword = "half of a sec';

function good(maxSize: number): string {
  return `[billing.pool]\nmaxSize = ${maxSize}\n`;
}

async function reaches(running: RunningServer, generation: number): Promise<void> {
  await eventually(async () => (await running.status()).generation === generation, `generation ${generation}`);
}

async function fails(running: RunningServer): Promise<void> {
  await eventually(async () => !(await running.status()).healthy, 'a failed reload');
}

test('a save in place is served as the next generation', async () => {
  const running = await startServer();
  await running.write('billing.toml', good(6));
  await reaches(running, 2);
  const reply = await running.ask('/billing/prod');
  expect(reply.json()).toEqual({ pool: { maxSize: 6 } });
  expect(reply.headers['config-generation']).toBe('2');
  expect(await running.status()).toMatchObject({ last_reason: 'file-changed', healthy: true });
  expect(running.log).toEqual(['config-server: section billing/prod is at generation 2']);
});

test('a save by atomic rename is served, time after time', async () => {
  const running = await startServer();
  for (let generation = 2; generation < 6; generation++) {
    await running.write('billing.toml.tmp', good(generation));
    await rename(join(running.folder, 'billing.toml.tmp'), join(running.folder, 'billing.toml'));
    await reaches(running, generation);
  }
});

test('a deleted file is a failure, and restoring it a recovery', async () => {
  const running = await startServer();
  await unlink(join(running.folder, 'billing.toml'));
  await fails(running);
  expect(await running.status()).toMatchObject({ consecutive_failures: 1, last_failure: { kind: 'missing', origin: 'file billing.toml' } });
  await running.write('billing.toml', good(7));
  await reaches(running, 2);
  expect(await running.status()).toMatchObject({ last_reason: 'recovered', healthy: true, last_failure: { kind: 'missing' } });
});

test('a ConfigMap volume is followed through its ..data link, in one reload for all its files', async () => {
  const folder = await temporaryFolder();
  const volume = join(folder, 'volume');
  await mkdir(join(volume, '..v1'), { recursive: true });
  await writeFile(join(volume, '..v1', 'a.toml'), '[billing]\na = 1\n');
  await writeFile(join(volume, '..v1', 'b.toml'), '[billing]\nb = 1\n');
  await symlink('..v1', join(volume, '..data'));
  await symlink('..data/a.toml', join(volume, 'a.toml'));
  await symlink('..data/b.toml', join(volume, 'b.toml'));
  const toml = SERVER_TOML.replace('"billing.toml"', '"volume/a.toml", "volume/b.toml"');
  const running = await startServer({ folder, toml });
  for (let version = 2; version < 5; version++) {
    await mkdir(join(volume, `..v${version}`));
    await writeFile(join(volume, `..v${version}`, 'a.toml'), `[billing]\na = ${version}\n`);
    await writeFile(join(volume, `..v${version}`, 'b.toml'), `[billing]\nb = ${version}\n`);
    await symlink(`..v${version}`, join(volume, '..data_tmp'));
    await rename(join(volume, '..data_tmp'), join(volume, '..data'));
    await rm(join(volume, `..v${version - 1}`), { recursive: true });
    await reaches(running, version);
    expect((await running.ask('/billing/prod')).json()).toEqual({ a: version, b: version });
  }
  expect((await running.status()).last_failure).toBeNull();
});

test('a directory that is replaced is followed, and so is what happens in it afterwards', async () => {
  const folder = await temporaryFolder();
  const toml = SERVER_TOML.replace('"billing.toml"', '"conf/billing.toml"');
  const running = await startServer({ folder, toml, files: { ...FILES, 'conf/billing.toml': good(1), 'next/billing.toml': good(2) } });
  // In one turn, so that the watcher never sees the folder missing.
  renameSync(join(folder, 'conf'), join(folder, 'old'));
  renameSync(join(folder, 'next'), join(folder, 'conf'));
  await reaches(running, 2);
  await running.write('conf/billing.toml', good(3));
  await reaches(running, 3);
  await rm(join(folder, 'conf'), { recursive: true });
  await fails(running);
  await mkdir(join(folder, 'conf'));
  await running.write('conf/billing.toml', good(4));
  await reaches(running, 4);
});

test('a directory deleted and made again is followed, also when it gets the same inode before anybody looked', async () => {
  const folder = await temporaryFolder();
  const toml = SERVER_TOML.replace('"billing.toml"', '"conf/billing.toml"');
  const running = await startServer({ folder, toml, files: { ...FILES, 'conf/billing.toml': good(1) } });
  const directory = join(folder, 'conf');
  rmSync(directory, { recursive: true });
  // In one turn, but long enough for the kernel to let go of the inode.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  mkdirSync(directory);
  writeFileSync(join(directory, 'billing.toml'), good(2));
  await reaches(running, 2);
  await running.write('conf/billing.toml', good(3));
  await reaches(running, 3);
});

test('an optional file that appears is loaded, and one that is deleted is dropped', async () => {
  const toml = SERVER_TOML.replace('["billing.toml"]', '["billing.toml", { path = "not/yet/there.json", optional = true }]');
  const running = await startServer({ toml });
  await mkdir(join(running.folder, 'not/yet'), { recursive: true });
  await running.write('not/yet/there.json', '{"billing":{"extra":true}}');
  await reaches(running, 2);
  expect((await running.ask('/billing/prod')).json()).toMatchObject({ extra: true, name: 'invoices' });
  await rm(join(running.folder, 'not'), { recursive: true });
  await reaches(running, 3);
  expect((await running.ask('/billing/prod')).json()).not.toHaveProperty('extra');
});

test('a failed reload keeps the last good document, counts, and turns readyz to 503 until it recovers', async () => {
  const running = await startServer();
  await running.write('billing.toml', BROKEN);
  await fails(running);
  expect((await running.ask('/billing/prod')).json()).toMatchObject({ password: 'correct horse' });
  expect((await running.ask('/readyz', { token: null })).json()).toEqual({ ready: false });
  const status = await running.status();
  expect(status).toMatchObject({ generation: 1, consecutive_failures: 1, last_failure: { kind: 'parse', origin: 'file billing.toml' } });
  expect(status.stale_for_seconds).toBeGreaterThan(0);
  await running.write('billing.toml', `${BROKEN}ret`);
  await eventually(async () => (await running.status()).consecutive_failures === 2, 'a second failure');
  const metrics = (await running.ask('/metrics')).text;
  expect(metrics).toContain('config_consecutive_failures{application="billing",profile="prod"} 2');
  expect(metrics).toContain('config_reload_failures_total{application="billing",profile="prod"} 2');
  expect(metrics).toContain('config_healthy{application="billing",profile="prod"} 0');
  await running.write('billing.toml', FILES['billing.toml']!);
  await eventually(async () => (await running.status()).healthy, 'recovery');
  expect(await running.status()).toMatchObject({ generation: 1, consecutive_failures: 0, stale_for_seconds: 0, last_reason: 'recovered' });
  expect((await running.ask('/readyz', { token: null })).status).toBe(200);
  expect(running.log.join('\n')).not.toContain('half of a sec');
  expect(running.log.at(-1)).toBe('config-server: section billing/prod reloads again; its document is that of generation 1');
});

test('a key cannot forge a line of the log', async () => {
  const running = await startServer();
  const forged = 'config-server: section orders/prod is at generation 9';
  await running.write('billing.toml', `[billing]\n"a\\n${forged}\\u001b[2J" = 99999999999999999999\n`);
  await fails(running);
  expect(running.log.at(-1)).toContain(`key a\\u000a${forged}\\u001b[2J is an integer beyond`);
  expect(running.log.join('')).not.toMatch(/\p{Cc}/u);
});

test('a pipe in the place of a file or of server.toml is a failure like any other: nothing waits for it', async () => {
  const running = await startServer({ files: { ...FILES, 'billing.toml': `[billing]\ntext = "${'x'.repeat(2_000)}"\n` } });
  for (const name of ['billing.toml', 'server.toml']) {
    execFileSync('mkfifo', [join(running.folder, 'pipe')]);
    await rename(join(running.folder, 'pipe'), join(running.folder, name));
    await eventually(() => running.log.some((line) => line.includes('not a regular file') && line.includes(name)), `${name} to fail`);
  }
  // More than there are threads to read with.
  const checks = await Promise.all(Array.from({ length: 10 }, () => running.ask('/billing/prod/check')));
  expect(checks.map((reply) => reply.json().failure.kind)).toEqual(Array.from({ length: 10 }, () => 'io'));
  expect((await running.ask('/billing/prod', { headers: { 'accept-encoding': 'br' } })).headers['content-encoding']).toBe('br');
  for (const [name, text] of [['billing.toml', good(2)] as const, ['server.toml', SERVER_TOML] as const]) {
    await running.write('next', text);
    await rename(join(running.folder, 'next'), join(running.folder, name));
  }
  await reaches(running, 2);
  await eventually(async () => (await running.ask('/readyz', { token: null })).status === 200, 'readyz 200');
});

test('while a section fails, every endpoint reports its last good document', async () => {
  const running = await startServer({ environment: { BILLING__POOL__MAXSIZE: '9' } });
  const tell = async (): Promise<unknown[]> => {
    const document = await running.ask('/billing/prod');
    const paths = await running.ask('/billing/prod/paths');
    const explanation = await running.ask('/billing/prod/explain/pool.maxSize');
    const metrics = (await running.ask('/metrics')).text.match(/^config_(generation|installs_total|last_install_\w+)\{.*$/gm);
    const { installed_at: installedAt, generation, last_reason: reason } = await running.status();
    return [
      document.text,
      document.headers.etag,
      document.headers['config-generation'],
      paths.text,
      explanation.text,
      metrics,
      installedAt,
      generation,
      reason,
    ];
  };
  const before = await tell();
  for (const text of [BROKEN, '', '[other]\nx = 1\n', '[billing]\npool = 5\n']) {
    const { consecutive_failures: failures } = await running.status();
    // Replaced, not written to: a file that is read while it is written would be a failure of its own.
    await running.write('next', text);
    await rename(join(running.folder, 'next'), join(running.folder, 'billing.toml'));
    await eventually(async () => (await running.status()).consecutive_failures > failures, `a failure of ${text}`);
    expect(await tell()).toEqual(before);
  }
  expect(running.audit.some((entry) => entry.endpoint === 'readyz')).toBe(false);
  await running.ask('/readyz', { token: null });
  expect(running.audit.at(-1)).toMatchObject({ endpoint: 'readyz', outcome: 'unavailable', caller: null });
  // One line for every failure. A busy machine may reload a file twice for one change.
  const reported = (): (string | undefined)[] =>
    running.log.flatMap((line) => {
      const found = /^config-server: section billing\/prod did not reload \((\w+)\): .*; generation 1 stays in service$/.exec(line);
      return found === null ? [] : [found[1]];
    });
  await eventually(async () => (await running.status()).consecutive_failures === reported().length, 'a line for every failure');
  expect(reported().length).toBeGreaterThanOrEqual(4);
  expect([...new Set(reported())]).toEqual(['parse', 'missing', 'env']);
});

test('a section is stale since the oldest change that is not served, not since the last one or the failed reload', async () => {
  let ahead = 0;
  const clock = { ...systemClock, now: () => Date.now() + ahead };
  const running = await startServer({ clock, toml: SERVER_TOML.replace('watch_debounce_ms = 20', 'watch_debounce_ms = 400') });
  await running.write('billing.toml', BROKEN);
  await fails(running);
  expect((await running.status()).stale_for_seconds).toBeGreaterThanOrEqual(0.39);
  ahead = 60_000;
  await running.write('billing.toml', `${BROKEN}ret`);
  await eventually(async () => (await running.status()).consecutive_failures === 2, 'a second failure');
  expect((await running.status()).stale_for_seconds).toBeGreaterThanOrEqual(60);
});

test('a reload of an equal document installs nothing, but explains by the new origins', async () => {
  const toml = SERVER_TOML.replace('["billing.toml"]', '["billing.toml", { path = "more.toml", optional = true }]');
  const running = await startServer({ toml });
  await running.write('more.toml', '[billing]\nname = "invoices"\n');
  const explain = async () => (await running.ask('/billing/prod/explain/name')).json().rows[0].origin as string;
  await eventually(async () => (await explain()) === 'file more.toml', 'the new origin');
  await running.write('billing.toml', '[billing]\npassword = "correct horse"\nname = "invoices"\n[billing.pool]\nmaxSize = 5\n');
  await utimes(join(running.folder, 'billing.toml'), new Date(), new Date());
  await running.write('orders.yaml', 'orders:\n  region: us\n');
  await eventually(async () => (await running.status('orders/prod', OTHER_TOKEN)).generation === 2, 'a later change elsewhere');
  expect(await running.status()).toMatchObject({ generation: 1, last_reason: 'initial' });
});

test('only the sections that list a touched file are reloaded', async () => {
  const running = await startServer();
  await running.write('billing.toml', good(9));
  await reaches(running, 2);
  expect(await running.status('orders/prod', OTHER_TOKEN)).toMatchObject({ generation: 1 });
});

test('with watch_debounce_ms = 0 nothing reloads, not even on SIGHUP, which logs that', async () => {
  const running = await startServer({ toml: SERVER_TOML.replace('watch_debounce_ms = 20', 'watch_debounce_ms = 0') });
  await running.write('billing.toml', good(9));
  await running.server.reload();
  expect(await running.status()).toMatchObject({ generation: 1 });
  expect(running.log.at(-1)).toContain('watch_debounce_ms is 0');
});

test('a forced reload applies changes with reason manual', async () => {
  const running = await startServer({ toml: SERVER_TOML.replace('watch_debounce_ms = 20', 'watch_debounce_ms = 60000') });
  await running.write('billing.toml', good(9));
  await running.server.reload();
  expect(await running.status()).toMatchObject({ generation: 2, last_reason: 'manual' });
});

test('an edit of server.toml swaps tokens live: the new one is accepted, the old one refused and its streams closed', async () => {
  const running = await startServer();
  const next = 'a-new-token-for-billing-0123456789-abc';
  const stream = running.ask('/billing/prod/stream');
  const other = running.ask('/orders/prod/stream', { token: OTHER_TOKEN });
  let otherEnded = false;
  void other.then(() => (otherEnded = true));
  await eventually(() => running.server.streams.open === 2, 'open streams');
  await running.write('server.toml', SERVER_TOML.replace(TOKEN, next));
  await eventually(async () => (await running.ask('/billing/prod', { token: next })).status === 200, 'the new token');
  expect((await running.ask('/billing/prod')).status).toBe(401);
  expect((await stream).text).toContain('id: 1');
  expect(otherEnded).toBe(false);
  expect(running.server.streams.open).toBe(1);
});

test('a token that is removed is refused on a connection that stays open, and another token on it is another caller', async () => {
  const running = await startServer();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const statusOf = async (path: string, token: string): Promise<number> => (await running.ask(path, { token, agent })).status;
  expect([await statusOf('/billing/prod', TOKEN), await statusOf('/billing/prod', TOKEN)]).toEqual([200, 200]);
  const [socket] = Object.values(agent.freeSockets).flat();
  expect([await statusOf('/billing/prod', OTHER_TOKEN), await statusOf('/orders/prod', OTHER_TOKEN)]).toEqual([404, 200]);
  expect([await statusOf('/orders/prod', TOKEN), await statusOf('/billing/prod', `${TOKEN.slice(0, -1)}~`)]).toEqual([404, 401]);
  await running.write('server.toml', SERVER_TOML.replace(TOKEN, 'a-new-token-for-billing-0123456789-abc'));
  await eventually(async () => (await statusOf('/billing/prod', TOKEN)) === 401, 'the refusal');
  expect(Object.values(agent.freeSockets).flat()).toEqual([socket]);
});

test('a removed grant takes effect live: the same 404, and the streams it opened are closed', async () => {
  const both = SERVER_TOML.replace('applications = ["billing"]', 'applications = ["billing", "orders"]');
  const running = await startServer({ toml: both });
  const ended = running.ask('/orders/prod/stream');
  let kept = true;
  void running.ask('/billing/prod/stream').then(() => (kept = false));
  await eventually(() => running.server.streams.open === 2, 'open streams');
  await running.write('server.toml', SERVER_TOML);
  expect((await ended).text).toContain('id: 1');
  expect((await running.ask('/orders/prod')).text).toBe((await running.ask('/nothing/prod')).text);
  expect((await running.ask('/metrics')).text).not.toContain('orders');
  expect([kept, running.server.streams.open]).toEqual([true, 1]);
});

test('a lowered ceiling of streams applies to the next one', async () => {
  const running = await startServer();
  void running.ask('/billing/prod/stream');
  await eventually(() => running.server.streams.open === 1, 'an open stream');
  await running.write('server.toml', SERVER_TOML.replace('[server]', '[server]\nmax_stream_connections = 1'));
  await eventually(() => running.log.some((line) => line.includes('was read again')), 'the edit');
  expect((await running.ask('/billing/prod/stream')).status).toBe(503);
});

test('a caller whose token is configured by its digest is accepted, and the digest itself is not a token', async () => {
  const digest = createHash('sha256').update(TOKEN).digest('hex');
  const running = await startServer({ toml: SERVER_TOML.replace(`token = "${TOKEN}"`, `token_sha256 = "${digest}"`) });
  expect((await running.ask('/billing/prod')).status).toBe(200);
  expect((await running.ask('/billing/prod', { token: digest })).status).toBe(401);
});

test('tokens overlap while both are listed', async () => {
  const next = 'a-new-token-for-billing-0123456789-abc';
  const running = await startServer({
    toml: SERVER_TOML.replace(`token = "${TOKEN}"`, `tokens = [{ token = "${TOKEN}" }, { token = "${next}" }]`),
  });
  expect((await running.ask('/billing/prod')).status).toBe(200);
  expect((await running.ask('/billing/prod', { token: next })).status).toBe(200);
});

test('a changed token file is applied like an edit', async () => {
  const running = await startServer({
    toml: SERVER_TOML.replace(`token = "${TOKEN}"`, 'token_file = "billing.token"'),
    files: { ...FILES, 'billing.token': `${TOKEN}\n` },
  });
  expect((await running.ask('/billing/prod')).status).toBe(200);
  const next = 'a-new-token-for-billing-0123456789-abc';
  await running.write('billing.token', `${next}\n`);
  await eventually(async () => (await running.ask('/billing/prod', { token: next })).status === 200, 'the new token');
  expect((await running.ask('/billing/prod')).status).toBe(401);
});

test('an invalid edit keeps the running roster, is logged, and shows on readyz until it is fixed', async () => {
  const running = await startServer();
  const secret = 'short-secret';
  await running.write('server.toml', SERVER_TOML.replace(TOKEN, secret));
  await eventually(async () => (await running.ask('/readyz', { token: null })).status === 503, 'readyz 503');
  expect((await running.ask('/billing/prod')).status).toBe(200);
  expect(running.log.join('\n')).toMatch(
    /the running configuration stays in service: .*server\.clients\[0\]\.token \(client "billing-service"\): is shorter than 32/,
  );
  expect(running.log.join('\n')).not.toContain(secret);
  await running.write('server.toml', SERVER_TOML);
  await eventually(async () => (await running.ask('/readyz', { token: null })).status === 200, 'readyz 200');
});

test('the problems of an invalid edit are not logged again for every section file that changes meanwhile', async () => {
  const running = await startServer();
  await running.write('server.toml', SERVER_TOML.replace(TOKEN, 'short'));
  await eventually(async () => (await running.ask('/readyz', { token: null })).status === 503, 'readyz 503');
  await running.write('billing.toml', '[billing]\nname = "changed"\n');
  await eventually(async () => (await running.status()).generation === 2, 'the next generation');
  await running.write('server.toml', SERVER_TOML);
  await eventually(() => running.log.some((line) => line.includes('is valid again')), 'the mended edit');
  expect(running.log.filter((line) => line.includes('stays in service'))).toHaveLength(1);
});

test('an edit whose new section cannot load is an invalid edit', async () => {
  const running = await startServer();
  await running.write(
    'server.toml',
    `${SERVER_TOML}\n[[server.sections]]\napplication = "new"\nprofile = "prod"\nfiles = ["missing.toml"]\n`,
  );
  await eventually(async () => (await running.ask('/readyz', { token: null })).status === 503, 'readyz 503');
  expect(running.log.join('\n')).toContain('section new/prod cannot load: file missing.toml');
});

test('a refused edit is tried again when a file it waits for appears', async () => {
  const running = await startServer();
  const next = 'a-new-token-for-billing-0123456789-abc';
  const section = '\n[[server.sections]]\napplication = "billing"\nprofile = "late"\nfiles = ["late.toml"]\n';
  await running.write('server.toml', SERVER_TOML.replace(`token = "${TOKEN}"`, 'token_file = "late.token"') + section);
  await eventually(async () => (await running.ask('/readyz', { token: null })).status === 503, 'readyz 503');
  await running.write('late.token', next);
  await eventually(() => running.log.some((line) => line.includes('section billing/late cannot load')), 'the next problem');
  expect((await running.ask('/billing/prod')).status).toBe(200);
  await running.write('late.toml', '[billing]\nlate = true\n');
  await eventually(async () => (await running.ask('/billing/late', { token: next })).status === 200, 'the edit');
  expect((await running.ask('/readyz', { token: null })).status).toBe(200);
});

test('a refused edit is tried again when the repository or the mount that it waits for appears', async () => {
  const running = await startServer();
  const ready = async (): Promise<boolean> => (await running.ask('/readyz')).status === 200;
  await running.write('server.toml', `${SERVER_TOML}\n[server.secrets]\nmounts = "mounted"\n`);
  await eventually(async () => !(await ready()), 'the mount to be missed');
  await mkdir(join(running.folder, 'mounted'));
  await eventually(ready, 'the edit with the mount');
  await running.write('server.toml', `${SERVER_TOML}\n[git]\nrepository = "repository"\nbranch = "main"\n`);
  await eventually(async () => !(await ready()), 'the repository to be missed');
  const repository = await testRepository();
  const commit = repository.commit(FILES);
  await rename(repository.folder, join(running.folder, 'repository'));
  await eventually(ready, 'the edit with the repository');
  expect((await running.ask('/billing/prod/status')).json().commit).toBe(commit);
});

test('a server.toml that is rewritten in place all the time is not applied until it is complete', async () => {
  const running = await startServer();
  let writes = 0;
  const rewriting = setInterval(() => writeFileSync(join(running.folder, 'server.toml'), `${SERVER_TOML}# ${++writes}\n`), 4);
  onTestFinished(() => clearInterval(rewriting));
  await eventually(() => running.log.some((line) => line.includes('keeps changing while it is read')), 'the edit to be put off');
  clearInterval(rewriting);
  writeFileSync(join(running.folder, 'server.toml'), SERVER_TOML.replaceAll(TOKEN, `${TOKEN}-new`));
  await eventually(async () => (await running.ask('/billing/prod', { token: `${TOKEN}-new` })).status === 200, 'the last edit');
  await eventually(async () => (await running.ask('/readyz')).status === 200, 'the server to be ready');
});

test('sections are added and removed with server.toml, and one that is added again continues its generations', async () => {
  const running = await startServer();
  await running.write('billing.toml', good(2));
  await reaches(running, 2);
  const added = `${SERVER_TOML}\n[[server.sections]]\napplication = "billing"\nprofile = "test"\nfiles = ["test.toml"]\n`;
  await running.write('test.toml', '[billing]\ntest = true\n');
  await running.write('server.toml', added);
  await eventually(async () => (await running.ask('/billing/test')).status === 200, 'the new section');
  await running.write('test.toml', '[billing]\ntest = false\n');
  await eventually(async () => (await running.status('billing/test')).generation === 2, 'a watched new section');
  const stream = running.ask('/billing/test/stream');
  await eventually(() => running.server.streams.open === 1, 'an open stream');
  await running.write('server.toml', SERVER_TOML);
  await eventually(async () => (await running.ask('/billing/test')).status === 404, 'the section to be gone');
  await stream;
  expect(await running.status()).toMatchObject({ generation: 2 });
  await running.write('server.toml', added);
  await eventually(async () => (await running.ask('/billing/test')).status === 200, 'the section to be back');
  expect((await running.status('billing/test')).generation).toBe(3);
});

test('a section with other files continues with the next generation', async () => {
  const running = await startServer({ files: { ...FILES, 'other.toml': good(77) } });
  await running.write('server.toml', SERVER_TOML.replace('"billing.toml"', '"other.toml"'));
  await reaches(running, 2);
  expect((await running.ask('/billing/prod')).json()).toEqual({ pool: { maxSize: 77 } });
  await running.write('other.toml', good(78));
  await reaches(running, 3);
});

test('a file that changes while its section is being given another definition is served in its latest version', async () => {
  const running = await startServer({ files: { ...FILES, 'slow.toml': '[billing]\n' } });
  // A file that never settles makes a load take a fifth of a second, and 32 sections are loaded at once: the edit takes a second.
  const unsettled = setInterval(() => void utimes(join(running.folder, 'slow.toml'), new Date(), new Date()), 4);
  onTestFinished(() => clearInterval(unsettled));
  let changes = 0;
  /** Another section has been read again: what was due before has been done. */
  const elapsed = async (): Promise<void> => {
    const { generation } = await running.status('orders/prod', OTHER_TOKEN);
    await running.write('orders.yaml', `orders:\n  region: eu-${(changes += 1)}\n`);
    await eventually(async () => (await running.status('orders/prod', OTHER_TOKEN)).generation > generation, 'a reload of orders/prod');
  };
  const isApplied = async (edit: number): Promise<boolean> => (await running.ask(`/billing/slow-${edit}-0`)).status === 200;
  let wasUnderWay = false;
  // An edit that was over before the change proves nothing: the next one takes its place.
  for (let edit = 1; !wasUnderWay; edit++) {
    expect(edit).toBeLessThan(20);
    await running.write(`more-${edit}.toml`, `[billing]\nmore = ${edit}\n`);
    await running.write('billing.toml', good(edit));
    await eventually(async () => (await running.ask('/billing/prod')).json().pool.maxSize === edit, 'the value before');
    await Promise.all(['billing.toml', `more-${edit}.toml`].map((name) => utimes(join(running.folder, name), 1e9, 1e9)));
    await elapsed();
    const slow = Array.from(
      { length: 160 },
      (_, n) => `\n[[server.sections]]\napplication = "billing"\nprofile = "slow-${edit}-${n}"\nfiles = ["slow.toml"]\n`,
    );
    await running.write('next', SERVER_TOML.replace('"billing.toml"', `"billing.toml", "more-${edit}.toml"`) + slow.join(''));
    await utimes(join(running.folder, 'next'), 1e9, 1e9);
    await rename(join(running.folder, 'next'), join(running.folder, 'server.toml'));
    // The edit has read the file, and the change after it is due while the edit is under way.
    await elapsed();
    await elapsed();
    await running.write('billing.toml', good(1000 + edit));
    await elapsed();
    wasUnderWay = !(await isApplied(edit));
    await eventually(() => isApplied(edit), 'the edit');
    await eventually(async () => (await running.ask('/billing/prod')).json().pool.maxSize === 1000 + edit, 'the change');
    await elapsed();
    expect((await running.ask('/billing/prod')).json()).toEqual({ pool: { maxSize: 1000 + edit }, more: edit });
  }
});

test('keys that take effect only at a start are logged', async () => {
  const running = await startServer();
  await running.write(
    'server.toml',
    SERVER_TOML.replace('127.0.0.1:0', '127.0.0.1:1').replace('[server]', '[server]\nhealth_bind = "127.0.0.1:0"'),
  );
  await eventually(() => running.log.some((line) => line.includes('was read again')), 'the edit');
  expect(running.log.filter((line) => line.endsWith('that takes effect at the next start')).map((line) => line.split(' ')[1])).toEqual([
    'server.bind',
    'server.health_bind',
  ]);
  expect((await ask(running.port, '/billing/prod')).status).toBe(200);
});

test('an edit that turns watching off, too, takes effect at the next start only: until then files are followed and SIGHUP reloads', async () => {
  const running = await startServer();
  const stage = '[[server.sections]]\napplication = "billing"\nprofile = "stage"\nfiles = ["stage.toml"]\n';
  await running.write('stage.toml', '[billing]\nname = "stage"\n');
  await running.write('server.toml', SERVER_TOML.replace('watch_debounce_ms = 20', 'watch_debounce_ms = 0') + stage);
  await eventually(() => running.log.some((line) => line.includes('server.watch_debounce_ms changed')), 'the message');
  await running.write('stage.toml', '[billing]\nname = "next"\n');
  await eventually(async () => (await running.status('billing/stage')).generation === 2, 'a reload of the section that came with the edit');
  await running.server.reload();
  expect(await running.status('billing/stage')).toMatchObject({ last_reason: 'manual' });
});
