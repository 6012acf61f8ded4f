import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** Runs a program that prints numbers, one per line, and kills it with SIGKILL at its line `lines`. Returns the last number that it printed. */
export async function runUntilKilled(program: string, args: readonly string[], lines: number): Promise<number> {
  const child = spawn(process.execPath, ['--conditions=source', program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  let [last, read] = [0, 0];
  for await (const line of createInterface({ input: child.stdout })) {
    last = Number(line);
    read += 1;
    if (read === lines) child.kill('SIGKILL');
  }
  await ended;
  return last;
}
