import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventually, FILES, OTHER_TOKEN, startServer } from '../../test/running-server.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import type { AuditEntry, AuditSink } from './audit-entry.ts';
import { formatEntry, jsonLines } from './json-lines.ts';
import { LineWriter } from './line-writer.ts';
import { AuditRecorder } from './recorder.ts';

test('each request writes one entry with the six fields and the time', async () => {
  const running = await startServer();
  await running.ask('/billing/prod');
  await running.ask('/orders/prod/status', { token: OTHER_TOKEN });
  await running.ask('/orders/prod');
  await running.ask('/b%0ad/prod');
  await running.ask('/metrics');
  await running.ask('/healthz', { token: null });
  await running.ask('/readyz', { token: null });
  await running.ask('/nothing/here/at/all');
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string;
  const anonymous = { caller: null, application: null, profile: null, generation: null };
  expect(running.audit).toEqual([
    { time, caller: 'billing-service', application: 'billing', profile: 'prod', endpoint: 'document', outcome: 'served', generation: 1 },
    { time, caller: 'orders-service', application: 'orders', profile: 'prod', endpoint: 'status', outcome: 'served', generation: 1 },
    {
      time,
      caller: 'billing-service',
      application: 'orders',
      profile: 'prod',
      endpoint: 'document',
      outcome: 'not-found',
      generation: null,
    },
    { time, ...anonymous, caller: 'billing-service', endpoint: 'document', outcome: 'malformed' },
    { time, ...anonymous, caller: 'billing-service', endpoint: 'metrics', outcome: 'served' },
    { time, ...anonymous, endpoint: 'healthz', outcome: 'served' },
    { time, ...anonymous, endpoint: 'readyz', outcome: 'served' },
    { time, ...anonymous, endpoint: 'none', outcome: 'not-found' },
  ]);
});

test('each endpoint is recorded under its own name, with the generation that was served', async () => {
  const running = await startServer({ files: { ...FILES, 'billing.toml': `[billing]\na = "${'x'.repeat(2_000)}"\n` } });
  await running.write('billing.toml', `[billing]\na = "${'y'.repeat(2_000)}"\n`);
  await eventually(async () => (await running.status()).generation === 2, 'generation 2');
  running.audit.length = 0;
  const rests = ['', '/paths', '/explain/a', '/check', '/status'];
  for (const rest of rests) {
    await running.ask(`/billing/prod${rest}`, { headers: { 'accept-encoding': 'br' } });
    await running.ask(`/billing/prod${rest}`, { method: 'HEAD' });
  }
  await running.ask('/billing/prod/stream', { method: 'HEAD' });
  const names = ['document', 'paths', 'explain', 'check', 'status'].flatMap((name) => [name, name]);
  expect(running.audit.map(({ endpoint, outcome, generation, caller }) => [endpoint, outcome, generation, caller])).toEqual(
    [...names, 'stream'].map((name) => [name, 'served', 2, 'billing-service']),
  );
});

test('a line is JSON on one line, whatever the caller is called', () => {
  const entry: AuditEntry = {
    time: '2026-01-01T00:00:00.000Z',
    caller: 'a "quoted" name\u2028 ü',
    application: 'billing',
    profile: 'prod',
    endpoint: 'document',
    outcome: 'served',
    generation: 7,
  };
  expect(JSON.parse(formatEntry(entry))).toEqual(entry);
  expect(Object.keys(JSON.parse(formatEntry(entry)) as object)).toEqual([
    'time',
    'caller',
    'application',
    'profile',
    'endpoint',
    'outcome',
    'generation',
  ]);
  const empty: AuditEntry = { ...entry, caller: null, application: null, profile: null, generation: null };
  expect(JSON.parse(formatEntry(empty))).toEqual(empty);
});

test('a sink that throws or rejects fails no request', async () => {
  const throwing = await startServer({
    audit: () => {
      throw new Error('sink');
    },
  });
  expect((await throwing.ask('/billing/prod')).status).toBe(200);
  const rejected: unknown = () => Promise.reject(new Error('sink'));
  const rejecting = await startServer({ audit: rejected as AuditSink });
  expect((await rejecting.ask('/billing/prod')).status).toBe(200);
});

test('the entry is recorded and flushed before the answer is received', async () => {
  const order: string[] = [];
  const audit = Object.assign(() => void order.push('recorded'), { flush: () => void order.push('flushed') });
  const running = await startServer({ audit });
  await running.ask('/billing/prod');
  order.push('received');
  expect(order.slice(0, 3)).toEqual(['recorded', 'flushed', 'received']);
});

