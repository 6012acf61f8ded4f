/** Where a piece of work belongs: W3C Trace Context, https://www.w3.org/TR/trace-context/. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Version `ff`, ids of zeros and upper case are invalid; a later version may go on after the flags. */
const GRAMMAR = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Undefined for everything that is not one valid `traceparent`; the work then starts a trace of its own. */
export function parseTraceParent(value: unknown): TraceParent | undefined {
  if (typeof value !== 'string' || value.length > 512) return undefined;
  const match = GRAMMAR.exec(value);
  if (match === null || (value.startsWith('00') && match[4] !== undefined)) return undefined;
  return { traceId: match[1] as string, spanId: match[2] as string, isSampled: (Number.parseInt(match[3] as string, 16) & 1) === 1 };
}

export function formatTraceParent({ traceId, spanId, isSampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}
