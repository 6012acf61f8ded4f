import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline/promises';
import type { ListeningPlace } from '../terminal/listening-place.ts';
import { paint, type Terminal } from '../terminal/terminal.ts';
import type { FromApp, ToApp } from './messages.ts';

export interface DevServerOptions {
  /** The program and its first arguments: `[kit.js, '--config', file]`. */
  readonly program: readonly [string, ...string[]];
  readonly cwd: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly terminal: Terminal;
  readonly place: ListeningPlace;
  /** Apply pending migrations without asking. */
  readonly yes: boolean;
  /** Files with clients that each start keeps current. */
  readonly clients?: readonly string[];
}

/** A process that does not end by itself after SIGTERM is killed: it is about to be replaced. */
const STOP_MS = 2000;

/** Open requests of the old code are not waited for longer than this. */
const OPEN_REQUESTS_MS = 500;

/** Runs the app in its own process and starts it again when told to. One process at a time has the port. */
export class DevServer {
  readonly #options: DevServerOptions;
  #child: ChildProcess | undefined;
  /** Aborts a question whose process is being replaced. */
  #question = new AbortController();
  #beganAtMs = 0;
  #isIntroduced = false;
  #stopping: Promise<void> | undefined;
  #again = false;

  constructor(options: DevServerOptions) {
    this.#options = options;
  }

  start(): void {
    const { program, cwd, environment, place, clients = [] } = this.#options;
    const [path, ...args] = program;
    this.#beganAtMs = performance.now();
    this.#question = new AbortController();
    const child = fork(
      path,
      [...args, 'dev-serve', '--port', String(place.port), '--host', place.host, ...clients.flatMap((file) => ['--client', file])],
      {
        cwd,
        env: { SHUTDOWN_TIMEOUT_MS: String(OPEN_REQUESTS_MS), ...environment, NODE_ENV: environment['NODE_ENV'] || 'development' },
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      },
    );
    this.#child = child;
    child.on('message', (message: FromApp) => void this.#heard(message, child));
    child.once('exit', (code, signal) => {
      if (this.#child !== child) return;
      this.#child = undefined;
      if (this.#stopping === undefined)
        this.#say('red', '✗', `The app ended (${signal ?? `code ${code}`}). Save a file to start it again.`);
    });
  }

  /** Ends the process, if there is one, and starts the next. Called while it is doing so, it does so once more. */
  async restart(): Promise<void> {
    if (this.#stopping !== undefined) {
      this.#again = true;
      return;
    }
    do {
      this.#again = false;
      await this.stop();
      this.start();
    } while (this.#again);
  }

  async stop(): Promise<void> {
    this.#stopping ??= this.#stop().finally(() => (this.#stopping = undefined));
    await this.#stopping;
  }

  async #stop(): Promise<void> {
    const child = this.#child;
    this.#question.abort();
    if (child === undefined) return;
    const ended = once(child, 'exit');
    const deadline = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    child.kill('SIGTERM');
    await ended;
    clearTimeout(deadline);
    this.#child = undefined;
  }

  async #heard(message: FromApp, child: ChildProcess): Promise<void> {
    if (message.type === 'ready') return this.#ready(message);
    if (message.type === 'migrated') return message.migrations.forEach((id) => this.#say('green', '✓', `applied ${id}`));
    if (message.type === 'client')
      return message.problem === undefined
        ? this.#say('green', '✓', `wrote the client ${message.file}`)
        : this.#say('red', '✗', `The client ${message.file} was not written: ${message.problem}`);
    const answer: ToApp = { migrate: this.#options.yes || (await this.#ask(message.migrations, message.database)) };
    if (child.connected) child.send(answer);
  }

  #ready({ title, url, links }: Extract<FromApp, { type: 'ready' }>): void {
    this.#say('green', '✓', `${title} listens on ${url} (${Math.round(performance.now() - this.#beganAtMs)} ms)`);
    if (!this.#isIntroduced) for (const [name, path] of links) this.#say('dim', ' ', `${name.padEnd(10)} ${url}${path}`);
    this.#isIntroduced = true;
  }

  async #ask(migrations: readonly string[], database: string): Promise<boolean> {
    const { terminal } = this.#options;
    this.#say('yellow', '!', `${database}: pending ${migrations.join(', ')}`);
    if (!terminal.stdin.isTTY) {
      this.#say('yellow', ' ', 'Run npx kit dev --yes to apply them, or npx kit migrate.');
      return false;
    }
    const lines = createInterface({ input: terminal.stdin, output: terminal.stderr });
    try {
      const reply = await lines.question('  Apply them now? [Y/n] ', { signal: this.#question.signal });
      return /^(?:y|yes|)$/i.test(reply.trim());
    } catch {
      return false;
    } finally {
      lines.close();
    }
  }

  #say(style: 'red' | 'green' | 'yellow' | 'dim', mark: string, text: string): void {
    const { stderr } = this.#options.terminal;
    stderr.write(`${paint(style, mark, stderr)} ${text}\n`);
  }
}

/** Fails as `listen` would; port 0 becomes a free one, which is kept from then on. */
export async function reservePort({ host, port }: ListeningPlace): Promise<ListeningPlace> {
  const probe = createServer();
  const listening = once(probe, 'listening');
  probe.listen(port, host);
  await listening;
  const address = probe.address();
  await new Promise((closed) => probe.close(closed));
  return { host, port: typeof address === 'object' && address !== null ? address.port : port };
}
