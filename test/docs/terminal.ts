import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

/** A block that is being run, or was. */
export interface Running {
  /** The exit code; a shell that ended with the block counts as 1 unless it says otherwise. */
  readonly exit: Promise<number>;
  /** What a reader would see so far, results and messages in their order. */
  output(): string;
}

// Blocks are sourced, so that variables and jobs of one are there for the next. A command that fails ends the block.
const LOOP = 'set -e -o pipefail; while IFS= read -r block <&3; do . "$block" < "$block.in" > "$block.out" 2>&1; echo done >&4; done';

/** One terminal of a reader: a shell that stays open from block to block. */
export class Terminal {
  static #blocks = 0;
  readonly #shell: ChildProcess;
  readonly #scratch: string;
  readonly #closed: Promise<number>;

  constructor(folder: string, environment: Readonly<Record<string, string>>, scratch: string) {
    this.#scratch = scratch;
    // In a process group of its own, so that whatever a page starts ends with the terminal.
    this.#shell = spawn('bash', ['--noprofile', '--norc', '-c', LOOP], {
      cwd: folder,
      env: environment,
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    });
    this.#closed = new Promise((ended) => this.#shell.once('exit', (code) => ended(code === null || code === 0 ? 1 : code)));
    // A terminal that was closed does not read on.
    (this.#shell.stdio[3] as Writable).on('error', () => undefined);
  }

  start(text: string, input = ''): Running {
    const file = join(this.#scratch, `block-${++Terminal.#blocks}.sh`);
    writeFileSync(file, `${text}\n`);
    writeFileSync(`${file}.in`, input);
    writeFileSync(`${file}.out`, '');
    const finished = new Promise<number>((ended) => (this.#shell.stdio[4] as Readable).once('data', () => ended(0)));
    (this.#shell.stdio[3] as Writable).write(`${file}\n`);
    return { exit: Promise.race([finished, this.#closed]), output: () => readFileSync(`${file}.out`, 'utf8') };
  }

  close(): void {
    try {
      process.kill(-(this.#shell.pid ?? 0), 'SIGKILL');
    } catch {
      // Nothing of it is left.
    }
  }
}
