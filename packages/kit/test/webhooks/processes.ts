import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { DeliverySummary } from '../../src/contrib/webhooks/delivery/result-writer.ts';

export type Kind = 'worker' | 'publisher';

/** Workers and publishers in processes of their own. */
export class Processes {
  /** What workers that were stopped, not killed, have counted; by their name, which is the process id. */
  readonly summaries = new Map<string, DeliverySummary>();
  readonly killed = new Set<string>();
  readonly #argsOf: Readonly<Record<Kind, readonly string[]>>;
  readonly #running = new Map<ChildProcess, Kind>();

  constructor(argsOf: Readonly<Record<Kind, readonly string[]>>) {
    this.#argsOf = argsOf;
  }

  async start(kind: Kind): Promise<void> {
    const script = fileURLToPath(new URL(`./${kind}-process.ts`, import.meta.url));
    const child = fork(script, [...this.#argsOf[kind]], {
      execArgv: ['--conditions=source'],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    this.#running.set(child, kind);
    child.on('exit', () => this.#running.delete(child));
    child.on('message', (message: { summary?: DeliverySummary }) => {
      if (message.summary !== undefined) this.summaries.set(String(child.pid), message.summary);
    });
    await new Promise<void>((resolve) => {
      child.once('message', () => resolve());
      child.once('exit', () => resolve());
    });
  }

  /** Kills any of them, wherever it is, and starts another in its place. */
  async killOne(): Promise<void> {
    const all = [...this.#running];
    const chosen = all[Math.floor(Math.random() * all.length)];
    if (chosen === undefined) return this.start('worker');
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
