import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';

/** What a worker is called in attempt histories: host, process and a random part. */
export function workerName(): string {
  return `${hostname().slice(0, 60)}:${process.pid}:${randomBytes(3).toString('hex')}`;
}
