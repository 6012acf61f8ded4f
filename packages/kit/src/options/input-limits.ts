/** How much one request may bring, whatever the route. Every input has a size and a count. */
export interface InputLimits {
  /** Bytes of a body; an app and a route may set their own. */
  readonly bodyBytes: number;
  /** Levels of nesting in a JSON body; an app may set its own. */
  readonly jsonDepth: number;
  /** Members of all objects of a JSON body together; an app may set its own. */
  readonly jsonMembers: number;
  /** Characters of a URL, its cursor left out. */
  readonly urlLength: number;
  /** Characters of a path parameter. */
  readonly pathParameterLength: number;
  /** Milliseconds in which headers and body must arrive. */
  readonly requestMs: number;
  /** Errors that one response lists. */
  readonly errors: number;
  /** Characters of an unknown name up to which a known one is suggested for it. */
  readonly suggestedNameLength: number;
  /** Known names that are compared with it. */
  readonly suggestedNames: number;
}

/** The one place of these numbers; docs/reference/http.md lists them, and `kit inspect` prints those of an app. */
export const INPUT_LIMITS: InputLimits = Object.freeze({
  bodyBytes: 1024 * 1024,
  jsonDepth: 32,
  // A bulk request of 100 items with 100 fields each. A member costs 5 µs before anything is known about the caller.
  jsonMembers: 10_000,
  // Longer ones are rejected by proxies and browsers on the way; Node itself stops at 16 KiB of headers.
  urlLength: 8192,
  // Ids, slugs and signed cursors fit.
  pathParameterLength: 500,
  requestMs: 60_000,
  // More than this is not corrected manually; without a bound a body of 1 MB costs seconds, and a response several times its size.
  errors: 100,
  // Comparing two names costs the product of their lengths: 100 errors with 200 names of 64 characters each are 80 ms at most.
  suggestedNameLength: 64,
  suggestedNames: 200,
});
