import type { AuditRecorder } from '../audit/recorder.ts';
import type { Section } from '../section/section.ts';
import type { RecordSpan } from '../tracing/record-span.ts';
import type { StreamHub } from './stream-hub.ts';
import type { TokenTable } from './token-table.ts';

/** The clients and sections in service. Replaced as a whole when server.toml changes, so a request never sees half of an edit. */
export interface Roster {
  readonly tokens: TokenTable;
  readonly sections: ReadonlyMap<string, Section>;
  readonly maxStreamConnections: number;
  /** Whether a client is an operator. Without one the history endpoint does not exist. */
  readonly hasOperators: boolean;
}

/** What the request listener needs of a running server. */
export interface Service {
  readonly roster: Roster;
  readonly audit: AuditRecorder;
  readonly streams: StreamHub;
  readonly ready: boolean;
  readonly stopping: boolean;
  /** Makes a span of an answered request; absent without `server.tracing`. */
  readonly recordSpan: RecordSpan | undefined;
  now(): number;
  /** Loads a section's sources without installing them; a limited number run at once. */
  dryRun<Result>(work: () => Promise<Result>): Promise<Result>;
}
