import { spawn, type ChildProcessByStdio, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const packageRoot = join(import.meta.dirname, '../..');

/** Ends what one command printed. No command prints a NUL. */
export const END_OF_RUN = '\0';

export interface KitCommand {
  /** Without the name of the program. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Standard input, to its end. */
  readonly input: string;
}

export interface KitRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  /** Default: the folder of the program. */
  readonly cwd?: string;
  readonly input?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

interface StartOptions extends RunOptions {
  /** A file of `bin`. */
  readonly bin?: string;
  /** Flags of Node; default what bin/kit.js would otherwise start a second process with. */
  readonly nodeArgs?: readonly string[];
}

/** The `import` specifier, quoted, of a source of the package, for a config file that a test writes. */
export function sourceOf(path: string): string {
  return JSON.stringify(pathToFileURL(join(packageRoot, 'src', path)).href);
}

/**
 * The command line in a folder. `run` is quick: one process executes all the commands that are given to it, one after the other. `start` and
 * `spawn` start the real program; use them where the process is what a test is about: signals, exit, two at once.
 */
export class KitProgram {
  readonly #folder: string;
  readonly #environment: Readonly<Record<string, string>>;
  #process: ChildProcessByStdio<Writable, Readable, Readable> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(folder: string, environment: Readonly<Record<string, string>> = {}) {
    this.#folder = folder;
    const { PATH = '', NODE_COMPILE_CACHE } = process.env;
    this.#environment = { PATH, ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }), ...environment };
  }

  run(args: readonly string[], options: RunOptions = {}): Promise<KitRun> {
    const run = this.#last.then(() => this.#execute(args, options));
    this.#last = run.catch(() => undefined);
    return run;
  }

  /** The real program, as a shell starts it. */
  start(args: readonly string[], options: StartOptions = {}): ChildProcessWithoutNullStreams {
    const { bin = 'kit', nodeArgs = ['--conditions=source'], cwd = this.#folder, environment } = options;
    return spawn(process.execPath, [...nodeArgs, join(packageRoot, `bin/${bin}.js`), ...args], {
      cwd,
      env: { ...this.#environment, ...environment },
    });
  }

  /** The real program, to its end. */
  async spawn(args: readonly string[], options: StartOptions = {}): Promise<KitRun> {
    const child = this.start(args, options);
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.stdin.end(options.input ?? '');
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, stdout, stderr };
  }

  async close(): Promise<void> {
    await this.#last;
    const child = this.#process;
    if (child === undefined || child.exitCode !== null) return;
    const closed = once(child, 'close');
    child.stdin.end();
    await closed;
  }

  async #execute(args: readonly string[], { cwd = this.#folder, input = '', environment }: RunOptions): Promise<KitRun> {
    this.#process ??= spawn(process.execPath, ['--conditions=source', join(import.meta.dirname, 'kit-process.ts')], {
      cwd: packageRoot,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const { stdin, stdout, stderr } = this.#process;
    const command: KitCommand = { args, cwd, input, environment: { ...this.#environment, ...environment } };
    const printed = Promise.all([untilEnd(stdout), untilEnd(stderr)]);
    stdin.write(`${JSON.stringify(command)}\n`);
    const [[text, code], [complaints]] = await printed;
    return { code, stdout: text, stderr: complaints };
  }
}

/** What a stream holds until the end of the run, and the exit code behind it. */
async function untilEnd(stream: Readable): Promise<[string, number]> {
  let text = '';
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    const [printed = '', code, rest] = text.split(END_OF_RUN);
    if (rest !== undefined) return [printed, Number(code)];
  }
  throw new Error(`The process ended after: ${text}`);
}
