// CPU time and memory of processes, read from /proc: those of a product, of the database server and of Redis.
import { readdirSync, readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import type pg from 'pg';

const TICKS_PER_SECOND = 100;

interface Stat {
  readonly parent: number;
  /** Of the process and of children that have ended. */
  readonly ticks: number;
}

function statOf(pid: number): Stat | undefined {
  try {
    // The name of the program, in parentheses, may have spaces: what follows it is counted.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
    return { parent: Number(fields[1]), ticks: [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0) };
  } catch {
    return undefined;
  }
}

/** Of processes with everything that they started, in milliseconds. */
export function cpuMillisOf(pids: readonly number[]): number {
  const stats = new Map<number, Stat>();
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? statOf(Number(name)) : undefined;
    if (stat !== undefined) stats.set(Number(name), stat);
  }
  const isIn = (pid: number): boolean => pids.includes(pid) || (stats.has(pid) && pid > 1 && isIn(stats.get(pid)!.parent));
  let ticks = 0;
  for (const [pid, stat] of stats) if (isIn(pid)) ticks += stat.ticks;
  return (ticks / TICKS_PER_SECOND) * 1000;
}

/** Of processes, without what they share with others, in megabytes. */
export function memoryOf(pids: readonly number[]): number {
  const kilobytes = pids.map((pid) => Number(/^Pss: +(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0));
  return kilobytes.reduce((sum, each) => sum + each, 0) / 1024;
}

/** The process that all processes of a PostgreSQL server on this machine come from. */
export async function postmasterOf(database: pg.Pool): Promise<number> {
  const client = await database.connect();
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    return statOf(rows[0]!.pid)?.parent ?? 0;
  } finally {
    client.release();
  }
}

export async function redisPid(url: string): Promise<number> {
  const { hostname, port } = new URL(url);
  const socket = new Socket().connect(Number(port), hostname);
  socket.end('INFO server\r\n');
  let answer = '';
  for await (const chunk of socket) answer += String(chunk);
  return Number(/process_id:(\d+)/.exec(answer)?.[1]);
}
