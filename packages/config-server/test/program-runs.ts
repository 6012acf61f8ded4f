import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { afterAll } from 'vitest';
import { END_OF_RUN, type ProgramCommand } from './program-command.ts';

export interface ProgramRun {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output, then standard error. */
  readonly printed: string;
}

interface RunOptions {
  readonly cwd?: string;
  /** All that the program gets of variables, besides PATH. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

let started: ChildProcessByStdio<Writable, Readable, Readable> | undefined;
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a program to its end, in a process that executes all that the test file gives it, one after the other. Start the file of `bin` where the
 * process itself is what a test is about: signals, a server, a kill.
 */
export function runProgram(main: string, args: readonly string[], options: RunOptions = {}): Promise<ProgramRun> {
  const run = last.then(() => execute(main, args, options));
  last = run.catch(() => undefined);
  return run;
}

async function execute(main: string, args: readonly string[], { cwd = process.cwd(), environment = {} }: RunOptions): Promise<ProgramRun> {
  const { stdin, stdout, stderr } = (started ??= start());
  const given = Object.entries({ PATH: process.env['PATH'], ...environment }).filter(([, value]) => value !== undefined);
  const command: ProgramCommand = { main, args, cwd, environment: Object.fromEntries(given) as Record<string, string> };
  const printed = Promise.all([untilEnd(stdout), untilEnd(stderr)]);
  stdin.write(`${JSON.stringify(command)}\n`);
  const [[out, status], [complaints]] = await printed;
  return { status, stdout: out, stderr: complaints, printed: out + complaints };
}

function start(): ChildProcessByStdio<Writable, Readable, Readable> {
  const script = join(import.meta.dirname, 'program-process.ts');
  return spawn(process.execPath, ['--conditions=source', script], { stdio: ['pipe', 'pipe', 'pipe'] });
}

afterAll(async () => {
  const child = started;
  started = undefined;
  await last;
  if (child === undefined || child.exitCode !== null) return;
  const closed = once(child, 'close');
  child.stdin.end();
  await closed;
});

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
