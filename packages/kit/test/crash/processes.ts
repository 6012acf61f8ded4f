import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** A script that says `{ ready: true }` to its parent, and may say `{ summary }` when it is told to stop. */
export interface ProcessScript {
  readonly script: URL;
  readonly args: readonly string[];
}

/** Several processes of each kind, to be killed while they work. */
export class Processes<Kind extends string, Summary = unknown> {
  /** What processes that were stopped, not killed, have counted; by process id. */
  readonly summaries = new Map<string, Summary>();
  readonly killed = new Set<string>();
  readonly #scripts: Readonly<Record<Kind, ProcessScript>>;
  readonly #running = new Map<ChildProcess, Kind>();

  constructor(scripts: Readonly<Record<Kind, ProcessScript>>) {
    this.#scripts = scripts;
  }

  async start(kind: Kind): Promise<void> {
    const { script, args } = this.#scripts[kind];
    const child = fork(fileURLToPath(script), [...args], {
      execArgv: ['--conditions=source'],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    this.#running.set(child, kind);
    child.on('exit', () => this.#running.delete(child));
    child.on('message', (message: { summary?: Summary }) => {
      if (message.summary !== undefined) this.summaries.set(String(child.pid), message.summary);
    });
    await new Promise<void>((resolve, reject) => {
      child.once('message', () => resolve());
      child.once('exit', () => resolve());
      child.once('error', reject);
    });
  }

  /** Kills any of them, wherever it is, and starts another in its place. `fallback` is started when none is left. */
  async killOne(fallback: Kind): Promise<void> {
    const all = [...this.#running];
    const chosen = all[Math.floor(Math.random() * all.length)];
    if (chosen === undefined) return this.start(fallback);
    const [child, kind] = chosen;
    await this.#kill(child);
    await this.start(kind);
  }

  async end(kind: Kind): Promise<void> {
    const children = [...this.#running].filter(([, each]) => each === kind).map(([child]) => child);
    await Promise.all(children.map((child) => ended(child, 'SIGTERM')));
  }

  async killAll(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((child) => this.#kill(child)));
  }

  #kill(child: ChildProcess): Promise<void> {
    this.killed.add(String(child.pid));
    return ended(child, 'SIGKILL');
  }
}

function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill(signal);
  });
}
