import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { ask, eventually, FILES, SERVER_TOML, TOKEN, writeFiles } from '../../test/running-server.ts';
import { createCertificate } from '../../test/certificates.ts';
import { runProgram } from '../../test/program-runs.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';

/** All that a program gets from this process; compiled code is kept between the starts. */
const BARE = { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] };
const PROGRAM = fileURLToPath(new URL('../../bin/config-server.js', import.meta.url));

interface Program {
  readonly child: ChildProcessWithoutNullStreams;
  readonly output: { out: string; err: string };
  readonly exit: Promise<number | null>;
}

function run(parameters: readonly string[], environment: Record<string, string> = {}): Program {
  const child = spawn(process.execPath, [PROGRAM, ...parameters], { env: { ...BARE, ...environment } });
  const output = { out: '', err: '' };
  child.stdout.on('data', (chunk: Buffer) => (output.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output.err += chunk.toString()));
  onTestFinished(() => void child.kill('SIGKILL'));
  return { child, output, exit: once(child, 'close').then(([code]) => code as number | null) };
}

async function prepare(toml = SERVER_TOML, files: Readonly<Record<string, string>> = FILES): Promise<string> {
  const folder = await temporaryFolder();
  await writeFiles(folder, { ...files, 'server.toml': toml });
  return folder;
}

async function start(folder: string, environment: Record<string, string> = {}): Promise<Program & { port: number }> {
  const program = run([join(folder, 'server.toml')], environment);
  await eventually(() => / listening on /.test(program.output.out) || program.child.exitCode !== null, 'the start line');
  const port = Number(/listening on \S+:(\d+) /.exec(program.output.out)?.[1]);
  return { ...program, port };
}

test('help, version and wrong usage', async () => {
  const help = run(['--help']);
  expect(await help.exit).toBe(0);
  expect(help.output.out).toContain('usage: config-server <server.toml>');
  const version = run(['--version']);
  expect(await version.exit).toBe(0);
  expect(version.output.out).toMatch(/^\d+\.\d+\.\d+\S*\n$/);
  const explained = await runProgram('cli/main.ts', ['--explain', 'decrypt']);
  expect(explained.status).toBe(0);
  expect(explained.stdout).toContain('What to do: ');
  const unknown = await runProgram('cli/main.ts', ['--explain', 'decript']);
  expect([unknown.status, unknown.stdout]).toEqual([1, '']);
  expect(unknown.stderr).toContain('decrypt');
  for (const parameters of [
    [],
    [''],
    ['a', 'b'],
    ['--what'],
    ['--explain'],
    ['--check'],
    ['--check', ''],
    ['--check', 'a', 'b'],
    ['--help', 'x'],
  ]) {
    const wrong = await runProgram('cli/main.ts', parameters);
    expect([parameters, wrong.status, wrong.stderr]).toEqual([parameters, 2, expect.stringContaining('usage:') as string]);
  }
});

test('one line at the start: version, real address, posture', async () => {
  const program = await start(await prepare());
  expect(program.output.out).toMatch(/^config-server \d+\.\d+\.\d+\S* listening on 127\.0\.0\.1:\d+ \(plaintext\)\n$/);
  expect(program.port).toBeGreaterThan(0);
});

test('a bind beyond loopback without TLS starts with one loud warning', async () => {
  const program = await start(await prepare(SERVER_TOML.replace('127.0.0.1:0', '0.0.0.0:0')));
  await eventually(() => program.output.out.includes('WARNING'), 'the warning');
  expect(program.output.out.match(/WARNING/g)).toHaveLength(1);
});

