/** How much one request, one caller and one waiting client may take, whatever the route. Every input has a size, a count and a time. */
export interface InputLimits {
  /** Bytes of a body; an app and a route may set their own. */
  readonly bodyBytes: number;
  /** Levels of nesting in a JSON body; an app may set its own. */
  readonly jsonDepth: number;
  /** Members of all objects of a JSON body together; an app may set its own. */
  readonly jsonMembers: number;
  /** Items of all arrays of a JSON body together; an app may set its own. */
  readonly jsonItems: number;
  /** Characters of a URL, its cursor left out. */
  readonly urlLength: number;
  /** Characters of a path parameter. */
  readonly pathParameterLength: number;
  /** Milliseconds in which headers and body must arrive; a body that is not JSON may take longer. */
  readonly requestMs: number;
  /** Milliseconds after which a client that sends nothing of such a body is disconnected. */
  readonly bodyIdleMs: number;
  /** Bytes that the client sends of such a body per second on average, while it is waited for. */
  readonly bodyBytesPerSecond: number;
  /** Errors that one response lists. */
  readonly errors: number;
  /** Characters of an unknown name up to which a known one is suggested for it. */
  readonly suggestedNameLength: number;
  /** Known names that are compared with it. */
  readonly suggestedNames: number;
  /** Event streams that one caller may have open in one process. */
  readonly streamsPerCaller: number;
  /** Exports that one caller may have open in one process. */
  readonly exportsPerCaller: number;
  /** Percent of the connections of a database that exports and other streamed queries may use; the rest is for everything else. */
  readonly cursorsPercent: number;
  /** Percent of the connections of a database that one caller's reads may use when they can take long; a database may set its own. */
  readonly callerPercent: number;
  /** Such reads of one caller that may wait for its share; a database may set its own. */
  readonly callerWaiting: number;
  /** Milliseconds for the reads of a request that can take long; an app and a route may set their own with `timeoutMs`. */
  readonly statementMs: number;
  /** Milliseconds for each batch of rows of an export. */
  readonly exportBatchMs: number;
  /** Milliseconds after which a client that takes nothing of a response is disconnected. */
  readonly clientIdleMs: number;
  /** Bytes that the client of an export takes per second on average, while it is waited for. */
  readonly clientBytesPerSecond: number;
  /** Idempotency records that one caller may have; an app may set its own. */
  readonly idempotencyRecords: number;
}

/** The one place of these numbers; docs/reference/http.md lists them, and `kit inspect` prints those of an app. */
export const INPUT_LIMITS: InputLimits = Object.freeze({
  bodyBytes: 1024 * 1024,
  jsonDepth: 32,
  // A bulk request of 100 items with 100 fields each. A member costs 5 µs before anything is known about the caller.
  jsonMembers: 10_000,
  // 30 vectors of 1,536 numbers. A number costs a tenth of a member; the body limit alone would allow 500,000 of them.
  jsonItems: 50_000,
  // Longer ones are rejected by proxies and browsers on the way; Node itself stops at 16 KiB of headers.
  urlLength: 8192,
  // Ids, slugs and signed cursors fit.
  pathParameterLength: 500,
  requestMs: 60_000,
  bodyIdleMs: 30_000,
  // The same as for a response. A file of 50 MB would take three and a half hours; without a minimum it could take years.
  bodyBytesPerSecond: 4096,
  // More than this is not corrected manually; without a bound a body of 1 MB costs seconds, and a response several times its size.
  errors: 100,
  // Comparing two names costs the product of their lengths: 100 errors with 200 names of 64 characters each are 80 ms at most.
  suggestedNameLength: 64,
  suggestedNames: 200,
  // A browser opens 6 per host over HTTP/1.1; a service that follows jobs opens more.
  streamsPerCaller: 100,
  // Fewer than the 5 cursors of a pool of 10: one caller leaves room for others.
  exportsPerCaller: 3,
  // Readiness probes and ordinary requests get a connection however many exports wait for their clients.
  cursorsPercent: 50,
  callerPercent: 50,
  // A page of an application sends fewer at the same time; each waits for seconds at most.
  callerWaiting: 20,
  // A person has gone by then, and most proxies wait for 30 to 60 seconds.
  statementMs: 10_000,
  exportBatchMs: 30_000,
  clientIdleMs: 60_000,
  // Slower than a modem. A client that takes less keeps a snapshot open and a connection busy for nothing.
  clientBytesPerSecond: 4096,
  // More than one request per second, all day. The records of one caller then take at most 25 GB, and 100 MB with responses of 1 KB.
  idempotencyRecords: 100_000,
});
