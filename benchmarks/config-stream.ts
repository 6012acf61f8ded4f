// What do 4,096 idle streams cost in heap beyond what bare node:http takes for as many, and how long after an install has the last
// subscriber been told?
import { fork } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineBenchmark } from './harness/benchmark.ts';
import { median } from './harness/contest.ts';
import { startServer, type ServerProcess } from './harness/server-process.ts';
import { table } from './harness/table.ts';

const TOKEN = 'benchmark-token-0123456789-0123456789';
const SUBSCRIBERS = 4096;
const HEAP_BYTES_GOAL = 8 * 1024;
const LAST_MS_GOAL = 100;
const CPU_OF_BARE_GOAL = 1.25;

const TOML = `
[server]
bind = "127.0.0.1:0"
watch_debounce_ms = 20
max_stream_connections = ${SUBSCRIBERS}
[[server.sections]]
application = "billing"
profile = "production"
files = ["billing.json"]
whole_document = true
[[server.clients]]
name = "benchmark"
token = "${TOKEN}"
applications = ["billing"]
`;

interface Measured {
  readonly heapBytesEach: number;
  readonly lastMs: number;
  /** CPU time of the server for telling everyone, its share of `lastMs` when the machine does nothing else. */
  readonly cpuMs: number;
}

export default defineBenchmark({
  name: 'config-stream',
  question: '4,096 subscribers: heap bytes per connection beyond bare node:http, and milliseconds until the last one has an event',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'bench-config-stream-'));
    const subscribers = context.quick ? 512 : SUBSCRIBERS;
    const file = join(folder, 'billing.json');
    const [oursStamps, bareStamps] = [join(folder, 'ours.txt'), join(folder, 'bare.txt')];
    let version = 0;
    const publish = (): void => writeFileSync(file, JSON.stringify({ version: (version += 1) }));
    try {
      publish();
      writeFileSync(join(folder, 'server.toml'), TOML);
      const audit = openSync(join(folder, 'audit.log'), 'a');
      const startOurs = (): Promise<ServerProcess> =>
        startServer(new URL('./servers/config-server.ts', import.meta.url), {
          args: [join(folder, 'server.toml'), oursStamps],
          stderr: audit,
        });
      const startBare = (): Promise<ServerProcess> =>
        startServer(new URL('./servers/bare-stream.ts', import.meta.url), { args: [file, bareStamps] });
      const ours = await measure(startOurs, subscribers, oursStamps, publish, context.rounds);
      const bare = await measure(startBare, subscribers, bareStamps, publish, context.rounds);
      context.print(
        table(
          ['server', 'heap bytes per stream', 'last subscriber told after, ms (median)', 'server CPU, ms (median)'],
          [row('config-server', ours), row('bare node:http', bare)],
        ),
      );
      return [
        { name: 'config-stream-heap-bytes', value: ours.heapBytesEach - bare.heapBytesEach, goal: HEAP_BYTES_GOAL, atMost: true },
        { name: 'config-stream-last-ms', value: ours.lastMs, goal: LAST_MS_GOAL, atMost: true },
        // On a busy machine the line above measures the neighbours; this one does not.
        { name: 'config-stream-cpu-of-bare', value: ours.cpuMs / bare.cpuMs, goal: CPU_OF_BARE_GOAL, atMost: true },
      ];
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
});

function row(name: string, { heapBytesEach, lastMs, cpuMs }: Measured): string[] {
  return [name, heapBytesEach.toFixed(0), lastMs.toFixed(1), cpuMs.toFixed(1)];
}

async function measure(
  start: () => Promise<ServerProcess>,
  subscribers: number,
  stamps: string,
  publish: () => void,
  rounds: number,
): Promise<Measured> {
  const server = await start();
  const before = await server.heapBytes();
  const args = [String(server.port), String(subscribers), '/billing/production/stream', TOKEN];
  const client = fork(fileURLToPath(new URL('./servers/subscribers.ts', import.meta.url)), args);
  const told = (): Promise<number> =>
    new Promise((resolve) => client.once('message', (message) => resolve((message as { lastAt: number }).lastAt)));
  try {
    await told();
    const heapBytesEach = ((await server.heapBytes()) - before) / subscribers;
    const delays: number[] = [];
    const cpu: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const next = told();
      const cpuBefore = await server.cpuMicros();
      publish();
      const lastAt = await next;
      delays.push(lastAt - Number(readFileSync(stamps, 'utf8').trim().split('\n').at(-1)));
      cpu.push(((await server.cpuMicros()) - cpuBefore) / 1_000);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return { heapBytesEach, lastMs: median(delays), cpuMs: median(cpu) };
  } finally {
    client.kill('SIGKILL');
    await server.stop();
  }
}