test('a refusal lists every problem of file and sections with exit 1, and says the same for --check', async () => {
  const folder = await prepare(SERVER_TOML.replace('[server]', '[server]\ntypo = 1').replace('orders.yaml', 'missing.yaml'), {
    ...FILES,
    'billing.toml': '[billing]\npassword = "canary',
  });
  for (const parameters of [[join(folder, 'server.toml')], ['--check', join(folder, 'server.toml')]]) {
    const program = run(parameters);
    expect(await program.exit).toBe(1);
    const lines = program.output.err.trimEnd().split('\n');
    expect(lines).toHaveLength(3);
    for (const line of lines)
      expect(line.startsWith(`config-server: refusing to start: ${join(folder, 'server.toml')}: server.`)).toBe(true);
    expect(program.output.err).toMatch(/server\.typo: is not a known key/);
    expect(program.output.err).toMatch(/section billing\/prod cannot load: file billing\.toml: the file is not valid TOML \(line 2/);
    expect(program.output.err).toMatch(/section orders\/prod cannot load: file missing\.yaml: the file does not exist/);
    expect(program.output.err).not.toMatch(new RegExp(`canary|${TOKEN}|at .*\\.ts`));
  }
});

test('a section that cannot load is named by its place in server.toml, also behind one that is not valid', async () => {
  const folder = await prepare(
    SERVER_TOML.replace('application = "billing"', 'application = "bil ling"').replace('orders.yaml', 'missing.yaml'),
  );
  const program = await runProgram('cli/main.ts', ['--check', join(folder, 'server.toml')]);
  expect(program.status).toBe(1);
  expect(program.stderr).toMatch(/: server\.sections\[0\]\.application \(section bil ling\/prod\): must be 1 to 64/);
  expect(program.stderr).toMatch(/: server\.sections\[1\]: section orders\/prod cannot load: file missing\.yaml/);
});

test.each([
  ['203.0.113.7:0', /\(EADDRNOTAVAIL\); this machine does not have that address$/],
  ['no-such-host.invalid:0', /\((ENOTFOUND|EAI_AGAIN)\); the name cannot be resolved/],
])('a start on %s says why it cannot listen', async (bind, message) => {
  const program = run([join(await prepare(SERVER_TOML.replace('127.0.0.1:0', bind)), 'server.toml')]);
  expect(await program.exit).toBe(1);
  expect(program.output.err.trimEnd()).toMatch(message);
});

test('--check of a valid file opens no socket and exits 0', async () => {
  const blocker = createServer();
  await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void blocker.close());
  const { port } = blocker.address() as { port: number };
  const folder = await prepare(SERVER_TOML.replace('127.0.0.1:0', `127.0.0.1:${port}`));
  const check = run(['--check', join(folder, 'server.toml')]);
  expect(await check.exit).toBe(0);
  expect(check.output.out).toMatch(/is valid: 2 sections, 3 clients, plaintext/);
  const refused = run([join(folder, 'server.toml')]);
  expect(await refused.exit).toBe(1);
  expect(refused.output.err).toMatch(
    /refusing to start: .*: server\.bind: cannot listen on 127\.0\.0\.1:\d+ \(EADDRINUSE\); another program does: /,
  );
});

test.each([
  ['expired at 2020-01-02', new Date('2020-01-01T00:00:00Z'), new Date('2020-01-02T00:00:00Z')],
  ['is not valid before 2999-01-01', new Date('2999-01-01T00:00:00Z'), new Date('2999-01-02T00:00:00Z')],
])('--check warns of a certificate that %s, and passes', async (dates, notBefore, notAfter) => {
  const { cert, key } = createCertificate({ name: 'localhost', hosts: ['127.0.0.1'], notBefore, notAfter });
  const folder = await prepare(`${SERVER_TOML}\n[server.tls]\ncertificate = "server.pem"\nkey = "server.key"\n`);
  await writeFile(join(folder, 'server.pem'), cert);
  await writeFile(join(folder, 'server.key'), key, { mode: 0o400 });
  const program = run(['--check', join(folder, 'server.toml')]);
  expect(await program.exit).toBe(0);
  const lines = program.output.out.trimEnd().split('\n');
  expect(lines).toEqual([
    expect.stringContaining(`config-server: WARNING: the certificate of server.tls.certificate ${dates}`),
    expect.stringMatching(/ is valid: 2 sections, 3 clients, tls$/),
  ]);
  expect(program.output.err).toBe('');
});

