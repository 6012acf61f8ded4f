import type { AuditRecord } from '../audit/audit-entry.ts';
import type { TraceParent } from './traceparent.ts';

// Apart from request-spans.ts, so that the types of this package do not need OpenTelemetry's.

/** A request that was answered. */
export interface AnsweredRequest {
  readonly method: string;
  /** `performance.now()` when the request arrived. */
  readonly startedAt: number;
  readonly status: number;
  /** Of an authenticated caller only: a stranger decides neither about the trace nor about its sampling. */
  readonly parent: TraceParent | undefined;
  readonly record: AuditRecord;
}

/** Makes one span per request. Returns the id of its trace, or undefined when nothing records spans. */
export type RecordSpan = (request: AnsweredRequest) => string | undefined;
