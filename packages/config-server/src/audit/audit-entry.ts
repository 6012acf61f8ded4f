export type Endpoint = 'document' | 'paths' | 'explain' | 'check' | 'status' | 'stream' | 'metrics' | 'healthz' | 'readyz' | 'tls' | 'none';

export type Outcome = 'served' | 'not-modified' | 'unauthenticated' | 'not-found' | 'malformed' | 'method-not-allowed' | 'unavailable';

/** What is recorded of one request. No field could hold a configuration value. */
export interface AuditEntry {
  readonly time: string;
  readonly caller: string | null;
  /** Set only after the request's shape was checked: until then a path segment is an attacker's text. */
  readonly application: string | null;
  readonly profile: string | null;
  readonly endpoint: Endpoint;
  readonly outcome: Outcome;
  readonly generation: number | null;
}

/**
 * Where audit entries go. It is called before the answer leaves the process, and `flush`, when present, at the end of the same
 * event-loop turn. It must not block; if it throws, the request is served all the same.
 */
export interface AuditSink {
  (entry: AuditEntry): void;
  flush?(): void;
  /** Called once, when the server has stopped: the last chance to write what is still queued. */
  close?(): void;
}
