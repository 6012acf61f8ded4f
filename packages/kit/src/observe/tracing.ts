/** Names and values as OpenTelemetry's semantic conventions have them. Never values of statements, bodies or credentials. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanOptions {
  readonly kind?: 'internal' | 'client' | 'producer' | 'consumer';
  readonly attributes?: SpanAttributes;
  /** A stored `traceparent`: the span belongs to that trace, whatever runs now. Invalid ones are ignored. */
  readonly parent?: string | null;
  /** Stored `traceparent`s of related work, such as earlier attempts. */
  readonly links?: readonly string[];
}

export interface Span {
  set(attributes: SpanAttributes): void;
  /** Marks the span as failed; `errorType` is a code or a class name, not a message. */
  fail(errorType: string): void;
  /** What to store or send on, so that later work belongs to this trace. */
  readonly traceparent: string;
}

/** What the toolkit needs of a tracer. `tracing()` provides it; without it nothing below runs. */
export interface Tracing {
  /** Whether the running work belongs to a trace that is recorded. Asked first, so that what is not recorded costs nothing more. */
  isRecording(): boolean;
  /** Runs `work` in a span that ends with it, also when it is a promise. Without a `parent`, only inside a trace that is recorded. */
  span<R>(name: string, options: SpanOptions, work: (span: Span | undefined) => R): R;
  /** The `traceparent` of the running work; undefined outside a trace. */
  traceparent(): string | undefined;
  /** For log records. */
  ids(): { readonly trace_id: string; readonly span_id: string } | undefined;
}

let installed: Tracing | undefined;

/** OpenTelemetry has one tracer provider per process, so there is one tracing too. Undefined, and nothing paid, unless installed. */
export function activeTracing(): Tracing | undefined {
  return installed;
}

/** Returns the function that removes it again. */
export function installTracing(tracing: Tracing): () => void {
  installed = tracing;
  return () => {
    if (installed === tracing) installed = undefined;
  };
}

/** Runs `work` in a span, or just runs it. */
export function inSpan<R>(name: string, options: SpanOptions, work: (span: Span | undefined) => R): R {
  return installed === undefined ? work(undefined) : installed.span(name, options, work);
}
