/** The trace a caller says its request belongs to. */
export interface TraceParent {
  /** 32 lowercase hex digits, not all zero. */
  readonly traceId: string;
  /** 16 lowercase hex digits, not all zero. */
  readonly spanId: string;
  readonly sampled: boolean;
}

// W3C Trace Context: version, trace id, parent id, flags. A later version may add fields behind a dash; version 00 may not.
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const LENGTH_MAX = 512;
const SAMPLED = 1;

/**
 * Reads a `traceparent` header; anything the specification calls invalid is undefined. What comes back holds hex digits only,
 * so no caller can put text of its own into a log through it. Repeated headers arrive joined and are invalid.
 */
export function parseTraceparent(header: unknown): TraceParent | undefined {
  if (typeof header !== 'string' || header.length > LENGTH_MAX) return undefined;
  const match = TRACEPARENT.exec(header);
  if (match === null) return undefined;
  const [, version, traceId, spanId, flags, rest] = match;
  if (version === '00' && rest !== undefined) return undefined;
  return { traceId: traceId!, spanId: spanId!, sampled: (Number.parseInt(flags!, 16) & SAMPLED) === SAMPLED };
}
