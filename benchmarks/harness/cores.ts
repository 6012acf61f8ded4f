import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

const pinnable = process.platform === 'linux' && availableParallelism() > 1 && spawnSync('taskset', ['--version']).status === 0;

/** The server under test runs on one core and the load on another, where the machine has two and `taskset`. */
export const SERVER_CORE = 0;
export const LOAD_CORE = 1;

/** Wraps a command so that it runs on `core`; unchanged where pinning is not possible. */
export function pinned(core: number, command: string, args: readonly string[]): { command: string; args: string[] } {
  return pinnable ? { command: 'taskset', args: ['-c', String(core), command, ...args] } : { command, args: [...args] };
}