test('no answer leaves before the lines of its turn are flushed, also when the flush fails', async () => {
  for (const fail of [false, true]) {
    const order: string[] = [];
    const flush = (): void => {
      order.push('flushed');
      if (fail) throw new Error('sink');
    };
    const recorder = new AuditRecorder(
      Object.assign(() => void order.push('recorded'), { flush }),
      () => 0,
    );
    for (const answer of ['first', 'second']) {
      recorder.record({ endpoint: 'document', outcome: 'served' });
      recorder.afterFlush(() => void order.push(answer));
    }
    await new Promise(setImmediate);
    expect(order).toEqual(['recorded', 'recorded', 'flushed', 'first', 'second']);
  }
});

test('lines that a full pipe does not take are queued, then dropped and counted, and the count is told on recovery', async () => {
  const path = join(await temporaryFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(fd));
  fill(fd);
  const told: number[] = [];
  const writer = new LineWriter(fd, { queueBytesMax: 100, onRecovered: (dropped) => told.push(dropped) });
  for (let line = 0; line < 30; line++) {
    writer.add(`line ${String(line).padStart(2, '0')}...`);
    writer.flush();
  }
  expect(writer.dropped).toBe(21);
  expect(told).toEqual([]);
  readSync(fd, Buffer.alloc(1024 * 1024));
  await writer.close();
  const kept = Buffer.alloc(1024);
  const length = readSync(fd, kept);
  expect(kept.toString('utf8', 0, length)).toBe(Array.from({ length: 9 }, (_, line) => `line 0${line}...\n`).join(''));
  expect(told).toEqual([21]);
});

test('a failing descriptor is reported once, a slow reader is not', async () => {
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const told: string[] = [];
  const writer = new LineWriter(full, { onFailing: (code) => told.push(code) });
  for (let line = 0; line < 3; line++) {
    writer.add('line');
    await writer.close();
  }
  expect(told).toEqual(['ENOSPC']);
  const path = join(await temporaryFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  const slow = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(slow));
  fill(slow);
  const patient = new LineWriter(slow, { onFailing: (code) => told.push(code) });
  patient.add('line');
  patient.flush();
  expect(told).toEqual(['ENOSPC']);
  readSync(slow, Buffer.alloc(1024 * 1024));
  await patient.close();
});

test('a line that waits while the descriptor is full is written when the server stops', async () => {
  const path = join(await temporaryFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(fd));
  fill(fd);
  const running = await startServer({ audit: jsonLines(new LineWriter(fd)) });
  await running.ask('/billing/prod');
  readSync(fd, Buffer.alloc(1024 * 1024));
  await running.server.stop();
  const kept = Buffer.alloc(1024);
  expect(JSON.parse(kept.toString('utf8', 0, readSync(fd, kept)))).toMatchObject({ endpoint: 'document', outcome: 'served' });
});

test('a stop waits for a slow reader of the audit log, up to its deadline', async () => {
  const path = join(await temporaryFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(fd));
  fill(fd);
  const running = await startServer({ audit: jsonLines(new LineWriter(fd)), deadlines: { shutdownMs: 3_600_000 } });
  // More than a pipe holds.
  for (let count = 0; count < 20; count++) await Promise.all(Array.from({ length: 50 }, () => running.ask('/billing/prod')));
  let stopped = false;
  const stop = running.server.stop().then(() => (stopped = true));
  await running.server.audit.close(0);
  expect(stopped).toBe(false);
  let text = '';
  await eventually(() => {
    text += readAvailable(fd);
    return stopped;
  }, 'the stop');
  await stop;
  for (let rest = readAvailable(fd); rest !== ''; rest = readAvailable(fd)) text += rest;
  expect(text.replaceAll('\0', '').trimEnd().split('\n')).toHaveLength(1000);
});

test('a stop does not wait for an audit log that cannot be written, nor beyond its deadline', async () => {
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const failing = await startServer({ audit: jsonLines(new LineWriter(full)), deadlines: { shutdownMs: 3_600_000 } });
  await failing.ask('/billing/prod');
  await failing.server.stop();
  const stalled = await startServer({
    audit: Object.assign(() => undefined, { close: () => new Promise<void>(() => undefined) }),
    deadlines: { shutdownMs: 10 },
  });
  await stalled.server.stop();
  const rejecting = await startServer({ audit: Object.assign(() => undefined, { close: () => Promise.reject(new Error('sink')) }) });
  await rejecting.server.stop();
});

/** What a pipe has, at most 16 KiB, or nothing. */
function readAvailable(fd: number): string {
  const chunk = Buffer.alloc(16 * 1024);
  try {
    return chunk.toString('latin1', 0, readSync(fd, chunk));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    return '';
  }
}

function fill(fd: number): void {
  const writeUntilFull = (): void => {
    for (;;) writeSync(fd, Buffer.alloc(4096));
  };
  expect(writeUntilFull).toThrow('EAGAIN');
}
