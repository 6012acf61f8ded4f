export type Endpoint =
  | 'document'
  | 'paths'
  | 'explain'
  | 'check'
  | 'status'
  | 'stream'
  | 'history'
  | 'metrics'
  | 'healthz'
  | 'readyz'
  | 'tls'
  | 'none';

export type Outcome = 'served' | 'not-modified' | 'unauthenticated' | 'not-found' | 'malformed' | 'method-not-allowed' | 'unavailable';

/** What is recorded about one request. No field can hold a configuration value. */
export interface AuditEntry {
  /** When the entry was recorded, in ISO 8601. */
  readonly time: string;
  /** The name of the client; null when the request had no valid token. */
  readonly caller: string | null;
  /** Set only after the shape check: until then a path segment is text of an attacker's choice. */
  readonly application: string | null;
  /** Null where `application` is. */
  readonly profile: string | null;
  /** What was asked for. */
  readonly endpoint: Endpoint;
  /** What became of the request. */
  readonly outcome: Outcome;
  /** The generation that was served; null when none was. */
  readonly generation: number | null;
  /**
   * The trace the request belongs to: 32 hex digits. Absent unless an authenticated caller sent a valid `traceparent`, or the
   * server makes spans itself (`server.tracing`).
   */
  readonly trace_id?: string;
}

/** One request as the server describes it to the audit log. What is left out becomes null. */
export interface AuditRecord {
  readonly endpoint: Endpoint;
  readonly outcome: Outcome;
  readonly caller?: string | undefined;
  readonly application?: string | undefined;
  readonly profile?: string | undefined;
  readonly generation?: number | undefined;
}

/**
 * Where audit entries go. It is called before the response leaves the process, and `flush`, when present, at the end of the same
 * event-loop turn. It must not block; if it throws, the request is served all the same.
 */
export interface AuditSink {
  (entry: AuditEntry): void;
  /** Writes the entries of a turn of the event loop, where the sink collects them. */
  flush?(): void;
  /** Called once, when the server has stopped: the last chance to write queued entries. A promise is awaited until the shutdown deadline. */
  close?(): void | Promise<void>;
}
