import type { AuditEntry, AuditSink } from './audit-entry.ts';
import type { LineWriter } from './line-writer.ts';

/** Callers are few and repeat on every line; their quoted form is kept. */
const quotedCallers = new Map<string, string>();
const QUOTED_MAX = 10_000;

function quoteCaller(name: string): string {
  let quoted = quotedCallers.get(name);
  if (quoted === undefined) {
    quoted = JSON.stringify(name);
    if (quotedCallers.size >= QUOTED_MAX) quotedCallers.clear();
    quotedCallers.set(name, quoted);
  }
  return quoted;
}

function quoteSegment(segment: string | null): string {
  // A recorded segment passed the shape check: it holds nothing that JSON would escape.
  return segment === null ? 'null' : `"${segment}"`;
}

/** One JSON object on one line. Assembled by hand because it is on the path of every request. */
export function formatEntry(entry: AuditEntry): string {
  if (typeof entry !== 'object' || entry === null)
    throw new TypeError('formatEntry(): the entry is missing; use one that a sink was given.');
  const caller = entry.caller === null ? 'null' : quoteCaller(entry.caller);
  // Hex digits only, as far as the server makes it; a program that formats entries of its own may have put anything there.
  const trace = entry.trace_id === undefined ? '' : `,"trace_id":${JSON.stringify(entry.trace_id)}`;
  return `{"time":"${entry.time}","caller":${caller},"application":${quoteSegment(entry.application)},"profile":${quoteSegment(entry.profile)},"endpoint":"${entry.endpoint}","outcome":"${entry.outcome}","generation":${entry.generation}${trace}}`;
}

/** The default sink: JSON lines to a descriptor. */
export function jsonLines(writer: LineWriter): AuditSink {
  const sink: AuditSink = (entry) => writer.add(formatEntry(entry));
  sink.flush = () => writer.flush();
  sink.close = () => writer.close();
  return sink;
}