test('no output holds escape codes, whatever the variables about colours say', async () => {
  const folder = await prepare();
  for (const environment of [{}, { FORCE_COLOR: '3' }] as Record<string, string>[]) {
    for (const parameters of [
      ['--help'],
      ['--version'],
      ['--check', join(folder, 'server.toml')],
      ['--check', join(folder, 'none.toml')],
    ]) {
      const { printed } = await runProgram('cli/main.ts', parameters, { environment });
      expect(printed).not.toBe('');
      expect(printed).not.toContain('\u001B');
    }
  }
});

test('variables of the process are the environment layer', async () => {
  const program = await start(await prepare(), { BILLING__POOL__MAXSIZE: '77' });
  expect((await ask(program.port, '/billing/prod')).json().pool.maxSize).toBe(77);
});

test.each(['SIGTERM', 'SIGINT'] as const)('%s ends streams, finishes, exits 0', async (signal) => {
  const program = await start(await prepare());
  const stream = ask(program.port, '/billing/prod/stream');
  await eventually(() => program.output.err.includes('"endpoint":"stream"'), 'the stream');
  program.child.kill(signal);
  expect((await stream).text).toContain('id: 1');
  expect(await program.exit).toBe(0);
});

test('a second signal does not cut off what the first one lets finish', async () => {
  const program = await start(await prepare());
  const socket = connect(program.port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n');
  await once(socket, 'data');
  program.child.kill('SIGTERM');
  const isRefused = (): Promise<boolean> =>
    ask(program.port, '/healthz').then(
      () => false,
      () => true,
    );
  await eventually(isRefused, 'the stop to begin');
  program.child.kill('SIGTERM');
  socket.write('\r\n');
  expect(await program.exit).toBe(0);
});

test('SIGHUP reloads every section with reason manual', async () => {
  const folder = await prepare(SERVER_TOML.replace('watch_debounce_ms = 20', 'watch_debounce_ms = 60000'));
  const program = await start(folder);
  await writeFile(join(folder, 'billing.toml'), '[billing]\nchanged = true\n');
  program.child.kill('SIGHUP');
  await eventually(async () => (await ask(program.port, '/billing/prod/status')).json().generation === 2, 'generation 2');
  expect((await ask(program.port, '/billing/prod/status')).json().last_reason).toBe('manual');
});

test.each(['pipe', 'file'] as const)('after SIGKILL the line of every answered request is in the %s', async (kind) => {
  for (let round = 0; round < 3; round++) {
    const folder = await prepare();
    const path = join(folder, 'audit.log');
    const child = spawn(process.execPath, [PROGRAM, join(folder, 'server.toml')], {
      stdio: ['ignore', 'pipe', kind === 'file' ? openSync(path, 'a') : 'pipe'],
      env: BARE,
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let out = '';
    let err = '';
    child.stdout!.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()));
    const closed = once(child, 'close');
    await eventually(() => out.includes('listening on'), 'the start line');
    const port = Number(/:(\d+) /.exec(out)![1]);
    const replies = await Promise.all(Array.from({ length: 50 }, () => ask(port, '/billing/prod')));
    child.kill('SIGKILL');
    await closed;
    const lines = (kind === 'file' ? readFileSync(path, 'utf8') : err).trimEnd().split('\n');
    expect(replies.every((reply) => reply.status === 200)).toBe(true);
    expect(lines.filter((line) => JSON.parse(line).outcome === 'served')).toHaveLength(50);
  }
});

test('a standard error that is not read blocks no request', async () => {
  const folder = await prepare();
  const child = spawn(process.execPath, [PROGRAM, join(folder, 'server.toml')], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: BARE,
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.stderr.pause();
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  await eventually(() => out.includes('listening on'), 'the start line');
  const port = Number(/:(\d+) /.exec(out)![1]);
  // A pipe takes 64 KiB, the stream that reads it as much again; 3,000 lines are over 400 KiB.
  for (let batch = 0; batch < 60; batch++) {
    const replies = await Promise.all(Array.from({ length: 50 }, () => ask(port, '/billing/prod')));
    expect(replies.every((reply) => reply.status === 200)).toBe(true);
  }
  let lines = 0;
  child.stderr.resume();
  child.stderr.on('data', (chunk: Buffer) => (lines += chunk.toString().split('\n').length - 1));
  await eventually(() => lines === 3000, 'every line once the pipe is read');
});

test('a standard error that stalls takes 16 MiB of lines, the rest is counted, and the count is logged when it is read again', async () => {
  const lines = 150_000;
  const child = spawn(process.execPath, ['--conditions=source', '--input-type=module', '-e', STALLED_PROGRAM, String(lines)]);
  onTestFinished(() => void child.kill('SIGKILL'));
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  await eventually(() => out.includes('written\n'), 'all lines', 300_000);
  let bytes = 0;
  let written = 0;
  child.stderr.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    written += chunk.toString('latin1').split('\n').length - 1;
  });
  await eventually(() => out.includes('were lost'), 'the count', 300_000);
  const lost = Number(/the audit log is writable again; (\d+) lines were lost/.exec(out)![1]);
  await eventually(() => written + lost === lines, 'every line to be written or counted', 300_000);
  expect(bytes / 1024 / 1024).toBeGreaterThan(15.9);
  // What the pipe and its reader hold was taken before it stalled.
  expect(bytes / 1024 / 1024).toBeLessThan(16.3);
});

