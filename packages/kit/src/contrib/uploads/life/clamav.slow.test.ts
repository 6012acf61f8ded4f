import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { uploadApp } from '../../../../test/uploads/upload-app.ts';
import { clamav } from './clamav.ts';
import { processUploads } from './clean.ts';

const CLAMD = ['/usr/sbin/clamd', '/usr/local/sbin/clamd', '/opt/homebrew/sbin/clamd'].find(
  (path) => spawnSync(path, ['--version']).status === 0,
);
const MARK = 'KIT-UPLOAD-TEST-SIGNATURE';

// Debian's clamav-daemon has no signatures until it downloads some: a database with one of our own is as good. `.ci/run` installs the package.
test('clamd is installed where everything must be tested', () => {
  expect(CLAMD !== undefined || process.env['KIT_REQUIRE_CLAMD'] === undefined).toBe(true);
});

describe.skipIf(CLAMD === undefined)('with the real clamd', () => {
  let folder: string;
  let daemon: ChildProcess;
  let socket: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-clamd-'));
    socket = join(folder, 'clamd.sock');
    await writeFile(join(folder, 'kit.ndb'), `Kit.Test:0:*:${Buffer.from(MARK).toString('hex')}\n`);
    const settings = [
      `LocalSocket ${socket}`,
      `DatabaseDirectory ${folder}`,
      'Foreground yes',
      'StreamMaxLength 1M',
      `User ${process.env['USER'] ?? 'root'}`,
    ];
    await writeFile(join(folder, 'clamd.conf'), `${settings.join('\n')}\n`);
    daemon = spawn(CLAMD as string, ['-c', join(folder, 'clamd.conf')], { stdio: ['ignore', 'pipe', 'pipe'] });
    await new Promise<void>((resolve, reject) => {
      let said = '';
      const hear = (text: Buffer) => {
        said += text.toString();
        if (said.includes('Self checking')) resolve();
      };
      daemon.stdout?.on('data', hear);
      daemon.stderr?.on('data', hear);
      daemon.once('exit', () => reject(new Error(`clamd ended: ${said}`)));
    });
  });
  afterAll(async () => {
    daemon.removeAllListeners('exit');
    daemon.kill();
    await rm(folder, { recursive: true, force: true });
  });

  test('a clean file becomes complete, an infected one is rejected and removed', async () => {
    await using app = await uploadApp({ scan: clamav({ socket }) });
    const clean = await app.upload(Buffer.from('nothing to see'));
    const infected = await app.upload(Buffer.from(`before ${MARK} after`));
    expect(clean.body.state).toBe('quarantined');
    expect(await app.call('GET', `/v1/uploads/${clean.body.id}?url=true`)).toMatchObject({ status: 409, body: { code: 'not_ready' } });
    expect(await processUploads(app.db)).toMatchObject({ scanned: 2, failed: 0 });
    expect(await app.call('GET', `/v1/uploads/${clean.body.id}`)).toMatchObject({ body: { state: 'complete' } });
    expect(await app.call('GET', `/v1/uploads/${infected.body.id}`)).toMatchObject({
      body: { state: 'rejected', reason: 'The scanner found Kit.Test.UNOFFICIAL.' },
    });
    expect(await app.files()).toHaveLength(1);
  });

  test('a file larger than clamd takes stays in quarantine', async () => {
    await using app = await uploadApp({ scan: clamav({ socket }) });
    const { body } = await app.upload(Buffer.alloc(3 * 1024 * 1024, 'a'));
    expect(await processUploads(app.db)).toMatchObject({ scanned: 0, failed: 1 });
    expect(await app.call('GET', `/v1/uploads/${body.id}`)).toMatchObject({ body: { state: 'quarantined' } });
  });
});

test('a clamd that is not there leaves the file in quarantine, and it is scanned later', async () => {
  let socket = '/nowhere/clamd.sock';
  await using app = await uploadApp({ scan: (file) => (socket === '' ? Promise.resolve({ clean: true }) : clamav({ socket })(file)) });
  const { body } = await app.upload(Buffer.from('text'));
  expect(await processUploads(app.db)).toMatchObject({ failed: 1 });
  expect(await processUploads(app.db)).toMatchObject({ failed: 0, scanned: 0 });
  socket = '';
  app.clock.advance(10_000);
  expect(await processUploads(app.db)).toMatchObject({ scanned: 1 });
  expect(await app.call('GET', `/v1/uploads/${body.id}`)).toMatchObject({ body: { state: 'complete' } });
});

test('an empty piece of a file, as a store of your own may give, does not end its scan', async () => {
  const scanned: Buffer[] = [];
  const server = createServer((connection) => {
    let rest = Buffer.alloc(0);
    let isGreeted = false;
    connection.on('data', (data) => {
      rest = Buffer.concat([rest, data]);
      if (!isGreeted && rest.length >= 10) [isGreeted, rest] = [true, rest.subarray(10)];
      if (!isGreeted) return;
      while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE()) {
        const length = rest.readUInt32BE();
        if (length === 0) {
          connection.end('stream: OK\0');
          return;
        }
        scanned.push(rest.subarray(4, 4 + length));
        rest = rest.subarray(4 + length);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const read = async () => Readable.from([Buffer.from('before '), Buffer.alloc(0), Buffer.from(MARK)]);
  expect(await clamav({ address: { host: '127.0.0.1', port } })({ read } as never)).toEqual({ clean: true });
  expect(Buffer.concat(scanned).toString()).toBe(`before ${MARK}`);
  await new Promise((resolve) => server.close(resolve));
});

test('faults of the options are said', () => {
  expect(() => clamav({})).toThrow('clamav(): give either socket or address.');
  expect(() => clamav({ soket: 'x' } as never)).toThrow('Did you mean "socket"?');
});
