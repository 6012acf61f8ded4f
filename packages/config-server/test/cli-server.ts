import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { runProgram } from './program-runs.ts';

export interface CliServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Everything printed so far, both streams together. */
  printed(): string;
  /** The audit lines so far, parsed. */
  audit(): Record<string, unknown>[];
  /** Sends a signal and resolves to the exit code, null when the signal ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  readonly exited: Promise<number | null>;
}

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeArgs?: readonly string[];
  /** Keep no printed text in memory, for runs with millions of audit lines; it goes to this file instead. */
  readonly logFile?: string;
}

const bin = join(import.meta.dirname, '..', 'bin', 'config-server.js');

/** Runs a command that ends by itself, and hands back what it printed. */
export async function runCli(
  args: readonly string[],
  { env = {} }: Pick<CliOptions, 'env'> = {},
): Promise<{ code: number; printed: string }> {
  const { status, printed } = await runProgram('cli/main.ts', args, { environment: env });
  return { code: status, printed };
}

/** Starts the real command on a server.toml and waits until it says where it listens. Killed when the test ends. */
export async function startCli(serverToml: string, options: CliOptions = {}): Promise<CliServer> {
  const child = launch([serverToml], options);
  const address = await child.listening;
  const stop = (signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> => {
    child.kill(signal);
    return child.exited;
  };
  onTestFinished(async () => {
    await stop('SIGKILL');
  });
  const audit = (): Record<string, unknown>[] =>
    child
      .printed()
      .split('\n')
      .filter((line) => line.startsWith('{"time":'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { url: address.url, port: address.port, pid: child.pid, printed: child.printed, audit, stop, exited: child.exited };
}

function launch(args: readonly string[], options: CliOptions) {
  const child = spawn(process.execPath, ['--conditions=source', ...(options.nodeArgs ?? []), bin, ...args], {
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  let found: (address: { url: string; port: number }) => void = () => undefined;
  let failed: (error: Error) => void = () => undefined;
  const listening = new Promise<{ url: string; port: number }>((resolve, reject) => {
    found = resolve;
    failed = reject;
  });
  listening.catch(() => undefined);
  let announced = false;
  const log = options.logFile === undefined ? undefined : createWriteStream(options.logFile, { flags: 'a', mode: 0o600 });
  const collect = (chunk: Buffer): void => {
    if (announced && log !== undefined) {
      log.write(chunk);
      return;
    }
    text += chunk.toString();
    const match = /listening on (127\.0\.0\.1:(\d+)) \((plaintext|tls)/.exec(text);
    if (match === null || announced) return;
    announced = true;
    found({ url: `${match[3] === 'tls' ? 'https' : 'http'}://${match[1]}`, port: Number(match[2]) });
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  const exited = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      log?.end();
      failed(new Error(`config-server ended with ${code} before it listened:\n${text}`));
      resolve(code);
    });
  });
  return { pid: child.pid ?? 0, kill: (signal: NodeJS.Signals) => child.kill(signal), printed: () => text, listening, exited };
}
