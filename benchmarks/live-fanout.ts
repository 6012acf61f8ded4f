// Live lists: 10,000 open streams of as many callers, and changes that concern 100 of them. How long after the response of the write has the last of the 100 its
// batch, what CPU time does a change take beyond the idle server, compared with 1,000 streams of which it concerns 100, too, and what heap has an idle stream beyond
// one of bare node:http? CPU time is compared because the machine's other work does not change it.
import { fork, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startPostgresServer } from '../test/provision/postgres-server.ts';
import { type BenchmarkContext, defineBenchmark } from './harness/benchmark.ts';
import { median } from './harness/contest.ts';
import type { Ratio } from './harness/ratio.ts';
import { type ServerProcess, startServer } from './harness/server-process.ts';
import { table } from './harness/table.ts';

const STREAMS = 10_000;
const CONCERNED = 100;
/** Until the compiler is done: the first ones take three times as long. */
const WARM_UP_CHANGES = 60;
const LAST_MS_GOAL = 100;
const CPU_GOAL = 1.2;
const HEAP_BYTES_GOAL = 8 * 1024;

interface Measured {
  readonly lastMs: number;
  readonly cpuMs: number;
  readonly idleCpuMs: number;
  readonly heapBytes: number;
}

interface Followers {
  readonly process: ChildProcess;
  /** When the last of those that a change concerns has it, in milliseconds. */
  told(): Promise<number>;
}

async function startFollowers(port: number, streams: number): Promise<Followers> {
  const script = fileURLToPath(new URL('./servers/live/followers.ts', import.meta.url));
  const child = fork(script, [String(port), String(streams), String(CONCERNED)]);
  const told = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const ended = (code: number | null): void => reject(new Error(`The followers ended with ${code}.`));
      child.once('exit', ended);
      child.once('message', (message) => {
        child.off('exit', ended);
        resolve((message as { lastAt: number }).lastAt);
      });
    });
  await told();
  return { process: child, told };
}

async function send(url: string, method: string, body: object): Promise<{ readonly id: string }> {
  const response = await fetch(url, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${await response.text()}`);
  return (await response.json()) as { id: string };
}

/** Heap of each idle stream. */
async function heapOf(server: ServerProcess, before: number, streams: number): Promise<number> {
  await pause(2_000);
  return ((await server.heapBytes()) - before) / streams;
}

async function measure(url: string, streams: number, changes: number): Promise<Measured> {
  const server = await startServer(new URL('./servers/live/cards.ts', import.meta.url), { args: [url] });
  const list = `http://127.0.0.1:${server.port}/v1/live`;
  let followers: Followers | undefined;
  try {
    const { id } = await send(list, 'POST', { room: '0', title: 'first' });
    // What is compiled and cached once is no part of a stream.
    const warm = await startFollowers(server.port, CONCERNED);
    warm.process.kill('SIGKILL');
    await pause(1_000);
    const before = await server.heapBytes();
    followers = await startFollowers(server.port, streams);
    const heapBytes = await heapOf(server, before, streams);
    const change = async (count: number): Promise<number> => {
      const last = followers?.told();
      await send(`${list}/${id}`, 'PATCH', { title: `change ${count}` });
      const committedAt = performance.timeOrigin + performance.now();
      return Math.max(0, ((await last) ?? 0) - committedAt);
    };
    for (let count = 0; count < WARM_UP_CHANGES; count += 1) await change(-count - 1);
    const cpuOf = async (work: () => Promise<unknown>): Promise<readonly [micros: number, ms: number]> => {
      const [cpu, began] = [await server.cpuMicros(), performance.now()];
      await work();
      return [(await server.cpuMicros()) - cpu, performance.now() - began];
    };
    const delays: number[] = [];
    const [idle, idleMs] = await cpuOf(() => pause(10_000));
    const [busy, busyMs] = await cpuOf(async () => {
      for (let count = 0; count < changes; count += 1) {
        delays.push(await change(count));
        await pause(50);
      }
    });
    return { lastMs: median(delays), cpuMs: (busy - (idle / idleMs) * busyMs) / changes / 1_000, idleCpuMs: idle / idleMs, heapBytes };
  } finally {
    followers?.process.kill('SIGKILL');
    await server.stop();
  }
}

async function bareHeap(streams: number): Promise<number> {
  const server = await startServer(new URL('./servers/live/bare.ts', import.meta.url));
  const before = await server.heapBytes();
  const followers = await startFollowers(server.port, streams);
  try {
    return await heapOf(server, before, streams);
  } finally {
    followers.process.kill('SIGKILL');
    await server.stop();
  }
}

async function compare(context: BenchmarkContext, dialect: string, url: string, bare: number): Promise<Ratio[]> {
  const streams = context.quick ? STREAMS / 5 : STREAMS;
  const changes = context.quick ? 20 : 200;
  const few = await measure(url, streams / 10, changes);
  const many = await measure(url, streams, changes);
  const row = (name: string, { lastMs, cpuMs, idleCpuMs, heapBytes }: Measured): string[] => [
    name,
    lastMs.toFixed(1),
    cpuMs.toFixed(2),
    idleCpuMs.toFixed(1),
    heapBytes.toFixed(0),
  ];
  context.print(`\n${dialect}`);
  context.print(
    table(
      ['streams', 'last of 100 told after, ms (median)', 'CPU per change, ms', 'idle CPU, µs per ms', 'heap per stream, bytes'],
      [row(String(streams / 10), few), row(String(streams), many), ['bare node:http', '', '', '', bare.toFixed(0)]],
    ),
  );
  return [
    { name: `live-fanout-last-ms-${dialect}`, value: many.lastMs, goal: LAST_MS_GOAL, atMost: true },
    { name: `live-fanout-cpu-${dialect}`, value: many.cpuMs / few.cpuMs, goal: CPU_GOAL, atMost: true },
    { name: `live-fanout-heap-bytes-${dialect}`, value: many.heapBytes - bare, goal: HEAP_BYTES_GOAL, atMost: true },
  ];
}

export default defineBenchmark({
  name: 'live-fanout',
  question:
    '10,000 live lists: milliseconds until the last of 100 concerned ones has a change, its CPU time compared with 1,000 lists, heap bytes per list',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-'));
    const postgres = await startPostgresServer();
    try {
      const bare = await bareHeap(context.quick ? STREAMS / 5 : STREAMS);
      return [
        ...(await compare(context, 'postgres', postgres.url, bare)),
        ...(await compare(context, 'sqlite', `sqlite:${join(folder, 'fanout.db')}`, bare)),
      ];
    } finally {
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
