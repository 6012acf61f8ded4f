import { type Span, type SpanContext, TraceFlags } from '@opentelemetry/api';

/**
 * The span of a request that is not recorded. Work inside it is not recorded either, and belongs to one trace in logs, events and jobs. The ids
 * are made when somebody asks: most requests never do.
 */
export class UnrecordedSpan implements Span {
  readonly #traceId: string | undefined;
  #context: SpanContext | undefined;

  /** The caller's trace goes on, if there is one. */
  constructor(traceId: string | undefined) {
    this.#traceId = traceId;
  }

  spanContext(): SpanContext {
    return (this.#context ??= { traceId: this.#traceId ?? randomHex(16), spanId: randomHex(8), traceFlags: TraceFlags.NONE });
  }

  isRecording(): boolean {
    return false;
  }

  setAttribute(): this {
    return this;
  }

  setAttributes(): this {
    return this;
  }

  addEvent(): this {
    return this;
  }

  addLink(): this {
    return this;
  }

  addLinks(): this {
    return this;
  }

  setStatus(): this {
    return this;
  }

  updateName(): this {
    return this;
  }

  end(): void {
    // Nothing was recorded.
  }

  recordException(): void {
    // Nothing is recorded.
  }
}

/** As the SDK makes its ids: they tell traces apart and protect nothing. */
function randomHex(bytes: 8 | 16): string {
  let text = '';
  while (text.length < 2 * bytes)
    text += Math.trunc(Math.random() * 0x1_0000_0000)
      .toString(16)
      .padStart(8, '0');
  // Zeros alone are not an id.
  return /[^0]/.test(text) ? text : randomHex(bytes);
}
