import { fstatSync } from 'node:fs';
import process from 'node:process';
import type { AuditSink } from './audit-entry.ts';
import { jsonLines } from './json-lines.ts';
import { LineWriter } from './line-writer.ts';

/** Operational messages on standard output, so that standard error holds nothing but audit lines while the server runs. */
export function logToStandardOutput(): (line: string) => void {
  makeNonBlocking(1);
  const writer = new LineWriter(1);
  return (line) => {
    writer.add(line);
    writer.flush();
  };
}

/** The default audit destination. */
export function auditToStandardError(log: (line: string) => void): AuditSink {
  makeNonBlocking(2);
  const onRecovered = (dropped: number): void => log(`config-server: the audit log is writable again; ${dropped} lines were lost`);
  const onFailing = (code: string): void =>
    log(`config-server: WARNING: the audit log cannot be written (${code}); lines are buffered in memory, up to 16 MiB`);
  return jsonLines(new LineWriter(2, { onFailing, onRecovered }));
}

/** A full pipe would block the whole process. Opening node's stream on it puts the descriptor into non-blocking mode. */
function makeNonBlocking(fd: 1 | 2): void {
  const stats = fstatSync(fd);
  if (!stats.isFIFO() && !stats.isSocket()) return;
  const stream = fd === 1 ? process.stdout : process.stderr;
  // Nothing is written through this stream, but it reports a closed peer.
  stream.on('error', () => undefined);
}
