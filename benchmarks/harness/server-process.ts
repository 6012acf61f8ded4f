import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { pinned, SERVER_CORE } from './cores.ts';
import { forgetCpuOf, watchCpuOf } from './turns.ts';

/** A server in a process of its own. */
export interface ServerProcess {
  readonly port: number;
  /** All of them, of a server that listens several times. */
  readonly ports: readonly number[];
  /** CPU time the process has used so far, in microseconds. */
  cpuMicros(): Promise<number>;
  /** Heap in use after a forced collection, in bytes. */
  heapBytes(): Promise<number>;
  /** What was measured since it was asked last, of a server that calls `servingInTurns`. */
  slices(): Promise<Slices>;
  /** Paths that the first application of such a server knows under another name. */
  rename(paths: Renamed): void;
  stop(): Promise<void>;
}

/** What one turn of an application came to: CPU time per request, in microseconds, and requests per second. */
export interface Turn {
  readonly cpuMicros: number;
  readonly rate: number;
}

/** The turns of two applications. */
export interface Slices {
  readonly first: readonly Turn[];
  readonly second: readonly Turn[];
}

/** The path that is requested, and what the first application calls it. */
export type Renamed = readonly (readonly [string, string])[];

interface Answers {
  cpu: number;
  heap: number;
  slices: Slices;
}
type Question = keyof Answers;
type Message = Question | { readonly renamed: Renamed };
type Answer = { ports: readonly number[] } | { question: Question; value: Answers[Question] };

export interface ServerOptions {
  readonly args?: readonly string[];
  /** A descriptor for a server that logs every request there. */
  readonly stderr?: 'inherit' | number;
  /** The server under test has a core of its own. A server that others are measured against runs wherever there is room, like them. */
  readonly isUnderTest?: boolean;
}

/**
 * Starts `script` (a URL relative to the caller, `new URL('./x.ts', import.meta.url)`), which must call `serving(port)`
 * once it listens on loopback.
 */
export async function startServer(
  script: URL,
  { args = [], stderr = 'inherit', isUnderTest = true }: ServerOptions = {},
): Promise<ServerProcess> {
  // V8 collects the garbage of an idle process, and with the last connection the shapes of its requests. What ran before is then compiled
  // again, for more shapes: a read of the configuration server took 63 µs without such a collection between two rounds, 73 µs after one.
  const run = ['--conditions=source', '--expose-gc', '--no-memory-reducer', fileURLToPath(script), ...args];
  const node = isUnderTest ? pinned(SERVER_CORE, process.execPath, run) : { command: process.execPath, args: run };
  const child = spawn(node.command, node.args, { stdio: ['ignore', 'ignore', stderr, 'ipc'] });
  const ports = await new Promise<readonly number[]>((done, failed) => {
    child.once('exit', (code) => failed(new Error(`${fileURLToPath(script)} exited with ${code} before it listened`)));
    child.once('error', failed);
    child.on('message', (answer: Answer) => 'ports' in answer && done(answer.ports));
  });
  if (isUnderTest && child.pid !== undefined) watchCpuOf(child.pid);
  const ask = <Q extends Question>(question: Q): Promise<Answers[Q]> =>
    new Promise((done) => {
      const listener = (answer: Answer): void => {
        if (!('question' in answer) || answer.question !== question) return;
        child.off('message', listener);
        done(answer.value as Answers[Q]);
      };
      child.on('message', listener);
      child.send(question);
    });
  const [port] = ports;
  if (port === undefined) throw new Error(`${fileURLToPath(script)} does not say where it listens`);
  return {
    port,
    ports,
    cpuMicros: () => ask('cpu'),
    heapBytes: () => ask('heap'),
    slices: () => ask('slices'),
    rename: (renamed) => void child.send({ renamed } satisfies Message),
    async stop() {
      if (child.pid !== undefined) forgetCpuOf(child.pid);
      const gone = new Promise<void>((done) => child.once('exit', () => done()));
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 5000);
      await gone;
      clearTimeout(timer);
    },
  };
}

export interface InTurns {
  readonly slices: () => Slices;
  readonly rename: (renamed: Renamed) => void;
}

/** Called by a server script when it accepts connections; answers the harness's questions from then on. */
export function serving(ports: number | readonly number[], inTurns?: InTurns): void {
  const answers: { readonly [Q in Question]: () => Answers[Q] } = {
    cpu() {
      const { user, system } = process.cpuUsage();
      return user + system;
    },
    heap() {
      globalThis.gc?.();
      return process.memoryUsage().heapUsed;
    },
    slices: () => inTurns?.slices() ?? { first: [], second: [] },
  };
  process.on('message', (message: Message) => {
    if (typeof message === 'object') inTurns?.rename(message.renamed);
    else process.send?.({ question: message, value: answers[message]() } satisfies Answer);
  });
  process.on('SIGTERM', () => process.exit(0));
  process.on('disconnect', () => process.exit(0));
  process.send?.({ ports: [ports].flat() } satisfies Answer);
}