/** Writes audit lines to a standard error that is not read yet, and keeps running. */
const STALLED_PROGRAM = `
  const { auditToStandardError } = await import(${JSON.stringify(new URL('../audit/standard-streams.ts', import.meta.url).href)});
  const sink = auditToStandardError((line) => process.stdout.write(line + '\\n'));
  const entry = { time: 'x'.repeat(100), caller: null, application: null, profile: null, endpoint: 'none', outcome: 'served', generation: null };
  for (let line = 0; line < Number(process.argv[1]); line++) sink(entry), line % 1000 === 0 && sink.flush();
  sink.flush();
  process.stdout.write('written\\n');
  setInterval(() => undefined, 1000);
`;

test('a standard output on a full disk does not keep the server from starting', async () => {
  // The start line cannot be read, so the address is fixed: one of the loopback network that no other test uses, below the ephemeral ports.
  const host = `127.83.${process.pid % 256}.${(process.pid >> 8) % 256}`;
  const folder = await prepare(SERVER_TOML.replace('127.0.0.1:0', `${host}:28888`));
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const child = spawn(process.execPath, [PROGRAM, join(folder, 'server.toml')], { stdio: ['ignore', full, 'ignore'], env: BARE });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exit = once(child, 'exit');
  const isServed = async (): Promise<boolean> => (await fetch(`http://${host}:28888/healthz`).catch(() => undefined))?.status === 200;
  await eventually(async () => child.exitCode !== null || (await isServed()), 'the server to respond or to end');
  child.kill('SIGTERM');
  expect(await exit).toEqual([0, null]);
});

test('a standard error that its reader closed stops no request, and is reported', async () => {
  const program = await start(await prepare());
  program.child.stderr.destroy();
  for (let index = 0; index < 20; index++) expect((await ask(program.port, '/billing/prod')).status).toBe(200);
  await eventually(() => program.output.out.includes('WARNING: the audit log cannot be written (EPIPE)'), 'the warning');
  expect(program.output.out.match(/WARNING/g)).toHaveLength(1);
});
