import { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';

type Line = (from: 'stdout' | 'stderr', line: string) => void;
interface SpawnOptions {
  stdio?: string | (unknown[] & { [index: number]: unknown });
}

/** Every way to start a program ends in this method, which Node's types leave out. */
const shared = ChildProcess.prototype as unknown as { spawn: (this: ChildProcess, options: SpawnOptions) => unknown };

/**
 * Shows every line that programs started from here on print. What the starter reads stays as it was: chunks are looked at on their way into
 * the stream, not taken out of it. Where a program shares our standard error, it gets a pipe that ends there.
 */
export function watchChildren(onLine: Line): void {
  const { spawn } = shared;
  if (typeof spawn !== 'function') throw new Error('Programs are started elsewhere now: nothing they print would be searched.');
  shared.spawn = function watched(options) {
    const stdio = typeof options.stdio === 'string' ? Array.from({ length: 3 }, () => options.stdio) : [...(options.stdio ?? [])];
    const sharesStderr = stdio[2] === 'inherit' || stdio[2] === 2;
    if (sharesStderr) stdio[2] = 'pipe';
    const result = spawn.call(this, sharesStderr ? { ...options, stdio } : options);
    if (sharesStderr) this.stderr?.pipe(process.stderr, { end: false });
    for (const from of ['stdout', 'stderr'] as const) if (this[from] !== null && this[from] !== undefined) look(this[from], from, onLine);
    return result;
  };
}

function look(stream: Readable, from: 'stdout' | 'stderr', onLine: Line): void {
  const push = stream.push.bind(stream);
  const decoder = new TextDecoder();
  let rest = '';
  stream.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk instanceof Uint8Array || typeof chunk === 'string')
      rest += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const lines = rest.split('\n');
    rest = chunk === null ? '' : (lines.pop() ?? '');
    for (const line of lines) if (line !== '') onLine(from, line);
    return push(chunk, encoding);
  };
}
